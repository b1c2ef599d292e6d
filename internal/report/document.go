package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
)

// Schema is the version of what is printed as JSON; docs/json.md says what may change
// without it becoming another.
const Schema = 1

// Document writes v, which has to be an object, as one indented document with the schema's
// version before its own fields. A number that is not whole has nine digits: more are the
// noise of floating point.
func Document(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	raw, isObject := bytes.CutPrefix(b.Bytes(), []byte("{"))
	if !isObject {
		return errors.New("a document is an object, so that something can be added to it")
	}
	head := "{\n  \"schema\": " + strconv.Itoa(Schema)
	if !bytes.HasPrefix(raw, []byte("}")) {
		head += ","
	} else {
		head += "\n"
	}
	_, err := w.Write(append([]byte(head), rounded(raw)...))
	return err
}

// Entry is an entry of a document's list that is written by itself, in one line, its numbers as Document's.
func Entry(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(rounded(b.Bytes()), []byte("\n")), err
}

// significant is how many digits of a number that is not whole are written.
const significant = 9

// rounded is a document with its fractions rounded.
func rounded(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			end := i + 1
			for doc[end] != '"' {
				if doc[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, doc[i:end+1]...)
			i = end + 1
		case c == '-' || c >= '0' && c <= '9':
			end := i
			for end < len(doc) && bytes.IndexByte([]byte("+-.0123456789eE"), doc[end]) >= 0 {
				end++
			}
			out = append(out, roundedNumber(doc[i:end])...)
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

func roundedNumber(token []byte) []byte {
	if !bytes.ContainsAny(token, ".eE") {
		return token
	}
	v, err := strconv.ParseFloat(string(token), 64)
	if err != nil {
		return token
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significant, 64), 64)
	if err != nil {
		return token
	}
	format := byte('f')
	if size := math.Abs(short); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(nil, short, format, -1, 64)
}

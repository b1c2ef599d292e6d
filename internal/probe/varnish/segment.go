package varnish

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

// Varnish's shared memory (VSM) is a directory: the file _.index has a line for each segment, "+ FILE OFFSET LENGTH CATEGORY IDENT", and one
// with "-" for each that is gone. A segment of counters (category Stat) begins with a head and names another one (StatDoc),
// whose text in JSON says where in the first one each counter stands, as 64 bits. That is what varnishstat reads.
const (
	headBytes  = 24 // ready, where the body begins, which StatDoc: 64 bits each
	readyIndex = 1
	// maxSegment bounds what is read of a segment, maxDoc what is read of all descriptions together, and maxSegments how many
	// segments are read; the largest of Varnish 7 has 1.2 KiB, its description 35 KiB.
	maxSegment  = 64 << 10
	maxDoc      = 1 << 20
	maxSegments = 128
	maxName     = 255 // of a file, on Linux
)

// errNotYet is the error of a segment that is being written, or taken away.
var errNotYet = errors.New("a segment of its counters is not ready")

// place is where a segment stands.
type place struct {
	file           string
	offset, length int64
	category       string // Stat, StatDoc, Log …
	ident          string // MAIN, SMA.s0; of a StatDoc the number by which it is named
}

// slot is what tells a segment from others.
type slot struct {
	file   string
	offset int64
}

// parseIndex reads an index; of what was added and taken away again nothing is left. Segments that are not read are left out.
func parseIndex(text []byte) (list []place, err error) {
	at := map[slot]int{} // where in the list
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		gone := f[0] == "-"
		if gone || f[0] == "+" { // Varnish 6.0 wrote the index anew instead, without signs
			f = f[1:]
		}
		p, ok, err := parsePlace(f)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", line, err)
		}
		if !ok {
			continue
		}
		s := slot{p.file, p.offset}
		switch i, known := at[s]; {
		case gone && known:
			list[i] = place{}
			delete(at, s)
		case gone:
		case known:
			list[i] = p
		case len(at) >= 8*maxSegments:
			return nil, fmt.Errorf("it lists more than %d segments", 8*maxSegments)
		default:
			at[s] = len(list)
			list = append(list, p)
		}
	}
	return slices.DeleteFunc(list, func(p place) bool { return p.file == "" }), nil
}

// parsePlace reads a line's words behind its sign; ok says that it is of counters.
func parsePlace(f []string) (p place, ok bool, err error) {
	if len(f) < 5 || f[3] != "Stat" && f[3] != "StatDoc" {
		return p, false, nil
	}
	p = place{file: f[0], category: f[3], ident: f[4]}
	if p.offset, err = strconv.ParseInt(f[1], 10, 64); err == nil {
		p.length, err = strconv.ParseInt(f[2], 10, 64)
	}
	most := int64(maxSegment)
	if p.category == "StatDoc" {
		most = maxDoc
	}
	switch {
	case err != nil:
		return p, false, err
	case p.offset < 0 || p.length < headBytes || p.length > most:
		return p, false, fmt.Errorf("want a length of %d to %d, not before the file's beginning", headBytes, most)
	case strings.Contains(p.file, "/") || len(p.file) > maxName:
		return p, false, errors.New("want a name of a file in the same directory")
	}
	return p, true, nil
}

// body is what stands behind a segment's head, and the number of the StatDoc that it names.
func body(segment []byte) ([]byte, string, error) {
	if len(segment) < headBytes {
		return nil, "", errNotYet
	}
	if binary.LittleEndian.Uint32(segment) != readyIndex {
		return nil, "", errNotYet
	}
	from := binary.LittleEndian.Uint64(segment[8:])
	if from < headBytes || from > uint64(len(segment)) {
		return nil, "", fmt.Errorf("a segment of %d bytes says that its counters begin at %d", len(segment), from)
	}
	return segment[from:], strconv.FormatUint(binary.LittleEndian.Uint64(segment[16:]), 16), nil
}

// parseDoc reads a description: where each counter stands.
func parseDoc(text []byte) (map[string]int, error) {
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	var doc struct {
		Elem map[string]struct {
			CType string
			Index int
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read the description of its counters: %w", err)
	}
	at := map[string]int{}
	for name, e := range doc.Elem {
		if e.CType == "uint64_t" && e.Index >= 0 && e.Index <= maxSegment {
			at[name] = e.Index
		}
	}
	return at, nil
}

// value is one counter.
type value struct {
	signal *model.Signal
	label  string // what tells it from others of its class: a storage, a backend
	number float64
}

// values are a segment's counters that are wanted. A gauge that is below nothing, as one that several threads count may be for a moment, is nothing.
func values(ident string, counters []byte, at map[string]int) (list []value) {
	class, label, _ := strings.Cut(ident, ".")
	for _, c := range classes[class] {
		from, ok := at[c.field]
		if !ok || from+8 > len(counters) {
			continue
		}
		n := binary.LittleEndian.Uint64(counters[from:])
		if c.signal.Kind == model.Gauge && n > math.MaxInt64 {
			n = 0
		}
		list = append(list, value{c.signal, label, float64(n)})
	}
	return list
}

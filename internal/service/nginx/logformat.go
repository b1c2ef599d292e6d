package nginx

import (
	"bytes"
	"strings"
)

// field says what a variable of a log_format is to us.
type field uint8

const (
	fieldOther field = iota
	fieldStatus
	fieldRequestTime
	fieldUpstreamTime
	fieldRequestLine
	fieldClient
)

// step is one variable of a log_format and the text that ends it; an empty
// text means that it goes on to the line's end.
type step struct {
	field field
	end   []byte
}

// LineFormat finds the fields we want in lines of one log_format.
type LineFormat struct {
	begin []byte // text before the first variable
	steps []step // up to the last field that we want
	// Which fields the format has, where they can be told from their neighbours:
	// $status, $request_time, $upstream_response_time, $remote_addr.
	HasStatus, HasRequest, HasUpstream, HasClient bool
}

// CombinedFormat is nginx's own format, used where access_log names none.
func CombinedFormat() *LineFormat {
	return ParseLogFormat([]string{`$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`})
}

// ParseLogFormat compiles the arguments of a log_format directive after its
// name. With the default escaping a variable never holds a quote, and with
// escape=json none that is not escaped, so the text after a variable finds its end.
func ParseLogFormat(args []string) *LineFormat {
	if len(args) > 0 && strings.HasPrefix(args[0], "escape=") {
		args = args[1:]
	}
	f := &LineFormat{}
	text, rest := untilVariable(strings.Join(args, ""))
	f.begin = []byte(text)
	last := 0
	for rest != "" {
		var name string
		name, rest = variable(rest)
		what := fieldOf(name)
		text, rest = untilVariable(rest)
		for text == "" && rest != "" { // nothing parts two variables: nobody can tell them apart
			_, rest = variable(rest)
			text, rest = untilVariable(rest)
			what = fieldOther
		}
		f.steps = append(f.steps, step{what, []byte(text)})
		if what != fieldOther {
			last = len(f.steps)
		}
		f.HasStatus = f.HasStatus || what == fieldStatus
		f.HasRequest = f.HasRequest || what == fieldRequestTime
		f.HasUpstream = f.HasUpstream || what == fieldUpstreamTime
		f.HasClient = f.HasClient || what == fieldClient
	}
	f.steps = f.steps[:last]
	return f
}

func fieldOf(name string) field {
	switch name {
	case "status":
		return fieldStatus
	case "request_time":
		return fieldRequestTime
	case "upstream_response_time":
		return fieldUpstreamTime
	case "request":
		return fieldRequestLine
	case "remote_addr":
		return fieldClient
	}
	return fieldOther
}

// untilVariable cuts a format at its first variable.
func untilVariable(s string) (text, rest string) {
	for i := range len(s) {
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '{' || isNameByte(s[i+1])) {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// variable takes the variable off the head of s.
func variable(s string) (name, rest string) {
	if s[1] == '{' {
		name, rest, _ = strings.Cut(s[2:], "}")
		return name, rest
	}
	i := 1
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	return s[1:i], s[i:]
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// AccessLine is what a line of an access log says. A time is valid only when
// its flag is set: "-" is no time.
type AccessLine struct {
	Status                  int     // 0…999, as written
	Request, Upstream       float64 // seconds; of all tries
	HasRequest, HasUpstream bool
}

// Parse reads one line; ok is false when it does not have the format.
func (f *LineFormat) Parse(line []byte) (a AccessLine, ok bool) {
	if !bytes.HasPrefix(line, f.begin) {
		return a, false
	}
	line = line[len(f.begin):]
	for i := range f.steps {
		s := &f.steps[i]
		value := line
		if len(s.end) > 0 {
			n := index(line, s.end)
			if n < 0 {
				return a, false
			}
			value, line = line[:n], line[n+len(s.end):]
		}
		switch s.field {
		case fieldStatus:
			if a.Status, ok = parseStatus(value); !ok {
				return a, false
			}
		case fieldRequestTime:
			a.Request, a.HasRequest = parseTimes(value)
		case fieldUpstreamTime:
			a.Upstream, a.HasUpstream = parseTimes(value)
		}
	}
	return a, f.HasStatus
}

// RequestLine is the request's first line as a line of the log has it; nil where
// the format lacks it.
func (f *LineFormat) RequestLine(line []byte) []byte { return f.value(line, fieldRequestLine) }

// Client is the client's address ($remote_addr), likewise.
func (f *LineFormat) Client(line []byte) []byte { return f.value(line, fieldClient) }

func (f *LineFormat) value(line []byte, want field) []byte {
	line, ok := bytes.CutPrefix(line, f.begin)
	for _, s := range f.steps {
		value := line
		if len(s.end) > 0 {
			value, line, ok = bytes.Cut(line, s.end)
		}
		if !ok {
			return nil
		}
		if s.field == want {
			return value
		}
	}
	return nil
}

func index(b, sep []byte) int {
	if len(sep) == 1 {
		return bytes.IndexByte(b, sep[0])
	}
	return bytes.Index(b, sep)
}

// parseStatus reads three digits: nginx writes $status as %03ui.
func parseStatus(b []byte) (int, bool) {
	if len(b) != 3 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// parseTimes adds up seconds such as "0.012" and, where several servers were
// tried, "0.001, 0.002 : -"; ok is false when there is no number.
func parseTimes(b []byte) (sum float64, ok bool) {
	for i := 0; i < len(b); {
		if b[i] < '0' || b[i] > '9' {
			i++
			continue
		}
		n, scale := 0.0, 0.0
		for ; i < len(b) && (b[i] == '.' || b[i] >= '0' && b[i] <= '9'); i++ {
			if b[i] == '.' {
				scale = 1
				continue
			}
			n = n*10 + float64(b[i]-'0')
			scale *= 10
		}
		sum, ok = sum+n/max(scale, 1), true
	}
	return sum, ok
}

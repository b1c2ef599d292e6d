package load

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// What of an access log is left out, and why.
const (
	leftNoLine = "no line in the combined or common format of nginx and Apache"
	leftMethod = "another method than GET, HEAD and OPTIONS, whose bodies no log has"
)

// logTime is the form of a moment in the common format.
const logTime = "02/Jan/2006:15:04:05 -0700"

// logLine is what an access log says of a request.
type logLine struct {
	at             time.Time
	request        string // as it was sent: "GET / HTTP/1.1"
	referer, agent string // "" where it has none
}

// readAccessLog reads an access log in the common or the combined format; what follows on a line is passed over.
func readAccessLog(text []byte, u *url.URL) (*recording, error) {
	r := &recording{from: "access log", left: map[string]int{}, whole: true}
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		l, ok := parseLogLine(string(line))
		if !ok {
			r.leave(leftNoLine)
			continue
		}
		t, why := l.target(u)
		if why != "" {
			r.leave(why)
			continue
		}
		if len(r.requests) == maxRecorded {
			return nil, fmt.Errorf("more than %d requests: take a part of the access log", maxRecorded)
		}
		r.requests = append(r.requests, recordedRequest{at: l.at.UnixMicro(), target: t})
	}
	return r, nil
}

// parseLogLine reads ADDRESS - USER [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 "REFERER" "AGENT".
func parseLogLine(line string) (l logLine, ok bool) {
	for rest := line; ; {
		_, after, found := strings.Cut(rest, "[")
		if !found {
			return l, false
		}
		moment, behind, found := strings.Cut(after, "] \"")
		if found {
			if at, err := time.Parse(logTime, moment); err == nil {
				l.at, rest = at, behind
				var more string
				if l.request, more, ok = quotedInLog(rest); !ok {
					return l, false
				}
				l.takeRest(more)
				return l, true
			}
		}
		rest = after // an address in brackets
	}
}

// takeRest reads what follows the request: status, size, and perhaps the referer and the agent.
func (l *logLine) takeRest(rest string) {
	_, behind, found := strings.Cut(rest, " \"")
	if !found {
		return
	}
	if l.referer, rest, found = quotedInLog(behind); !found {
		return
	}
	if behind, found = strings.CutPrefix(rest, " \""); found {
		l.agent, _, _ = quotedInLog(behind)
	}
}

// quotedInLog reads up to the closing quote, and undoes what nginx and Apache do to bytes that would disturb a log.
func quotedInLog(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\' && i+3 < len(s) && s[i+1] == 'x' && hexDigit(s[i+2]) >= 0 && hexDigit(s[i+3]) >= 0:
			b.WriteByte(byte(hexDigit(s[i+2])<<4 | hexDigit(s[i+3])))
			i += 3
		case c == '\\' && i+1 < len(s):
			i++
			if known := strings.IndexByte("ntrbvf", s[i]); known >= 0 {
				b.WriteByte("\n\t\r\b\v\f"[known])
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// target is what is sent for a line, or why nothing is.
func (l *logLine) target(u *url.URL) (t model.Target, why string) {
	method, rest, _ := strings.Cut(l.request, " ")
	path, version, ok := strings.Cut(rest, " ")
	switch {
	case !ok || !strings.HasPrefix(version, "HTTP/") || strings.Contains(version, " ") || !isToken(method):
		return t, leftNoTarget
	case method != "GET" && method != "HEAD" && method != "OPTIONS":
		return t, leftMethod
	}
	t.Method = method
	var err error
	if t.Path, err = targetPath(targetLine{Path: path}, u); err != nil {
		return t, leftNoTarget
	}
	for _, h := range [][2]string{{"Referer", l.referer}, {"User-Agent", l.agent}} {
		if value := h[1]; value != "" && value != "-" && sendable(value) {
			t.Headers = append(t.Headers, h[0]+": "+value)
		}
	}
	return t, ""
}

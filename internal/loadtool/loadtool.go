// Package loadtool reads what load tools print of their runs: bytes in, summaries
// out. It knows a tool by the command line that starts it, and takes its word for
// what it says; what each means by it is in the README.
package loadtool

import (
	"bytes"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

const (
	// longestLine is how much of a line is looked at; no line of a summary is longer.
	longestLine = 1 << 10
	// mostSummaries is how many are kept, the newest.
	mostSummaries = 16
)

// Reader reads the output of a command in which load tools run. What it keeps does
// not grow with the output. It is not safe for concurrent use.
type Reader struct {
	tools   []*tool
	correct bool // oha was told to correct its latency
	line    []byte
	missed  bool // the rest of this line is to be passed over
	open    *summary
	done    []model.ToolSummary
	dropped int
}

// New returns a Reader for the output of a command, nil when no load tool that we
// know runs in it.
func New(argv []string) *Reader {
	r := &Reader{correct: strings.Contains(strings.Join(argv, " "), "--latency-correction")}
	for _, name := range toolsIn(argv, 0) {
		t := known[name]
		if !slices.Contains(r.tools, t) {
			r.tools = append(r.tools, t)
		}
	}
	if len(r.tools) == 0 {
		return nil
	}
	return r
}

// Write reads the next piece of the output; it never fails. A line may come in pieces.
func (r *Reader) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n") // a line of progress ends with a carriage return
		piece := p
		if end >= 0 {
			piece = p[:end]
		}
		if !r.missed {
			r.line = append(r.line, piece[:min(len(piece), longestLine-len(r.line))]...)
		}
		if end < 0 {
			break
		}
		r.read()
		r.missed = false
		p = p[end+1:]
	}
	return n, nil
}

// Skip says that some of the output is missing here. What stands around that is not read:
// neither the line, nor the summary, of which nobody knows whether it goes on.
func (r *Reader) Skip() {
	r.line, r.missed = r.line[:0], true
	if r.open != nil {
		r.open = nil
		r.dropped++
	}
}

// Summaries ends the reading and returns what was told, oldest first, the newest 16
// at most. Dropped is how many there were besides, before them or around what is missing. A last line without its end
// may be cut within a number, and is left out.
func (r *Reader) Summaries() (list []model.ToolSummary, dropped int) {
	r.end()
	return r.done, r.dropped
}

// escapes are what moves the cursor or colours a terminal's text.
var escapes = lazy.Regexp(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])`)

// read takes the line that has come.
func (r *Reader) read() {
	if len(r.line) == 0 {
		return
	}
	text := r.line
	if bytes.IndexByte(text, 0x1b) >= 0 {
		text = escapes().ReplaceAll(text, nil)
	}
	for _, t := range r.tools {
		if t.begins().Match(text) {
			r.end()
			r.open = &summary{ToolSummary: model.ToolSummary{Tool: t.name, Corrected: t.name == "wrk2" || t.name == "oha" && r.correct}, tool: t}
			break
		}
	}
	if r.open != nil {
		r.open.read(string(text))
	}
	r.line = r.line[:0]
}

// end keeps the summary that was being read, if it tells anything.
func (r *Reader) end() {
	s := r.open
	r.open = nil
	if s == nil || s.Requests == nil && s.RPS == nil && s.Latency == nil && s.Status == nil && s.Errors == nil {
		return
	}
	if s.tool.finish != nil {
		s.tool.finish(s)
	}
	s.Cut = !s.whole
	if len(r.done) == mostSummaries {
		r.done = slices.Delete(r.done, 0, 1)
		r.dropped++
	}
	r.done = append(r.done, s.ToolSummary)
}

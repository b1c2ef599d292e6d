package loadtool

import (
	"regexp"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// tool is how one's summary is read. A summary begins with a line that the pattern
// begins matches, and goes on until the next one begins, of whatever tool.
type tool struct {
	name   string
	begins func() *regexp.Regexp
	lines  []line
	// finish is called at the end of a summary that has something to tell: for what
	// follows from several lines, and for zeros that the tool tells by silence.
	finish func(*summary)
}

// line is a line of a summary: what it looks like, and what it says.
type line struct {
	pattern func() *regexp.Regexp
	says    func(s *summary, m []string)
}

func says(pattern string, fn func(s *summary, m []string)) line {
	return line{lazy.Regexp(pattern), fn}
}

// summary is one that is being read.
type summary struct {
	model.ToolSummary
	tool *tool
	// section is the part of it in which the last line was, where it has parts.
	section string
	columns []string // of its table
	whole   bool     // its last line was there
}

func (s *summary) read(text string) {
	for _, l := range s.tool.lines {
		if m := l.pattern().FindStringSubmatch(text); m != nil {
			l.says(s, m)
			return
		}
	}
}

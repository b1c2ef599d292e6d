package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/live"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/session"
)

const (
	// leastRows and leastColumns is what a terminal has to have for the screen; on a smaller
	// one there is a line.
	leastRows, leastColumns = 12, 50
	// mostRows is how many lines the screen takes.
	mostRows = 10
	// courseName is the room for what a line is of, in columns.
	courseName = 13
	// sparkRoom is what stands beside a course, in columns.
	sparkRoom = 34
)

// screen redraws a few lines at the end of a terminal. It sets no mode of the terminal:
// however we end, there is nothing to set back.
type screen struct {
	out   io.Writer
	size  func() (columns, rows int)
	drawn int // lines
}

// screen is the terminal to show a run on, nil where nobody looks on or it is too small.
func (w *world) screen() *screen {
	if w.progress() == nil || w.terminal == nil {
		return nil
	}
	if columns, rows := w.terminal(); columns < leastColumns || rows < leastRows {
		return nil
	}
	return &screen{out: w.stderr, size: w.terminal}
}

// draw shows a run as it stands.
func (s *screen) draw(v live.View, p session.Progress, verdict verdictSoFar, now time.Time) {
	columns, _ := s.size()
	columns = min(max(columns, leastColumns), 100)
	s.put(screenLines(v, p, verdict, now, columns), columns)
}

// put puts lines in the place of those that were drawn before, in one piece, so that
// nothing flickers.
func (s *screen) put(lines []string, columns int) {
	var b strings.Builder
	b.WriteString(s.back())
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(cut(layout.Line(l), columns-1) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	_ = layout.Own(s.out, b.String()) // that nobody can see it ends no session
}

// clear takes the lines away.
func (s *screen) clear() {
	if s != nil && s.drawn > 0 {
		_ = layout.Own(s.out, s.back()+"\x1b[J")
		s.drawn = 0
	}
}

// back moves to where the lines begin.
func (s *screen) back() string {
	if s.drawn > 1 {
		return fmt.Sprintf("\r\x1b[%dA", s.drawn-1)
	}
	return "\r"
}

// cut is a text of at most so many columns.
func cut(s string, most int) string {
	if layout.Columns(s) <= most {
		return s
	}
	room := most - 1
	for i, r := range s {
		if room -= layout.Columns(string(r)); room < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// screenLines are what is shown of a run that lasts: what would be said if it ended now; how far
// it is; the way of a request; and five courses.
func screenLines(v live.View, p session.Progress, verdict verdictSoFar, now time.Time, columns int) []string {
	list := twoLines(layout.Line(verdict.text(now)), columns-1)
	if len(list) < 2 { // what is below stands still when the sentence is another
		list = append(list, "")
	}
	list = append(list, progressBar(p, columns))
	if text := wayText(verdict.said.way()); text != "" {
		indent := strings.Repeat(" ", courseName+1)
		for i, l := range twoLines(text, columns-1-len(indent)) {
			if i == 0 {
				l = fmt.Sprintf("%-*s %s", courseName, "the line", l)
			} else {
				l = indent + l
			}
			list = append(list, l)
		}
	}
	room := columns - sparkRoom
	for _, c := range coursesOf(v) {
		values := c.values[max(len(c.values)-room, 0):]
		list = append(list, fmt.Sprintf("%-*s %s  %s", courseName, c.name, sparkOn(values, c.top), c.says))
		if len(list) == mostRows {
			break
		}
	}
	return list
}

// twoLines is a text in at most two lines.
func twoLines(text string, columns int) []string {
	said := strings.Split(layout.Wrap(text, columns), "\n")
	if len(said) > 2 {
		said = said[:2]
		said[1] = cut(said[1]+" …", columns)
	}
	return said
}

// placeNames are the places on a request's way in a word; others are called by their program.
var placeNames = map[string]string{
	"Load generator": "load", "Local ports": "ports", "Network, packet filter": "network", "Listen queue": "queue", "Upstream": "upstream",
	"CPUs": "CPUs", "Memory, kernel tables": "memory", "Disks": "disks", "Locks and other waits": "locks", "Elsewhere": "elsewhere",
}

// wayText is the way of a request in a line: the places whose limit is known, each with how full it is, and what is
// held to be what binds.
func wayText(way []sheet.Stage) string {
	var list []string
	for _, s := range way {
		binds := s.State == "binds"
		if s.Full == nil && !binds {
			continue
		}
		_, program, _ := strings.Cut(s.Where, " ")
		text := strings.TrimSpace(placeNames[s.Name] + " " + layout.Line(program))
		if s.Full != nil {
			text += " " + string(layout.Bar(*s.Full, 1))
		}
		if binds {
			text = "[" + text + " binds]"
		}
		list = append(list, text)
	}
	return strings.Join(list, " › ")
}

// progressBar is the open window, how far it is, and what is left of it.
func progressBar(p session.Progress, columns int) string {
	text := courseText(p)
	if p.Planned <= 0 {
		return text
	}
	left := max(p.Planned-p.Elapsed, 0).Round(time.Second)
	rest := fmt.Sprintf("  %.0f s left", left.Seconds())
	room := min(columns-1-layout.Columns(text+rest)-2, 40)
	if room < 8 {
		return text + rest
	}
	full := int(float64(room) * min(p.Elapsed.Seconds()/p.Planned.Seconds(), 1))
	return text + "  " + strings.Repeat("━", full) + strings.Repeat("─", room-full) + rest
}

// aCourse is something over time, with what is to be said of its newest value.
type aCourse struct {
	name   string
	values []float64
	top    float64 // of the scale; 0 is the largest value
	says   string
}

func sparkOn(values []float64, top float64) string {
	if top == 0 {
		return layout.Spark(values)
	}
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(layout.Bar(v, top))
	}
	return b.String()
}

// coursesOf are the load's, and those of the host on which there is most of it.
func coursesOf(v live.View) []aCourse {
	list := loadCourses(v)
	add := func(name string, lines []live.Line, top float64, says func(float64) string) {
		if l, ok := live.Highest(lines); ok {
			list = append(list, aCourse{name, l.Values, top, says(l.Values[len(l.Values)-1]) + " on " + l.Host})
		}
	}
	number := func(v float64) string { return layout.Count(int64(v + 0.5)) }
	add("CPU in use", v.Busy(), 1, layout.Share)
	add("threads ready", v.Levels("node_procs_running"), 0, number)
	add("TCP sockets", v.Levels("node_sockstat_TCP_inuse"), 0, number)
	add("CPU pressure", v.Shares("node_pressure_cpu_waiting_seconds_total"), 1, layout.Share)
	add("disk pressure", v.Shares("node_pressure_io_waiting_seconds_total"), 1, layout.Share)
	return list[:min(len(list), 5)]
}

// loadCourses are good and other ends of requests, and how long replies took, by second.
func loadCourses(v live.View) []aCourse {
	last, ok := v.Last()
	if !ok {
		return nil
	}
	good, bad, p99 := aCourse{name: "good replies"}, aCourse{name: "failed"}, aCourse{name: "p99"}
	for _, s := range v.Seconds[:len(v.Seconds)-1] {
		good.values = append(good.values, float64(s.Good))
		bad.values = append(bad.values, float64(s.Replies-s.Good+s.Failed))
		p99.values = append(p99.values, s.P99)
	}
	good.says, bad.says = layout.Count(last.Good)+"/s", layout.Count(last.Replies-last.Good+last.Failed)+"/s"
	list := []aCourse{good, bad}
	if last.P99 > 0 {
		p99.says = layout.Micros(last.P99)
	}
	if slices.Max(p99.values) > 0 {
		list = append(list, p99)
	}
	return list
}

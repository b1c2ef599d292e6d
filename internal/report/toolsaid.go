package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// toolsSaid is what load tools in the watched command said of their runs.
func toolsSaid(p *paper, list []model.ToolSummary) {
	label := "tool says"
	for _, s := range list {
		p.item(label, layout.Line(toolSaid(s)))
		label = ""
	}
}

// toolSaid words one summary, which is that tool's word.
func toolSaid(s model.ToolSummary) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.RPS != nil {
		add("%s requests/s", layout.Rate(*s.RPS))
	}
	if s.Requests != nil {
		text := layout.Count(*s.Requests) + " requests"
		if *s.Requests == 1 {
			text = "1 request"
		}
		if s.Seconds != nil {
			text += " in " + layout.Micros(*s.Seconds*1e6)
		}
		add("%s", text)
	}
	if s.Good != nil {
		add("%s good", layout.Count(*s.Good))
	}
	if s.Failed != nil {
		add("%s failed", layout.Count(*s.Failed))
	}
	for _, class := range counted(s.Status) {
		add("%s were %s", layout.Count(s.Status[class]), class)
	}
	for _, kind := range counted(s.Errors) {
		add("%s of error %s", layout.Count(s.Errors[kind]), kind)
	}
	if len(s.ErrorsSeen) > 0 {
		add("errors, not counted: %s", strings.Join(s.ErrorsSeen, ", "))
	}
	if text := toolLatency(s); text != "" {
		add("%s", text)
	}
	if s.Cut {
		add("there it was cut off")
	}
	return s.Tool + ": " + strings.Join(parts, "; ") + " (its own word, unchecked)"
}

// counted are the kinds that there were any of, in alphabetical order.
func counted(of map[string]int64) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(kind string) bool { return of[kind] == 0 })
}

// told are the percentiles that are shown, where a tool gave them.
var told = []float64{50, 90, 99}

// toolLatency words a tool's latency, "" for none.
func toolLatency(s model.ToolSummary) string {
	l := s.Latency
	if l == nil {
		return ""
	}
	var parts []string
	add := func(what string, seconds *float64) {
		if seconds != nil {
			parts = append(parts, what+" "+layout.Micros(*seconds*1e6))
		}
	}
	add("mean", l.Mean)
	for _, p := range l.Percentiles {
		if slices.Contains(told, p.Percent) {
			add(fmt.Sprintf("p%g", p.Percent), &p.Seconds)
		}
	}
	add("at most", l.Max)
	if len(parts) == 0 {
		return ""
	}
	from := "was sent"
	if s.Corrected {
		from = "was due"
	}
	return "latency " + strings.Join(parts, ", ") + ", from when each " + from
}

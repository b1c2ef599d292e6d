package live

import (
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/record"
)

// Line is one host's course of something: a value for each reading.
type Line struct {
	Host   string
	Values []float64
}

// last is the newest value.
func (l Line) last() float64 { return l.Values[len(l.Values)-1] }

// Highest is the line whose newest value is the largest, and whether there is one.
func Highest(list []Line) (l Line, ok bool) {
	for _, x := range list {
		if !ok || x.last() > l.last() {
			l, ok = x, true
		}
	}
	return l, ok
}

// Levels are a signal's values, by host.
func (v View) Levels(signal string) []Line {
	return v.lines(signal, func(s record.Series) []record.Point { return s.Points })
}

// Shares are how much of each second a counter of seconds grew by, by host.
func (v View) Shares(signal string) []Line { return v.lines(signal, record.Series.Rates) }

// Busy is the share of each host's processors that was in use.
func (v View) Busy() []Line {
	busy, all := map[string]map[int64]float64{}, map[string]map[int64]float64{}
	v.each("node_cpu_seconds_total", func(s record.Series) {
		host, mode := s.Labels.Get("host"), s.Labels.Get("mode")
		if all[host] == nil {
			busy[host], all[host] = map[int64]float64{}, map[int64]float64{}
		}
		for _, p := range s.Rates() {
			all[host][p.Time] += p.Value
			if mode != "idle" && mode != "iowait" {
				busy[host][p.Time] += p.Value
			}
		}
	})
	var list []Line
	for host, values := range all {
		l := Line{Host: host}
		for _, t := range slices.Sorted(maps.Keys(values)) {
			if values[t] > 0 {
				l.Values = append(l.Values, busy[host][t]/values[t])
			}
		}
		if len(l.Values) > 0 {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b Line) int { return strings.Compare(a.Host, b.Host) })
	return list
}

func (v View) lines(signal string, of func(record.Series) []record.Point) (list []Line) {
	v.each(signal, func(s record.Series) {
		l := Line{Host: s.Labels.Get("host")}
		for _, p := range of(s) {
			l.Values = append(l.Values, p.Value)
		}
		if len(l.Values) > 0 {
			list = append(list, l)
		}
	})
	return list
}

// each calls do with a signal's series. What is held in memory can be read.
func (v View) each(signal string, do func(record.Series)) {
	first, last, err := v.Recent.Span()
	if err != nil {
		return // nothing was read yet
	}
	for s, err := range v.Recent.Series(first, last, record.Match(signal)...) {
		if err == nil {
			do(s)
		}
	}
}

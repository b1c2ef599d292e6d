package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// KneeHead says what will be searched for; the steps and KneeFoot follow.
func KneeHead(w io.Writer, version string, plan model.LoadPlan, o TextOptions) error {
	p := newPaper(o)
	p.item("plimsoll", strings.TrimSpace(version+" "+target(model.Plan{Load: &plan})))
	p.item("search", fmt.Sprintf("the number of connections from which on more bring no more: 1 to %s, each held for %s, upwards and downwards",
		layout.Count(int64(plan.Connections)), layout.Micros(float64(plan.DurationMS)*1e3)))
	return p.print(w)
}

// KneeStep writes one number of connections that was held.
func KneeStep(w io.Writer, s model.KneeStep, o TextOptions) error {
	p := newPaper(o)
	text := fmt.Sprintf("%14s  %10s good replies/s  p50 %s, p99 %s", plural(s.Connections, "connection", "connections"), layout.Rate(s.GoodRPS), layout.Micros(s.P50), layout.Micros(s.P99))
	how := plain
	if s.GoodShare < 1 {
		text, how = text+", "+layout.Share(1-s.GoodShare)+" failed", red
	}
	p.line(0, how, text)
	return p.print(w)
}

// KneeFoot draws throughput and latency against the number of connections, and says where the knee is.
func KneeFoot(w io.Writer, k model.Knee, o TextOptions) error {
	p := newPaper(o)
	levels := kneeLevels(k.Steps)
	p.blank()
	p.kneeThroughput(levels, k.Law)
	p.blank()
	p.kneeLatency(levels)
	p.blank()
	if k.Law != nil {
		p.item("knee", kneeText(*k.Law, levels))
		p.item("law", lawText(*k.Law))
	}
	for _, s := range levels {
		if s.GeneratorCPU > 0.95 {
			p.item("generator", fmt.Sprintf("with %s its busiest thread had %s of a CPU: what levels off from there on may be the generator, and not the service. Give it more threads (-t), CPUs of its own, or another machine",
				plural(s.Connections, "connection", "connections"), layout.Share(s.GeneratorCPU)))
			break
		}
	}
	for _, s := range levels {
		if s.GoodShare < 0.99 {
			p.item("failures", fmt.Sprintf("with %s %s of the requests failed, and good replies alone are counted: plimsoll load -c %d says why",
				plural(s.Connections, "connection", "connections"), layout.Share(1-s.GoodShare), s.Connections))
			break
		}
	}
	return p.print(w)
}

// kneeLevels are the means of the steps with as many connections, the fewest first; of the generator's CPU and failures the worst.
func kneeLevels(steps []model.KneeStep) (list []model.KneeStep) {
	held := map[int]float64{}
	for _, s := range steps {
		held[s.Connections]++
	}
	for _, s := range steps {
		i, there := slices.BinarySearchFunc(list, s, func(a, b model.KneeStep) int { return cmp.Compare(a.Connections, b.Connections) })
		if !there {
			list = slices.Insert(list, i, model.KneeStep{Connections: s.Connections, GoodShare: 1})
		}
		l, n := &list[i], held[s.Connections]
		l.GoodRPS, l.P50, l.P99 = l.GoodRPS+s.GoodRPS/n, l.P50+s.P50/n, l.P99+s.P99/n
		l.GoodShare, l.GeneratorCPU = min(l.GoodShare, s.GoodShare), max(l.GeneratorCPU, s.GeneratorCPU)
	}
	return list
}

// kneeRow is where a picture's rows begin: connections, and one number.
const kneeRow = 6 + 2 + 9 + 2

// kneeThroughput draws a bar for each number of connections, and where the law has it.
func (p *paper) kneeThroughput(levels []model.KneeStep, law *model.ScalingLaw) {
	title, most := "GOOD REPLIES PER SECOND, BY CONNECTIONS", 0.0
	for _, s := range levels {
		most = max(most, s.GoodRPS, atLaw(law, s.Connections))
	}
	if law != nil {
		title += " (o: the law)"
	}
	p.line(0, bold, title)
	room := p.width - kneeRow
	for _, s := range levels {
		row := []rune(strings.Repeat("=", columnsOf(s.GoodRPS, most, room)) + strings.Repeat(" ", room))
		if law != nil {
			row[max(columnsOf(atLaw(law, s.Connections), most, room), 1)-1] = 'o'
		}
		p.line(0, plain, fmt.Sprintf("%6s  %9s  %s", layout.Count(int64(s.Connections)), layout.Rate(s.GoodRPS), strings.TrimRight(string(row), " ")))
	}
}

func atLaw(law *model.ScalingLaw, connections int) float64 {
	if law == nil {
		return 0
	}
	return law.At(float64(connections))
}

// columnsOf is how long a bar is.
func columnsOf(v, most float64, room int) int {
	if most <= 0 {
		return 0
	}
	return min(int(v/most*float64(room)+0.5), room)
}

// kneeLatency draws p50 and p99 for each number of connections, by their logarithms.
func (p *paper) kneeLatency(levels []model.KneeStep) {
	least, most := math.Inf(1), 0.0
	for _, s := range levels {
		if s.P50 > 0 {
			least, most = min(least, s.P50), max(most, s.P99)
		}
	}
	p.line(0, bold, "WHAT USERS WAITED, BY CONNECTIONS (=: p50, o: p99; logarithmic)")
	room := p.width - kneeRow
	at := func(v float64) int { // a tenth of the room is below the least
		if v <= 0 || most <= least {
			return room / 10
		}
		return min(room/10+int(math.Log(v/least)/math.Log(most/least)*float64(room-room/10)+0.5), room)
	}
	for _, s := range levels {
		row := []rune(strings.Repeat("=", at(s.P50)) + strings.Repeat(" ", room))
		row[max(at(s.P99), 1)-1] = 'o'
		p.line(0, plain, fmt.Sprintf("%6s  %9s  %s", layout.Count(int64(s.Connections)), layout.Micros(s.P50), strings.TrimRight(string(row), " ")))
	}
}

// kneeText says where the knee is.
func kneeText(law model.ScalingLaw, levels []model.KneeStep) string {
	last := levels[len(levels)-1].Connections
	if law.Knee == nil {
		return fmt.Sprintf("none up to %s: throughput still grows there. Try more (-c %d)", plural(last, "connection", "connections"), 4*last)
	}
	high := layout.Rate(law.Knee.High)
	if law.Knee.High >= float64(last) {
		high += " and more"
	}
	return fmt.Sprintf("%s connections (95 %%: %s to %s), and %s good replies/s at most (%s to %s): up to there each adds throughput, beyond it each adds waiting",
		layout.Rate(law.Knee.Mean), layout.Rate(law.Knee.Low), high, layout.Rate(law.Most.Mean), layout.Rate(law.Most.Low), layout.Rate(law.Most.High))
}

// lawText says what the law makes of the measurements.
func lawText(law model.ScalingLaw) string {
	scatter := ""
	if law.Fits && law.Off > 0.05 {
		scatter = ", as equal loads are by themselves"
	}
	text := fmt.Sprintf("the Universal Scalability Law, off by %s on average%s: one connection gets %s/s, contention %s", layout.Share(law.Off), scatter, layout.Rate(law.OneRPS), layout.Share(law.Contention))
	if law.Coherence > 0 {
		text += fmt.Sprintf(", coherence %.2g %%", 100*law.Coherence)
		if peak := law.Peak(); law.Fits {
			text += fmt.Sprintf(", so that beyond %s connections more of them bring less", layout.Count(int64(peak+0.5)))
		}
	}
	if !law.Fits {
		text += ". That is no fit: throughput bends more sharply, or otherwise, than it has it, as where so many workers serve, so the knee is as it was measured"
	}
	return text
}

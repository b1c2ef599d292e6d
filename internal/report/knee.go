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
	p.item("search", fmt.Sprintf("the number of connections beyond which more add more waiting than throughput: 1 to %s, each held for %s, upwards and downwards",
		layout.Count(int64(plan.Connections)), layout.Micros(float64(plan.DurationMS)*1e3)))
	return p.print(w)
}

// KneeStep writes one number of connections that was held.
func KneeStep(w io.Writer, s model.KneeStep, o TextOptions) error {
	p := newPaper(o)
	text := fmt.Sprintf("%15s  %10s good/s  p50 %s, p99 %s", plural(s.Connections, "connection", "connections"), layout.Rate(s.GoodRPS), layout.Micros(s.P50), layout.Micros(s.P99))
	how := plain
	if s.GoodShare < 1 {
		text, how = text+", "+layout.Share(1-s.GoodShare)+" failed", red
	}
	p.line(0, how, text)
	return p.print(w)
}

// KneeFoot draws throughput and latency against the number of connections, and says where the knee of a service at url is.
func KneeFoot(w io.Writer, k model.Knee, url string, o TextOptions) error {
	p := newPaper(o)
	levels := kneeLevels(k.Steps)
	p.blank()
	p.kneeThroughput(levels, k.Law)
	p.blank()
	p.kneeLatency(levels)
	p.blank()
	if k.Scatter != nil && k.Top != nil && k.Top.GoodRPS > 0 {
		p.item("knee", kneeText(k, levels))
		p.item("most", topText(*k.Top, *k.Scatter, levels))
	}
	if k.Law != nil {
		p.item("law", lawText(*k.Law, *k.Scatter, levels))
	}
	p.kneeNotes(k.Steps, levels, url)
	return p.print(w)
}

// kneeNotes say what makes the measurements worth less.
func (p *paper) kneeNotes(steps, levels []model.KneeStep, url string) {
	for _, s := range steps {
		if s.StoodStill > 0 {
			p.item("left out", fmt.Sprintf("with %s this generator stood still for %s, and did so again when that was tried once more: such a step counts for nothing here",
				plural(s.Connections, "connection", "connections"), layout.Micros(s.StoodStill*1e6)))
		}
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
			p.item("failures", fmt.Sprintf("with %s %s of the requests failed, and good replies alone are counted: plimsoll load %s -c %d says why",
				plural(s.Connections, "connection", "connections"), layout.Share(1-s.GoodShare), layout.Quote(url), s.Connections))
			break
		}
	}
}

// kneeLevels are the means of the steps with as many connections, the fewest first, without those in which the generator stood still; of the generator's CPU and failures the worst.
func kneeLevels(steps []model.KneeStep) (list []model.KneeStep) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s model.KneeStep) bool { return s.StoodStill > 0 })
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
func kneeText(k model.Knee, levels []model.KneeStep) string {
	last := levels[len(levels)-1]
	most := slices.MaxFunc(levels, func(a, b model.KneeStep) int { return cmp.Compare(a.Power(), b.Power()) })
	b := k.Best
	switch {
	case b == nil && most.Connections == last.Connections:
		return fmt.Sprintf("none up to %s: the last of them still add as much to throughput as to the wait, or more. Try more (-c %d)", plural(last.Connections, "connection", "connections"), 4*last.Connections)
	case b == nil:
		return fmt.Sprintf("not told: equal loads differ too much (by %s) to say whether it is below %s. Hold each for longer (-d), or try more (-c %d)",
			layout.Share(*k.Scatter), plural(last.Connections, "connection", "connections"), 4*last.Connections)
	}
	at := levels[slices.IndexFunc(levels, func(s model.KneeStep) bool { return s.Connections == b.Connections })]
	return fmt.Sprintf("between %s and %s connections; of those tried %s is the best, with %s good replies/s and p50 %s. Before the knee more connections add more to throughput than to the wait, beyond it more to the wait",
		layout.Count(int64(b.Low)), layout.Count(int64(b.High)), layout.Count(int64(b.Connections)), layout.Rate(b.GoodRPS), layout.Micros(at.P50))
}

// topText says what the most was, and from where on it was reached.
func topText(t model.TopThroughput, scatter float64, levels []model.KneeStep) string {
	last := levels[len(levels)-1]
	text := fmt.Sprintf("%s good replies/s, with %s", layout.Rate(t.GoodRPS), plural(t.Connections, "connection", "connections"))
	switch {
	case t.From == last.Connections && len(levels) > 1:
		before := levels[len(levels)-2]
		return text + fmt.Sprintf(", and still growing there (%s with %s): what more would bring was not tried (-c %d)", layout.Rate(before.GoodRPS), layout.Count(int64(before.Connections)), 4*last.Connections)
	case t.From < t.Connections:
		text += fmt.Sprintf("; %s had as much, within what equal loads differ by (%s each)", layout.Count(int64(t.From)), layout.Share(scatter))
	}
	if t.Falls {
		text += fmt.Sprintf("; %s had less, %s", layout.Count(int64(last.Connections)), layout.Rate(last.GoodRPS))
	}
	return text
}

// lawText says what the law makes of the measurements.
func lawText(law model.ScalingLaw, scatter float64, levels []model.KneeStep) string {
	text := fmt.Sprintf("the Universal Scalability Law is off by %s on average, equal loads by %s", layout.Share(law.Off), layout.Share(scatter))
	if !law.Fits {
		return text + ": no fit. Throughput bends more sharply, or otherwise, than it has it, as where so many workers serve, and each has all that it needs"
	}
	text += fmt.Sprintf(": what was tried does not speak against it. One connection got %s/s, contention is %s", layout.Rate(levels[0].GoodRPS), layout.Share(law.Contention))
	if law.Coherence > 0 {
		text += fmt.Sprintf(", coherence %.2g %%", 100*law.Coherence)
	}
	return text
}

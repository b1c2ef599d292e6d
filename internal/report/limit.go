package report

import (
	"fmt"
	"io"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// LimitHead says what will be searched for; the steps and LimitFoot follow.
func LimitHead(w io.Writer, version string, plan model.LoadPlan, goals []string, o TextOptions) error {
	p := newPaper(o)
	p.item("plimsoll", strings.TrimSpace(version+" "+target(model.Plan{Load: &plan})))
	p.item("search", fmt.Sprintf("the highest rate that keeps %s; each is held for %s over at most %s", strings.Join(goals, ", "),
		layout.Micros(float64(plan.DurationMS)*1e3), plural(plan.Connections, "connection", "connections")))
	return p.print(w)
}

// LimitStep writes one rate that was tried.
func LimitStep(w io.Writer, s model.LimitStep, o TextOptions) error {
	p := newPaper(o)
	word, how := "kept", green
	if !s.Met {
		word, how = "missed", red
	}
	text := fmt.Sprintf("%12s/s  %-6s  p50 %s, p99 %s", layout.Rate(s.Rate), word, layout.Micros(s.P50), layout.Micros(s.P99))
	if s.GoodShare < 1 {
		text += ", " + layout.Share(1-s.GoodShare) + " failed"
	}
	if s.Confirms {
		text += " (once more)"
	}
	p.line(0, how, text)
	return p.print(w)
}

// LimitFoot says what was found.
func LimitFoot(w io.Writer, l model.Limit, plan model.LoadPlan, o TextOptions) error {
	p := newPaper(o)
	goals := strings.Join(l.Goals, ", ")
	if l.Rate == 0 {
		p.item("limit", "no rate kept "+goals+", and did so again"+lowest(l))
	} else {
		p.item("limit", layout.Rate(l.Rate)+" requests/s keep "+goals+", and did so again")
	}
	if l.Missed > 0 {
		p.item("beyond", beyond(l, plan))
	}
	return p.print(w)
}

// lowest is the lowest rate that was tried, where none was kept.
func lowest(l model.Limit) string {
	if len(l.Steps) == 0 {
		return ""
	}
	least := l.Steps[0].Rate
	for _, s := range l.Steps {
		least = min(least, s.Rate)
	}
	return ", down to " + layout.Rate(least) + "/s"
}

// beyond says what was missed above the limit, and what was in the way.
func beyond(l model.Limit, plan model.LoadPlan) string {
	var missed model.LimitStep
	for _, s := range l.Steps {
		if s.Rate == l.Missed && !s.Met {
			missed = s
		}
	}
	var parts []string
	for _, g := range missed.Goals {
		if !g.Met {
			parts = append(parts, "not "+g.Goal)
		}
	}
	text := layout.Rate(l.Missed) + "/s: " + strings.Join(parts, ", ") + "; "
	switch l.By {
	case model.ByGenerator:
		return text + fmt.Sprintf("the generator was in the way, not the service: it sent p99 %s late, its busiest thread had %s of a CPU. The service may do more: give the generator more threads (-t), CPUs of its own, or another machine",
			layout.Micros(missed.LagP99), layout.Share(missed.GeneratorCPU))
	case model.ByConnections:
		return text + fmt.Sprintf("all of the %s were in use, and requests waited for one. The service may do more if it can do more at once: try more (-c)",
			plural(plan.Connections, "connection", "connections"))
	}
	return text + "the service was in the way: the generator kept its schedule, and connections were free"
}

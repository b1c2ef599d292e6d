// Package report turns a report into what a person reads on a terminal and
// what a program reads as JSON. It only words and lays out: every number and
// every answer was there before.
package report

import (
	"fmt"
	"io"
	"slices"

	"plimsoll/internal/model"
)

// Text writes the verdict for a person, as much of it as o says. All but the brief
// one end in what the brief one ends in, since that is what a terminal shows.
func Text(w io.Writer, r model.Report, o TextOptions) error {
	p := newPaper(o)
	if o.Detail == Brief {
		brief(p, r, o.Run)
		return p.print(w)
	}
	full(p, r, o.Detail)
	p.blank()
	ending(p, r, o.Run)
	return p.print(w)
}

// full writes what was offered and what came back, the answer, each root cause with its
// evidence and its fix, and what comes next. A watch offered nothing, so its answer
// comes first.
func full(p *paper, r model.Report, much Detail) {
	if isWatch(r.Plan) {
		answer(p, r.Verdict)
		afterWatch(p, r)
		p.blank()
		result(p, r)
	} else {
		result(p, r)
		answer(p, r.Verdict)
	}
	fullProgram(p, r)
	nearest(p, r.Verdict.Nearest)
	told := slices.Concat(r.Verdict.Root, r.Verdict.Grounds)
	for i, f := range told {
		title := rootTitle(f.Kind)
		if n := len(told); n > 1 {
			title += fmt.Sprintf(" (%d of %d)", i+1, n)
		}
		p.heading(answerStyles[r.Verdict.Answer], title)
		root(p, f, r, much)
	}
	bill(p, r.Verdict)
	breakdown(p, r.Breakdown)
	loadAverage(p, r.Verdict.LoadAverage)
	others(p, r.Verdict)
	if much == Everything {
		ruledOut(p, r.Verdict)
		blindTo(p, r)
	}
	foot(p, r)
}

// blindTo lists what no answer could be given for.
func blindTo(p *paper, r model.Report) {
	switch {
	case r.Plan.Remote != nil:
		notCollected(p, r.Verdict.Unknown)
	case r.Plan.Capture != nil:
		p.heading(amber, "NOT SEEN")
		p.hang(0, 2, "?", plain, "what is not on the wire: the hosts' CPUs, memory and disks, the kernel's queues and tables, processes and their logs; why an application is slow, or closes; what is lost before the place of the capture, or behind it. Rules about these were not asked")
	default:
		notSeen(p, r)
	}
}

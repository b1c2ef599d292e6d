package report

import (
	"fmt"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// The bill is short: what can be spared, and the largest of the rest.
const (
	billRows    = 5
	billShare   = 7
	billTime    = 11
	leastBilled = 0.02 // a smaller share has no row of its own
	// A screen has room for the largest.
	briefBillRows  = 4
	briefBillLines = 4
	leastInBrief   = 0.05
)

// spares is what could be spared of what a request costs, nil for nothing.
func spares(v model.Verdict) *model.Saving {
	b := v.Bill
	if b == nil || b.Missing != "" || len(b.Entries) == 0 || len(b.Entries[0].Avoidable) == 0 {
		return nil
	}
	if v.Answer != model.AnswerCapacity && !b.MuchOfMachine() {
		return nil
	}
	return &b.Entries[0].Avoidable[0]
}

// Bill is the bill that belongs to a verdict, nil for none: to the answer that the CPUs are the limit, and
// to others where the services use much of these, and could spare it.
func Bill(v model.Verdict) *model.Bill {
	b := v.Bill
	if b == nil || b.Missing != "" || len(b.Entries) == 0 || v.Answer != model.AnswerCapacity && spares(v) == nil {
		return nil
	}
	return b
}

// bill writes what a request costs in CPU time and what for, in eight lines or fewer.
func bill(p *paper, v model.Verdict) {
	b := Bill(v)
	if b == nil {
		return
	}
	p.heading(bold, "WHAT A REQUEST COSTS")
	p.line(0, plain, cut(Billed(b), p.width))
	rest, left := 1.0, billRows
	for i, e := range b.Entries {
		if left <= 0 || i > 0 && e.Share < leastBilled {
			break
		}
		billRow(p, e)
		rest, left = rest-e.Share, left-1
		if i == 0 && len(e.Avoidable) > 0 {
			left -= billRemedy(p, e.Avoidable[0])
		}
	}
	if rest >= 0.0005 {
		p.line(0, dim, before(percent(rest), billShare)+strings.Repeat(" ", billTime+2)+"all else (--json has it, and how to see each)")
	}
}

// Spared says what a saving brings, and how it is made.
func Spared(s model.Saving) string { return promised(s) + " by: " + layout.Line(s.Remedy) }

// promised says what a saving brings.
func promised(s model.Saving) string {
	along := ""
	if s.AtMost >= s.Share+0.01 {
		along = fmt.Sprintf(" (%s of the CPU time, with what goes along with it)", percent(s.AtMost))
	}
	return fmt.Sprintf("up to %.3g × the replies%s", s.Throughput, along)
}

// billRemedy says in two lines at most how to spare it, and returns in how many.
func billRemedy(p *paper, s model.Saving) int {
	const most = 2
	column := billShare + 2
	text := Spared(s)
	lines := wrap(text, p.width-column)
	if len(lines) > most {
		lines = append(lines[:most-1], cut(lines[most-1]+" …", p.width-column))
	}
	for _, l := range lines {
		p.line(column, bold, l)
	}
	return len(lines)
}

// goesInto says what the CPU time is for where the CPUs are the limit and nothing is known that spares it: "nothing is
// broken" alone leaves it to the reader to find what there could be less of.
func goesInto(s *sheet, v model.Verdict) {
	b := Bill(v)
	if b == nil || v.Answer != model.AnswerCapacity || spares(v) != nil {
		return
	}
	var parts []string
	for _, e := range b.Entries[:min(len(b.Entries), briefBillRows)] {
		if e.Share >= leastInBrief {
			parts = append(parts, percent(e.Share)+" "+billedFor(e))
		}
	}
	if len(parts) == 0 {
		return
	}
	text := strings.Join(parts, "; ")
	if b.SecondsPerRequest != nil {
		text = "the " + layout.Micros(*b.SecondsPerRequest*1e6) + " of CPU time a request takes: " + text
	}
	s.item(mustKeep, "goes into", briefBillLines, text)
}

// billedFor says what an entry's time is for, and by which function where one stands out.
func billedFor(e model.BillEntry) string {
	switch {
	case e.Mechanism == "own" && len(e.Functions) > 0:
		text := e.Text + inModules(e) + ": " + ownFirst(BillFunction(e.Functions[0]))
		if e.Caller != "" && !strings.Contains(e.Functions[0].Function, e.Caller) {
			text += ", most for " + layout.Line(e.Caller)
		}
		return text
	case e.Caller != "":
		return e.Text + ", for " + layout.Line(e.Caller)
	}
	return e.Text
}

// ownFirst has a script's own function, and where it stands, before that of a library in which its time went: where a line is cut,
// its end goes, and what is in brackets.
func ownFirst(function string) string {
	inner, own, found := strings.Cut(function, " in ")
	name, place, placed := strings.Cut(own, " (")
	end := strings.LastIndex(place, ") ")
	if !found || !placed || end < 0 {
		return function
	}
	return name + " at " + place[:end] + ", there in " + inner + place[end+1:]
}

// leastModule is which share of the application's own code must be in one library or module for that to be told.
const leastModule = 0.1

// inModules names the libraries and modules that much of the application's own code is in, the largest first, "" where it is the
// program's alone: what a program loads is not all the application's.
func inModules(e model.BillEntry) string {
	const most = 2
	var files []string
	for _, f := range e.Files {
		if f.Share >= leastModule && layout.Loadable(f.Name) && len(files) < most {
			files = append(files, layout.Line(f.Name)+" "+percent(f.Share*e.Share))
		}
	}
	if len(files) == 0 {
		return ""
	}
	return " (" + strings.Join(files, ", ") + ")"
}

// sparedPart says how much of the services' CPU time goes into what could be spared, the two largest, and in which file of code most of that is.
func sparedPart(b *model.Bill) string {
	const most = 2
	var parts []string
	for _, e := range b.Entries[:min(len(b.Entries), most)] {
		if len(e.Avoidable) == 0 {
			break
		}
		text := percent(e.Share) + " " + e.Text
		if len(e.Files) > 0 && e.Files[0].Share >= 0.5 {
			text += " (" + layout.Line(e.Files[0].Name) + ")"
		}
		parts = append(parts, text)
	}
	return "goes into work that can be saved, all or in part: " + strings.Join(parts, ", ")
}

// Billed says how much a request costs, and whose time it is.
func Billed(b *model.Bill) string {
	var groups []string
	for _, g := range b.Services[:min(len(b.Services), 3)] {
		groups = append(groups, layout.Line(g.Name)+" "+percent(g.Share))
	}
	text := "CPU time of programs"
	if b.SecondsPerRequest != nil {
		text = layout.Micros(*b.SecondsPerRequest*1e6) + " of CPU time each"
	}
	return fmt.Sprintf("%s (%s), by %s", text, strings.Join(groups, ", "), plural(int(b.Samples), "sample", "samples"))
}

func billRow(p *paper, e model.BillEntry) {
	each := ""
	if e.SecondsPerRequest != nil {
		each = layout.Micros(*e.SecondsPerRequest * 1e6)
	}
	lead := before(percent(e.Share), billShare) + before(each, billTime) + "  "
	p.line(0, plain, lead+cut(billedFor(e), p.width-billShare-billTime-2))
}

// BillFunction names a function, with its file of code where that is a loadable one, and the last part of its source's name.
func BillFunction(f model.BillFunction) string {
	name, place, _ := strings.Cut(layout.Line(f.Function), " /")
	name = layout.InModule(name, layout.Line(f.Module))
	if place == "" && f.File != "" {
		place = fmt.Sprintf("%s:%d", layout.Line(f.File), f.Line)
	}
	return strings.TrimSpace(name+" "+place[strings.LastIndexByte(place, '/')+1:]) + " " + percent(f.Share)
}

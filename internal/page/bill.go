package page

import (
	"html/template"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/report"
)

// Bill is what a request costs in CPU time, what for, and what of it could be spared.
type Bill struct {
	Of    string // how much, whose time it is, and by how many samples
	Items []Item
	Notes []string
}

// Item is one mechanism on a bill.
type Item struct {
	Text, Each, Share string
	// Sure is how far the share may be off.
	Sure      string
	Bar       template.HTML
	Functions []string
	Savings   []Saving
	Why       string
	ByHand    string
}

// Saving is what could be spared, with what is promised of it.
type Saving struct{ Title, Evidence, Promise, Costs, Back string }

// mostFunctions is how many functions of a mechanism are named.
const mostFunctions = 3

// billOf words the bill of a verdict, of no item where there is none.
func billOf(v model.Verdict) Bill {
	b := report.Bill(v)
	if b == nil {
		return Bill{}
	}
	out := Bill{Of: report.Billed(b), Notes: b.Notes}
	for _, e := range b.Entries {
		item := Item{Text: e.Text, Share: report.Percent(e.Share), Sure: "± " + report.Percent(e.PlusMinus), Why: e.Why, ByHand: e.ByHand}
		if e.SecondsPerRequest != nil {
			item.Each = layout.Micros(*e.SecondsPerRequest * 1e6)
		}
		item.Bar = drawn(svg.Bar(e.Text+": "+item.Share, e.Share, 0, len(e.Avoidable) > 0))
		for _, f := range e.Functions[:min(len(e.Functions), mostFunctions)] {
			item.Functions = append(item.Functions, report.BillFunction(f))
		}
		for _, s := range e.Avoidable {
			item.Savings = append(item.Savings, Saving{Title: s.Title, Evidence: s.Evidence, Promise: report.Spared(s), Costs: s.Costs, Back: layout.Unmarked(s.Back)})
		}
		out.Items = append(out.Items, item)
	}
	return out
}

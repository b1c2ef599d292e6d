package diagnose

import (
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// beforeLoad is by how much events have to come more often in the main window
// than before it, to be the load's: a tenth, since no rate is quite even.
const beforeLoad = 1.1

// asBefore says whether a clue that counts harm ("> 0" of some event) was true
// before the load as well, and no less often: then it is not requests of this
// load that were harmed. Only a run with a baseline can tell.
func (r *run) asBefore(c *ruleset.Clue, value float64, subject map[string]string) bool {
	if c.Role != model.Decides && c.Role != model.Proves || !c.MeasureExpr.Counts() || c.Threshold != (ruleset.Comparison{Op: ">"}) {
		return false
	}
	window, ok := r.Window("window")
	base, had := r.Window(model.Baseline)
	if !ok || !had || base.End > window.Start {
		return false
	}
	s, seen := query.Largest(r.AskBefore(c.MeasureExpr).Samples, subject)
	perSecond := func(v float64, s query.Span) float64 { return v / float64(s.End-s.Start) }
	return seen && s.Value > 0 && perSecond(value, window) < beforeLoad*perSecond(s.Value, base)
}

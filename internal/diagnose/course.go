package diagnose

import (
	"maps"
	"regexp"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/model"
)

// beforeLoad is by how much events have to come more often in the main window
// than before it, to be the load's: a tenth, since no rate is quite even.
const beforeLoad = 1.1

// otherWindow matches a window variable that is not the main one's.
var otherWindow = regexp.MustCompile(`\$(run|baseline|calm|ramp|hold|cool)\b`)

// countsEvents says whether an expression is nothing but a number of events in
// the main window: increases of counters, added up or chosen from, and not
// divided by anything.
func countsEvents(text string, root parser.Expr) bool {
	if otherWindow.MatchString(text) {
		return false
	}
	counts, plain := 0, true
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			counts++
			plain = plain && withinIncrease(path)
		case *parser.BinaryExpr:
			plain = plain && (n.Op == parser.ADD || n.Op.IsSetOperator())
		}
		return nil
	})
	return plain && counts > 0
}

func withinIncrease(path []parser.Node) bool {
	for _, n := range path {
		if c, ok := n.(*parser.Call); ok && c.Func.Name == "increase" {
			return true
		}
	}
	return false
}

// asBefore says whether a clue that counts harm ("> 0" of some event) was true
// before the load as well, and no less often: then it is not requests of this
// load that were harmed. Only a run with a baseline can tell.
func (r *run) asBefore(c *RuleClue, value float64, subject map[string]string) bool {
	if c.Role != model.Decides && c.Role != model.Proves || !c.measure.counts || c.is != (comparison{op: ">"}) {
		return false
	}
	window, ok := r.windows["window"]
	base, had := r.windows[model.Baseline]
	if !ok || !had || base.end > window.start {
		return false
	}
	s, seen := largest(r.askBefore(c.measure, base).samples, subject)
	perSecond := func(v float64, s span) float64 { return v / float64(s.end-s.start) }
	return seen && s.value > 0 && perSecond(value, window) < beforeLoad*perSecond(s.value, base)
}

// askBefore evaluates an expression as if the baseline were the main window.
func (q *querier) askBefore(e *expression, base span) result {
	return q.once("baseline: "+e.text, func() result {
		w := maps.Clone(q.windows)
		w["window"] = base
		return q.evaluate(e, w, time.UnixMilli(base.end))
	})
}

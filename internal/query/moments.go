package query

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// mostMoments is at how many moments of a window a subquery looks that says no
	// step of its own. In a window that has more readings than that, as one of seven
	// hours has of one a second, it looks less often.
	mostMoments = 25_000
	// maxMoments is how many moments a subquery may ask for, and maxNested how many
	// one within another may.
	maxMoments = 250_000
	maxNested  = 5_000_000
)

// stepOf is the time between two looks of a subquery without a step, in
// milliseconds: twice an interval, so that no reading is missed.
func stepOf(interval int64, w windows) int64 {
	step := max(interval/2, 1)
	if interval <= 0 {
		step = 500
	}
	for _, s := range w {
		step = max(step, (s.End-s.Start)/mostMoments)
	}
	return step
}

// fixedMoments refuses a subquery that asks for too many moments whatever the run's
// windows are.
func fixedMoments(text string, root parser.Expr) error {
	var bad error
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		sub, ok := n.(*parser.SubqueryExpr)
		if !ok || sub.Step == 0 || bad != nil {
			return nil
		}
		pos := sub.PositionRange()
		if written := text[pos.Start:pos.End]; strings.Contains(written[strings.LastIndexByte(written, '['):], "$") {
			return nil
		}
		bad = tooMany(sub.Range, sub.Step)
		return nil
	})
	return bad
}

// checkMoments refuses a subquery, the last of those that stand in one another, of too many moments.
func (f filling) checkMoments(chain []*parser.SubqueryExpr) error {
	all := 1.0
	for i, sub := range chain {
		span, step := f.duration(sub.Range), f.step
		if sub.Step > 0 {
			step = f.duration(sub.Step)
		}
		if i == len(chain)-1 {
			if err := tooMany(span, step); err != nil {
				return err
			}
		}
		all *= float64(span)/float64(step) + 1
	}
	if all > maxNested {
		return fmt.Errorf("subqueries within one another look at %.0f moments; want at most %d", all, maxNested)
	}
	return nil
}

func tooMany(span, step time.Duration) error {
	if float64(span)/float64(step) > maxMoments {
		return fmt.Errorf("a look at each %v of %v is %.0f moments; want at most %d", step, span, float64(span)/float64(step), maxMoments)
	}
	return nil
}

package judge

import (
	"fmt"
	"strings"

	"github.com/google/pprof/profile"

	"plimsoll/internal/bill"
	"plimsoll/internal/flame"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

// cpuStacks is how the names of stacks that were sampled on the CPUs begin; those
// of a further machine have its name behind it.
const cpuStacks = "cpu"

// billOf makes the bill of a run that kept sampled stacks, nil of one that kept none.
func billOf(rec *record.Run, q *query.Run, set ruleset.Rules) (*model.Bill, error) {
	tracing := rec.Meta().Tracing
	if tracing == nil {
		return nil, nil
	}
	var stacks []*profile.Profile
	for _, name := range tracing.Profiles {
		if !strings.HasPrefix(name, cpuStacks) {
			continue
		}
		raw, err := rec.Stacks(name)
		var p *profile.Profile
		if err == nil {
			p, err = flame.Parse(raw)
		}
		if err != nil { // the rest of the verdict stands without them
			return &model.Bill{Missing: fmt.Sprintf("the run's sampled stacks %s: %v", name, err)}, nil
		}
		stacks = append(stacks, p)
	}
	if len(stacks) == 0 {
		return nil, nil
	}
	return bill.Of(q, set.Known(), stacks)
}

// withBill adds to the sentence of a capacity what of it could be spared.
func withBill(v *model.Verdict) {
	if v.Answer != model.AnswerCapacity || v.Bill == nil || len(v.Bill.Entries) == 0 || len(v.Bill.Entries[0].Avoidable) == 0 {
		return
	}
	first := v.Bill.Entries[0]
	v.Sentence = fmt.Sprintf("%s; %s of that CPU time goes into what can be spared, all or in part: %s.",
		strings.TrimSuffix(v.Sentence, "."), layout.Share(first.Avoidable[0].Share), first.Text)
}

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
const (
	cpuStacks   = "cpu"
	wholeStacks = "deepcpu" // those of --trace full, which have the functions of scripts
)

// stacksOf are the stacks of a kind that a run kept; missing says why they cannot be read, "" where they can.
func stacksOf(rec *record.Run, kind string) (stacks []*profile.Profile, missing string) {
	tracing := rec.Meta().Tracing
	if tracing == nil {
		return nil, ""
	}
	for _, name := range tracing.Profiles {
		if !strings.HasPrefix(name, kind) {
			continue
		}
		raw, err := rec.Stacks(name)
		var p *profile.Profile
		if err == nil {
			p, err = flame.Parse(raw)
		}
		if err != nil { // the rest of the verdict stands without them
			return nil, fmt.Sprintf("the run's sampled stacks %s: %v", name, err)
		}
		stacks = append(stacks, p)
	}
	return stacks, ""
}

// billOf makes the bill of a run's stacks, nil where there are none; whole ones name its scripts.
func billOf(q *query.Run, set ruleset.Rules, stacks, whole []*profile.Profile, missing string) (*model.Bill, error) {
	if missing != "" {
		return &model.Bill{Missing: missing}, nil
	}
	if len(stacks) == 0 {
		return nil, nil
	}
	return bill.Of(q, set.Known(), stacks, whole)
}

// leastTold is which share of the CPU time a mechanism must have to be told in the answer's sentence.
const leastTold = 0.1

// withBill adds to the sentence of a capacity what its CPU time is for: what of it could be spared, else its largest part. That
// takes the place of a function, which says where and not what for. Of a healthy host it says only what could be spared, where
// its services use much of the CPUs: nobody waits yet, and with more requests it is what they will wait for. Where an
// interpreter's loop is all that was seen of scripts (not whole: without whole stacks), it says what sees more.
func withBill(v *model.Verdict, whole bool) {
	if v.Bill == nil || len(v.Bill.Entries) == 0 {
		return
	}
	first := v.Bill.Entries[0]
	text := ""
	switch {
	case v.Answer == model.AnswerHealthy && v.Bill.MuchOfMachine() && len(first.Avoidable) > 0:
		v.Sentence = strings.TrimSuffix(v.Sentence, ".") + "; its programs use " + layout.Share(v.Bill.MachineShare) + " of the CPUs, and " + spared(first) + "."
		return
	case v.Answer != model.AnswerCapacity:
		return
	case len(first.Avoidable) > 0:
		text = spared(first)
	case (first.Told || first.Caller != "") && first.Share >= leastTold:
		text = fmt.Sprintf("%s of that CPU time goes into %s%s", layout.Share(first.Share), first.Text, inLibrary(first)+calledBy(first))
	case !whole && first.Share >= leastTold && len(first.Functions) > 0 && layout.RunsScripts(first.Functions[0].Function):
		text = fmt.Sprintf("%s of that CPU time is scripts', of which this level sees the interpreter alone: plimsoll again --trace full names their functions", layout.Share(first.Share))
	default:
		return
	}
	v.Sentence = strings.TrimSuffix(withoutFunction(*v), ".") + "; " + text + "."
}

// spared says how much of the CPU time an entry is, which can be spared.
func spared(e model.BillEntry) string {
	s := e.Avoidable[0]
	text := layout.Share(s.Share) + " of that CPU time"
	if s.AtMost >= s.Share+leastTold {
		text += fmt.Sprintf(" (up to %s with what goes along with it)", layout.Share(s.AtMost))
	}
	return text + " goes into work that can be saved, all or in part: " + e.Text + inLibrary(e) + calledBy(e)
}

// calledBy names the function of the program that a mechanism is called for by, "" where none stands out.
func calledBy(e model.BillEntry) string {
	if e.Caller == "" {
		return ""
	}
	return ", most of it in " + layout.Line(e.Caller)
}

// inLibrary names the file of code that a mechanism is mostly in, "" where that is the kernel, or no file, or the program itself
// (or its interpreter) for what is its own.
func inLibrary(e model.BillEntry) string {
	if len(e.Files) == 0 || e.Files[0].Share < 0.5 || e.Mechanism == "own" && !layout.Loadable(e.Files[0].Name) {
		return ""
	}
	return " (" + layout.Line(e.Files[0].Name) + ")"
}

// withoutFunction is the sentence without what it says of the function that took most of the time.
func withoutFunction(v model.Verdict) string {
	for _, f := range v.Grounds {
		for _, c := range f.Clues {
			if c.ID == "function" && c.Truth == model.True {
				return strings.NewReplacer(", and "+c.Say, "", "; "+c.Say, "").Replace(v.Sentence)
			}
		}
	}
	return v.Sentence
}

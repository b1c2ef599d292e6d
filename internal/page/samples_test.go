package page

import (
	"bytes"
	"slices"
	"testing"

	"plimsoll/internal/compare"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
)

// TestSamples makes a page of each kind. With a directory in $PLIMSOLL_PAGES they are left there, for ui/test, which
// holds pictures of them against those that were kept.
func TestSamples(t *testing.T) {
	two := []string{"client", "server"}
	_, cause := read(t, made{seconds: 60, hosts: two}.write(t))
	_, hosts := read(t, made{seconds: 120, hosts: []string{"client", "a", "b", "c", "d"}}.write(t))
	_, unclear := read(t, made{seconds: 30, hosts: two}.write(t))
	answered(unclear, model.Verdict{Answer: model.AnswerUnclear, Sentence: "What holds it back was not found; nearest comes: The table is full (server).",
		Nearest: []model.Candidate{{Rule: "x.full", Title: "The table is full", For: []string{"the table peaked at 93 % of its limit"}, Settle: "it would be it if that were > 0.95", ByHand: "conntrack -C"}}})
	_, healthy := read(t, made{seconds: 30, hosts: two}.write(t))
	answered(healthy, model.Verdict{Answer: model.AnswerHealthy, Sentence: "The offered load was served; nothing held it back."})
	a, b := opened(t, made{seconds: 30, hosts: two}.write(t)), opened(t, made{seconds: 40, hosts: two}.write(t))
	x, err := compare.NewSide(a)
	check(t, err)
	y, err := compare.NewSide(b)
	check(t, err)
	beside, err := Compare(compare.Compare(x, y), a, b)
	check(t, err)
	beside.A, beside.B = "runs/before", "runs/after"
	for name, p := range map[string]Page{
		"cause": {Runs: []*Run{cause}}, "hosts": {Runs: []*Run{hosts}}, "unclear": {Runs: []*Run{unclear}}, "healthy": {Runs: []*Run{healthy}},
		"capacity": {Runs: []*Run{capacity(t)}}, "failed": {Runs: []*Run{dead(t)}}, "compare": {Compared: []*Comparison{beside}}, "tune": {Tuned: Walk(aWalk())},
	} {
		p.Title = "Plimsoll: " + name
		for _, r := range p.Runs {
			r.Dir, r.Version = "run", "test"
			for i, f := range r.Tables.Cost {
				if f.Name == "run" || f.Name == "watching" {
					r.Tables.Cost[i].Value = "…"
				}
			}
		}
		var doc bytes.Buffer
		check(t, Write(&doc, p))
		wellFormed(t, doc.String())
		scripts(t, doc.String())
		leave(t, "sample-"+name+".html", doc.String())
		if len(p.Runs) == 1 && len(p.Runs[0].Evidence) > 0 { // the others were given another verdict
			var numbers bytes.Buffer
			check(t, report.JSON(&numbers, p.Runs[0].Report))
			leave(t, "sample-"+name+".json", numbers.String())
		}
	}
}

// answered gives a run another verdict, which rests on nothing.
func answered(r *Run, v model.Verdict) {
	r.Verdict, r.Evidence = v, nil
	r.Sure, r.First = report.HowSure(r.Report), report.FirstSteps(r.Report)
}

// capacity is a run whose CPUs are used up, with a bill.
func capacity(t *testing.T) *Run {
	_, r := read(t, made{seconds: 30, hosts: []string{"client", "server"}}.write(t))
	each := 0.00728
	answered(r, model.Verdict{Answer: model.AnswerCapacity, Sentence: "The CPUs are the limit, and the service uses them up (server).", Bill: &model.Bill{
		CPUSeconds: 11.5, MachineShare: 0.96, SecondsPerRequest: &each, Samples: 217, Services: []model.LoadGroup{{Name: "php-fpm", Share: 1}},
		Entries: []model.BillEntry{
			{Mechanism: "compiling_php", Text: "PHP compiles its scripts", Share: 0.54, PlusMinus: 0.04, SecondsPerRequest: &each, Why: "it is done once", ByHand: "perf record -a",
				Avoidable: []model.Saving{{ID: "opcache", Title: "Switch opcache on", Share: 0.54, Throughput: 2.17, Remedy: "php.ini: opcache.enable=1", Costs: "shared memory"}}},
			{Mechanism: "rest", Text: "the rest", Share: 0.46, PlusMinus: 0.04}}}})
	r.Bill = billOf(r.Verdict)
	return r
}

// dead is a run of a second without a reply.
func dead(t *testing.T) *Run {
	_, r := read(t, made{seconds: 7, hosts: []string{"client", "server"}}.write(t))
	answered(r, model.Verdict{Answer: model.AnswerUnclear, Sentence: "What holds it back, if anything does, was not found."})
	r.Report.Load = &model.Load{Seconds: 1, Outcomes: map[string]int64{"read:timeout": 99}}
	r.Facts = facts(r.Report)
	r.Load = slices.DeleteFunc(r.Load, func(f Figure) bool { return f.Title != "Failed, by outcome" })
	return r
}

// aWalk is a walk of three steps: one that paid, one that was taken back, and the end.
func aWalk() model.Tuning {
	rates, shares := []float64{56, 169, 764}, []float64{0.0057, 0.74, 1}
	step := func(i int, title string, outcome model.TuneOutcome, says string) model.TuneStep {
		s := model.TuneStep{Number: i + 1, Sentence: title, TuneLoad: model.TuneLoad{GoodRPS: &rates[i], GoodShare: &shares[i]}, Root: &model.Finding{Rule: "x.full", Title: title}}
		if outcome != "" {
			s.Fix = &model.TuneFix{Outcome: outcome, Sentence: says, Changes: []model.TuneChange{{What: "net.core.somaxconn", Host: "server", Old: "10", New: "4096"}}}
		}
		return s
	}
	return model.Tuning{Stopped: "nothing holds it back that could be changed", End: model.TuneEnd{Answer: model.AnswerCapacity, Sentence: "The CPUs are the limit (server).", TuneLoad: model.TuneLoad{GoodRPS: &rates[2]}},
		Steps: []model.TuneStep{step(0, "A listen queue is full", model.Kept, "it did what it should, and it paid"),
			step(1, "All workers are busy", model.Kept, "good requests/s 169 → 764"), step(2, "The CPUs are the limit", "", "")}}
}

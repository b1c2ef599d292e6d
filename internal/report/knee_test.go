package report

import (
	"math"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// kneeSteps are steps that follow a law.
func kneeSteps(law model.ScalingLaw, list ...int) (steps []model.KneeStep) {
	for _, n := range list {
		steps = append(steps, model.KneeStep{Connections: n, GoodRPS: law.At(float64(n)), GoodShare: 1, P50: 1000 * float64(n), P99: 4000 * float64(n)})
	}
	return steps
}

func TestTheKneeIsDrawnAndTold(t *testing.T) {
	law := model.ScalingLaw{OneRPS: 100, Contention: 0.1, Coherence: 0.001, Fits: true,
		Knee: &model.Interval{Mean: 8, Low: 7, High: 9, Known: true}, Most: &model.Interval{Mean: 800, Low: 790, High: 820, Known: true}}
	busy := kneeSteps(law, 1, 2, 4, 8, 16, 32, 64, 1)
	busy[4].GeneratorCPU, busy[5].GoodShare = 0.99, 0.9
	grows := law
	grows.Knee, grows.Most = nil, nil
	open := law
	open.Knee = &model.Interval{Mean: 20, Low: 10, High: 64, Known: true}
	bends := law
	bends.Fits, bends.Off = false, 0.2
	noisy := law
	noisy.Off = 0.2
	for why, c := range map[string]struct {
		law   model.ScalingLaw
		steps []model.KneeStep
		want  []string
		not   []string
	}{
		"a knee": {law, kneeSteps(law, 1, 2, 4, 8, 16, 32, 64), []string{"knee       8 connections (95 %: 7 to 9), and 800 good replies/s at most (790 to 820)", "contention 10 %, coherence 0.1 %", "beyond 30 connections more of them bring less", "\n     1        100  "},
			[]string{"generator", "failures", "That is no fit", "equal loads"}},
		"none":                        {grows, kneeSteps(law, 1, 2, 4, 8), []string{"knee       none up to 8 connections: throughput still grows there. Try more (-c 32)"}, nil},
		"an interval without an end":  {open, kneeSteps(law, 1, 2, 64), []string{"20 connections (95 %: 10 to 64 and more)"}, nil},
		"no fit":                      {bends, kneeSteps(law, 1, 2, 4, 8), []string{"off by 20 % on average: one", "That is no fit"}, []string{"bring less"}},
		"noise":                       {noisy, kneeSteps(law, 1, 2, 4, 8), []string{"off by 20 % on average, as equal loads are by themselves"}, nil},
		"the generator, and failures": {law, busy, []string{"with 16 connections its busiest thread had 99 % of a CPU", "with 32 connections 10 % of the requests failed"}, nil},
	} {
		var b strings.Builder
		if err := KneeFoot(&b, model.Knee{Steps: c.steps, Law: &c.law}, TextOptions{Width: 80}); err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) && !strings.Contains(flat, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s: no %q in\n%s", why, want, b.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(flat, not) {
				t.Errorf("%s: %q in\n%s", why, not, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 80 {
				t.Errorf("%s: too long: %q", why, line)
			}
		}
	}
}

// Nothing came back: nothing is drawn that is no number, and there is no knee.
func TestAKneeOfNothing(t *testing.T) {
	var b strings.Builder
	err := KneeFoot(&b, model.Knee{Steps: []model.KneeStep{{Connections: 1}, {Connections: 8, P99: math.SmallestNonzeroFloat64}}}, TextOptions{})
	if err != nil || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "\nknee") || !strings.Contains(b.String(), "failures") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

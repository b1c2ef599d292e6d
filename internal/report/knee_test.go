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
	law := model.ScalingLaw{OneRPS: 100, Contention: 0.1, Coherence: 0.001, Fits: true, Off: 0.012}
	bends := law
	bends.Fits, bends.Off = false, 0.2
	scatter := 0.015
	of := func(law model.ScalingLaw, best *model.BestConnections, top model.TopThroughput, steps ...model.KneeStep) model.Knee {
		return model.Knee{Steps: steps, Scatter: &scatter, Best: best, Top: &top, Law: &law}
	}
	best := &model.BestConnections{Connections: 8, Low: 4, High: 16, GoodRPS: 500}
	top := model.TopThroughput{Connections: 32, GoodRPS: 700, From: 16, Falls: true}
	all := kneeSteps(law, 1, 2, 4, 8, 16, 32, 64)
	busy := kneeSteps(law, 1, 2, 4, 8, 16, 32, 64, 1)
	busy[4].GeneratorCPU, busy[5].GoodShare, busy[7].StoodStill, busy[7].GoodRPS = 0.99, 0.9, 1.5, 1
	for why, c := range map[string]struct {
		knee      model.Knee
		want, not []string
	}{
		"a knee": {of(law, best, top, all...), []string{
			"knee between 4 and 16 connections; of those tried 8 is the best, with 500 good replies/s and p50 8 ms. Before the knee",
			"most 700 good replies/s, with 32 connections; 16 had as much, within what equal loads differ by (1.5 % each); 64 had less, 565",
			"law the Universal Scalability Law is off by 1.2 % on average, equal loads by 1.5 %: what was tried does not speak against it. One connection got 100/s, contention is 10 %, coherence 0.1 %",
			"\n     1        100  "}, []string{"generator", "failures", "no fit", "left out", "-c 256"}},
		"none": {of(law, nil, model.TopThroughput{Connections: 8, GoodRPS: 500, From: 8}, kneeSteps(model.ScalingLaw{OneRPS: 100}, 1, 2, 4, 8)...), []string{
			"knee none up to 8 connections: the last of them still add as much to throughput as to the wait, or more. Try more (-c 32)",
			"most 500 good replies/s, with 8 connections, and still growing there (400 with 4): what more would bring was not tried (-c 32)"}, nil},
		"too noisy": {of(law, nil, top, all...), []string{"knee not told: equal loads differ too much (by 1.5 %) to say whether it is below 64 connections. Hold each for longer (-d)"}, nil},
		"no fit":    {of(bends, best, top, all...), []string{"is off by 20 % on average, equal loads by 1.5 %: no fit. Throughput bends more sharply"}, []string{"contention", "One connection"}},
		"the generator, and failures": {of(law, best, top, busy...), []string{"with 16 connections its busiest thread had 99 % of a CPU",
			"with 32 connections 10 % of the requests failed, and good replies alone are counted: plimsoll load 'http://x/?a=1&b=2' -c 32 says why",
			"left out with 1 connection this generator stood still for 1.5 s", "\n     1        100  "}, nil},
	} {
		var b strings.Builder
		if err := KneeFoot(&b, c.knee, "http://x/?a=1&b=2", TextOptions{Width: 80}); err != nil {
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
		within80(t, b.String())
	}
}

func within80(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 80 {
			t.Errorf("longer than 80: %q", line)
		}
	}
}

func TestAStepFitsItsLine(t *testing.T) {
	var b strings.Builder
	if err := KneeStep(&b, model.KneeStep{Connections: 65536, GoodRPS: 1_234_567, GoodShare: 0.8765, P50: 123_456, P99: 456_789}, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if want := "65,536 connections"; !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "12.3 % failed") && !strings.Contains(b.String(), "12.4 % failed") {
		t.Errorf("%q: want %s, and the share that failed", b.String(), want)
	}
	within80(t, b.String())
}

// Nothing came back, or of no number twice: nothing is drawn that is no number, and there is no knee.
func TestAKneeOfNothing(t *testing.T) {
	scatter := 0.01
	for _, k := range []model.Knee{
		{Steps: []model.KneeStep{{Connections: 1}, {Connections: 8, P99: math.SmallestNonzeroFloat64}}},
		{Steps: []model.KneeStep{{Connections: 1}, {Connections: 8}}, Scatter: &scatter, Top: &model.TopThroughput{Connections: 1, From: 1}},
	} {
		var b strings.Builder
		err := KneeFoot(&b, k, "http://x/", TextOptions{})
		if err != nil || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "\nknee") || !strings.Contains(b.String(), "failures") {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}

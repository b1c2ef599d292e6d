package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll/internal/model"
)

// steps are what a service gives with each number of connections, up and down again, give or take a share.
func steps(most int, noise float64, of func(float64) float64) (list []model.KneeStep) {
	random := rand.New(rand.NewPCG(7, 7))
	up := KneeSteps(most)
	for _, n := range slices.Concat(up, up) {
		list = append(list, model.KneeStep{Connections: n, GoodRPS: of(float64(n)) * (1 + noise*random.NormFloat64())})
	}
	return list
}

func curve(one, contention, coherence float64) model.ScalingLaw {
	return model.ScalingLaw{OneRPS: one, Contention: contention, Coherence: coherence}
}

func TestTheLawIsFoundAgain(t *testing.T) {
	for _, c := range []model.ScalingLaw{curve(100, 0.1, 0), curve(100, 0.1, 0.001), curve(5, 0, 0.001), curve(90_000, 0.5, 0.01), curve(1, 0.02, 0.0001)} {
		law := Law(steps(256, 0, c.At))
		at, most := lawsKnee(c)
		if law == nil || !law.Fits || law.Off > 1e-6 || !near(law.OneRPS, c.OneRPS, 1e-6) || math.Abs(law.Contention-c.Contention) > 1e-6 || math.Abs(law.Coherence-c.Coherence) > 1e-6 {
			t.Errorf("%+v: %+v", c, law)
			continue
		}
		if !near(law.Knee.Mean, at, 1e-4) || !near(law.Most.Mean, most, 1e-4) {
			t.Errorf("%+v: the knee at %+v, the most %+v; want %g and %g", c, *law.Knee, *law.Most, at, most)
		}
	}
}

func near(got, want, share float64) bool { return math.Abs(got/want-1) <= share }

// The intervals have the truth in them, and are no wider than the noise makes them.
func TestTheKneesInterval(t *testing.T) {
	c := curve(100, 0.05, 0.0002)
	at, most := lawsKnee(c)
	law := Law(steps(128, 0.03, c.At))
	if law == nil || !law.Fits || law.Knee == nil || law.Knee.Low > at || law.Knee.High < at || law.Most.Low > most || law.Most.High < most {
		t.Fatalf("%+v: want intervals with %g and %g in them", law, at, most)
	}
	if law.Knee.High/law.Knee.Low > 2 {
		t.Errorf("the knee is %+v: too wide for 3 %% of noise", *law.Knee)
	}
}

// So many workers, each with all that it needs: a bend that the law does not know is told by the measurements.
func TestABendThatIsNotTheLaws(t *testing.T) {
	law := Law(steps(100, 0.01, func(n float64) float64 { return 95 * min(n, 8) }))
	if law == nil || law.Fits || law.Knee == nil || !near(law.Knee.Mean, 8, 0.05) || !near(law.Most.Mean, 760, 0.05) {
		t.Fatalf("%+v, knee %+v: want 8, as measured", law, law.Knee)
	}
	if law.Knee.Low > 8 || law.Knee.High < 8 || law.Knee.High > 9 {
		t.Errorf("the knee is %+v", *law.Knee)
	}
}

// What still grows has no knee yet.
func TestWhatStillGrowsHasNoKnee(t *testing.T) {
	for name, of := range map[string]func(float64) float64{
		"in step":                  func(n float64) float64 { return 10 * n },
		"nearly so":                curve(10, 0.002, 0).At,
		"faster than in step":      func(n float64) float64 { return 10 * math.Pow(n, 1.1) },
		"workers beyond the tried": func(n float64) float64 { return 10 * min(n, 60) },
	} {
		if law := Law(steps(64, 0.01, of)); law == nil || law.Knee != nil || law.Most != nil {
			t.Errorf("%s: %+v, knee %+v; want none", name, law, law.Knee)
		}
	}
	// One connection is all that it can do.
	if law := Law(steps(64, 0.01, func(float64) float64 { return 10 })); law == nil || law.Knee == nil || !near(law.Knee.Mean, 1, 0.1) {
		t.Errorf("%+v: want a knee at 1", law)
	}
}

func TestTooLittleForALaw(t *testing.T) {
	few := steps(4, 0, func(n float64) float64 { return n })
	alone := steps(64, 0, func(n float64) float64 { return n - 1 }) // one connection had no good reply
	none := steps(64, 0, func(float64) float64 { return 0 })
	for i, list := range [][]model.KneeStep{few, alone, none, nil} {
		if law := Law(list); law != nil {
			t.Errorf("%d: %+v, want none", i, *law)
		}
	}
}

func TestKneeStepsGoUpAndDown(t *testing.T) {
	var held []int
	found, err := FindKnee(t.Context(), 100, func(_ context.Context, n int) (model.KneeStep, error) {
		held = append(held, n)
		return model.KneeStep{GoodRPS: curve(10, 0.1, 0).At(float64(n))}, nil
	}, func(model.KneeStep) {})
	want := []int{1, 2, 4, 8, 16, 32, 64, 100, 100, 64, 32, 16, 8, 4, 2, 1}
	if err != nil || !slices.Equal(held, want) || len(found.Steps) != len(want) || found.Law == nil || !near(found.Law.Knee.Mean, 10, 1e-3) {
		t.Errorf("%v, %v, %+v", err, held, found.Law)
	}
}

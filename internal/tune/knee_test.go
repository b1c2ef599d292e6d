package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll/internal/model"
)

// swept is what a search finds of a service that gives so much with each number of connections, give or take a share.
func swept(most int, noise float64, seed uint64, of func(float64) float64) model.Knee {
	random := rand.New(rand.NewPCG(seed, 7))
	var k model.Knee
	up := KneeSteps(most)
	for _, n := range slices.Concat(up, up) {
		k.Steps = append(k.Steps, model.KneeStep{Connections: n, GoodRPS: of(float64(n)) * math.Exp(noise*random.NormFloat64())})
	}
	Judge(&k)
	return k
}

func curve(one, contention, coherence float64) model.ScalingLaw {
	return model.ScalingLaw{OneRPS: one, Contention: contention, Coherence: coherence}
}

func workers(n, each float64) func(float64) float64 {
	return func(c float64) float64 { return each * min(c, n) }
}

// slowAlone is a machine whose CPU sleeps where one connection alone keeps it busy for moments.
func slowAlone(c float64) float64 {
	if c == 1 {
		return 40
	}
	return 100 * min(c, 16)
}

// powersPeak is where throughput over latency is the highest.
func powersPeak(of func(float64) float64) (at float64) {
	most := 0.0
	for n := 1.0; n < 2000; n += 0.25 {
		if p := of(n) * of(n) / n; p > most*(1+1e-9) {
			at, most = n, p
		}
	}
	return at
}

func TestTheLawIsFoundAgain(t *testing.T) {
	for _, c := range []model.ScalingLaw{curve(100, 0.1, 0), curve(100, 0.1, 0.001), curve(5, 0, 0.001), curve(90_000, 0.5, 0.01), curve(1, 0.02, 0.0001)} {
		law := swept(256, 0, 1, c.At).Law
		if law == nil || !law.Fits || law.Off > 1e-6 || math.Abs(law.OneRPS/c.OneRPS-1) > 1e-6 || math.Abs(law.Contention-c.Contention) > 1e-6 || math.Abs(law.Coherence-c.Coherence) > 1e-6 {
			t.Errorf("%+v: %+v", c, law)
		}
	}
}

// Over many measurements with noise: the knee that is told has the true one in it, nothing is told that was not tried, and the law is taken for one
// where it is one, and seldom where it is none.
func TestWhatIsToldIsTrue(t *testing.T) {
	const runs = 40
	for _, c := range []struct {
		name       string
		most       int
		noise      float64
		of         func(float64) float64
		told, fits [2]int // how many of the runs tell a knee, and have the law fit: at least and at most
	}{
		{"40 workers of 64", 64, 0.02, workers(40, 100), [2]int{runs, runs}, [2]int{0, 4}},
		{"40 workers of 64, noisy", 64, 0.1, workers(40, 100), [2]int{0, runs}, [2]int{0, runs}},
		{"8 workers of 64", 64, 0.02, workers(8, 95), [2]int{runs, runs}, [2]int{0, 0}},
		{"8 workers of 64, noisy", 64, 0.1, workers(8, 95), [2]int{34, runs}, [2]int{0, runs}},
		{"one worker", 64, 0.05, workers(1, 95), [2]int{runs, runs}, [2]int{34, runs}},
		{"60 workers of 64", 64, 0.02, workers(60, 10), [2]int{0, 0}, [2]int{0, runs}},
		{"in step", 64, 0.02, workers(1e9, 10), [2]int{0, 0}, [2]int{34, runs}},
		{"slow alone", 128, 0.02, slowAlone, [2]int{runs, runs}, [2]int{0, 0}},
		{"contention", 128, 0.03, curve(100, 0.05, 0.0002).At, [2]int{38, runs}, [2]int{34, runs}},
		{"contention, few", 16, 0.05, curve(100, 0.3, 0).At, [2]int{20, runs}, [2]int{34, runs}},
		{"coherence", 256, 0.05, curve(100, 0.01, 0.001).At, [2]int{38, runs}, [2]int{34, runs}},
	} {
		knee := powersPeak(c.of)
		told, right, fits := 0, 0, 0
		for seed := range uint64(runs) {
			k := swept(c.most, c.noise, seed, c.of)
			if k.Law.Fits {
				fits++
			}
			if k.Best != nil {
				told++
				if float64(k.Best.Low) <= knee && knee <= float64(k.Best.High) {
					right++
				}
			}
			if truth := c.of(float64(k.Top.Connections)); math.Abs(k.Top.GoodRPS/truth-1) > 3*c.noise {
				t.Errorf("%s: the most is %+v, where it is %g", c.name, *k.Top, truth)
			}
		}
		t.Logf("%s: the knee is %g; %d of %d tell one, %d rightly, the law fits %d", c.name, knee, told, runs, right, fits)
		if told < c.told[0] || told > c.told[1] || fits < c.fits[0] || fits > c.fits[1] || right*100 < told*97 {
			t.Errorf("%s: the knee is %g; %d of %d tell one, %d rightly, the law fits %d", c.name, knee, told, runs, right, fits)
		}
	}
}

// The most is reached where the first has as much, give or take; what still grows, and what falls, is said, and seldom by chance.
func TestTheMostThatWasMeasured(t *testing.T) {
	const runs = 50
	for name, c := range map[string]struct {
		of    func(float64) float64
		from  int
		falls bool
	}{
		"workers":    {workers(8, 95), 8, false},
		"grows":      {workers(60, 10), 64, false},
		"falls":      {curve(100, 0, 0.004).At, 16, true},
		"slow alone": {slowAlone, 16, false},
	} {
		wrong := 0
		for seed := range uint64(runs) {
			if top := swept(64, 0.02, seed, c.of).Top; top.From != c.from || top.Falls != c.falls {
				wrong++
			}
		}
		if wrong > 3 {
			t.Errorf("%s: %d of %d were told otherwise than from %d, falls %t", name, wrong, runs, c.from, c.falls)
		}
	}
}

// A step in which the generator stood still is used for nothing.
func TestAStepThatStoodStillIsLeftOut(t *testing.T) {
	k := model.Knee{Steps: swept(64, 0.01, 3, workers(8, 95)).Steps}
	k.Steps[3].GoodRPS, k.Steps[3].StoodStill = 90, 1.5
	Judge(&k)
	if k.Best == nil || k.Best.Connections != 8 || *k.Scatter > 0.03 || k.Top.From != 8 {
		t.Errorf("%+v %+v, scatter %g", k.Best, k.Top, *k.Scatter)
	}
}

func TestTooLittleForALaw(t *testing.T) {
	few := swept(4, 0, 1, func(n float64) float64 { return n })
	alone := swept(64, 0, 1, func(n float64) float64 { return n - 1 }) // one connection had no good reply
	none := swept(64, 0, 1, func(float64) float64 { return 0 })
	for i, k := range []model.Knee{few, alone, none, {}} {
		if k.Law != nil || (i > 1) != (k.Scatter == nil) {
			t.Errorf("%d: %+v, scatter %v, want no law", i, k.Law, k.Scatter)
		}
	}
	once := model.Knee{Steps: few.Steps[:3]} // nobody knows how equal loads differ
	if Judge(&once); once.Scatter != nil || once.Best != nil || once.Top != nil {
		t.Errorf("%+v", once)
	}
}

func TestKneeStepsGoUpAndDown(t *testing.T) {
	var held []int
	found, err := FindKnee(t.Context(), 100, func(_ context.Context, n int) (model.KneeStep, error) {
		held = append(held, n)
		return model.KneeStep{GoodRPS: curve(10, 0.1, 0).At(float64(n))}, nil
	}, func(model.KneeStep) {})
	want := []int{1, 2, 4, 8, 16, 32, 64, 100, 100, 64, 32, 16, 8, 4, 2, 1}
	if err != nil || !slices.Equal(held, want) || len(found.Steps) != len(want) || found.Law == nil || found.Best.Connections != 8 || found.Best.Low != 4 || found.Best.High != 16 {
		t.Errorf("%v, %v, %+v, %+v", err, held, found.Law, found.Best)
	}
}

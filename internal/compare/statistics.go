package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"plimsoll/internal/model"
)

// allowance and latencyAllowance are how far two runs of the same thing may lie
// apart with nothing between them: a machine's mood (caches, frequency, neighbours,
// memory layout) lasts longer than a run, so no look inside one run shows it. Of
// equal runs latencies lie further apart than rates (bench/equal.sh).
const (
	allowance        = 0.05
	latencyAllowance = 0.10
	// hiccup is the share of requests that may fail in one of two equal runs alone.
	hiccup = 0.005
)

// interval is where the logarithm of the ratio of two means lies, at 95 %
// confidence. known is false where there is too little to tell.
type interval struct {
	low, high float64
	known     bool
}

// into says what the interval makes of a difference.
func (i interval) into(d *model.Difference) {
	d.Answer = model.NotKnown
	switch {
	case d.Unit == "µs" && (d.A == 0 || d.B == 0): // no reply, so no latency
		return
	case d.A == 0 && d.B == 0:
		d.Answer = model.NoDifference
		return
	case d.A == 0 || d.B == 0: // from nothing to something, or back: no ratio, and no chance
		d.Answer = answer((d.B > d.A) == d.HigherIsBetter)
		return
	case !i.known:
		return
	}
	d.Ratio, d.Low, d.High = d.B/d.A, math.Exp(i.low), math.Exp(i.high)
	switch {
	case i.low > 0:
		d.Answer = answer(d.HigherIsBetter)
	case i.high < 0:
		d.Answer = answer(!d.HigherIsBetter)
	default:
		d.Answer = model.NoDifference
	}
}

func answer(better bool) model.ComparisonAnswer {
	if better {
		return model.Better
	}
	return model.Worse
}

// widened adds what runs may differ by without a reason.
func (i interval) widened(by float64) interval {
	i.low -= math.Log1p(by)
	i.high += math.Log1p(by)
	return i
}

// failuresMoved says whether the failures of one run are more than twice the
// other's, by their shares of good replies. The last requests that fail, 96 %
// good or 100 %, are less than the allowance; but a mood does not halve failures.
func failuresMoved(a, b float64) bool {
	x, y := 1-a+hiccup, 1-b+hiccup
	return max(x, y) > 2*min(x, y)
}

// sample is a mean (of a logarithm, or on the way to one) with its uncertainty.
type sample struct {
	variance float64 // of the mean
	freedom  float64
}

// welch is the interval around a difference of two means, by Welch's t (1947), which
// asks for no equal spread.
func welch(center float64, a, b sample) interval {
	sum := a.variance + b.variance
	if math.IsNaN(center) || math.IsInf(center, 0) {
		return interval{}
	}
	if sum == 0 {
		return interval{center, center, true}
	}
	reach := student(sum*sum/(a.variance*a.variance/a.freedom+b.variance*b.variance/b.freedom)) * math.Sqrt(sum)
	return interval{center - reach, center + reach, true}
}

// byRuns compares repeated runs by their own numbers.
func byRuns(a, b []float64) interval {
	x, okA := logs(a)
	y, okB := logs(b)
	if !okA || !okB || len(x) < 2 || len(y) < 2 {
		return interval{}
	}
	of := func(v []float64) sample { return sample{variance(v) / float64(len(v)), float64(len(v) - 1)} }
	return welch(mean(y)-mean(x), of(x), of(y))
}

// bySeconds compares runs whose numbers differ by center (the logarithm of their
// ratio) by the spread of their seconds.
func bySeconds(center float64, a, b [][]float64) interval {
	x, okA := meanOfSeconds(a)
	y, okB := meanOfSeconds(b)
	if !okA || !okB {
		return interval{}
	}
	return welch(center, x, y)
}

// meanOfSeconds is how well the logarithm of the mean of runs' seconds is known.
// The noise of a machine has a long memory: a slow second is followed by slow ones,
// so n seconds are worth no more than √n that know nothing of each other (as where
// noise falls with frequency, Hurst's exponent 3/4). false: too few seconds.
func meanOfSeconds(runs [][]float64) (sample, bool) {
	const least = 2 // of one there is no spread; of few Student's t makes the interval wide
	var all []float64
	worth := 0.0
	for _, seconds := range runs {
		if len(seconds) < least {
			return sample{}, false
		}
		all = append(all, seconds...)
		worth += math.Sqrt(float64(len(seconds)))
	}
	m := mean(all)
	if m == 0 {
		return sample{}, false
	}
	return sample{variance(all) / (m * m) / worth, float64(len(all) - 1)}, true
}

// studentTable is the 97.5 % quantile of Student's t for 1, 2, 3 … degrees of freedom.
var studentTable = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}

// student rounds the degrees of freedom down, to the safe side.
func student(freedom float64) float64 {
	n := int(freedom)
	switch {
	case n < 1:
		return studentTable[0]
	case n <= len(studentTable):
		return studentTable[n-1]
	}
	return 1.96 + 2.5/freedom // off by less than 0.005 from 21 on
}

// logs is false if a value has no logarithm.
func logs(values []float64) ([]float64, bool) {
	list := make([]float64, len(values))
	for i, v := range values {
		if v <= 0 {
			return nil, false
		}
		list[i] = math.Log(v)
	}
	return list, true
}

func mean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func variance(v []float64) float64 { return squares(v) / float64(len(v)-1) }

// MeanOf is the mean of repeated runs' numbers, with Student's t interval.
func MeanOf(values []float64) model.Interval {
	m := mean(values)
	e := model.Interval{Mean: m, Low: m, High: m}
	if n := len(values); n > 1 {
		reach := student(float64(n-1)) * math.Sqrt(variance(values)/float64(n))
		e.Low, e.High, e.Known = max(m-reach, 0), m+reach, true
	}
	return e
}

// Chance is how often groups between which there is no difference would lie as far
// apart as these do: the p-value of a one-way analysis of variance (Fisher 1925) of
// their logarithms, since what repeated runs measure differs by shares. It is drawn
// and not looked up: as often as drawn says, from a fixed seed, so to about ±0.003.
// known is false where no group was measured twice, or a value is 0.
func Chance(groups [][]float64) (p float64, known bool) {
	const draws = 5000
	random := rand.New(rand.NewPCG(1, 1))
	var real, equal [][]float64
	for _, g := range groups {
		v, ok := logs(g)
		if !ok {
			return 0, false
		}
		real, equal = append(real, v), append(equal, make([]float64, len(v)))
	}
	seen, twice := apart(real), func(g []float64) bool { return len(g) > 1 }
	if math.IsNaN(seen) || !slices.ContainsFunc(real, twice) {
		return 0, false
	}
	as := 0
	for range draws {
		for _, g := range equal {
			for i := range g {
				g[i] = random.NormFloat64()
			}
		}
		if apart(equal) >= seen {
			as++
		}
	}
	return float64(as) / draws, true
}

// apart is the variance between groups over the variance within them, but for a
// factor that depends on their sizes alone. NaN where nothing varies.
func apart(groups [][]float64) float64 {
	var all []float64
	within := 0.0
	for _, g := range groups {
		all = append(all, g...)
		within += squares(g)
	}
	return (squares(all) - within) / within
}

// squares is the sum of the squared distances from the mean.
func squares(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return sum
}

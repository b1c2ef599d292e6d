package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"plimsoll/internal/model"
)

const (
	// allowance is how far two runs of the same thing may lie apart with nothing
	// between them: a machine's mood (caches, frequency, neighbours, memory layout)
	// lasts longer than a run, so no look inside one run shows it.
	allowance = 0.05
	draws     = 2000
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
func (i interval) widened() interval {
	i.low -= math.Log1p(allowance)
	i.high += math.Log1p(allowance)
	return i
}

// failuresMoved says whether the failures of one run are more than twice the
// other's, by their shares of good replies. The last requests that fail, 96 %
// good or 100 %, are less than the allowance; but a mood does not halve failures.
func failuresMoved(a, b float64) bool {
	x, y := 1-a+hiccup, 1-b+hiccup
	return max(x, y) > 2*min(x, y)
}

// shifted moves the interval, which is around the ratio of means over seconds, to
// the ratio of the runs' own numbers, which count every request once.
func (i interval) shifted(center float64) interval {
	if !i.known || math.IsNaN(center) || math.IsInf(center, 0) {
		return interval{}
	}
	by := center - (i.low+i.high)/2
	return interval{i.low + by, i.high + by, true}
}

// welch compares repeated runs by their own numbers: Welch's t interval of the
// difference of mean logarithms (Welch 1947), which asks for no equal spread.
func welch(a, b []float64) interval {
	x, okA := logs(a)
	y, okB := logs(b)
	if !okA || !okB || len(x) < 2 || len(y) < 2 {
		return interval{}
	}
	va, vb := variance(x)/float64(len(x)), variance(y)/float64(len(y))
	center := mean(y) - mean(x)
	if va+vb == 0 {
		return interval{center, center, true}
	}
	freedom := (va + vb) * (va + vb) / (va*va/float64(len(x)-1) + vb*vb/float64(len(y)-1))
	reach := student(freedom) * math.Sqrt(va+vb)
	return interval{center - reach, center + reach, true}
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

// blocks compares runs by their seconds: a bootstrap of blocks of neighbouring
// seconds (Künsch 1989), since one second is like the next. The draws are always
// the same, so that the answer is.
func blocks(a, b [][]float64) interval {
	random := rand.New(rand.NewPCG(1, 2))
	ratios := make([]float64, 0, draws)
	for range draws {
		x, y := draw(a, random), draw(b, random)
		if x > 0 && y > 0 {
			ratios = append(ratios, math.Log(y/x))
		}
	}
	if len(ratios) < draws*9/10 {
		return interval{}
	}
	slices.Sort(ratios)
	n := len(ratios)
	return interval{ratios[n/40], ratios[n-1-n/40], true}
}

// draw is the mean of a resampled side; 0 if there is too little to resample.
func draw(runs [][]float64, random *rand.Rand) float64 {
	var sum float64
	n := 0
	for _, seconds := range runs {
		if len(seconds) < 4 {
			return 0
		}
		length := max(2, int(math.Cbrt(float64(len(seconds)))))
		for taken := 0; taken < len(seconds); {
			from := random.IntN(len(seconds) - length + 1)
			for _, v := range seconds[from : from+length] {
				sum += v
				n++
				taken++
			}
		}
	}
	return sum / float64(n)
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

func variance(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return sum / float64(len(v)-1)
}

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

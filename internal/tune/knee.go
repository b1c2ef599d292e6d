package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"plimsoll/internal/model"
)

const (
	// LeastConnections is how many connections a search for the knee has to go up to: a law of three
	// numbers needs more than three to be held against.
	LeastConnections = 8
	// farOff is how far throughput may be from the law, on average, and so many times the scatter of equal loads, for the knee to be the
	// law's: what is farther off bends in another way, as where so many workers serve, and each has all that it needs.
	farOff, timesScatter = 0.05, 2
	// within is how much of what was tried lies beyond the knee at least: closer to the end nobody knows whether throughput levels off.
	within = 0.8
	// resamples are how often the measurements are drawn anew for an interval.
	resamples = 1000
)

// KneeSteps are the numbers of connections to hold: each the double of the one before, up to most.
func KneeSteps(most int) (list []int) {
	for n := 1; n < most; n *= 2 {
		list = append(list, n)
	}
	return append(list, most)
}

// FindKnee holds so many connections after one another, upwards and then downwards, so that a machine that changes meanwhile
// changes it for all alike, and fits the law to what came back. shown is told of each step. With an error, what was found up to it is returned, too.
func FindKnee(ctx context.Context, most int, hold func(context.Context, int) (model.KneeStep, error), shown func(model.KneeStep)) (model.Knee, error) {
	found := model.Knee{Steps: []model.KneeStep{}}
	up := KneeSteps(most)
	down := slices.Clone(up)
	slices.Reverse(down)
	for _, n := range slices.Concat(up, down) {
		step, err := hold(ctx, n)
		if err != nil {
			return found, err
		}
		step.Connections = n
		found.Steps = append(found.Steps, step)
		shown(step)
	}
	found.Law = Law(found.Steps)
	return found, nil
}

// Law fits the Universal Scalability Law to steps; nil where one connection alone, or fewer than four numbers of them, had good replies.
func Law(steps []model.KneeStep) *model.ScalingLaw {
	var points []point
	most := 0.0
	for _, s := range steps {
		most = max(most, float64(s.Connections))
		if s.GoodRPS > 0 {
			points = append(points, point{float64(s.Connections), s.GoodRPS})
		}
	}
	means := meansOf(points)
	if len(means) < 4 || means[1] == 0 {
		return nil
	}
	law := fitted(points)
	law.Off = off(points, law.At)
	mean := func(n float64) float64 { return means[n] }
	law.Fits = law.Off <= max(farOff, timesScatter*off(points, mean))
	if law.Fits {
		law.Knee, law.Most = bend(points, most, func(list []point) (float64, float64) { return lawsKnee(fitted(list)) }, law.At, 1)
	} else {
		// The scatter around the mean of two is the smaller by this, since the mean is theirs.
		law.Knee, law.Most = bend(points, most, measuredKnee, mean, math.Sqrt2)
	}
	return &law
}

// point is a throughput, in replies/s, with n connections.
type point struct{ n, rps float64 }

// lawsKnee is where the line of one connection's throughput for each meets the most that the law has; both +Inf where it has none.
func lawsKnee(l model.ScalingLaw) (at, most float64) {
	switch {
	case l.Coherence > 0:
		most = l.At(l.Peak())
	case l.Contention > 0:
		most = max(l.OneRPS/l.Contention, l.OneRPS)
	default:
		return math.Inf(1), math.Inf(1)
	}
	return most / l.OneRPS, most
}

// measuredKnee is the same of the measurements alone.
func measuredKnee(points []point) (at, most float64) {
	means := meansOf(points)
	for _, m := range means {
		most = max(most, m)
	}
	return most / means[1], most
}

func meansOf(points []point) map[float64]float64 {
	sums, counts := map[float64]float64{}, map[float64]float64{}
	for _, p := range points {
		sums[p.n] += p.rps
		counts[p.n]++
	}
	for n := range sums {
		sums[n] /= counts[n]
	}
	return sums
}

// off is how far points are from what they should be, on average, as a share of that.
func off(points []point, should func(float64) float64) (sum float64) {
	for _, p := range points {
		sum += math.Abs(p.rps/should(p.n)-1) / float64(len(points))
	}
	return sum
}

// bend is where throughput bends, and the most that there is, with intervals: what each point is off from what it should be, times wider, is drawn
// anew among all of them (a bootstrap of residuals), from a fixed seed. nil where that is not within what was tried.
func bend(points []point, tried float64, of func([]point) (float64, float64), should func(float64) float64, wider float64) (knee, most *model.Interval) {
	at, highest := of(points)
	if at > within*tried {
		return nil, nil
	}
	var offs, knees, mosts []float64
	for _, p := range points {
		offs = append(offs, math.Exp(wider*math.Log(p.rps/should(p.n))))
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range resamples {
		drawn := make([]point, len(points))
		for i, p := range points {
			drawn[i] = point{p.n, should(p.n) * offs[random.IntN(len(offs))]}
		}
		k, m := of(drawn)
		knees, mosts = append(knees, min(k, tried)), append(mosts, min(m, should(1)*tried))
	}
	return between(at, knees), between(highest, mosts)
}

// between is a value with the interval in which 95 % of others lie.
func between(value float64, others []float64) *model.Interval {
	slices.Sort(others)
	cut := len(others) / 40
	return &model.Interval{Mean: value, Low: min(others[cut], value), High: max(others[len(others)-1-cut], value), Known: true}
}

// fitted is the law that is the closest to points, by shares: the law says that n/throughput is a + b(n−1) + cn(n−1), which is a
// matter of least squares, and none of the three is below 0. With so few, all choices of those that are 0 are tried.
func fitted(points []point) (best model.ScalingLaw) {
	least := math.Inf(1)
	for _, terms := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		x, ok := leastSquares(points, terms)
		if !ok || x[0] <= 0 || x[1] < 0 || x[2] < 0 {
			continue
		}
		c, sum := model.ScalingLaw{OneRPS: 1 / x[0], Contention: x[1] / x[0], Coherence: x[2] / x[0]}, 0.0
		for _, p := range points {
			sum += math.Pow(p.rps/c.At(p.n)-1, 2)
		}
		if sum < least {
			least, best = sum, c
		}
	}
	return best
}

// leastSquares solves the normal equations for the terms named, the others being 0; ok is false where they have no one solution.
func leastSquares(points []point, terms []int) (x [3]float64, ok bool) {
	n := len(terms)
	m := make([][]float64, n) // with the right side as its last column
	for i := range m {
		m[i] = make([]float64, n+1)
	}
	for _, p := range points {
		y := p.n / p.rps
		all := [3]float64{1 / y, (p.n - 1) / y, p.n * (p.n - 1) / y} // each point weighs by its share
		for i, a := range terms {
			for j, b := range terms {
				m[i][j] += all[a] * all[b]
			}
			m[i][n] += all[a]
		}
	}
	for i := range m { // elimination; the matrix is positive definite, so pivots need no search
		if !(m[i][i] > 1e-300) {
			return x, false
		}
		for k := range m {
			if k == i {
				continue
			}
			by := m[k][i] / m[i][i]
			for j := i; j <= n; j++ {
				m[k][j] -= by * m[i][j]
			}
		}
	}
	for i, t := range terms {
		x[t] = m[i][n] / m[i][i]
	}
	return x, true
}

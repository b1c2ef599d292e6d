package tune

import (
	"cmp"
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
	// resamples are how often measurements that follow the law are drawn, to see how far off these are.
	resamples = 500
	// leastScatter is how much equal loads are taken to differ at least: nobody counts replies, or holds a time, more exactly.
	leastScatter = 0.001
)

// KneeSteps are the numbers of connections to hold: each the double of the one before, up to most.
func KneeSteps(most int) (list []int) {
	for n := 1; n < most; n *= 2 {
		list = append(list, n)
	}
	return append(list, most)
}

// FindKnee holds so many connections after one another, upwards and then downwards, so that a machine that changes meanwhile
// changes it for all alike, and judges what came back. shown is told of each step. With an error, what was found up to it is returned, too.
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
	Judge(&found)
	return found, nil
}

// Judge fills in what the steps of k say.
func Judge(k *model.Knee) {
	levels := levelsOf(k.Steps)
	scatter, pairs := scatterOf(levels)
	if pairs == 0 {
		return
	}
	k.Scatter = &scatter
	apart := func(a, b level) bool { // whether a is above b by more than the scatter
		return a.mean() > b.mean()*math.Exp(student(pairs)*scatter*math.Sqrt(1/float64(len(a.rps))+1/float64(len(b.rps))))
	}
	k.Best, k.Top = best(levels, apart), top(levels, apart)
	k.Law = law(levels, scatter)
}

// level is a number of connections with what it had each time.
type level struct {
	n   int
	rps []float64
}

func (l level) mean() (m float64) {
	for _, v := range l.rps {
		m += v / float64(len(l.rps))
	}
	return m
}

// levelsOf are steps by their number of connections, the fewest first, without those in which the generator stood still.
func levelsOf(steps []model.KneeStep) (list []level) {
	for _, s := range steps {
		if s.StoodStill > 0 {
			continue
		}
		i, there := slices.BinarySearchFunc(list, s.Connections, func(l level, n int) int { return cmp.Compare(l.n, n) })
		if !there {
			list = slices.Insert(list, i, level{n: s.Connections})
		}
		list[i].rps = append(list[i].rps, s.GoodRPS)
	}
	return list
}

// scatterOf is the standard deviation of equal loads' throughputs, as a share of these, and of how many pairs; those without a good reply say nothing of it.
func scatterOf(levels []level) (scatter float64, pairs int) {
	sum := 0.0
	for _, l := range levels {
		if len(l.rps) == 2 && min(l.rps[0], l.rps[1]) > 0 {
			sum += math.Pow(math.Log(l.rps[0]/l.rps[1]), 2) / 2
			pairs++
		}
	}
	return max(math.Sqrt(sum/float64(max(pairs, 1))), leastScatter), pairs
}

// student is how many standard deviations a difference is less than in 99 of 100 cases (Student's t, both sides) where these are known from
// so many pairs. Each level is held against the highest, so there are several that could be taken for less by chance.
func student(pairs int) float64 {
	t := [...]float64{63.66, 9.93, 5.85, 4.61, 4.04, 3.71, 3.50, 3.36, 3.25, 3.17}
	return t[min(pairs, len(t))-1]
}

// best is the level with the most power, with those around it whose power is less for sure; nil where the last may have as much.
func best(levels []level, apart func(a, b level) bool) *model.BestConnections {
	power := func(l level) float64 { return model.KneeStep{Connections: l.n, GoodRPS: l.mean()}.Power() }
	b := 0
	for i, l := range levels {
		if power(l) > power(levels[b]) {
			b = i
		}
	}
	// Power goes by the square of throughput, so at the number of the best connections a level of less power had this throughput, times the root.
	less := func(l level) bool {
		as := level{levels[b].n, nil}
		for _, v := range l.rps {
			as.rps = append(as.rps, v*math.Sqrt(float64(levels[b].n)/float64(l.n)))
		}
		return apart(levels[b], as)
	}
	low, high := 0, len(levels)-1
	for low < b && less(levels[low]) {
		low++
	}
	for high > b && less(levels[high]) {
		high--
	}
	if high == len(levels)-1 {
		return nil
	}
	return &model.BestConnections{Connections: levels[b].n, Low: levels[max(low-1, 0)].n, High: levels[high+1].n, GoodRPS: levels[b].mean()}
}

// top is the highest throughput of levels.
func top(levels []level, apart func(a, b level) bool) *model.TopThroughput {
	highest := slices.MaxFunc(levels, func(a, b level) int { return cmp.Compare(a.mean(), b.mean()) })
	from := slices.IndexFunc(levels, func(l level) bool { return !apart(highest, l) })
	return &model.TopThroughput{Connections: highest.n, GoodRPS: highest.mean(), From: levels[from].n, Falls: apart(highest, levels[len(levels)-1])}
}

// law fits the Universal Scalability Law to levels, and says whether it does: whether what their means are off from it is no
// more than it is, in 99 of 100 cases, with measurements that follow the law and scatter as these do.
func law(levels []level, scatter float64) *model.ScalingLaw {
	levels = slices.DeleteFunc(slices.Clone(levels), func(l level) bool { return slices.Min(l.rps) <= 0 })
	if len(levels) < 4 || levels[0].n != 1 {
		return nil
	}
	fit := fitted(levels)
	for _, l := range levels {
		fit.Off += math.Abs(l.mean()/fit.At(float64(l.n))-1) / float64(len(levels))
	}
	lack := lackOf(levels, fit, scatter)
	random, farther := rand.New(rand.NewPCG(1, 1)), 0
	for range resamples {
		drawn := make([]level, len(levels))
		for i, l := range levels {
			drawn[i].n = l.n
			for range l.rps {
				drawn[i].rps = append(drawn[i].rps, fit.At(float64(l.n))*math.Exp(scatter*random.NormFloat64()))
			}
		}
		theirs, _ := scatterOf(drawn)
		if lackOf(drawn, fitted(drawn), theirs) >= lack {
			farther++
		}
	}
	fit.Fits = farther*100 > resamples
	return &fit
}

// lackOf is how far the means of levels are from a law, squared and added up, in units of their scatter.
func lackOf(levels []level, l model.ScalingLaw, scatter float64) (sum float64) {
	for _, v := range levels {
		sum += float64(len(v.rps)) * math.Pow((v.mean()/l.At(float64(v.n))-1)/scatter, 2)
	}
	return sum
}

// fitted is the law that is the closest to the means of levels, by shares: the law says that n/throughput is a + b(n−1) + cn(n−1), which is a
// matter of least squares, and none of the three is below 0. With so few, all choices of those that are 0 are tried.
func fitted(levels []level) (best model.ScalingLaw) {
	least := math.Inf(1)
	for _, terms := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		x, ok := leastSquares(levels, terms)
		if !ok || x[0] <= 0 || x[1] < 0 || x[2] < 0 {
			continue
		}
		c, sum := model.ScalingLaw{OneRPS: 1 / x[0], Contention: x[1] / x[0], Coherence: x[2] / x[0]}, 0.0
		for _, l := range levels {
			sum += float64(len(l.rps)) * math.Pow(l.mean()/c.At(float64(l.n))-1, 2)
		}
		if sum < least {
			least, best = sum, c
		}
	}
	return best
}

// leastSquares solves the normal equations for the terms named, the others being 0; ok is false where they have no one solution.
func leastSquares(levels []level, terms []int) (x [3]float64, ok bool) {
	n := len(terms)
	m := make([][]float64, n) // with the right side as its last column
	for i := range m {
		m[i] = make([]float64, n+1)
	}
	for _, l := range levels {
		c, times := float64(l.n), float64(len(l.rps))
		y := c / l.mean()
		all := [3]float64{1 / y, (c - 1) / y, c * (c - 1) / y} // each weighs by its share
		for i, a := range terms {
			for j, b := range terms {
				m[i][j] += times * all[a] * all[b]
			}
			m[i][n] += times * all[a]
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

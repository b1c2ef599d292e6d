package model

import "math"

// Knee is what a sweep over the number of connections found: from where on more of them bring no more replies.
type Knee struct {
	// Steps are all loads that were driven, in their order.
	Steps []KneeStep `json:"steps"`
	// Law is what fits them, nil where too few of them had a good reply.
	Law *ScalingLaw `json:"law"`
}

// KneeStep is one number of connections that was held.
type KneeStep struct {
	Connections int     `json:"connections"`
	GoodRPS     float64 `json:"good_rps"`
	GoodShare   float64 `json:"good_share"` // ratio
	// P50 and P99 are of what users waited, failed requests included. Microseconds.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// GeneratorCPU is how busy the generator's busiest thread was, ratio of one CPU.
	GeneratorCPU float64 `json:"generator_cpu"`
}

// ScalingLaw is the Universal Scalability Law (N. Gunther, "Guerrilla Capacity Planning"), fitted: with n connections, good replies a second are
// OneRPS·n / (1 + Contention·(n−1) + Coherence·n·(n−1)).
type ScalingLaw struct {
	// OneRPS is what one connection gets, in replies/s.
	OneRPS float64 `json:"one_rps"`
	// Contention is the share of the work of which only one can be done at a time. Ratio.
	Contention float64 `json:"contention_ratio"`
	// Coherence is what each pair of connections costs each of them: where it is not 0, more of them bring less in the end. Ratio.
	Coherence float64 `json:"coherence_ratio"`
	// Off is how far a measured throughput is from the law, on average. Ratio of the law's.
	Off float64 `json:"off_ratio"`
	// Fits says that Knee and Most are the law's. Else they are the measurements' own, since throughput bends in another way,
	// as where so many workers serve and each has all that it needs.
	Fits bool `json:"fits"`
	// Knee is the number of connections at which Most would be reached if each got what one alone gets, with its 95 % interval, which ends
	// where the search did: up to there each adds throughput, and beyond it each adds waiting. nil where it was not reached.
	Knee *Interval `json:"knee"`
	// Most is the highest throughput that there is, in good replies/s, with its 95 % interval; nil without Knee.
	Most *Interval `json:"most_rps"`
}

// At is the law's throughput with n connections, in good replies/s.
func (l ScalingLaw) At(n float64) float64 {
	return l.OneRPS * n / (1 + l.Contention*(n-1) + l.Coherence*n*(n-1))
}

// Peak is with how many connections the law's throughput is the highest; +Inf where it has no such number.
func (l ScalingLaw) Peak() float64 {
	if l.Coherence <= 0 {
		return math.Inf(1)
	}
	return max(math.Sqrt(max(1-l.Contention, 0)/l.Coherence), 1)
}

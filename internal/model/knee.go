package model

import "math"

// Knee is what a sweep over the number of connections found.
type Knee struct {
	// Steps are all loads that were driven, in their order.
	Steps []KneeStep `json:"steps"`
	// Scatter is by how much two throughputs of equal loads differ, as a standard deviation of one. Ratio; nil where no number was held twice.
	Scatter *float64 `json:"scatter_ratio"`
	// Best is the number of connections, of those that were tried, with the most power. nil where the last that was tried has as much, give or
	// take the scatter: the knee may lie beyond it.
	Best *BestConnections `json:"best"`
	// Top is the highest throughput that was measured, nil without a scatter or a good reply.
	Top *TopThroughput `json:"top"`
	// Law is what fits the steps, nil where one connection alone, or fewer than four numbers of them, had a good reply.
	Law *ScalingLaw `json:"law"`
}

// BestConnections is the knee, as far as it was measured: throughput over latency (L. Kleinrock's power) is the highest there. With fewer connections
// one more adds more to throughput than to the wait, by their shares; with more of them it adds more to the wait.
type BestConnections struct {
	Connections int `json:"connections"`
	// Low and High are the numbers that were tried below and above, the nearest whose power is less by more than the scatter: the knee is between them. Low is Connections where that is one.
	Low  int `json:"low_connections"`
	High int `json:"high_connections"`
	// GoodRPS is the throughput with Connections.
	GoodRPS float64 `json:"good_rps"`
}

// TopThroughput is the highest throughput that was measured, as the mean of equal loads. What more connections would bring it does not say.
type TopThroughput struct {
	Connections int     `json:"connections"`
	GoodRPS     float64 `json:"good_rps"`
	// From is the fewest connections that have as much, give or take the scatter; it is the last that was tried where throughput still grows.
	From int `json:"from_connections"`
	// Falls says that the last number that was tried has less, by more than the scatter.
	Falls bool `json:"falls"`
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
	// StoodStill is for how long the generator did not run though it was to, in seconds: such a step is used for nothing.
	StoodStill float64 `json:"stood_still_seconds,omitempty"`
}

// Power is throughput over latency, but for a factor: latency is connections over throughput (Little's law), since each has one request.
func (s KneeStep) Power() float64 { return s.GoodRPS * s.GoodRPS / float64(s.Connections) }

// ScalingLaw is the Universal Scalability Law (N. Gunther, "Guerrilla Capacity Planning"), fitted: with n connections, good replies a second are
// OneRPS·n / (1 + Contention·(n−1) + Coherence·n·(n−1)).
type ScalingLaw struct {
	// OneRPS is what one connection gets by the law, in replies/s.
	OneRPS float64 `json:"one_rps"`
	// Contention is the share of the work of which only one can be done at a time. Ratio.
	Contention float64 `json:"contention_ratio"`
	// Coherence is what each pair of connections costs each of them: where it is not 0, more of them bring less in the end. Ratio.
	Coherence float64 `json:"coherence_ratio"`
	// Off is how far a measured throughput is from the law, on average. Ratio of the law's.
	Off float64 `json:"off_ratio"`
	// Fits says that it is no farther off than the scatter of equal loads explains (a lack-of-fit test, 1 %). That does not make it true of what was not tried.
	Fits bool `json:"fits"`
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

package model

// What was in the way of a rate that missed a service level (LimitStep.By).
const (
	ByService     = "service"     // the load was offered as it should be, so the service was
	ByGenerator   = "generator"   // it fell behind its own schedule, so of the service nothing is known
	ByConnections = "connections" // all were in use, so requests waited for one before they were sent
)

// Limit is what a search for the highest rate that keeps a service level found.
type Limit struct {
	// Goals are the conditions, as they were asked for.
	Goals []string `json:"goals"`
	// Rate is the highest rate, in requests/s, that met them all and did so again; 0 for none.
	Rate float64 `json:"rate"`
	// Missed is the lowest rate above it that did not, 0 if there was none.
	Missed float64 `json:"missed"`
	// By is what was in the way of Missed, "" without one.
	By string `json:"by"`
	// Steps are all rates that were tried, in their order.
	Steps []LimitStep `json:"steps"`
}

// LimitStep is one rate that was tried.
type LimitStep struct {
	Rate float64 `json:"rate"` // requests/s
	Met  bool    `json:"met"`
	// Confirms says that it had been met before, and was tried again for certainty.
	Confirms bool       `json:"confirms"`
	Goals    []TuneGoal `json:"goals"`
	// By is what was in the way, "" for one that was met.
	By        string  `json:"by"`
	GoodRPS   float64 `json:"good_rps"`
	GoodShare float64 `json:"good_share"` // ratio
	// P50 and P99 are of what users waited, failed requests included; LagP99 is by how much the generator
	// was behind its schedule. Microseconds.
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	LagP99 float64 `json:"schedule_lag_p99_us"`
	// GeneratorCPU is how busy the generator's busiest thread was, ratio of one CPU.
	GeneratorCPU float64 `json:"generator_cpu"`
}

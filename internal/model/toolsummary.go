package model

// ToolSummary is what a load tool printed of one of its runs: that tool's word,
// which nobody has checked. What a tool does not tell is nil, or not in the map; a
// zero is one that it told. Tools do not mean the same by the same word: see the
// README of internal/loadtool.
type ToolSummary struct {
	// Tool is "wrk", "wrk2", "ab", "hey", "oha", "h2load", "k6", "vegeta", "fortio",
	// "siege", "jmeter" or "bombardier".
	Tool string `json:"tool"`
	// Requests is how many there were, as the tool counts them.
	Requests *int64 `json:"requests,omitempty"`
	// Good is how many of them got a reply below 400, or what the tool takes for a success.
	Good *int64 `json:"good,omitempty"`
	// Failed is how many of them the tool calls failed.
	Failed *int64 `json:"failed,omitempty"`
	// Status counts replies by class: "1xx" … "5xx", or what the tool lumps
	// together: "4xx or 5xx" (wrk, wrk2), "not 2xx" (ab).
	Status map[string]int64 `json:"status,omitempty"`
	// Errors counts what went wrong, by kind: "connect", "read", "write",
	// "timeout", "length" (a reply of another length than the first), "other".
	// One request can be in it twice, and be a reply in Status, too.
	Errors map[string]int64 `json:"errors,omitempty"`
	// ErrorsSeen are kinds of error of which the tool told that, and not how often.
	ErrorsSeen []string `json:"errors_seen,omitempty"`
	// RPS is the tool's requests a second.
	RPS *float64 `json:"rps,omitempty"`
	// Bytes is what was received; rounded where the tool rounds.
	Bytes *int64 `json:"bytes,omitempty"`
	// Seconds is how long it took.
	Seconds     *float64 `json:"seconds,omitempty"`
	Connections *int64   `json:"connections,omitempty"`
	// Latency is nil where no latency was told, or there was no reply to tell one of.
	Latency *ToolLatency `json:"latency,omitempty"`
	// Corrected is true when latency counts from the moment at which a request was
	// due (wrk2, and oha if it was told to). Else it counts from when it was sent, so
	// that a slow reply hides what those behind it waited (coordinated omission).
	Corrected bool `json:"latency_from_due,omitempty"`
	// Cut is true when the summary broke off, as of a tool that was killed.
	Cut bool `json:"cut,omitempty"`
}

// ToolLatency is a tool's latency, in seconds.
type ToolLatency struct {
	Mean *float64 `json:"mean_s,omitempty"`
	Max  *float64 `json:"max_s,omitempty"`
	// Percentiles are those that the tool gave, lowest first.
	Percentiles []ToolPercentile `json:"percentiles,omitempty"`
}

// ToolPercentile is the latency below which so many percent of the requests lay.
type ToolPercentile struct {
	Percent float64 `json:"percent"`
	Seconds float64 `json:"s"`
}

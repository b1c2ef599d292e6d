package model

// How says how a part of a breakdown was measured.
type How string

const (
	// Exact: nothing was sampled or inferred. Of a process it is all that its group
	// did in the window, spread over the requests, and so also what it did besides them.
	Exact How = "exact"
	// Estimate: sampled, or the least or most that it can be; Why says which.
	Estimate How = "estimate"
	// Little: the mean number that waited over the rate of requests (Little's law).
	Little How = "little"
)

// Breakdown is where the time of the mean request went: of all the requests
// that began in the hold window, those that failed too.
type Breakdown struct {
	Requests int64 `json:"requests"` // those with an outcome
	// MeanSeconds is from the request's intended time to its outcome.
	MeanSeconds float64 `json:"mean_seconds"`
	// Good and Bad are the requests below status 400 and all others; nil when there are none.
	Good *MeanTime `json:"good"`
	Bad  *MeanTime `json:"bad"`
	// Parts do not overlap, as far as that can be told, and come in the order in
	// which a request meets them.
	Parts []BreakdownPart `json:"parts"`
	// AttributedSeconds is the sum of the parts, without what is known only as
	// the rest of a larger one.
	AttributedSeconds float64 `json:"attributed_seconds"`
	AttributedShare   float64 `json:"attributed_share"` // ratio, of MeanSeconds
	// NotAttributedSeconds is what remains of MeanSeconds.
	NotAttributedSeconds float64 `json:"not_attributed_seconds"`
	// Warnings are sentences on what makes these numbers less than they seem.
	Warnings []string `json:"warnings"`
}

// MeanTime is the mean wait of some requests.
type MeanTime struct {
	Requests int64   `json:"requests"`
	Seconds  float64 `json:"seconds"`
}

// BreakdownPart is one part of the mean request's time.
type BreakdownPart struct {
	// Name is one word for programs: "connect_call", "accept_queue", "cpu_user",
	// "blocked"; Detail tells parts of one name apart (the reason of a block, an upstream's address).
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
	// Text is the same for people.
	Text string `json:"text"`
	// Host and Process are where it passed; Process is a group name, "" on the wire.
	Host    string `json:"host,omitempty"`
	Process string `json:"process,omitempty"`
	// Seconds is nil when it was not measured; Why then says what is missing.
	Seconds *float64 `json:"seconds"`
	Share   *float64 `json:"share"` // ratio, of the mean request's time
	How     How      `json:"how,omitempty"`
	// Signals are those it was computed from, or would have been.
	Signals []string `json:"signals"`
	Why     string   `json:"why,omitempty"`
	// Parts are what is known of its inside. Where they do not fill it, the
	// rest is not attributed.
	Parts []BreakdownPart `json:"parts,omitempty"`
}

package load

import (
	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"plimsoll/internal/model"
)

// Drain is the phase after hold, in which nothing begins any more and requests
// in flight get their outcomes. No request is ever labelled with it.
const Drain = "drain"

// Record is what the load has to say once a second, at every change of phase,
// and at its end. All its counters and quantiles are cumulative since the
// phase began, so any record can be lost without losing requests.
type Record struct {
	// Time is when the record was made, Unix milliseconds.
	Time int64 `json:"t_ms"`
	// Phase is the phase at that time: calm, ramp, hold or drain.
	Phase string `json:"phase"`
	// PhaseEnded and PhaseStarted are set in the record that marks a change of phase.
	PhaseEnded   string `json:"phase_ended,omitempty"`
	PhaseStarted string `json:"phase_started,omitempty"`
	// Final marks the last record: in each phase the outcomes add up to the requests.
	Final bool `json:"final,omitempty"`
	// Target is the address that the load goes to, "192.0.2.1:80" or "unix:/run/app.sock".
	Target string `json:"target"`
	// Phases holds what is known of the phases that have begun, in their order.
	Phases []PhaseRecord `json:"phases"`
	// Intervals are the latencies of the replies since the last record.
	Intervals []Interval `json:"intervals,omitempty"`
	// DNS is how long the name's resolution took, once, before the load; nil where the URL has an address.
	DNS         *float64    `json:"dns_seconds,omitempty"`
	Connections Connections `json:"connections"`
	Threads     []ThreadCPU `json:"threads"`
	// TLS is nil where no handshake was done; it covers all phases.
	TLS *TLSRecord `json:"tls,omitempty"`
	// Targets are those of the plan that had requests, in its order.
	Targets []TargetRecord `json:"targets,omitempty"`
	// Stages are those of the plan that had requests, in its order.
	Stages []StageRecord `json:"stages,omitempty"`
	// Causes are what the first failure of an outcome over TLS said of itself, by the outcome.
	Causes map[string]string `json:"causes,omitempty"`
	// Totals is set in the final record only.
	Totals *Totals `json:"totals,omitempty"`
	// Shares and LateMicros are those of one of several workers: what it measured since the last record, and by how much
	// its load began after its moment. See Sum.
	Shares     []Share `json:"shares,omitempty"`
	LateMicros *int64  `json:"late_us,omitempty"`
	// Workers are those that a record is the sum of.
	Workers []WorkerRecord `json:"-"`
}

// Share is a histogram of one of several workers: what it measured since its last record. Unlike quantiles
// these can be added up.
type Share struct {
	// Of is a phase, "target" or "stage"; Kind is what was measured, see shareKinds, and which target or stage it was.
	Of   string `json:"of"`
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// Histogram is in the form of Interval.Histogram.
	Histogram string `json:"histogram"`
}

// WorkerRecord is a worker as a sum has it.
type WorkerRecord struct {
	model.Worker
	// Record is its newest one, by our clock, nil before the first. Fresh says that it came since the last sum.
	Record *Record
	Fresh  bool
}

// PhaseRecord is about the requests that began in one phase, whenever they ended.
type PhaseRecord struct {
	Phase string `json:"phase"`
	// Start and End are Unix milliseconds; End is 0 while the phase lasts.
	Start int64 `json:"start_ms"`
	End   int64 `json:"end_ms,omitempty"`
	// Requests is how many began; those without an outcome are in flight. In a closed
	// loop one that ended in its connect, or its TLS handshake, was an attempt to connect and no more:
	// its outcome begins with "connect:" or "tls:", and what is shown to people as requests leaves it out.
	Requests int64            `json:"requests"`
	Outcomes map[string]int64 `json:"outcomes"`
	// Statuses are the replies by their exact status ("404"), those that a target did not expect included.
	Statuses map[string]int64 `json:"statuses,omitempty"`
	// Waits is how long users waited for what they got, in seconds, summed by
	// outcome. Few requests that hang cost more of it than many that fail at once.
	Waits map[string]float64 `json:"waits_seconds"`
	// Parts is what the requests' time went into, in seconds; the parts do not
	// overlap and add up to Waits, once every request has ended. queue: no
	// connection was free (open loop); late: it could have begun and the thread
	// was behind; connect: socket and connect; tls: the TLS handshake; first_byte: from
	// there to the reply's first bytes; body: from there to its last; connect_lag,
	// tls_lag, reply_lag: the thread had been told of the end of the connect, of the
	// handshake, of bytes of the reply, and handled other connections first.
	Parts map[string]float64 `json:"parts_seconds"`
	// Attempts is how often a connection was tried for. Those that failed are outcomes.
	Attempts int64 `json:"connect_attempts,omitempty"`
	// Received and Sent are bytes on the connections, as HTTP has them: heads and bodies, frames; over TLS before it is sealed.
	Received int64 `json:"received_bytes,omitempty"`
	Sent     int64 `json:"sent_bytes,omitempty"`
	// ConnectCalls are the connect() calls, failed ones too, and the time in them.
	ConnectCalls Durations `json:"connect_calls"`
	// ReplyUnread is how long replies lay unread in the kernel, by its receive time
	// stamps: the requests of one connection of eight, with all the reads of each.
	ReplyUnread Durations `json:"reply_unread"`
	// Response is the latency of replies from the intended time of the request
	// (open loop) or from its begin (closed loop); Service is always from the
	// begin. Both contain the connect, and the TLS handshake, of a request that needed one. They end when
	// the reply was handled (closed loop), or when its last bytes came, by the
	// kernel's receive time stamps (open loop, which handles them in batches).
	Response model.Quantiles `json:"response_us"`
	Service  model.Quantiles `json:"service_us"`
	// Connect is how long connects took that succeeded, without the TLS handshake.
	Connect model.Quantiles `json:"connect_us"`
	// FirstByte is, of replies, the time from when the request was sent (over a connection that stood by then) to the
	// first bytes; Transfer from there to the last, 0 where all was read at once. With Connect, and
	// TLSRecord, they are the phases of a request; what the generator's thread lagged behind is in none of them.
	FirstByte model.Quantiles `json:"first_byte_us,omitzero"`
	Transfer  model.Quantiles `json:"transfer_us,omitzero"`
	// Waited is Response and, for requests without a reply, the time until they failed.
	Waited model.Quantiles `json:"waited_us"`
	// SendDelay is how late requests were sent: against their intended time
	// (open loop), or against the moment the thread was told that it could
	// (closed loop).
	SendDelay model.Quantiles `json:"send_delay_us"`
	// Lag is how late requests of an open loop were sent although a connection was
	// free: by how much the generator itself was behind its schedule.
	Lag model.Quantiles `json:"schedule_lag_us,omitzero"`
	// Unread is how long what the server sent lay in the kernel until it was
	// read, by the kernel's receive time stamps, on one connection of eight.
	Unread model.Quantiles `json:"unread_us"`
}

// TargetRecord is about the requests of one name that began in the hold phase and have their outcome; in an
// open loop also those that found no connection in time.
type TargetRecord struct {
	Name     string           `json:"name"`
	Outcomes map[string]int64 `json:"outcomes"`
	// Response is that of PhaseRecord, within 1 %.
	Response model.Quantiles `json:"response_us,omitzero"`
}

// StageRecord is about the requests that were due in one stage of the hold phase and have their outcome.
type StageRecord struct {
	Stage int `json:"stage"` // its number in model.LoadPlan.AllStages
	// Lag is that of PhaseRecord, within 1 %.
	Lag      model.Quantiles  `json:"schedule_lag_us,omitzero"`
	Outcomes map[string]int64 `json:"outcomes"`
	// Response is that of PhaseRecord, within 1 %.
	Response model.Quantiles `json:"response_us,omitzero"`
}

// TLSRecord is about the TLS handshakes of a load, and what TLS cost the generator.
type TLSRecord struct {
	// Handshakes are by the phase in which the request began that needed them.
	Handshakes []model.TLSHandshakes `json:"handshakes"`
	// Full and Resumed are how long handshakes took that were done, from the connection's
	// standing to their end; our own work and our wait for a CPU are in it.
	Full    model.Quantiles `json:"full_us"`
	Resumed model.Quantiles `json:"resumed_us"`
	// Crypto is the requests of one connection of eight (open loop: of all), and what
	// sealing them and opening their replies took of the thread's time.
	Crypto Durations `json:"crypto"`
}

// Durations are some durations, added up.
type Durations struct {
	Count   int64   `json:"count"`
	Seconds float64 `json:"seconds"`
}

// Interval is one histogram of the time between two records.
type Interval struct {
	// Phase is where the requests began, Kind is "response" or "service".
	Phase string `json:"phase"`
	Kind  string `json:"kind"`
	// Start and End are Unix milliseconds.
	Start int64 `json:"start_ms"`
	End   int64 `json:"end_ms"`
	// Histogram is an HdrHistogram of microseconds in the compressed V2
	// encoding, in base64: the form it has in an interval log.
	Histogram string `json:"histogram"`
}

// Connections are the load's sockets at the time of a record.
type Connections struct {
	Connecting int64 `json:"connecting"`
	// Open is how many are established; Idle is how many of these have no request in flight.
	Open int64 `json:"open"`
	Idle int64 `json:"idle"`
	// Closed is how many an open loop has places for, and no request, so that they are not even open: each request has a new
	// connection. Those that it may open when all are busy are not in it.
	Closed int64 `json:"closed,omitempty"`
	// Failed and Untried are those that never stood, since each attempt at them failed or
	// none was made before the load was over; the latter is told of closed loops.
	// Both are 0 until the last request has its outcome.
	Failed  int64 `json:"failed,omitempty"`
	Untried int64 `json:"untried,omitempty"`
	// Stood is how many stood at one time or another, once the last request has its outcome; told where they can become more than the plan begins with.
	Stood int64 `json:"stood,omitempty"`
}

const restOfThreads = "rest"

// ThreadCPU is the processor time of one thread since it began. Thread "rest"
// is the process's remaining threads, so that the sum is the whole process.
type ThreadCPU struct {
	Thread string  `json:"thread"`
	User   float64 `json:"user_seconds"`
	System float64 `json:"system_seconds"`
}

// Totals sums the whole load up.
type Totals struct {
	// Requests and Outcomes are over all phases; Outcomes adds up to Requests.
	Requests int64            `json:"requests"`
	Outcomes map[string]int64 `json:"outcomes"`
	// Seconds is from the start of the run to its last outcome.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is user and system time of the process.
	CPUSeconds float64 `json:"cpu_seconds"`
	// Cancelled says that the load was stopped before its plan was done.
	Cancelled bool `json:"cancelled,omitempty"`
	// StoodStill is for how long the process did not run though it was to; of several workers the longest.
	StoodStill float64 `json:"stood_still_seconds,omitempty"`
}

// quantiles reads what a record tells of a histogram.
func quantiles(h *hdr.Histogram) model.Quantiles {
	if h.TotalCount() == 0 {
		return model.Quantiles{}
	}
	v := h.ValueAtPercentilesSlice([]float64{50, 90, 95, 99, 99.9, 100})
	return model.Quantiles{
		Count: h.TotalCount(), Mean: h.Mean(),
		P50: float64(v[0]), P90: float64(v[1]), P95: float64(v[2]), P99: float64(v[3]), P999: float64(v[4]), Max: float64(v[5]),
	}
}

// EngineError is what a load engine's process said when it gave up.
type EngineError struct {
	// Code is its exit code, one of those that the command line documents.
	Code int
	// Said is its last words, a sentence for the user.
	Said string
}

func (e EngineError) Error() string { return e.Said }

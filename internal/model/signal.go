// Package model holds Plimsoll's nouns: host, signal, sample, event, window,
// finding, verdict, run. It does no I/O, reads no clock and starts no
// goroutine; every room may import it and it imports none of them.
package model

// Kind says how a signal's values are to be read.
type Kind string

const (
	// Counter only grows, except for a reset to zero when its source restarts.
	Counter Kind = "counter"
	// Gauge is a level that may go up and down.
	Gauge Kind = "gauge"
)

// Signal declares something that can be read from a host. It is declared once,
// beside the code that reads it.
type Signal struct {
	// Name is the Prometheus series name. Where node_exporter,
	// process-exporter, nginx-prometheus-exporter or php-fpm_exporter has the
	// metric, it is theirs to the letter, unit and labels included.
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Unit is the Prometheus base unit ("seconds", "bytes", "ratio") or the
	// thing counted ("packets", "sockets").
	Unit string `json:"unit"`
	// Help is one sentence for a reader who never met the signal.
	Help string `json:"help"`
	// Labels are the label names besides "host", in the order in which Put
	// takes their values.
	Labels []string `json:"labels,omitempty"`
	// Source is where the value is read: a kernel file, a netlink request, a log.
	Source string `json:"source"`
	// ByHand is the classic command that shows the same number.
	ByHand string `json:"by_hand"`
	// StartsAtZero marks a counter that Plimsoll itself counts up (log lines,
	// outcomes): a label set met for the first time stood at zero before, so
	// the recorder writes that zero one interval earlier and differences stay exact.
	StartsAtZero bool `json:"starts_at_zero,omitempty"`
	// Refines names another signal, of which this one says the same more exactly and which stands beside it wherever it is asked
	// for: where this one was not read, nothing is unseen. "" of all others.
	Refines string `json:"refines,omitempty"`
}

// Sink takes samples. All samples of one call round share one time stamp,
// which the sink's owner knows. A Sink need not be safe for concurrent use
// unless its owner says so.
type Sink interface {
	// Put records one value. labelValues follow Signal.Labels one for one.
	Put(s *Signal, value float64, labelValues ...string)
}

// State is what became of a signal on one host.
type State string

const (
	// Read means the source was read; a series without samples then means
	// "there is none of it", which is a fact. Looking through all processes of
	// a host and finding no nginx is such a fact.
	Read State = "read"
	// Absent means the source does not exist on this host (no such file, not
	// in this network namespace, a service without a status page), so that
	// what it would say is not known.
	Absent State = "absent"
	// Denied means the source exists and we may not read it.
	Denied State = "denied"
	// Failed means reading went wrong in another way.
	Failed State = "failed"
)

// Status is a State and, unless it is Read, the sentence that says why and
// what would help. Only Read may ever stand for a number; the others make
// every clue that needs the signal unknown.
type Status struct {
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`
}

// Event is something said or done at a moment: a log line, an exit, a phase.
type Event struct {
	// Time is milliseconds since the Unix epoch.
	Time int64  `json:"t"`
	Host string `json:"host"`
	// Kind is a dotted word: "kernel.log", "nginx.error", "phpfpm.log", "phase", "note".
	Kind string `json:"kind"`
	// Text is the line or sentence itself, unchanged.
	Text string `json:"text"`
	// Labels say whose it is ("pid", "pool", "upstream" …).
	Labels map[string]string `json:"labels,omitempty"`
}

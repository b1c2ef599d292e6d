// Package probe reads a host: /proc, netlink, logs and the services that run
// there. A probe only reads. Each one lives in a file or folder of its own with
// its signals declared beside the code that reads them; package all lists them.
package probe

import (
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// Scope says what a probe's numbers belong to.
type Scope int

const (
	// PerHost numbers belong to one host: its network namespace, its processes.
	PerHost Scope = iota
	// PerMachine numbers belong to the kernel and are the same for every host on
	// it. They are read once a round and recorded for each of those hosts, so
	// that a rule can join them with the host's own.
	PerMachine
)

// Probe declares one way of reading a host.
type Probe struct {
	Name    string
	Scope   Scope
	Signals []*model.Signal
	// Every is the least time between two reads; 0 reads in every round. At the
	// edges of windows everything is read, due or not.
	Every time.Duration
	// Cost is what a read was measured to cost, and on what; Blind is what the
	// probe cannot see. Both are for the handbook.
	Cost  string
	Blind []string
	// CanRun returns nil, or an error whose text is a sentence saying what is
	// missing and what would help. errors.Is(err, fs.ErrNotExist) makes the
	// signals absent, fs.ErrPermission denied, anything else failed. A probe that
	// could not run is asked again at the edges of windows. CanRun may be nil.
	CanRun func(h *host.Host) error
	// Open prepares reading h; called on the thread that will read, which is
	// in h's network namespace.
	Open func(h *host.Host) (Reader, error)
}

// Reader reads one host for one probe. Its methods are called from one
// goroutine, on an OS thread that is in the host's network namespace.
type Reader interface {
	// Read takes one reading of everything. An error marks all of the probe's
	// signals by its class (as for CanRun) unless Out.Mark said otherwise.
	// Read must not block: whatever waits for somebody else (a service's
	// status page) is asked in the background and reported by a later Read.
	Read(out *Out) error
	// Close releases what Open took. It is called once.
	Close() error
}

// Poller is implemented by a Reader that must look more often than once a
// round. Poll is called about ten times a second on the reading thread, four while
// there was nothing for five seconds, and must take well under a millisecond; what
// it saw is reported by the next Read. It returns whether there was anything that a
// less frequent look could miss.
type Poller interface {
	Poll() bool
}

// Recorder takes what probes read. It must be safe for concurrent use.
type Recorder interface {
	// Sample records one value at t (Unix milliseconds).
	// The labelValues are only valid during the call.
	Sample(host string, t int64, s *model.Signal, value float64, labelValues ...string)
	Event(e model.Event)
	// Status records what became of a signal on a host.
	Status(host, signal string, st model.Status)
	// Note records a sentence about the observation itself, once.
	Note(sentence string)
}

// Package collect observes hosts. Its sources (probes, tracers, the load engine's
// process) are started, read round by round and told of windows through one seam,
// and write to one Recorder. Whoever walks through the windows sees a collector alone,
// and none of its sources.
package collect

import (
	"context"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/record/writer"
)

// Source is one way of observing. Its methods are called one at a time: Start; then
// Round, and at the edge of a window Settle, Round, Phase; Close at the end.
type Source interface {
	// Start begins to observe. What cannot be observed here is a status of its signals; an
	// error means that there can be no run.
	Start(ctx context.Context) error
	// Settle ends what it does between rounds: until the next one it records nothing.
	Settle()
	// Round records what there is to read. An error means that there can be no further one.
	Round(ctx context.Context, r Round) error
	// Phase tells which window has begun with the round before, "" for none.
	Phase(window string)
	// Close records what it kept (stacks), and gives everything back. It is called
	// once, also when Start failed.
	Close() error
}

// Round is one reading of all sources.
type Round struct {
	// Number counts a collector's rounds, from 1.
	Number int
	// Time is what all its samples are stamped with, by the collector's clock.
	Time time.Time
	// Edge says that a window ends or begins here: everything is read, due or not.
	Edge bool
}

// Edge is where one window ends and the next begins.
type Edge struct {
	// Time is to be the time stamp of the round taken here: after everything that was
	// recorded before, and now.
	Time time.Time
	// Window is the name of the one that begins, "" for none.
	Window string
}

// Log is where a Recorder's records go. It is safe for concurrent use.
type Log interface {
	probe.Recorder
	// Interval takes a histogram of latencies; see writer.Writer.
	Interval(start, end int64, tag, encoded string)
	// Profile keeps stacks in pprof's gzipped form under their name ("cpu").
	Profile(name string, data []byte) error
	// Packets appends to the file of a host's captured packets, pcapng in pieces of any size.
	Packets(host string, part []byte) error
	// Traced tells what there was of tracing.
	Traced(t model.Tracing)
	// Commit ends a round; what was recorded until here is to survive the end of this process.
	Commit(r Round) error
}

// Into is the Log that fills a run directory.
func Into(w *writer.Writer) Log { return directory{w} }

type directory struct{ *writer.Writer }

func (d directory) Commit(Round) error { return d.Writer.Commit() }

// Recorder is what all sources of a collector write to: samples, events and what is kept
// go to its Log; what became of a signal goes through its one Book.
type Recorder struct {
	Log
	Book *probe.StatusBook
}

func newRecorder(log Log) *Recorder {
	return &Recorder{Log: log, Book: probe.NewStatusBook(log)}
}

// Host is a host that a collector observes.
type Host struct {
	model.Host
	// Addresses are the IP addresses of its interfaces.
	Addresses []string `json:"addresses"`
}

package flight

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// What follows is the Log of a collector: all of it goes to the ring, while there is one.

// Sample takes one value of a series.
func (f *Recorder) Sample(host string, t int64, s *model.Signal, value float64, labelValues ...string) {
	if r := f.ring.Load(); r != nil {
		r.Sample(host, t, s, value, labelValues...)
	}
}

// Status takes what became of a signal on a host.
func (f *Recorder) Status(host, signal string, st model.Status) {
	if r := f.ring.Load(); r != nil {
		r.Status(host, signal, st)
	}
}

// Event takes something that happened.
func (f *Recorder) Event(e model.Event) {
	if r := f.ring.Load(); r != nil {
		r.Event(e)
	}
}

// Note takes a sentence about the observation itself.
func (f *Recorder) Note(sentence string) {
	if r := f.ring.Load(); r != nil {
		r.Note(sentence)
	}
}

// Profile takes stacks.
func (f *Recorder) Profile(name string, data []byte) error {
	if r := f.ring.Load(); r != nil {
		return r.Profile(name, data)
	}
	return nil
}

// Traced takes what there was of tracing.
func (f *Recorder) Traced(t model.Tracing) {
	if r := f.ring.Load(); r != nil {
		r.Traced(t)
	}
}

// Interval and Packets take what a watch that stays has none of.
func (f *Recorder) Interval(int64, int64, string, string) {}

// Packets is the other one.
func (f *Recorder) Packets(string, []byte) error { return nil }

// Commit ends a round. That the disk is full ends no watch: the ring is given up, and opened anew later.
func (f *Recorder) Commit(collect.Round) error {
	r := f.ring.Load()
	if r == nil {
		return nil
	}
	if err := r.Commit(); err != nil && f.ring.CompareAndSwap(r, nil) {
		f.opt.Note(errors.Join(err, r.Discard()).Error())
	}
	return nil
}

// numbers are what a recorder says of itself, as series.
type numbers struct {
	all                     []prometheus.Collector
	made, skipped, verdicts *prometheus.CounterVec
	unheard, notUploaded    prometheus.Counter
}

func newNumbers(f *Recorder) *numbers {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "plimsoll_recorder_" + name, Help: help}, []string{label})
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "plimsoll_recorder_" + name, Help: help}, value)
	}
	n := &numbers{
		made:     counter("runs_total", "Runs that were made of the last minutes: asked for, of a cause, or of what a killed process left.", "why"),
		skipped:  counter("skipped_total", "Runs that were not made: within an hour of the one before, as many are there as may be, or it failed.", "why"),
		verdicts: counter("verdicts_total", "Verdicts on the last minute.", "answer"),
		unheard:  prometheus.NewCounter(prometheus.CounterOpts{Name: "plimsoll_recorder_webhook_failures_total", Help: "Runs of which the webhook was not told, since it did not answer or another one was on its way."}),
	}
	n.notUploaded = prometheus.NewCounter(prometheus.CounterOpts{Name: "plimsoll_recorder_upload_failures_total", Help: "How often a run could not be put into object storage; each is tried again."})
	n.all = []prometheus.Collector{n.made, n.skipped, n.verdicts, n.unheard, n.notUploaded,
		gauge("waiting_uploads", "Runs that are still to be put into object storage.", func() float64 { return float64(f.waiting.Load()) }),
		gauge("kept_seconds", "For how long what is kept goes back; 0 where nothing is recorded.", func() float64 { return f.kept(false) }),
		gauge("bytes", "Bytes on disk of what is kept, about.", func() float64 { return f.kept(true) }),
	}
	return n
}

// Numbers are what it says of itself, to be shown.
func (f *Recorder) Numbers() []prometheus.Collector { return f.numbers.all }

func (f *Recorder) kept(bytes bool) float64 {
	r := f.ring.Load()
	if r == nil {
		return 0
	}
	back, size := r.Kept()
	if bytes {
		return float64(size)
	}
	return back.Seconds()
}

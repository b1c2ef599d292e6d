package probe

import (
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// Out takes what one Read finds. It is valid until that Read returns and is
// safe for concurrent use. It is a model.Sink.
type Out struct {
	rec    Recorder
	hosts  []string // recorded under each of them
	now    time.Time
	since  time.Duration
	every  time.Duration
	forced bool

	mu     sync.Mutex
	over   bool // the round went on without this read: drop what it still brings
	full   *atomic.Bool
	marked map[*model.Signal]model.Status
	kept   map[*model.Signal]bool
}

// NewOut makes the Out of one read, for one host, at now; since is the time
// since the read before. The sampler makes its own; this is for tests.
func NewOut(rec Recorder, host string, now time.Time, since time.Duration) *Out {
	return &Out{rec: rec, hosts: []string{host}, now: now, since: since, every: since, full: new(atomic.Bool)}
}

// Put records one value; labels follow s.Labels one for one.
func (o *Out) Put(s *model.Signal, v float64, labels ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	for _, h := range o.hosts {
		o.rec.Sample(h, o.now.UnixMilli(), s, v, labels...)
	}
}

// Event records something said or done, at the round's time. kind is a dotted
// word, text the line itself.
func (o *Out) Event(kind, text string, labels map[string]string) {
	o.EventAt(o.now, kind, text, labels)
}

// EventAt is Event for something whose own time is known.
func (o *Out) EventAt(t time.Time, kind, text string, labels map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	for _, h := range o.hosts {
		o.rec.Event(model.Event{Time: t.UnixMilli(), Host: h, Kind: kind, Text: text, Labels: labels})
	}
}

// Mark says what became of one signal in this read, in place of what Read's
// own error says of all: nil means read, fs.ErrNotExist absent,
// fs.ErrPermission denied, any other error failed, with its text as the sentence.
func (o *Out) Mark(s *model.Signal, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.marked == nil {
		o.marked = map[*model.Signal]model.Status{}
	}
	o.marked[s] = host.StatusOf(err)
}

// Keep says that these signals were not looked at in this read, which a probe
// may decide to save time: what became of them stays what it was.
func (o *Out) Keep(signals ...*model.Signal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept == nil {
		o.kept = map[*model.Signal]bool{}
	}
	for _, s := range signals {
		o.kept[s] = true
	}
}

// Note records a sentence about the observation itself, once.
func (o *Out) Note(sentence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.rec.Note(sentence)
	}
}

// Full says that there is no room for names that were not met before, since those that went away keep theirs. In a run it stays so; a
// watch that stays begins anew.
func (o *Out) Full() { o.full.Store(true) }

// Now is the round's time: the time stamp of every sample of the round.
func (o *Out) Now() time.Time { return o.now }

// Interval is the time since this probe's previous round on this host; 0 in the first.
func (o *Out) Interval() time.Duration { return o.since }

// Rhythm is the time between rounds that the session means to keep; 0 when unknown.
func (o *Out) Rhythm() time.Duration { return o.every }

// Forced says that the round stands at the edge of a window: what is looked at
// less often to save time should be looked at now, so that the window has both its readings.
func (o *Out) Forced() bool { return o.forced }

// Hosts are the names under which this read is recorded: one, or every host
// of the machine when the probe is PerMachine.
func (o *Out) Hosts() []string { return o.hosts }

// expire cuts the read off from the recorder.
func (o *Out) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

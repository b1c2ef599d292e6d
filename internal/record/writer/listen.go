package writer

import (
	"context"
	"io"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Batch is what was recorded since the one before: of one round, mostly. Listeners
// share it, so nobody may change it.
type Batch struct {
	Samples []Sample
	Events  []model.Event
	// Intervals are the lines of latency.hlog.
	Intervals []record.Interval
	Statuses  []SignalStatus
	Notes     []string
	// Windows are all of the run, nil if they are as before.
	Windows []model.Window
}

func (b *Batch) empty() bool {
	return len(b.Samples)+len(b.Events)+len(b.Intervals)+len(b.Statuses)+len(b.Notes)+len(b.Windows) == 0
}

// Sample is one value of a series.
type Sample struct {
	Series *labels.Labels // one pointer for each series of a run
	Time   int64          // Unix milliseconds
	Value  float64
}

// SignalStatus is what became of a signal on a host.
type SignalStatus struct {
	Host, Signal string
	model.Status
}

// Missed counts what a listener lost, since it was slower than the recording.
type Missed struct{ Batches, Samples int64 }

// Listener hears what a run records, from when it began to listen. Its methods are
// called from one goroutine.
type Listener struct {
	w       *Writer
	batches chan *Batch
	missed  Missed // since the last Next; w.mu
}

// Listen begins to hear what is recorded. The recording never waits for its listeners:
// while one has room batches still to take, further ones are lost to it, and counted.
func (w *Writer) Listen(room int) *Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &Listener{w: w, batches: make(chan *Batch, room)}
	if w.closed {
		close(l.batches)
		return l
	}
	w.listeners = append(w.listeners, l)
	return l
}

// Next waits for the next batch, and says what was missed since the last call. After
// the end of the recording the error is io.EOF; else it is ctx's.
func (l *Listener) Next(ctx context.Context) (b *Batch, missed Missed, err error) {
	open := true
	select {
	case <-ctx.Done():
		return nil, Missed{}, ctx.Err()
	case b, open = <-l.batches:
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	missed, l.missed = l.missed, Missed{}
	if !open {
		return nil, missed, io.EOF
	}
	return b, missed, nil
}

// Close ends listening.
func (l *Listener) Close() {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.listeners = slices.DeleteFunc(l.w.listeners, func(other *Listener) bool { return other == l })
}

// hear adds to the batch that the listeners get next, if there are any.
func (w *Writer) hear(add func(*Batch)) {
	if len(w.listeners) > 0 {
		add(&w.batch)
	}
}

// tell hands the listeners what there is to hear.
func (w *Writer) tell() {
	if w.batch.empty() {
		return
	}
	b := w.batch
	w.batch = Batch{Samples: make([]Sample, 0, len(b.Samples))} // rounds are alike
	for _, l := range w.listeners {
		select {
		case l.batches <- &b:
		default:
			l.missed.Batches++
			l.missed.Samples += int64(len(b.Samples))
		}
	}
}

func (w *Writer) endListening() {
	w.tell()
	for _, l := range w.listeners {
		close(l.batches)
	}
	w.listeners = nil
}

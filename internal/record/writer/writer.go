// Package writer writes a run directory while the run lasts. It stands apart
// from package record, so that "diagnosis only reads" is an import and not a
// promise. record/README.md describes the layout.
package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/secret"
)

// maxNotes is how many notes a run keeps: a source that comes and goes makes a
// new one each time.
const maxNotes = 100

// The most bytes of events that a run keeps, and of one: what a service's log says
// in a day has no end.
const (
	maxEvents = 256 << 20
	maxEvent  = 1 << 19
)

// statusEvery is how many milliseconds of the run at least lie between two
// rewritings of run.json for no other reason than that a signal's status changed.
const statusEvery = 5000

// Writer writes one run. Its methods may be called by several goroutines. The
// first error that costs data ends the recording: Commit, Update and Close
// return it from then on, and what was committed before can be read.
type Writer struct {
	mu      sync.Mutex
	dir     string // as it was given, for messages
	open    *runDir
	run     model.Run
	series  *series
	events  *os.File
	pending []byte // events since the last Commit
	told    int64  // bytes of events that are kept
	latency *os.File
	packets map[string]*os.File        // by host
	newest  int64                      // time of the newest sample, Unix milliseconds
	written int64                      // newest, when run.json was last written
	cut     map[string]map[string]bool // the signals, by host, that had too many series
	changed bool                       // statuses or notes since then
	err     error
	kept    bool // a Commit has gone well
	closed  bool

	listeners []*Listener
	batch     Batch // what they hear next
}

// Create makes the run directory, which must not exist, or be empty and ours, and
// begins recording. The run's Format is filled in.
func Create(dir string, run model.Run) (*Writer, error) {
	open, err := makeRunDir(dir)
	if err != nil {
		return nil, err
	}
	run.Format, run.Closed = record.Format, false
	if run.Status == nil {
		run.Status = map[string]map[string]model.Status{}
	}
	w := &Writer{dir: dir, open: open, run: run, cut: map[string]map[string]bool{}, packets: map[string]*os.File{}}
	if err := w.begin(); err != nil {
		return nil, errors.Join(w.explain(err), w.release(), open.close())
	}
	return w, nil
}

func (w *Writer) begin() error {
	var err error
	if err = w.writeManifest(); err != nil {
		return err
	}
	if w.series, err = newSeries(w.open.path(), w.run.Plan.Interval, w.run.Started); err != nil {
		return err
	}
	w.events, err = w.open.create(record.EventsFile)
	return err
}

// explain says what an error means for the run and what to do next.
func (w *Writer) explain(err error) error {
	err = named{err, strings.ReplaceAll(err.Error(), w.open.path(), w.dir)}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		kept := "nothing of the run could be kept"
		if w.kept {
			kept = "what was recorded so far can be read"
		}
		return fmt.Errorf("record the run in %s: the disk is full; free some space or name a directory on another disk; %s: %w", w.dir, kept, err)
	}
	return fmt.Errorf("record the run in %s: %w", w.dir, err)
}

// named is an error in which the directory has the name that the user knows.
type named struct {
	error
	text string
}

func (n named) Error() string { return n.text }
func (n named) Unwrap() error { return n.error }

// fail keeps the first error.
func (w *Writer) fail(err error) {
	if w.err == nil && err != nil {
		w.err = w.explain(err)
	}
}

// Sample records one value of a series at t, in Unix milliseconds. In each
// series t must grow; a second value for the same millisecond is put one later.
func (w *Writer) Sample(host string, t int64, s *model.Signal, value float64, labelValues ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return
	}
	w.newest = max(w.newest, t)
	before := len(w.series.samples)
	e, err := w.series.add(host, t, s, value, labelValues)
	switch {
	case errors.Is(err, errFull):
		w.cutOff(host, s.Name)
		return
	case errors.Is(err, errTwin):
		w.note(fmt.Sprintf("%s: %v", host, errTwin))
		return
	}
	w.fail(err)
	if err == nil && len(w.listeners) > 0 {
		of := w.series.labelsOf(e, host, s, labelValues)
		for _, added := range w.series.samples[before:] {
			w.batch.Samples = append(w.batch.Samples, Sample{of, added.T, added.V})
		}
	}
}

// cutOff says of a signal that not all of it was recorded. That stays so, whatever
// its source says later.
func (w *Writer) cutOff(host, signal string) {
	if of := w.cut[host]; of == nil {
		w.cut[host] = map[string]bool{}
	} else if of[signal] {
		return
	}
	w.status(host, signal, model.Status{State: model.Failed, Why: errFull.Error()})
	w.cut[host][signal] = true
	w.note(fmt.Sprintf("%s on %s: %v", signal, host, errFull))
}

// Event records something that happened; what looks like a secret in its text is masked.
func (w *Writer) Event(e model.Event) {
	e.Text = secret.Text(e.Text)
	line, err := json.Marshal(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return
	}
	if err != nil {
		w.fail(fmt.Errorf("event %s: %w", e.Kind, err))
		return
	}
	if w.told+int64(len(line)) >= maxEvents || len(line) > maxEvent {
		w.note(fmt.Sprintf("more events than %d bytes came in this run, or one of more than %d; they were not kept", maxEvents, maxEvent))
		return
	}
	w.told += int64(len(line)) + 1
	w.pending = append(append(w.pending, line...), '\n')
	w.hear(func(b *Batch) { b.Events = append(b.Events, e) })
}

// Status records what became of a signal on a host; the last one counts.
func (w *Writer) Status(host, signal string, st model.Status) {
	st.Why = secret.Text(st.Why)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status(host, signal, st)
}

func (w *Writer) status(host, signal string, st model.Status) {
	if w.cut[host][signal] {
		return
	}
	of := w.run.Status[host]
	if of == nil {
		of = map[string]model.Status{}
		w.run.Status[host] = of
	}
	if old, ok := of[signal]; !ok || old != st {
		of[signal] = st
		w.changed = true
		w.hear(func(b *Batch) { b.Statuses = append(b.Statuses, SignalStatus{host, signal, st}) })
	}
}

// Note records a sentence about the observation itself, once. Of very many the
// first ones are kept.
func (w *Writer) Note(sentence string) {
	sentence = secret.Text(sentence)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(sentence)
}

func (w *Writer) note(sentence string) {
	if len(w.run.Notes) == maxNotes {
		sentence = "there was more to note than is kept"
	}
	if len(w.run.Notes) <= maxNotes && !slices.Contains(w.run.Notes, sentence) {
		w.run.Notes = append(w.run.Notes, sentence)
		w.changed = true
		w.hear(func(b *Batch) { b.Notes = append(b.Notes, sentence) })
	}
}

// Commit ends a round: what was recorded since the last one survives the end
// of this process. A run that is cut off opens up to its last Commit.
func (w *Writer) Commit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	if w.changed && w.err == nil && (w.written == 0 || w.newest-w.written >= statusEvery) {
		w.fail(w.writeManifest())
	}
	w.kept = w.kept || w.err == nil
	w.tell()
	return w.err
}

// flush hands series and events to the kernel.
func (w *Writer) flush() {
	if w.err != nil || w.closed {
		return
	}
	w.fail(w.series.commit())
	if len(w.pending) > 0 && w.err == nil {
		_, err := w.events.Write(w.pending)
		w.fail(err)
		w.pending = w.pending[:0]
	}
}

// Err is the error that ended the recording, nil while it goes on.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Traced adds to what the manifest says of tracing: hosts may be traced by several. Of
// their shares of the window the smallest counts.
func (w *Writer) Traced(t model.Tracing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
	if w.run.Tracing == nil {
		w.run.Tracing = &t
		return
	}
	all := w.run.Tracing
	all.Profiles = append(all.Profiles, t.Profiles...)
	if all.Duty == nil {
		all.Duty = t.Duty
	}
	for name, share := range t.Duty {
		if old, ok := all.Duty[name]; !ok || share < old {
			all.Duty[name] = share
		}
	}
}

// Update changes the manifest (windows, hosts, cost) and writes it at once. Nothing is recorded
// while change runs: it must not wait for anyone who records.
func (w *Writer) Update(change func(*model.Run)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := slices.Clone(w.run.Windows)
	change(&w.run)
	if !slices.Equal(before, w.run.Windows) {
		w.hear(func(b *Batch) { b.Windows = slices.Clone(w.run.Windows) })
		w.tell()
	}
	if w.err == nil && !w.closed {
		w.fail(w.writeManifest())
	}
	return w.err
}

// writeManifest replaces run.json in one step, so that it is always whole.
func (w *Writer) writeManifest() error {
	raw, err := json.MarshalIndent(w.run, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", record.ManifestFile, err)
	}
	if err := replace(w.open.root, record.ManifestFile, append(raw, '\n'), w.run.Closed); err != nil {
		return err
	}
	w.written, w.changed = w.newest, false
	return nil
}

// Close ends the run: the series are cut into blocks, their log is removed,
// and the manifest says that the run is whole. After an error the log stays,
// and the run opens as one that was cut off.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	w.flush()
	w.closed = true
	w.fail(w.release())
	if w.err == nil {
		w.fail(w.cutSeries(w.series))
	}
	if w.err == nil {
		w.run.Closed = true
		w.fail(w.writeManifest())
	}
	w.fail(w.open.close())
	w.endListening()
	return w.err
}

// release closes the files.
func (w *Writer) release() error {
	var errs []error
	if w.series != nil {
		errs = append(errs, w.series.close())
	}
	for _, f := range []*os.File{w.events, w.latency} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, w.closePackets())...)
}

package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/clock"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// How long is waited: for a worker to be ready, for the time it says, and until one that is silent is given up.
const (
	readyTime  = time.Minute
	clockTime  = 10 * time.Second
	timesAsked = 16
	askEvery   = time.Second
	// lead is how far ahead the common begin lies.
	lead = 2 * time.Second
)

// Place is where a worker is to be.
type Place struct {
	Name, Spec, Host string // see model.Worker
	// Via is the way to its machine, "" for this one.
	Via string
	// Dial starts a process there that calls Serve.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
}

// Fleet are the workers that play loads together, one load after the other.
type Fleet struct {
	Version      string
	May, Watched bool // see order
	// Say, if set, is told what workers have to say to the user.
	Say func(text string)

	places  []Place
	workers []*worker // nil before the first load
}

// New is a fleet of workers at these places. They are started for the first load.
func New(places []Place) *Fleet { return &Fleet{places: places} }

// worker is one of them.
type worker struct {
	Place
	pipe  io.ReadWriteCloser
	out   *lines
	now   func() time.Time
	heard chan word     // all but the time; closed after the last one
	told  chan struct{} // has something when it has told the time
	end   error         // why heard was closed
	ready readyWord

	mu     sync.Mutex
	asked  map[int64]time.Time // questions for the time, by number
	ids    int64
	clocks clock.Book
	last   time.Time // when something was heard
}

// Ready has every worker take its part of a plan. An error names those that are not ready.
func (f *Fleet) Ready(ctx context.Context, plan model.LoadPlan) error {
	errs := make([]error, len(f.places))
	if f.workers == nil {
		f.workers = make([]*worker, len(f.places))
	}
	var all sync.WaitGroup
	for k := range f.places {
		all.Go(func() {
			part := plan
			part.Part = &model.Part{Worker: k, All: len(f.places)}
			if errs[k] = f.ready(ctx, k, part); errs[k] != nil {
				errs[k] = fmt.Errorf("worker %s (%s) is not ready: %w", f.places[k].Name, f.places[k].Spec, errs[k])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		f.Close()
		return oneLine{err}
	}
	for _, w := range f.workers {
		for _, note := range w.ready.Notes {
			if f.Say != nil {
				f.Say("worker " + w.Name + ": " + short(note))
			}
		}
	}
	return nil
}

// oneLine is several errors in one line.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }

func (f *Fleet) ready(ctx context.Context, k int, part model.LoadPlan) error {
	w := f.workers[k]
	if w == nil {
		pipe, err := f.places[k].Dial(ctx)
		if err != nil {
			return err
		}
		w = newWorker(f.places[k], pipe)
		f.workers[k] = w
	}
	if err := w.out.say(order{Plan: &part, May: f.May, Watched: f.Watched}); err != nil {
		return err
	}
	if err := w.waitReady(ctx); err != nil {
		return err
	}
	if w.ready.Version != f.Version {
		return fmt.Errorf("it is of version %s, and this Plimsoll of %s; have the same at both ends", short(w.ready.Version), f.Version)
	}
	return nil
}

func newWorker(p Place, pipe io.ReadWriteCloser) *worker {
	w := &worker{Place: p, pipe: pipe, out: newLines(pipe), now: clock.Ours(), heard: make(chan word, 64), told: make(chan struct{}, 1), asked: map[int64]time.Time{}}
	w.last = w.now()
	over := make(chan struct{})
	go func() {
		defer close(w.heard)
		defer close(over)
		w.end = hear(pipe, func(said word) error {
			w.hears(said.Clock)
			if said.Clock == nil {
				w.heard <- said
			}
			return nil
		})
		if said := pipe.Close(); w.end == nil {
			w.end = said // how its process ended
		}
		if w.end == nil {
			w.end = io.EOF
		}
	}()
	go func() { // it ends when it hears nothing
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				w.ask()
			}
		}
	}()
	return w
}

// ask asks what time it is there.
func (w *worker) ask() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asked) > 2*timesAsked { // it does not answer
		return
	}
	w.ids++
	w.asked[w.ids] = w.now()
	_ = w.out.say(order{Clock: w.ids}) // that it cannot be told anything shows in what is heard
}

// hears notes a sign of life, and the time if that is what was told.
func (w *worker) hears(c *clockWord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = w.now()
	if c == nil {
		return
	}
	if asked, ok := w.asked[c.ID]; ok {
		delete(w.asked, c.ID)
		w.clocks.Read(asked, w.last, c.Heard, c.Said)
	}
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// quiet is for how long nothing was heard.
func (w *worker) quiet() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now().Sub(w.last)
}

// waitReady waits until it is ready.
func (w *worker) waitReady(ctx context.Context) error {
	timer := time.NewTimer(readyTime)
	defer timer.Stop()
	for {
		select {
		case said, ok := <-w.heard:
			switch {
			case !ok:
				return w.ended()
			case said.Failed != nil:
				return load.EngineError{Code: said.Failed.Code, Said: short(said.Failed.Text)}
			case said.Ready != nil:
				w.ready = *said.Ready
				return nil
			}
		case <-timer.C:
			return fmt.Errorf("nothing was heard within %v", readyTime)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended says why nothing more is heard.
func (w *worker) ended() error {
	if sig := signalOf(w.end); sig == syscall.SIGKILL {
		return errors.New("it was killed there (SIGKILL), by somebody or by the kernel for want of memory")
	} else if sig != 0 {
		return fmt.Errorf("it was ended there by a signal (%s)", unix.SignalName(sig))
	}
	if errors.Is(w.end, io.EOF) {
		return errors.New("its process ended, or the way to it did")
	}
	return fmt.Errorf("its process ended, or the way to it did: %w", w.end)
}

// signalOf is the signal that ended a worker's process, 0 for none that is known. A process between it and us, a shell at
// another machine or the one that entered a namespace, ends with 128 and the signal's number.
func signalOf(end error) syscall.Signal {
	var exit interface{ Sys() any } // of an exec.ExitError
	if errors.As(end, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	var coded interface{ ExitCode() int }
	if errors.As(end, &coded) && unix.SignalName(syscall.Signal(coded.ExitCode()-afterSignal)) != "" {
		return syscall.Signal(coded.ExitCode() - afterSignal)
	}
	return 0
}

const afterSignal = 128

// measure measures its clock: ours is so much behind.
func (w *worker) measure(ctx context.Context) (model.Clock, error) {
	w.mu.Lock()
	w.clocks, w.asked = clock.Book{}, map[int64]time.Time{}
	w.mu.Unlock()
	timer := time.NewTimer(clockTime)
	defer timer.Stop()
	for range timesAsked {
		w.ask()
		select {
		case <-w.told:
		case <-timer.C:
			return model.Clock{}, fmt.Errorf("it did not say what time it is within %v", clockTime)
		case <-ctx.Done():
			return model.Clock{}, context.Cause(ctx)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	best, some := w.clocks.Best(w.now())
	if !some {
		return model.Clock{}, errors.New("it does not say what time it is")
	}
	if limit := float64(clockTime.Milliseconds()); best.UncertaintyMS > limit { // else all would wait for it, see begin
		return model.Clock{}, fmt.Errorf("its clock cannot be known, to %.0f ms: want at most %.0f", best.UncertaintyMS, limit)
	}
	return best, nil
}

// Close ends all workers' processes.
func (f *Fleet) Close() {
	var all sync.WaitGroup
	for _, w := range f.workers {
		if w == nil {
			continue
		}
		all.Go(func() {
			w.out.close()
			_ = w.pipe.Close() // how it ended tells nothing any more
			for range w.heard {
			}
		})
	}
	all.Wait()
	f.workers = nil
}

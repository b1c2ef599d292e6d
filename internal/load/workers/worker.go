package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// silence is after how long without a word the other end is taken for gone: who says nothing is asked for the time
// every second.
const silence = 2 * time.Minute

// farewell is how long the last words may take.
const farewell = 5 * time.Second

// Worker is what a worker's process does besides.
type Worker struct {
	Version string
	PID     int
	// Prepare completes a plan, and says what speaks against it on this machine. notes are for the user.
	Prepare func(ctx context.Context, plan *model.LoadPlan, may, watched bool) (notes []string, err error)
	// Code is the exit code with which a process would end for an error.
	Code func(error) int
}

// Serve plays its share of one load after the other, as the other end of in and out says, until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, w Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{Worker: w, out: newLines(out), now: clock.Ours(), orders: make(chan order, 16), stopped: make(chan struct{}, 1)}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	heard := make(chan error, 1)
	go func() {
		defer cancel()
		heard <- hear(in, func(o order) error {
			quiet.Reset(silence)
			return s.take(o)
		})
	}()
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx) }()
	err := <-done
	defer time.AfterFunc(farewell, s.out.close).Stop()
	s.out.flush()
	select {
	case said := <-heard:
		return errors.Join(said, err)
	default:
		return err // it was silent, or we cannot be heard
	}
}

type server struct {
	Worker
	out     *lines
	now     func() time.Time
	orders  chan order    // plans and starts
	stopped chan struct{} // has something when the load is to end
}

// take answers at once what the clock is measured by, and passes on the rest.
func (s *server) take(o order) error {
	at := s.now()
	switch {
	case o.Clock != 0:
		return s.out.say(word{Clock: &clockWord{o.Clock, at.UnixNano(), s.now().UnixNano()}})
	case o.Stop:
		select {
		case s.stopped <- struct{}{}:
		default:
		}
		return nil
	}
	select {
	case s.orders <- o:
		return nil
	default:
		return errors.New("it was told more than it can do")
	}
}

func (s *server) serve(ctx context.Context) error {
	var ready *load.Ready
	defer func() {
		if ready != nil {
			ready.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-s.orders:
			var err error
			switch {
			case o.Plan != nil:
				if ready != nil {
					ready.Close()
				}
				ready, err = s.prepare(ctx, o)
			case ready != nil:
				at := time.Unix(0, o.Start)
				r := ready
				ready = nil
				err = s.play(ctx, r, at)
			default:
				err = errors.New("it was told to start before it had a plan")
			}
			if err != nil {
				err = s.out.say(word{Failed: &failedWord{s.Code(err), short(err.Error())}})
			}
			if err != nil {
				return err
			}
		}
	}
}

func (s *server) prepare(ctx context.Context, o order) (*load.Ready, error) {
	select { // of a load before this one
	case <-s.stopped:
	default:
	}
	notes, err := s.Prepare(ctx, o.Plan, o.May, o.Watched)
	if err != nil {
		return nil, err
	}
	r, err := load.Prepare(ctx, *o.Plan)
	if err != nil {
		return nil, err
	}
	return r, s.out.say(word{Ready: &readyWord{s.Version, s.PID, notes}})
}

// play plays a load from a moment of our clock on.
func (s *server) play(ctx context.Context, r *load.Ready, at time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-over:
		}
	}()
	now := s.now()
	if ahead := at.Sub(now); ahead > maxAhead || ahead < -maxAhead {
		r.Close()
		return fmt.Errorf("told to begin %v from now: want at most %v", ahead, maxAhead)
	}
	return r.Run(ctx, now.Add(at.Sub(now)), func(rec load.Record) error { return s.out.say(word{Record: &rec}) })
}

// maxAhead is how far from now the moment of a load's begin may be.
const maxAhead = 10 * time.Minute

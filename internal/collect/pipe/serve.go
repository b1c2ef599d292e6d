package pipe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/collect"
	"plimsoll/internal/trace"
)

// manyCommands is more than a session asks before it has had an answer.
const manyCommands = 100

// lateEdge is from when on a round at an edge has the time at which it is taken, and not
// the edge's: what was read so late tells nothing of then.
const lateEdge = 500 * time.Millisecond

// leastInterval is the shortest time between two rounds that a session may ask for.
const leastInterval = 10 * time.Millisecond

// Serve is the main function of a collector in a process of its own: it does what the
// session at the other end of in and out asks for, and ends when in does, or when it
// hears or can say nothing any more. version is the program's, tracers are all that
// there are.
func Serve(in io.Reader, out io.Writer, version string, tracers []trace.Tracer) error {
	now := clock.Ours()
	s := &server{version: version, now: now, out: newOutbox(out, roomForRecords), todo: make(chan heard, manyCommands)}
	s.open = func(c collect.Config) (*collect.Local, error) { return collect.Open(c, tracers, now) }
	return s.serve(in)
}

type server struct {
	version string
	now     func() time.Time
	open    func(collect.Config) (*collect.Local, error)
	out     *outbox
	todo    chan heard
	greeted bool // the session speaks our protocol; the listener's alone
	local   *collect.Local
	send    *sender
}

// heard is a command, and when it came.
type heard struct {
	command
	at time.Time
}

func (s *server) serve(in io.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-s.todo:
				s.answer(c, s.do(ctx, c.command))
			}
		}
	}()
	listened := make(chan error, 1)
	go func() { listened <- s.listen(in) }()
	var err error
	select {
	case err = <-listened:
	case <-s.out.failed:
		err = fmt.Errorf("answer the session: %w", s.out.err)
	}
	cancel()
	s.out.fail(io.ErrClosedPipe) // nobody reads any more; one who said close has had its answer
	<-served
	if s.local != nil {
		err = errors.Join(err, s.local.Close())
	}
	return err
}

// listen reads commands to the end of in. That it ends is how the session says that it
// needs us no more, or that it is gone.
func (s *server) listen(in io.Reader) error {
	given := time.AfterFunc(silence, func() { s.out.fail(errSilent) })
	defer given.Stop()
	r := bufio.NewReader(in)
	var buf []byte
	for {
		k, payload, err := readFrame(r, &buf)
		given.Reset(silence)
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err == nil && k != isCommand {
			err = fmt.Errorf("a frame of kind %q; it says commands alone", k)
		}
		var c command
		if err == nil {
			c, err = parse[command](payload)
		}
		if err == nil {
			err = s.hear(heard{c, s.now()})
		}
		if err != nil {
			return fmt.Errorf("read what the session asks: %w", err)
		}
	}
}

// hear answers at once what the clock is measured by, and puts the rest into its turn.
func (s *server) hear(c heard) error {
	if c.Do == doHello {
		a := answer{Protocol: protocol, Version: s.version}
		if s.greeted = c.Protocol == protocol; !s.greeted {
			a.Failure = failureOf(errVersion("the session", c.Protocol, "the collector ("+s.version+")", protocol))
		}
		s.answer(c, a)
		return nil
	}
	if !s.greeted {
		s.answer(c, answer{Failure: failureOf(errors.New("the session has not said yet which protocol it speaks"))})
		return nil
	}
	select {
	case s.todo <- c:
		return nil
	default:
		return fmt.Errorf("it asked for %d things and waited for no answer", manyCommands)
	}
}

// errVersion says that the two ends do not understand each other.
func errVersion(one string, its int, other string, others int) error {
	return fmt.Errorf("%s speaks version %d of the protocol, and %s version %d; have the same Plimsoll at both ends", one, its, other, others)
}

func (s *server) answer(to heard, a answer) {
	a.ID, a.Heard, a.Said = to.ID, to.at.UnixNano(), s.now().UnixNano()
	s.out.must(jsonFrame(isAnswer, a))
}

// do does what a command says.
func (s *server) do(ctx context.Context, c command) (a answer) {
	var err error
	switch {
	case c.Do == doOpen && s.local == nil && c.Config != nil:
		if c.Config.Interval < leastInterval {
			err = fmt.Errorf("an interval of %v: want at least %v", c.Config.Interval, leastInterval)
		} else if s.local, err = s.open(*c.Config); err == nil {
			a.Hosts, a.Here = s.local.Hosts(), s.local.Here()
		}
	case c.Do == doStart && s.local != nil && s.send == nil:
		s.send = newSender(s.out)
		err = s.local.Start(ctx, s.send)
	case s.local == nil || s.send == nil:
		err = fmt.Errorf("%q: the collector was not told yet what to observe", short(c.Do))
	default:
		a, err = s.observe(ctx, c)
	}
	a.Failure = failureOf(err)
	return a
}

// observe does what a command says while hosts are observed.
func (s *server) observe(ctx context.Context, c command) (a answer, err error) {
	switch c.Do {
	case doSettle:
		a.Time = s.local.Settle().UnixMilli()
	case doEdge:
		at := time.UnixMilli(c.Time)
		if now := s.now(); now.Sub(at) > lateEdge {
			at = now.Truncate(time.Millisecond)
		}
		s.send.edge()
		at, err = s.local.Edge(ctx, collect.Edge{Time: at, Window: c.Window})
		a.Time, a.Cost = at.UnixMilli(), s.cost()
	case doIgnore:
		err = s.local.Ignore(c.PID)
	case doCommand:
		err = s.local.Command(c.PID)
	case doClose:
		a.Cost = s.cost()
		err = s.local.Close()
		a.Dropped = s.send.rest()
		s.local, s.send = nil, nil
	default:
		err = fmt.Errorf("%q is nothing that a collector does", short(c.Do))
	}
	return a, err
}

// cost is nil where it could not be read; the next round says why.
func (s *server) cost() *collect.Cost {
	c, err := s.local.Cost()
	if err != nil {
		return nil
	}
	return &c
}

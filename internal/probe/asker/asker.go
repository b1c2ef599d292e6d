// Package asker asks services that answer a line of text over a connection that stays open: which of a host's
// processes they are, where they listen themselves, and when to ask. What is asked and what the answer
// means is the caller's.
package asker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/host/ownsocket"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	// findEvery is the least time between two looks for services, askEvery between two questions.
	findEvery = 2 * time.Second
	askEvery  = time.Second
	// againAfter is how long one that could not be asked is left alone, deniedAfter one that does not let us in (see Kind.Denied).
	againAfter  = 2 * time.Second
	deniedAfter = 30 * time.Second
	// connectPatience bounds a connect. An answer may take longer: a server of one thread gives it when its
	// slow command is done, and just then it matters. Nobody waits for it.
	connectPatience = 500 * time.Millisecond
	answerPatience  = 5 * time.Second
	// atOnce and atEdge are how long a round waits for an answer that most likely comes at once.
	atOnce = 3 * time.Millisecond
	atEdge = 25 * time.Millisecond
	// maxServices and maxAddresses bound whom and where we ask.
	maxServices  = 8
	maxAddresses = 4
)

// ErrFull is the error of a service that sent us away, since it has as many clients as it takes.
var ErrFull = errors.New("it takes no more clients")

// ErrClosed is the error of a service that says that it had closed the connection, or is about to.
var ErrClosed = errors.New("it closed the connection")

// Kind is a kind of service, and A what it answers.
type Kind[A any] struct {
	// Name is how sentences call it, Processes the names of its processes.
	Name      string
	Processes []string
	// Question is what is sent, Most how many bytes are read of the answer, and Read reads it.
	Question string
	Most     int64
	Read     func(*bufio.Reader) (A, error)
	// Enter, where it is there, connects to a process instead, and says where that listens; it takes care of its
	// own time. Ask then stands for Question and Read.
	Enter func(h *host.Host, pid int) (conn net.Conn, listen string, err error)
	Ask   func(net.Conn) (A, error)
	// Denied is how long one that does not let us in is left alone, if not half a minute.
	Denied time.Duration
	// New makes what puts the answers of one service into a round. The label listen is its address.
	New func() func(out *probe.Out, listen string, answer A)
	// Signals are all of the probe's. Up and Full are told by this package: whether it answered, and
	// whether it sent us away.
	Signals  []*model.Signal
	Up, Full *model.Signal
}

// Open is a probe's Open.
func (k *Kind[A]) Open(h *host.Host) (probe.Reader, error) { return &reader[A]{kind: k, host: h}, nil }

// reader asks all services of a kind on one host.
type reader[A any] struct {
	kind     *Kind[A]
	host     *host.Host
	looked   time.Time
	services []*service[A]
	err      error // looking for them failed
}

// Read reports the answers that came since the last Read, and asks anew.
func (r *reader[A]) Read(out *probe.Out) error {
	if now := out.Now(); r.looked.IsZero() || now.Sub(r.looked) >= findEvery {
		r.looked = now
		r.find()
	}
	if r.err != nil {
		return r.err
	}
	wait := atOnce
	if out.Forced() {
		wait = atEdge
	}
	until := time.Now().Add(wait)
	for _, s := range r.services {
		s.collect(time.Time{}) // what came since the last round, so that the next question need not wait for another one
		s.begin(out.Now(), out.Forced())
	}
	for _, s := range r.services {
		s.collect(until)
		r.report(out, s)
		s.fresh = false
	}
	return nil
}

// report puts an answer, or says of the signals what became of the service: silence about it is no fact.
func (r *reader[A]) report(out *probe.Out, s *service[A]) {
	full, known := 0.0, s.listen != ""
	switch {
	case s.err == nil && !s.fresh:
		return
	case s.err == nil:
		out.Put(r.kind.Up, 1, s.listen)
		s.put(out, s.listen, s.answer)
	default:
		closed := errors.Is(s.err, fs.ErrNotExist) || errors.Is(s.err, fs.ErrPermission)
		for _, sig := range r.kind.Signals {
			if closed || !known || sig != r.kind.Up && sig != r.kind.Full {
				out.Mark(sig, s.err)
			}
		}
		if closed {
			return
		}
		if known {
			out.Put(r.kind.Up, 0, s.listen)
		}
		if !errors.Is(s.err, ErrFull) {
			return
		}
		full = 1
	}
	if known {
		out.Put(r.kind.Full, full, s.listen)
	}
}

// Close ends the connections.
func (r *reader[A]) Close() error {
	for _, s := range r.services {
		s.end()
	}
	return nil
}

// find looks for services that came or went. What one of them forked (to save its data) is none.
func (r *reader[A]) find() {
	procs, err := r.host.Services()
	if r.err = err; err != nil {
		return
	}
	is := map[int]bool{}
	for _, p := range procs {
		is[p.PID] = slices.Contains(r.kind.Processes, p.Comm)
	}
	known := r.services
	r.services = nil
	for _, p := range procs {
		if !is[p.PID] || is[p.PPID] || len(r.services) == maxServices {
			continue
		}
		i := slices.IndexFunc(known, func(s *service[A]) bool { return s.proc.PID == p.PID && s.proc.Start == p.Start })
		if i >= 0 {
			r.services = append(r.services, known[i])
			known = slices.Delete(known, i, i+1)
			continue
		}
		r.services = append(r.services, &service[A]{kind: r.kind, host: r.host, proc: p, put: r.kind.New(),
			err: fmt.Errorf("%s (process %d) has not answered yet", r.kind.Name, p.PID)})
	}
	for _, s := range known {
		s.end()
	}
}

// service is one service, asked in the background, one question at a time.
type service[A any] struct {
	kind  *Kind[A]
	host  *host.Host
	proc  host.Proc
	put   func(*probe.Out, string, A)
	asked time.Time
	reply chan reply[A] // of a question on its way
	conn  net.Conn      // nil when there is none
	// What came last.
	listen string
	answer A
	err    error
	fresh  bool // it came since the last Read
}

type reply[A any] struct {
	conn   net.Conn // nil when it is gone
	listen string
	answer A
	err    error
}

// begin asks, unless a question is on its way or it is too soon.
func (s *service[A]) begin(now time.Time, edge bool) {
	if s.reply != nil {
		return
	}
	wait := askEvery - askEvery/20
	switch {
	case s.conn != nil && edge:
		wait = 0
	case s.conn == nil && errors.Is(s.err, fs.ErrPermission):
		wait = cmp.Or(s.kind.Denied, deniedAfter)
	case s.conn == nil:
		wait = againAfter
	}
	if !s.asked.IsZero() && now.Sub(s.asked) < wait {
		return
	}
	s.asked = now
	to, conn, listen := make(chan reply[A], 1), s.conn, s.listen
	s.reply = to
	go func() {
		if conn != nil {
			answer, err := s.kind.ask(conn)
			if r := keep(conn, listen, answer, err); !hadClosed(r.err) {
				to <- r
				return
			}
		}
		to <- s.enter()
	}()
}

// hadClosed is whether a service had ended a connection that was kept: it may (an idle timeout, a KILL, a restart), and answers at a new one.
func hadClosed(err error) bool {
	return errors.Is(err, ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// collect takes an answer that is there, or comes by until.
func (s *service[A]) collect(until time.Time) {
	if r, ok := Await(s.reply, until); ok {
		s.take(r)
	}
}

// Await is what is there, or comes by until, and whether anything did; of no channel nothing does. It may lie there for as long as
// one likes, so what came in time is not missed by who asks late.
func Await[R any](from <-chan R, until time.Time) (r R, ok bool) {
	select {
	case r = <-from: // first, since of two that are ready select takes either
		return r, true
	default:
	}
	wait := time.Until(until)
	if from == nil || wait <= 0 {
		return r, false
	}
	select {
	case r = <-from:
		return r, true
	case <-time.After(wait):
		return r, false
	}
}

func (s *service[A]) take(r reply[A]) {
	s.reply, s.conn, s.listen, s.answer, s.err = nil, r.conn, r.listen, r.answer, r.err
	s.fresh = r.err == nil
}

// end closes the connection, that of a question on its way when it is answered.
func (s *service[A]) end() {
	if to := s.reply; to != nil {
		go func() {
			if r := <-to; r.conn != nil {
				r.conn.Close()
			}
		}()
	} else if s.conn != nil {
		s.conn.Close()
	}
	s.reply, s.conn = nil, nil
}

// enter connects to the first of a service's addresses that answers. It goes by the first of TCP, else by its socket's path.
func (s *service[A]) enter() (r reply[A]) {
	if s.kind.Enter != nil {
		conn, listen, err := s.kind.Enter(s.host, s.proc.PID)
		if err != nil {
			return reply[A]{listen: listen, err: err}
		}
		answer, err := s.kind.ask(conn)
		return keep(conn, listen, answer, err)
	}
	list, err := ownsocket.Listeners(s.host, s.proc.PID)
	if err != nil {
		r.err = fmt.Errorf("look where %s listens; that needs root, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", s.kind.Name, err)
		return r
	}
	if len(list) == 0 {
		r.err = host.Absent(fmt.Sprintf("%s (process %d) listens nowhere that we see", s.kind.Name, s.proc.PID))
		return r
	}
	listen := list[0].String()
	if i := slices.IndexFunc(list, func(a ownsocket.Address) bool { return a.Path == "" }); i >= 0 {
		listen = list[i].String()
	}
	var failed error
	for _, at := range list[:min(len(list), maxAddresses)] {
		r = s.enterAt(at, listen)
		if r.err == nil || errors.Is(r.err, ErrFull) || errors.Is(r.err, fs.ErrPermission) {
			return r
		}
		failed = errors.Join(failed, r.err)
	}
	r.err = failed
	return r
}

func (s *service[A]) enterAt(at ownsocket.Address, listen string) reply[A] {
	ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	conn, err := ownsocket.DialListener(ctx, s.host, at, s.proc.PID)
	if err != nil {
		return reply[A]{listen: listen, err: fmt.Errorf("ask %s: %w", s.kind.Name, err)}
	}
	answer, err := s.kind.ask(conn)
	if err != nil {
		err = fmt.Errorf("ask %s at %s: %w", s.kind.Name, at, err)
	}
	return keep(conn, listen, answer, err)
}

// keep is a reply; a connection over which something went wrong is not used again.
func keep[A any](conn net.Conn, listen string, answer A, err error) reply[A] {
	if err != nil {
		conn.Close()
		conn = nil
	}
	return reply[A]{conn, listen, answer, err}
}

// ask sends the question and reads the answer.
func (k *Kind[A]) ask(conn net.Conn) (answer A, err error) {
	if err := conn.SetDeadline(time.Now().Add(answerPatience)); err != nil {
		return answer, err
	}
	if k.Ask != nil {
		return k.Ask(conn)
	}
	_, sent := io.WriteString(conn, k.Question)
	// who is sent away is told why before the connection is closed, so that it is read first
	answer, err = k.Read(bufio.NewReader(io.LimitReader(conn, k.Most)))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return answer, fmt.Errorf("it did not answer within %v", answerPatience)
	case err != nil && sent != nil && !errors.Is(err, ErrFull):
		return answer, sent
	}
	return answer, err
}

package load

import (
	"cmp"
	"context"
	"net/netip"
	"runtime"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// stage is one load thread without its goroutine, and a server whose moves the
// test makes itself: nothing in it depends on time.
type stage struct {
	t      *testing.T
	thread *thread
	listen int
	peer   int // the connection accepted last
	buffer [4096]byte
}

func newStage(t *testing.T, plan model.LoadPlan) *stage {
	t.Helper()
	s := &stage{t: t, peer: -1}
	var err error
	if s.listen, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s.listen) })
	if err := unix.Bind(s.listen, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(s.listen, 128); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(s.listen)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(name.(*unix.SockaddrInet4).Port)
	plan.URL = "http://" + netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String()
	plan.TimeoutMS = 3_600_000
	j, err := prepare(plan)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	e.base = time.Now()
	s.thread = e.threads[0]
	if r := s.thread.poller.ring; r != nil { // it belongs to an OS thread
		runtime.LockOSThread()
		t.Cleanup(runtime.UnlockOSThread)
		r.begin(s.thread.poller.wake)
	}
	t.Cleanup(func() {
		for i := range s.thread.conns {
			s.thread.hangUp(&s.thread.conns[i])
		}
		s.thread.poller.close()
	})
	return s
}

// until turns the thread's loop until something holds.
func (s *stage) until(what string, holds func() bool) {
	s.t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		s.thread.turn()
	}
	s.t.Fatalf("after 1000 turns still not: %s", what)
}

func (s *stage) accept() {
	s.t.Helper()
	fd, _, err := unix.Accept4(s.listen, unix.SOCK_CLOEXEC)
	if err != nil {
		s.t.Fatal(err)
	}
	s.peer = fd
}

// answer reads one request and writes text.
func (s *stage) answer(text []byte) {
	if r := s.thread.poller.ring; r != nil {
		r.submit() // the request, which else leaves with the next wait
	}
	if n, err := unix.Read(s.peer, s.buffer[:]); err != nil || n == 0 {
		s.t.Errorf("read the request: %d bytes, %v", n, err)
	}
	if _, err := unix.Write(s.peer, text); err != nil {
		s.t.Errorf("write the reply: %v", err)
	}
}

func (s *stage) replies() int64 { return s.thread.tally.phases[hold].ended.of(2).n }

// bothEngines runs a test of connections that stay by each engine.
func bothEngines(t *testing.T, name string, f func(t *testing.T, engine string)) {
	for _, engine := range engines {
		t.Run(name+cmp.Or(engine, "epoll"), func(t *testing.T) { f(t, engine) })
	}
}

func TestARequestAllocatesNothing(t *testing.T) { bothEngines(t, "", requestAllocatesNothing) }

func requestAllocatesNothing(t *testing.T, engine string) {
	reply := []byte(okReply)
	s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true, Engine: engine})
	s.until("connected and sent", func() bool { return s.thread.conns[0].state == awaiting })
	s.accept()
	defer unix.Close(s.peer)
	perRequest := testing.AllocsPerRun(2000, func() {
		before := s.replies()
		s.answer(reply)
		for s.replies() == before {
			s.thread.turn()
		}
	})
	if perRequest != 0 {
		t.Errorf("%g allocations for a request, want 0", perRequest)
	}
	// The kernel begins to stamp when it gets round to it, so not each one is.
	stamped := func() bool { return s.thread.tally.phases[hold].measured(unread).TotalCount() > 0 }
	for deadline := time.Now().Add(time.Minute); !stamped(); {
		if time.Now().After(deadline) {
			t.Fatal("none of the first connection's replies was stamped")
		}
		before := s.replies()
		s.answer(reply)
		s.until("answered", func() bool { return s.replies() > before })
	}
}

func TestAConnectAllocatesNothing(t *testing.T) {
	reply := []byte(okReply)
	s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000})
	perRequest := testing.AllocsPerRun(500, func() {
		before := s.replies()
		for s.thread.conns[0].state != awaiting {
			s.thread.turn()
		}
		fd, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(s.listen), 0, 0, 0, 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		s.peer = int(fd)
		s.answer(reply)
		for s.replies() == before {
			s.thread.turn()
		}
		unix.Close(s.peer)
	})
	if perRequest != 0 {
		t.Errorf("%g allocations for a request on a new connection, want 0", perRequest)
	}
}

func TestAnIdleConnectionThatTheServerClosesCostsNoRequest(t *testing.T) {
	// Open loop: one request at once, the next after an hour.
	s := newStage(t, model.LoadPlan{Connections: 1, Requests: 2, KeepAlive: true, Rate: 1.0 / 3600})
	s.until("sent", func() bool { return s.thread.conns[0].state == awaiting })
	s.accept()
	s.answer([]byte(okReply))
	s.until("idle", func() bool { return s.thread.conns[0].state == idle })
	unix.Close(s.peer)
	s.until("hung up", func() bool { return s.thread.conns[0].state == closed })
	s.thread.dueAt, s.thread.headAt = 0, 0 // the hour is over
	s.until("sent again", func() bool { return s.thread.conns[0].state == awaiting })
	s.accept()
	defer unix.Close(s.peer)
	s.answer([]byte(okReply))
	s.until("both answered", func() bool { return s.replies() == 2 })
	if got := s.thread.tally.phases[hold].begun; got != 2 {
		t.Errorf("%d requests begun, want 2", got)
	}
}

// What lies unread because nobody looked is no part of an open loop's latency. The moment of the kernel's stamp is told by two
// clocks; whoever is interrupted between reading one and the other is wrong by that, so it may be tried again.
func TestAnOpenLoopDatesRepliesByTheKernel(t *testing.T) { bothEngines(t, "", repliesAreDated) }

func repliesAreDated(t *testing.T, engine string) {
	for try := 1; ; try++ {
		took, lay, gone := openLoopReply(t, engine, 20*time.Millisecond)
		// It lay there for longer than all else took, if that is not in it.
		if gone >= took+lay-1000 {
			return
		}
		if try == 5 {
			t.Fatalf("service took %d µs and the reply lay unread for %d µs, but it is %d µs since it was sent", took, lay, gone)
		}
	}
}

// openLoopReply lets one reply lie unread, and returns in microseconds how long its service took, how long it lay, and how
// long it is since its request was sent.
func openLoopReply(t *testing.T, engine string, unreadFor time.Duration) (took, lay, gone int64) {
	t.Helper()
	s := newStage(t, model.LoadPlan{Connections: 1, Requests: 100_000, KeepAlive: true, Rate: 1.0 / 3600, Engine: engine})
	n := &s.thread.tally.phases[hold]
	for round := int64(1); n.measured(unread).TotalCount() == 0; round++ { // the kernel begins to stamp when it gets round to it
		if round == 1000 {
			t.Fatal("none of 1,000 replies was stamped")
		}
		n.took[service].clear()
		s.thread.dueAt, s.thread.headAt = 0, 0
		s.until("sent", func() bool { return s.thread.conns[0].state == awaiting })
		if round == 1 {
			s.accept()
			defer unix.Close(s.peer)
		}
		s.answer([]byte(okReply))
		for answered := s.thread.shared.clock(); s.thread.shared.clock() < answered+int64(unreadFor); {
		}
		s.until("answered", func() bool { return s.replies() == round })
	}
	if lay = n.measured(unread).Max(); lay < unreadFor.Microseconds() {
		t.Errorf("the reply lay unread for %d µs, want %d at least", lay, unreadFor.Microseconds())
	}
	if n.unread.n != 0 {
		t.Errorf("%d requests have time unread in their latency, want none", n.unread.n)
	}
	return n.measured(service).Max(), lay, (s.thread.now - s.thread.conns[0].start) / 1000
}

func TestLagIsTheGeneratorsOwn(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 1, Requests: 1, KeepAlive: true, Rate: 1})
	th, c := s.thread, &s.thread.conns[0]
	c.freed = 10e6
	th.free.push(c)
	th.now, th.dueAt, th.headAt = 12e6, 5e6, 5e6
	th.dispatch()
	n := &th.tally.phases[hold]
	if n.measured(lag).TotalCount() != 1 || n.measured(lag).Max() != 2000 {
		t.Errorf("due at 5 ms, a connection free at 10 ms, sent at 12 ms: %d lags, at most %d µs; want one of 2,000 µs", n.measured(lag).TotalCount(), n.measured(lag).Max())
	}
}

// What is due in a moment leaves now: waiting for it would cost more CPU time than sending it.
func TestOnAGridRequestsLeaveALittleEarly(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		early int64
		sent  int64
	}{{20_000, mostEarly, gridBatch}, {20_000, mostEarly + 1, 0}, {2000, 1, 0}} {
		s := newStage(t, model.LoadPlan{Connections: 10, DurationMS: 1000, KeepAlive: true, Rate: c.rate})
		th := s.thread
		for i := range th.conns {
			th.free.push(&th.conns[i])
		}
		for th.dueAt == 0 { // the first step
			th.due++
			th.dueAt = th.duePlan.at(th.due)
		}
		th.head, th.headAt = th.due, th.dueAt
		th.now = th.dueAt - c.early
		th.dispatch()
		if th.inFlight != c.sent {
			t.Errorf("%g/s, %d ns before they are due: %d requests sent, want %d", c.rate, c.early, th.inFlight, c.sent)
		}
		if n := &th.tally.phases[hold]; c.sent > 0 && (n.measured(lag).Min() != 0 || th.flights.oldest.intended > th.flights.oldest.start) {
			t.Errorf("sent early, the first request has %d µs of lag and begins %d ns before it was meant to", n.measured(lag).Min(), th.flights.oldest.intended-th.flights.oldest.start)
		}
	}
}

func TestNapsOnlyWhenNothingIsMissed(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 100, DurationMS: 1000, KeepAlive: true, Rate: 20_000})
	th := s.thread
	for i := range th.conns {
		th.free.push(&th.conns[i])
	}
	if !th.nap(200_000) {
		t.Error("nothing to do for 200 µs, 100 connections free: no nap")
	}
	if th.nap(0) || th.nap(longestGrid+mostEarly+1) {
		t.Error("a nap without time for it, or longer than to the next step")
	}
	th.due += th.shared.stride
	if th.nap(200_000) {
		t.Error("a nap while a request waits for a connection")
	}
	th.due = th.head
	for th.free.n > 11 {
		th.free.pop()
	}
	if th.nap(200_000) {
		t.Error("a nap with 11 connections free, of which a step may want 6 and the next one as many")
	}
}

func TestACloseThatComesWithTheReplyIsNotSentInto(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true})
	s.until("sent", func() bool { return s.thread.conns[0].state == awaiting })
	s.accept()
	s.answer([]byte(okReply)) // which announces no close
	unix.Close(s.peer)
	s.until("answered", func() bool { return s.replies() == 1 })
	s.until("sent on a new connection", func() bool { return s.thread.conns[0].state == awaiting })
	s.accept()
	defer unix.Close(s.peer)
	s.answer([]byte(okReply))
	s.until("answered", func() bool { return s.replies() == 2 })
}

func TestAnEarlyReplyToALongBodyCounts(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 1, Requests: 1, KeepAlive: true, Method: "PUT", Body: make([]byte, 64<<20)})
	s.until("sending", func() bool { return s.thread.conns[0].state == sending })
	s.accept()
	s.answer([]byte("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"))
	s.until("answered", func() bool { return s.thread.tally.phases[hold].ended.of(4).n == 1 })
	unix.Close(s.peer)
	if s.thread.conns[0].state != closed {
		t.Error("a connection with half a request in it was kept")
	}
}

func TestDescriptorsRunningOutIsAnOutcome(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 3, Requests: 3})
	next, err := unix.Dup(s.listen)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next), Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	s.thread.turn()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if got := s.thread.tally.phases[hold].ended.of(failure(connectFailed, int(unix.EMFILE))).n; got != 3 {
		t.Errorf("%d outcomes connect:EMFILE, want 3", got)
	}
	if s.thread.inFlight != 0 || !s.thread.settled.Load() || len(s.thread.sleepers) != 3 {
		t.Errorf("in flight %d, settled %v, resting %d; want 0, true, 3", s.thread.inFlight, s.thread.settled.Load(), len(s.thread.sleepers))
	}
}

func TestSleepersWakeInOrder(t *testing.T) {
	var h sleepers
	conns := make([]conn, 200)
	for i := range conns {
		conns[i].wakes = int64(i * 7919 % 200)
		h.push(&conns[i])
	}
	for want := range int64(200) {
		if got := h.pop().wakes; got != want {
			t.Fatalf("woke %d, want %d", got, want)
		}
	}
}

// Every request that times out is followed by a connect: were they all done in
// one turn, the replies of the others would wait for the last of them.
func TestTimeoutsTakeTurns(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 3 * burst, DurationMS: 3_600_000, KeepAlive: true})
	expired := func() int64 {
		n := &s.thread.tally.phases[hold]
		return n.ended.of(failure(readFailed, timedOut)).n + n.ended.of(failure(connectFailed, timedOut)).n
	}
	s.until("all in flight", func() bool { return s.thread.inFlight == 3*burst })
	s.thread.shared.timeout = 1
	s.thread.turn()
	if got := expired(); got != burst {
		t.Errorf("%d requests timed out in a turn, want %d", got, burst)
	}
	if s.thread.inFlight != 3*burst || s.thread.idleFor() != 0 {
		t.Errorf("in flight %d, next turn in %d ns; want %d, at once", s.thread.inFlight, s.thread.idleFor(), 3*burst)
	}
}

func TestOnlyOneConnectionIsCalm(t *testing.T) {
	for _, rate := range []float64{0, 100} {
		plan := model.LoadPlan{URL: "http://127.0.0.1:1", Connections: 8, Threads: 4, CalmMS: 1000, RampMS: 1000, DurationMS: 1000, Rate: rate}
		j, err := prepare(plan)
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEngine(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		calmOnes := 0
		for _, th := range e.threads {
			for i := range th.conns {
				if e.timeline.at(th.conns[i].wakes) == calm {
					calmOnes++
				}
			}
			th.poller.close()
		}
		if calmOnes != 1 {
			t.Errorf("rate %g, 4 threads: %d connections wake in the calm phase, want 1", rate, calmOnes)
		}
	}
}

// measured are the durations of a kind so far.
func (t *phaseTally) measured(kind int) *hdr.Histogram {
	h := newHistogram()
	t.took[kind].addTo(h)
	return h
}

package load

import (
	"math"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

const (
	// restNanos is how long a connection rests after a failed connect, give or
	// take a fifth, so that a refusing port does not become a busy loop.
	restNanos = 100_000_000
	// stampEvery takes kernel time stamps on one connection of so many, of each thread: any of them may be the one that lags.
	stampEvery = 8
	bufferSize = 64 << 10
	// worthGathering is with how many requests in flight it pays to let replies gather.
	worthGathering = 8
)

// protocol is how requests travel: each alone on a connection (HTTP/1.1, the thread
// itself), or as streams of connections that they share (HTTP/2).
type protocol interface {
	// accepts says whether a request could begin at c; if not, c is given to next when one could.
	accepts(c *conn) bool
	// opens says whether a request that begins at c needs a new connection.
	opens(c *conn) bool
	// reserve has c be the one for which its connection will be opened.
	reserve(c *conn)
	// carry sends the request that has just begun at c.
	carry(c *conn)
	// event takes what epoll says of the connection of that name.
	event(name int32, events uint32)
	// shook goes on after a TLS handshake that is over.
	shook(h *handshake)
	// fail ends c's request without a reply.
	fail(c *conn, o outcome)
	// turned is called at the end of each turn; true asks for another one at once.
	turned() bool
	// busy is how many established connections have a request in flight.
	busy() int64
}

// thread is one of the load's OS threads. Everything in it belongs to that
// thread alone, save the fields at the end.
type thread struct {
	shared   *shared
	protocol protocol
	sockets  *ringSockets // nil where they are not io_uring's
	id       int
	poller   *poller
	conns    []conn
	buffer   []byte // shared by all connections: nothing outlives one read
	skips    int64  // of a body of which more than that is to come the kernel throws away the rest
	known    knownHead
	// Over TLS, what came and what is to be sent, sealed; nil without it.
	incoming, outgoing []byte
	shaken             mailbox // handshakes that are over
	stamps             stampReader

	now  int64 // nanoseconds since the start of the run, read once for each event
	woke int64 // when the last wait returned
	end  int64 // from when on nothing begins
	soon bool  // the next turn waits for nothing
	seed uint64
	// quickest is how long the quickest of the last thousand or so replies took, in nanoseconds.
	quickest int64
	// came are the replies, and pieces of bodies that were thrown away, of this turn.
	came int
	// held are connections whose next requests wait until all replies of this turn are read, while holding: the kernel's
	// ways in and out are then each gone many times in a row, which caches like, and no reply waits for a request.
	held    []*conn
	holding bool
	// oversleep is by how much timers wake us late, on average over the last ones.
	oversleep int64

	flights     flightList // requests in flight, oldest first: all have the same timeout
	sleepers    sleepers   // connections that wait for their time
	inFlight    int64
	ending      int64 // io_uring: requests that are over and whose calls have not ended
	connecting  int64
	established int64
	row         int64 // closed loop: the next row of variables
	quota       int64 // requests taken from the budget and not yet begun

	// Open loop: requests are numbered, each thread has every threads-th of them.
	due, head     int64   // the next to come due; the next to be sent; in between is the queue
	dueAt, headAt int64   // their planned times
	duePlan       planned // who tells dueAt
	headPlan      planned // who tells headAt
	free          connsIn // connections without a request

	reserves   []*conn // places that are used when no connection is free, the next one last
	attemptAt  int64   // with a rate of connects: the next attempt may be made then
	waiting    connsIn // and these wait for it
	sourceTurn int     // whose turn it is of shared.sources

	tally *tally // where this thread counts now
	spare *tally // what it counts in next

	want    atomic.Bool // the collector wants the tally
	handed  chan *tally
	settled atomic.Bool // no request is in flight and none will begin
	gone    chan struct{}
}

func newThread(s *shared, id int) (*thread, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	plan := &s.job.plan
	targets, stages := len(s.job.names), len(plan.AllStages())
	first, stride := s.first(id), int(s.stride)
	t := &thread{
		shared: s, id: id, poller: p,
		conns:  make([]conn, (plan.MostConnections()-first+stride-1)/stride),
		buffer: make([]byte, bufferSize),
		skips:  skippedFrom(*plan),
		end:    s.timeline.hold,
		seed:   uint64(first)*0x9e3779b97f4a7c15 + 1,
		due:    int64(first), head: int64(first), row: int64(first),
		tally: newTally(targets, stages), spare: newTally(targets, stages),
		handed: make(chan *tally, 1),
		gone:   make(chan struct{}),
	}
	t.protocol = t
	t.shaken.poller = p
	if s.job.tls != nil {
		t.incoming = make([]byte, bufferSize)
	}
	t.duePlan, t.headPlan = s.arrivals.of(first, s.stride), s.arrivals.of(first, s.stride)
	t.dueAt, t.headAt = t.duePlan.at(t.due), t.headPlan.at(t.head)
	t.makeRoom(len(t.conns))
	t.attemptAt = s.gap / s.stride * int64(first)
	if n := len(s.sources); n > 0 {
		t.sourceTurn = first % n
	}
	for i := range t.conns {
		c := &t.conns[i]
		global := i*stride + first
		c.fd, c.name = -1, int32(i)
		c.stamped = s.openLoop || i%stampEvery == 0
		c.wakes = s.timeline.opens(global, plan.Connections)
		if s.openLoop && global > 0 {
			// Every thread must have a connection for its first request; only
			// connection 0 is there in the calm phase.
			c.wakes = max(s.timeline.opens(global-first, plan.Connections), s.timeline.calm)
		}
		if global >= plan.Connections {
			c.wakes = never
		}
		t.place(c, c.wakes)
	}
	slices.Reverse(t.reserves)
	return t, nil
}

// place has a place for a request wait for its time, or until it is needed.
func (t *thread) place(c *conn, wakes int64) {
	if c.wakes = wakes; wakes == never {
		t.reserves = append(t.reserves, c)
	} else {
		t.sleepers.push(c)
	}
}

// makeRoom makes the lists in which each of so many places for a request can wait.
func (t *thread) makeRoom(places int) {
	t.sleepers, t.free.ring, t.reserves = make(sleepers, 0, places), make([]*conn, places), nil
	if t.shared.gap > 0 {
		t.waiting.ring = make([]*conn, places)
	}
}

// skippedFrom is how long the rest of a body must be for the kernel to throw it away: over a Unix socket it
// cannot (MSG_TRUNC there means another thing).
func skippedFrom(p model.LoadPlan) int64 {
	if p.UnixSocket != "" {
		return math.MaxInt64
	}
	return bufferSize
}

// phase is the phase of a request that would begin now.
func (t *thread) phase() phase {
	if t.now >= t.end {
		return drain
	}
	return t.shared.timeline.at(t.now)
}

// paced says whether requests begin at planned times. In the calm phase they never do.
func (t *thread) paced() bool {
	return t.shared.openLoop && t.phase() != calm
}

// count is where requests that began in p are counted.
func (t *thread) count(p phase) *phaseTally { return &t.tally.phases[p] }

// spend takes one request off the budget of the hold phase.
func (t *thread) spend() bool {
	if t.shared.job.plan.Requests == 0 {
		return true
	}
	if t.quota == 0 {
		t.quota = t.shared.takeBudget()
	}
	if t.quota == 0 {
		return false
	}
	t.quota--
	return true
}

// rest lets c sleep after a failed connect.
func (t *thread) rest(c *conn) {
	c.wakes = t.now + restNanos*4/5 + int64(t.random()%(restNanos*2/5))
	t.sleepers.push(c)
}

// random is 64 random bits (xorshift, by Marsaglia).
func (t *thread) random() uint64 {
	t.seed ^= t.seed << 13
	t.seed ^= t.seed >> 7
	t.seed ^= t.seed << 17
	return t.seed
}

// handOver gives the collector what was counted and goes on counting in the spare.
func (t *thread) handOver() {
	t.want.Store(false)
	full := t.tally
	t.tally, t.spare = t.spare, full
	full.connecting = t.connecting
	full.open = t.established
	full.idle = t.established - t.protocol.busy()
	full.closed = 0
	if t.paced() {
		full.closed = max(0, int64(len(t.conns)-len(t.reserves))-t.established-t.connecting)
	}
	if t.settled.Load() {
		full.missing, full.untried = t.neverStood()
		full.stood = t.haveStood()
	}
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &use); err == nil {
		full.user, full.system = seconds(use.Utime), seconds(use.Stime)
	}
	t.handed <- full
}

// haveStood is how many connections stood.
func (t *thread) haveStood() (n int64) {
	for i := range t.conns {
		if t.conns[i].stood {
			n++
		}
	}
	return n
}

// neverStood is how many connections were tried for in vain, and how many not at all.
// An open loop opens those that it needs; there the latter is nothing to tell.
func (t *thread) neverStood() (failed, untried int64) {
	for i := range t.conns {
		switch c := &t.conns[i]; {
		case c.stood:
		case c.tried:
			failed++
		case !t.shared.openLoop:
			untried++
		}
	}
	return failed, untried
}

func seconds(v unix.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)/1e6 }

// moment is for how long more replies may come before the thread turns to those that are there: who turns to each at once
// pays for waking more than for reading. In a closed loop a reply that comes meanwhile is told as so much later, under its first
// byte (when in the sleep it came is not known). So it is a twentieth at most of what the quickest of the last replies took, and 0
// where that is not worth a sleep.
func (t *thread) moment() int64 {
	const (
		shortest = 10_000
		longest  = 60_000 // beyond it little is won
	)
	if ns := min(t.quickest/20, longest); ns >= shortest {
		return ns
	}
	return 0
}

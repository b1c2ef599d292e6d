package sockets

import (
	"maps"
	"net/netip"
	"slices"

	"plimsoll/internal/host/unixdiag"
)

const (
	// maxListeners bounds the listeners that are followed on one host.
	maxListeners = 512
	// memory is for how many looks a listener that is gone is remembered: about
	// two minutes, twice as long as its last connections stay in TIME_WAIT.
	memory = 1300
)

// listener is one address that is listened on; sockets that share it
// (SO_REUSEPORT) are summed.
type listener struct {
	name string // the label listen
	unix bool

	// Of the look under way.
	queue, limit, largest uint32
	inode                 uint32
	here                  bool
	look                  uint64 // that saw it last

	// Since the last report.
	peak       uint32 // longest queue
	queued     uint64 // queue lengths of all looks together
	looks      int
	missed     int // looks in which nobody listened there any more
	seen       bool
	limitSum   uint32
	limitEach  uint32 // the largest limit of one socket
	dropsSince uint64
	hasDrops   bool // the kernel tells what it dropped

	owner string // "" until it was looked for
	drops uint64 // reported so far under this owner

	connections                    // of the last dump
	held        [heldCount]float64 // seconds reported so far under this owner
	sent        float64            // bytes
	to          sentTo
}

// connections are the connections of a listener in one dump.
type connections struct {
	accepted, synRecv int
	// left is how many stand in the accept queue though their client has closed, and never sent a byte.
	left int
	// of the accepted ones, those with bytes to read, with bytes behind a gap, and with bytes not acknowledged
	unread, gaps, unacked int
	// roundTrips is the sum of these last ones' round trips, shortestTrips of the shortest that the kernel remembers, in µs.
	roundTrips, shortestTrips uint64
	// shut is how many may not send, since the peer's window is closed; heldBack, those with a small
	// piece that waits for an acknowledgement alone; repeated, how many sent
	// a segment again twice or more often; large, those of them whose segment is full-sized;
	// small, those whose congestion window is full and small without a loss; smallSegments, those
	// with few bytes under way and more to send, since their segments are small.
	// restarted, those held to a window that is half of what it was before a pause, or less.
	shut, heldBack, repeated, large, small, smallSegments, restarted int
	filled                                                           filled
}

// filled are the connections of a listener whose peers fill the receive window: how many, and the sums of
// these windows and buffers, in bytes, and of the shortest round trips, in µs.
type filled struct {
	connections             int
	windows, buffers, trips uint64
}

// sockSeen is one TCP listening socket from look to look.
type sockSeen struct {
	drops uint32
	look  uint64
}

// table is every listener of one host. A listener that is gone stays in it for a
// while, so that its last connections are not taken for outgoing ones.
type table struct {
	tcp   map[endpoint]*listener
	ports portSet              // of tcp: a cheap answer for most connections
	unix  map[string]*listener // by address as the kernel keeps it
	order []*listener          // in order of first sight
	socks map[uint64]*sockSeen // TCP, by cookie
	look  uint64               // number of the look under way, from 1
	whole bool                 // a look has seen all listeners
	cut   bool                 // there were more than maxListeners
}

func newTable() *table {
	return &table{tcp: map[endpoint]*listener{}, unix: map[string]*listener{}, socks: map[uint64]*sockSeen{}}
}

// begin starts a look: a dump of all listeners.
func (t *table) begin() {
	t.look++
	for _, l := range t.order {
		l.queue, l.limit, l.largest, l.inode, l.here = 0, 0, 0, 0, false
	}
}

// end closes a look that saw all listeners.
func (t *table) end() {
	for _, l := range t.order {
		if l.here {
			l.look, l.seen = t.look, true
			l.peak = max(l.peak, l.queue)
			l.queued += uint64(l.queue)
			l.looks++
			l.limitSum, l.limitEach = l.limit, l.largest
		} else {
			l.missed++
		}
	}
	for cookie, s := range t.socks {
		if s.look != t.look {
			delete(t.socks, cookie)
		}
	}
	t.forget(memory)
	t.whole = true
}

// forget drops the listeners that were not seen for so many looks.
func (t *table) forget(looks uint64) {
	gone := func(l *listener) bool { return !l.here && l.look+looks < t.look }
	if !slices.ContainsFunc(t.order, gone) {
		return
	}
	t.order = slices.DeleteFunc(t.order, gone)
	maps.DeleteFunc(t.unix, func(_ string, l *listener) bool { return gone(l) })
	maps.DeleteFunc(t.tcp, func(_ endpoint, l *listener) bool { return gone(l) })
	t.ports = portSet{}
	for e := range t.tcp {
		t.ports.add(e.port)
	}
}

// add makes room for one more listener; nil when there are too many.
func (t *table) add(name string, unix bool) *listener {
	if len(t.order) >= maxListeners {
		t.forget(1)
	}
	if len(t.order) >= maxListeners {
		t.cut = true
		return nil
	}
	l := &listener{name: name, unix: unix}
	t.order = append(t.order, l)
	return l
}

func (t *table) addTCP(s *inetSock) {
	l := t.tcp[s.src]
	if l == nil {
		if l = t.add(s.src.String(), false); l == nil {
			return
		}
		t.tcp[s.src] = l
		t.ports.add(s.src.port)
	}
	l.saw(s.queue, s.limit, s.inode)
	if s.hasDrops {
		l.hasDrops = true
		l.dropsSince += uint64(t.newDrops(s))
	}
}

// newDrops is what a socket dropped since it was last seen. What it dropped
// before the first whole look is not ours to count; what a later one dropped
// before it was first seen is.
func (t *table) newDrops(s *inetSock) uint32 {
	known := t.socks[s.cookie]
	if known == nil {
		t.socks[s.cookie] = &sockSeen{drops: s.drops, look: t.look}
		if !t.whole {
			return 0
		}
		return s.drops
	}
	d := s.drops - known.drops // the kernel's 32 bits may wrap
	known.drops, known.look = s.drops, t.look
	return d
}

func (t *table) addUnix(s *unixdiag.Sock) {
	l := t.unix[string(s.Name)]
	if l == nil {
		if l = t.add(unixdiag.Label(s.Name), true); l == nil {
			return
		}
		t.unix[string(s.Name)] = l
	}
	l.saw(s.Queue, s.Limit, s.Inode)
}

func (l *listener) saw(queue, limit, inode uint32) {
	l.here = true
	l.queue += queue
	l.limit += limit
	l.largest = max(l.largest, limit)
	if l.inode == 0 || inode < l.inode {
		l.inode = inode
	}
}

var (
	anyV4 = [16]byte{10: 0xff, 11: 0xff}
	anyV6 = [16]byte{}
)

// of is the listener that connections to the local endpoint e belong to: one on
// that address, else one on all addresses. An IPv6 one on all addresses takes
// IPv4 connections, too.
func (t *table) of(e endpoint) *listener {
	if !t.ports.has(e.port) {
		return nil
	}
	if l := t.tcp[e]; l != nil {
		return l
	}
	if l := t.tcp[endpoint{anyV4, e.port}]; l != nil && netip.AddrFrom16(e.addr).Is4In6() {
		return l
	}
	return t.tcp[endpoint{anyV6, e.port}]
}

// String writes an endpoint as "addr:port", "[addr]:port" for IPv6.
func (e endpoint) String() string {
	return netip.AddrPortFrom(netip.AddrFrom16(e.addr).Unmap(), e.port).String()
}

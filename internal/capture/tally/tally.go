// Package tally adds up what a capture shows, while it is read, into signals: what
// rules read of packets, whether these come from a file or from a run's hosts.
package tally

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/tcp"
	"plimsoll/internal/model"
)

// maxServers is how many servers are told apart; what is at others is added up as "other".
const maxServers = 256

// maxClients is how many clients are told apart.
const maxClients = 256

// maxIdles is how many idle times are kept of a server.
const maxIdles = 1024

// Tally adds up. Frame and Events are for who reads the capture, Put for who records
// what it shows; both may run at the same time.
type Tally struct {
	mu             sync.Mutex
	packets, bytes int64
	open           int64
	servers        map[netip.AddrPort]*server
	other          *server
	clients        map[netip.Addr]int64 // connections that they asked for
	otherClients   int64
	shut           map[uint64]closed // windows that are closed now
	now            int64             // time of the last packet, ns
	events         []Event
	unkept         int64 // events for which there was no room
}

// Event is a connection that was reset, and why.
type Event struct {
	Time  int64 // ns
	Frame uint32
	Reset cause.Reset
}

// maxEvents is how many wait to be taken at most.
const maxEvents = 1000

// closed is a window that is closed.
type closed struct {
	since int64
	at    *server
	by    int
}

// The sides.
const (
	client = iota
	srv
	unknown
)

var sides = [...]string{"client", "server", "unknown"}

// server is what one address and port was seen to do.
type server struct {
	name                         string
	segments                     [len(segmentNames)][2]int64
	resent                       [2][cause.Attributions]int64
	resentNS, unanswered, fins   [2]int64
	attempts, synsResent, stood  int64
	handshakeNS, turnNS, turns   int64
	busyNS                       int64
	icmp                         map[string]int64
	resets                       [len(sides)][cause.Causes]int64
	closes, heldNS, held, shutNS [2]int64
	shuts                        [2]int64
	idle                         []int64
}

// segmentNames are the kinds of segments that are counted: all, with payload, tiny.
var segmentNames = [...]*model.Signal{segmentsTotal, dataTotal, tinyTotal}

// New returns a tally of nothing.
func New() *Tally {
	return &Tally{servers: map[netip.AddrPort]*server{}, clients: map[netip.Addr]int64{}, shut: map[uint64]closed{}}
}

// tinyPayload is below how many bytes of payload a segment is tiny.
const tinyPayload = 100

// Frame takes up a packet; it is a capture.Options.Frame.
func (t *Tally) Frame(f *capture.Frame) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.packets++
	t.bytes += int64(f.Packet.Wire)
	t.now = max(t.now, f.Packet.Time)
	switch f.Kind {
	case decode.Quoted:
		t.quoted(f)
	case decode.TCP:
		if !f.Segment.HeaderBad {
			t.segment(f)
		}
	}
	return nil
}

// at returns the server of a connection, and which side it is.
func (t *Tally) at(f *capture.Frame) (*server, uint8, bool) {
	side, known := f.Result.Conn.Server()
	addr := f.In.TCP.Addr(f.Result.Conn, side)
	one := t.servers[addr]
	switch {
	case one != nil:
	case len(t.servers) < maxServers:
		one = &server{name: addr.String()}
		t.servers[addr] = one
	default:
		if t.other == nil {
			t.other = &server{name: "other"}
		}
		one = t.other
	}
	return one, side, known
}

func (t *Tally) segment(f *capture.Frame) {
	v, side, known := t.at(f)
	r, s := &f.Result, &f.Segment
	by := client
	if r.Side == side {
		by = srv
	}
	v.segments[0][by]++
	if s.Len > 0 {
		v.segments[1][by]++
	}
	if s.Len < tinyPayload {
		v.segments[2][by]++
	}
	v.sentAgain(f, by)
	t.course(v, f, by)
	if r.Turn > 0 && by == srv {
		v.turnNS += r.Turn
		v.turns++
		v.busyNS += r.Turn
	}
	v.busyNS += r.Flow
	if f.HeldBack > 0 {
		v.heldNS[by] += f.HeldBack
		v.held[by]++
	}
	t.window(v, f, by)
	if f.Reset != nil && !f.Reset.Again && !f.Reset.Twice {
		if !known {
			by = unknown
		}
		v.resets[by][f.Reset.Is()]++
		t.reset(f)
	}
}

// unheard is how often a segment is sent again before the far side is taken to be
// gone, or out of reach, rather than the segment to be lost.
const unheard = 3

// sentAgain counts a segment that was sent again.
func (v *server) sentAgain(f *capture.Frame, by int) {
	a, r := f.Attribution, &f.Result
	lost := a == cause.LostBefore || a == cause.LostAfter
	switch {
	case a == cause.None:
	case lost && f.Segment.Len == 0:
		v.fins[by]++
	case lost && r.Conn.Half[r.Side].Again >= unheard:
		v.unanswered[by]++
	default:
		v.resent[by][a]++
		if lost {
			v.resentNS[by] += r.RTO
		}
	}
}

// course follows connections from their SYN to their first FIN.
func (t *Tally) course(v *server, f *capture.Frame, by int) {
	r := &f.Result
	switch {
	case r.Opened:
		t.open++
		if r.Labels&tcp.SYN != 0 {
			t.attempt(v, f)
		}
	case r.SYNWait == 0 || by != client || f.Attribution == cause.CapturedTwice:
	case cause.Hasty(r):
		t.attempt(v, f)
	default:
		v.synsResent++
	}
	if r.Ended {
		t.open--
	}
	if r.Stands {
		v.stood++
		v.handshakeNS += max(r.Conn.IRTT(), 0)
	}
	if r.Labels&tcp.FINActive != 0 && r.Conn.Half[r.Side].FIN == f.Number {
		v.closes[by]++
		if ns, idle := cause.IdleClose(r.Conn); idle && by == srv && len(v.idle) < maxIdles {
			v.idle = append(v.idle, ns)
		}
	}
}

// attempt counts a connection that was asked for.
func (t *Tally) attempt(v *server, f *capture.Frame) {
	v.attempts++
	client := f.In.TCP.Addr(f.Result.Conn, f.Result.Side).Addr()
	if n, known := t.clients[client]; known || len(t.clients) < maxClients {
		t.clients[client] = n + 1
	} else {
		t.otherClients++
	}
}

// window follows closed windows.
func (t *Tally) window(v *server, f *capture.Frame, by int) {
	at := uint64(f.Result.Conn.Stream)<<1 | uint64(f.Result.Side)
	if f.Shuts {
		v.shuts[by]++
		t.shut[at] = closed{f.Packet.Time, v, by}
	}
	if f.Shut > 0 {
		v.shutNS[by] += f.Shut
		delete(t.shut, at)
	}
}

// quoted takes up an ICMP error about what was sent to a server.
func (t *Tally) quoted(f *capture.Frame) {
	if f.Result.Conn == nil {
		return
	}
	v, side, _ := t.at(f)
	if f.Result.Side == side {
		return
	}
	if v.icmp == nil {
		v.icmp = map[string]int64{}
	}
	v.icmp[icmpWord(f.Segment.Version, f.Segment.ICMP)]++
}

// icmpWord says in a word what an ICMP error says by type and code.
func icmpWord(version uint8, code [2]uint8) string {
	type kind struct{ version, kind, code uint8 }
	switch (kind{version, code[0], code[1]}) {
	case kind{4, 3, 9}, kind{4, 3, 10}, kind{4, 3, 13}, kind{6, 1, 1}, kind{6, 1, 5}, kind{6, 1, 6}:
		return "prohibited"
	case kind{4, 3, 3}, kind{6, 1, 4}:
		return "port"
	case kind{4, 3, 1}, kind{6, 1, 3}:
		return "host"
	case kind{4, 3, 0}, kind{6, 1, 0}:
		return "net"
	case kind{4, 3, 4}, kind{6, 2, 0}:
		return "too_big"
	}
	return "other"
}

func (t *Tally) reset(f *capture.Frame) {
	if len(t.events) == maxEvents {
		t.unkept++
		return
	}
	t.events = append(t.events, Event{f.Packet.Time, f.Number, *f.Reset})
}

// Events returns the connections that were reset since it was called last, and how
// many more there were than are kept.
func (t *Tally) Events() (list []Event, more int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, more = t.events, t.unkept
	t.events, t.unkept = nil, 0
	return list, more
}

// Text is the event in a line, with the frames that show it.
func (e *Event) Text() string {
	text := e.Reset.Sender.String() + " reset its connection with " + e.Reset.Receiver.String() + ": " + e.Reset.Cause + ", " + e.Reset.Why + " (frame " + strconv.Itoa(int(e.Frame))
	for _, n := range e.Reset.Evidence {
		if n != e.Frame {
			text += ", " + strconv.Itoa(int(n))
		}
	}
	return text + ")"
}

// Put puts all signals as they stand; dropped is what the capture lost. now (ns) is until
// when closed windows have been closed, 0 for the last packet.
func (t *Tally) Put(sink model.Sink, dropped, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now == 0 {
		now = t.now
	}
	sink.Put(packetsTotal, float64(t.packets))
	sink.Put(bytesTotal, float64(t.bytes))
	sink.Put(droppedTotal, float64(dropped))
	sink.Put(connections, float64(max(t.open, 0)))
	t.putClients(sink)
	still := map[*server][2]int64{}
	for _, c := range t.shut {
		ns := still[c.at]
		ns[c.by] += max(now-c.since, 0)
		still[c.at] = ns
	}
	for _, addr := range slices.SortedFunc(maps.Keys(t.servers), netip.AddrPort.Compare) {
		v := t.servers[addr]
		v.put(sink, still[v])
	}
	if t.other != nil {
		t.other.put(sink, still[t.other])
	}
}

func (t *Tally) putClients(sink model.Sink) {
	for _, a := range slices.SortedFunc(maps.Keys(t.clients), netip.Addr.Compare) {
		sink.Put(askedTotal, float64(t.clients[a]), a.String())
	}
	if t.otherClients > 0 {
		sink.Put(askedTotal, float64(t.otherClients), "other")
	}
}

// put puts a server's signals; what never was is not put, and so stands at zero.
func (v *server) put(sink model.Sink, still [2]int64) {
	count := func(s *model.Signal, n int64, labels ...string) {
		if n > 0 {
			sink.Put(s, float64(n), append([]string{v.name}, labels...)...)
		}
	}
	seconds := func(s *model.Signal, ns int64, labels ...string) {
		if ns > 0 {
			sink.Put(s, float64(ns)/1e9, append([]string{v.name}, labels...)...)
		}
	}
	count(attemptsTotal, v.attempts)
	count(synsResentTotal, v.synsResent)
	count(handshakes, v.stood)
	seconds(handshakeSeconds, v.handshakeNS)
	count(turns, v.turns)
	seconds(turnSeconds, v.turnNS)
	seconds(busySeconds, v.busyNS)
	for by, name := range sides[:2] {
		for i, s := range segmentNames {
			count(s, v.segments[i][by], name)
		}
		for a := cause.None + 1; a < cause.Attributions; a++ {
			count(resentTotal, v.resent[by][a], name, a.String())
		}
		count(resentTotal, v.unanswered[by], name, "unanswered")
		count(resentTotal, v.fins[by], name, "fin")
		seconds(resentSeconds, v.resentNS[by], name)
		count(closesTotal, v.closes[by], name)
		count(heldCount, v.held[by], name)
		seconds(heldSeconds, v.heldNS[by], name)
		count(shutCount, v.shuts[by], name)
		seconds(shutSeconds, v.shutNS[by]+still[by], name)
	}
	for by, name := range sides {
		for c := range cause.Causes {
			count(resetsTotal, v.resets[by][c], name, c.String())
		}
	}
	for _, what := range slices.Sorted(maps.Keys(v.icmp)) {
		count(icmpTotal, v.icmp[what], what)
	}
	if least, most, ok := cause.Agreed(v.idle); ok && len(v.idle) > 1 {
		seconds(idleTimeout, (least+most)/2)
	}
}

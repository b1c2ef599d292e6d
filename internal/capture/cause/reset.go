package cause

import (
	"net/netip"
	"slices"

	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/tcp"
)

// Cause is why a connection was reset.
type Cause uint8

// The causes.
const (
	Unclear      Cause = iota
	Refused            // a SYN to a port where nothing listens
	Rejected           // the same from a port that takes connections: a firewall, or a listener that came and went
	Overflow           // the accept queue was full, and the listener aborts on overflow
	CookieFailed       // the handshake's last ACK came too late, or fitted none that the server remembers
	Abandoned          // a SYN-ACK that its client did not want any more: a scan, or a client that gave up
	PortReuse          // a SYN met a connection that the other side still had in TIME_WAIT
	HalfOpen           // the same, and that connection had never been closed
	IdleTimeout        // data met a FIN that its sender had sent after an idle time
	TimeWaitGone       // the other side's ACK or FIN met neither FIN_WAIT2 nor TIME_WAIT any more
	LateACK            // both had closed, and an ACK or FIN came late, or again: nothing is lost
	ClosedBefore       // data after the receiver had closed
	GaveUp             // the client closed before the answer came
	StateLost          // one side no longer knew the connection: restarted, or forgotten on the way
	Middlebox          // somebody between the two sent it
	KeepAlive          // nobody answered keep-alives
	NoAnswer           // nobody acknowledged data
	Unread             // closed with data unread, which was never answered
	Aborted            // closed by abort: SO_LINGER 0, or the process ended with data pending
	Causes
)

var causeNames = [Causes]string{"unclear", "refused", "rejected", "queue_overflow", "syn_cookie", "abandoned", "time_wait_reuse",
	"half_open", "idle_timeout", "time_wait_gone", "late_ack", "data_after_close", "client_gave_up", "state_lost", "middlebox", "keepalive_failed", "no_answer",
	"unread_data", "aborted"}

func (c Cause) String() string { return causeNames[c] }

var causeWords = [Causes]string{
	"what the wire shows does not tell why",
	"nothing listens on that port",
	"the port takes connections, yet this one was refused: a firewall, or a listener that came and went",
	"the server's accept queue was full, and it aborts on overflow",
	"the server did not know the handshake that the client completed (a SYN cookie too old, or forgotten)",
	"the client did not want the connection any more when the SYN-ACK came",
	"the ports were used again while the other side still had the old connection in TIME_WAIT",
	"the other side still had an old connection with these ports, which was never closed",
	"the connection was closed as idle; what came after met the close",
	"it had closed, and no longer had the connection when the other side's ACK or FIN came: it keeps no TIME_WAIT (tcp_max_tw_buckets, tcp_fin_timeout, SO_LINGER of a load tool)",
	"both sides had closed, and an ACK or FIN came late, or once more: nothing is lost by it",
	"the side that reset it had closed it before",
	"the client closed before the answer came",
	"one side did not know the connection any more (restarted, or an entry on the way expired)",
	"sent by something between the two",
	"keep-alives went unanswered",
	"data sent again and again went unacknowledged",
	"closed with data that was received, but not read, or not answered",
	"aborted by the application",
}

// Words is the cause as people read it.
func (c Cause) Words() string { return causeWords[c] }

// Reset is one RST with its cause.
type Reset struct {
	Frame    uint32         `json:"frame"`
	Stream   uint32         `json:"stream"`
	Sender   netip.AddrPort `json:"sender"`
	Receiver netip.AddrPort `json:"receiver"`
	By       string         `json:"by"`    // client or server; unknown where the handshake was not captured
	Cause    string         `json:"cause"` // see Words
	Why      string         `json:"why"`
	Evidence []uint32       `json:"evidence"` // frames that show it, this one among them
	Timeout  int64          `json:"timeout_ns,omitempty"`
	Idle     int64          `json:"idle_ns,omitempty"` // of state_lost: for how long nobody had said anything before what it answers
	Race     bool           `json:"race,omitempty"`    // the data had been sent before the FIN could arrive
	Again    bool           `json:"again,omitempty"`   // it follows from an earlier one of the connection, whose cause it has
	Twice    bool           `json:"captured_twice,omitempty"`
	cause    Cause
}

// Is is the cause.
func (r *Reset) Is() Cause { return r.cause }

// maxResets is how many are kept; the others are counted.
const maxResets = 100_000

// reset finds the cause of a RST.
func (j *Judge) reset(r *tcp.Result, s *decode.Segment, frame uint32, now int64, a Attribution) *Reset {
	c := r.Conn
	e := evidence{j: j, c: c, me: &c.Half[r.Side], peer: &c.Half[1-r.Side], side: r.Side, s: s, r: r, now: now}
	server, known := c.Server()
	e.isServer, e.knows = known && server == r.Side, known
	out := &Reset{Frame: frame, Stream: c.Stream, Twice: a == CapturedTwice}
	out.Sender, out.Receiver = j.Where.Addr(c, r.Side), j.Where.Addr(c, 1-r.Side)
	out.By = "unknown"
	if known {
		out.By = map[bool]string{true: "server", false: "client"}[e.isServer]
	}
	if c.Cause != 0 && (c.Cause>>7 == r.Side || e.isReply()) { // one follows from the other
		out.cause, out.Again = Of(c), true
		e.frames(e.me.Last, e.peer.Last)
	} else {
		out.cause = e.classify(out)
		c.Cause = uint8(out.cause) | r.Side<<7 | 0x40
	}
	out.Cause, out.Why = out.cause.String(), out.cause.Words()
	if out.cause == Aborted && e.peer.Again > 0 {
		out.Why += ", while the other side sent again what did not get through"
		e.frames(e.peer.Last)
	}
	for _, f := range e.seen {
		if f != 0 && f != frame && !slices.Contains(out.Evidence, f) {
			out.Evidence = append(out.Evidence, f)
		}
	}
	out.Evidence = append(out.Evidence, frame)
	j.ByCause[out.cause]++
	if len(j.Resets) < maxResets {
		j.Resets = append(j.Resets, *out)
	} else {
		j.ResetsMore++
	}
	return out
}

// evidence is what there is to judge a RST by.
type evidence struct {
	j               *Judge
	c               *tcp.Conn
	me, peer        *tcp.Half // the RST's sender, and the other
	side            uint8
	s               *decode.Segment
	r               *tcp.Result
	now             int64
	isServer, knows bool
	seen            []uint32
}

// isClient says whether the RST's sender is the one that asks. Where the handshake was not captured the ports
// tell: those that systems give to clients begin at 32768 (Linux) or higher, and services lie below.
func (e *evidence) isClient() bool {
	if e.knows {
		return !e.isServer
	}
	return e.j.Where.Addr(e.c, e.side).Port() >= clientPorts && e.j.Where.Addr(e.c, 1-e.side).Port() < clientPorts
}

const clientPorts = 32768

// frames notes what shows the cause.
func (e *evidence) frames(list ...uint32) { e.seen = append(e.seen, list...) }

// isReply says whether the RST answers a segment that met no socket: then it has
// no ACK, takes its number from what it answers, and has no window and no options.
// One that the stack sends of its own accord has all of them.
func (e *evidence) isReply() bool {
	return e.s.Flags&decode.ACK == 0 && !e.s.Options
}

// foreign says whether the RST came another way than all other segments of its
// sender. A capture at several places of a way sees each segment with several TTLs.
func (e *evidence) foreign() bool { return e.s.TTL < e.me.TTL[0] || e.s.TTL > e.me.TTL[1] }

// unasked says whether a RST has a reply's form, and there was nothing to reply to: the other side had been silent
// for longer than any way there and back. No stack does that; a balancer or a firewall does that drops what is idle.
func (e *evidence) unasked() bool {
	return e.peer.Last != 0 && e.now-e.peer.LastTime() > max(unaskedLeast, e.c.IRTT()*idleTrips)
}

const unaskedLeast = 1_000_000_000 // ns

func (e *evidence) classify(out *Reset) Cause {
	if cause := e.opening(); cause != Unclear {
		return cause
	}
	if e.me.Last != 0 && (e.foreign() || e.isReply() && (e.s.Window != 0 || e.unasked())) {
		e.frames(e.me.Last)
		if e.isReply() {
			e.idle(out)
		}
		return Middlebox
	}
	if !e.isReply() {
		return e.active()
	}
	if e.me.FIN != 0 {
		return e.afterFIN(out)
	}
	return e.unknownThere(out)
}

// opening looks for resets of connections that never came to be.
func (e *evidence) opening() Cause {
	me, peer := e.me, e.peer
	sentSYN := peer.SYN != 0 && peer.Last == peer.SYN || peer.SYNs > 0 && peer.LastFlags&decode.SYN != 0
	switch {
	case me.Last == 0 && sentSYN && e.s.Flags&decode.ACK != 0 && peer.LastFlags&decode.ACK == 0:
		e.frames(peer.SYN)
		return e.refused()
	case me.SYN != 0 && me.LastFlags&(decode.SYN|decode.ACK) == decode.SYN && peer.Last != 0:
		// The client answers the answer to its SYN.
		e.frames(me.SYN, peer.Last)
		if peer.LastFlags&decode.SYN != 0 {
			return Abandoned
		}
		if e.s.Seq != peer.LastACK() {
			return Unclear
		}
		return e.oldConnection()
	case me.Last == 0 && peer.LastFlags&(decode.SYN|decode.ACK) == decode.SYN|decode.ACK && peer.SYN == peer.Last && e.isReply():
		e.frames(peer.SYN) // whoever asked for it, that was not captured
		return Abandoned
	case me.SYN != 0 && me.LastFlags == decode.SYN|decode.ACK && peer.SYN != 0 && e.isReply():
		// The server answers the client's last ACK of the handshake, or its first data.
		if isn, _ := me.ISN(); e.s.Seq != isn+1 || e.foreign() {
			return Unclear
		}
		e.frames(peer.SYN, me.SYN, peer.Last)
		if e.now-e.c.Start >= cookieLife {
			return CookieFailed
		}
		return Overflow
	}
	return Unclear
}

// oldConnection tells what answered a client's SYN with old numbers: TIME_WAIT, or a connection that was never closed.
func (e *evidence) oldConnection() Cause {
	before := e.c.BeforeCompleteness
	if !e.c.Reused {
		before = 0
	}
	switch {
	case before&(tcp.SawFIN|tcp.SawRST) != 0:
		return PortReuse
	case before&tcp.SawSYN != 0 || e.c.OldLives:
		return HalfOpen
	}
	return PortReuse
}

// cookieLife is how long a handshake may take before a server has forgotten it, ns:
// Linux gives up its SYN-ACKs after a minute, and takes cookies for two.
const cookieLife = 60_000_000_000

func (e *evidence) refused() Cause {
	at := e.j.Where.Addr(e.c, e.side)
	if ttl, known := e.j.ttls[at.Addr()]; known && ttl != e.s.TTL {
		e.frames(e.j.served[at])
		return Middlebox
	}
	if served := e.j.served[at]; served != 0 {
		e.frames(served)
		return Rejected
	}
	return Refused
}

// active looks at resets that a stack sent of its own accord.
func (e *evidence) active() Cause {
	me, peer := e.me, e.peer
	switch {
	case me.Last == 0 && peer.Last == 0:
		return Unclear
	case me.Probes >= 2 || e.probed():
		e.frames(peer.Last, me.Last)
		return KeepAlive
	case e.c.FirstFIN == 1+e.side && peer.LastData > me.FIN:
		e.frames(me.FIN, peer.LastData)
		return ClosedBefore
	case me.Resent >= resentLeast && me.LastTime()-peer.LastTime() > 1e9 && me.LastData > peer.Last:
		e.frames(peer.Last, me.LastData)
		return NoAnswer
	case !e.isClient() && (me.Unread() > 0 || peer.LastData > me.LastData && acks(me, peer) && acks(peer, me)): // to a reply nobody owes an answer
		e.frames(peer.LastData, me.Last)
		return Unread
	case me.Last == 0:
		return Unclear
	}
	if me.LastData == 0 && peer.LastData == 0 {
		e.frames(peer.SYN, me.SYN)
	}
	e.frames(peer.LastData, me.LastData)
	return Aborted
}

// resentLeast is how often data has gone again, unanswered, before its sender gives up.
const resentLeast = 3

// acks says whether the side acknowledged all data that the other sent.
func acks(me, peer *tcp.Half) bool {
	left := int32(peer.NextSeq() - me.Acked)
	return left <= 0 || left == 1 && peer.FIN != 0
}

// probed tells keep-alives in a capture that begins with them. They carry the number before the one that
// comes next, which only the RST shows then.
func (e *evidence) probed() bool {
	me := e.me
	return me.LastData == 0 && e.s.Seq == me.Contiguous()+1 && me.Repeats() > 0 && me.Last > e.peer.Last
}

// What counts as an idle time: more than the pauses within a conversation.
const (
	idleLeast = 200_000_000 // ns
	idleTrips = 5           // round trips
	timeWait  = 60e9        // ns: for how long Linux knows a connection after its own FIN (TIME_WAIT, tcp_fin_timeout)
	waitLeast = 5_000_000   // ns: a client that gives up has waited; one that says goodbye before it closes has not
)

// afterFIN looks at replies from a side that had sent its FIN.
func (e *evidence) afterFIN(out *Reset) Cause {
	c, me, peer := e.c, e.me, e.peer
	unacked := int32(peer.NextSeq() - me.Acked) // data, if it is more than a FIN
	nothing := peer.Last > me.FIN && (unacked <= 0 || unacked == 1 && peer.FIN != 0)
	if c.FirstFIN != 1+e.side && nothing { // who closes last waits for nothing but the ACK of that
		e.frames(peer.FIN, me.FIN, peer.Last)
		return LateACK
	}
	if c.FirstFIN != 1+e.side { // both closed, with data still under way
		e.frames(me.FIN, peer.LastData)
		return ClosedBefore
	}
	first := peer.FIN != 0 || c.Completeness&(tcp.SawSYN|tcp.SawSYNACK) != 0 // else the other side's FIN may have been before the capture
	if nothing && first && peer.LastTime()-c.Start-c.FIN.NS() < timeWait {
		e.frames(me.FIN, peer.FIN, peer.Last)
		return TimeWaitGone
	}
	if e.isClient() && me.LastData != 0 && c.DataAt == me.LastData && peer.LastData > me.FIN && c.Idle.NS() >= max(waitLeast, 2*c.IRTT()) {
		e.frames(me.LastData, me.FIN, peer.LastData)
		return GaveUp
	}
	e.frames(c.DataAt, me.FIN, peer.Last)
	if c.Idle.NS() < max(idleLeast, c.IRTT()*idleTrips) || c.DataAt == 0 && e.isClient() { // which may have waited for an answer
		return ClosedBefore
	}
	out.Timeout = c.Idle.NS()
	out.Race = peer.DataTime.NS()-c.FIN.NS() <= max(c.IRTT(), 1e6) // within a round trip nobody can know of the FIN
	return IdleTimeout
}

// unknownThere looks at replies from a side that had not closed. A reply has the
// number that the segment it answers acknowledged, which need not be the last.
func (e *evidence) unknownThere(out *Reset) Cause {
	me, peer := e.me, e.peer
	if peer.Last == 0 || int32(peer.LastACK()-e.s.Seq) < 0 {
		return Unclear
	}
	if me.Resent >= resentLeast && me.LastData != 0 && int32(me.NextSeq()-peer.LastACK()) > 0 {
		e.frames(me.LastData, peer.Last)
		return NoAnswer
	}
	e.frames(me.Last, peer.Last)
	e.idle(out)
	return StateLost
}

// idle notes for how long nobody had said anything before what the RST answers.
func (e *evidence) idle(out *Reset) {
	if idle := int64(e.c.Gap) * 1e6; idle >= idleLeast {
		out.Idle = idle
	}
}

// Of returns the cause that was found for a connection's first RST; Unclear also
// where it had none.
func Of(c *tcp.Conn) Cause { return Cause(c.Cause & 0x3f) }

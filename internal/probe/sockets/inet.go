package sockets

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/netlink"
)

// Requests of linux/sock_diag.h and linux/inet_diag.h: SOCK_DIAG_BY_FAMILY, and
// TCPDIAG_GETSOCK, which is as old as ss and tells of IPv4 and IPv6 in one walk
// over the kernel's table; the other one would need a walk for each.
const (
	sockDiagByFamily = 20
	tcpDiagGetSock   = 18
)

// readTimeout bounds a dump in a round.
const readTimeout = 2 * time.Second

// TCP states, net/tcp_states.h.
const (
	tcpEstablished = 1
	tcpSynSent     = 2
	tcpSynRecv     = 3
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpTimeWait    = 6
	tcpCloseWait   = 8
	tcpLastAck     = 9
	tcpListen      = 10
	tcpClosing     = 11
)

// Bits of a dump's state mask.
const (
	listening    = 1 << tcpListen
	notListening = 0xfff &^ listening
)

// Attributes of linux/inet_diag.h, and places in INET_DIAG_SKMEMINFO: of the memory that
// holds what has come (SK_MEMINFO_RMEM_ALLOC), of the most that may (SK_MEMINFO_RCVBUF), and of the drops (SK_MEMINFO_DROPS, Linux 4.9).
const (
	inetDiagInfo      = 2
	inetDiagCong      = 4
	inetDiagSKMemInfo = 7
	skMemInfoReceived = 0
	skMemInfoBuffer   = 1
	skMemInfoDrops    = 8
)

// Places in struct tcp_info, linux/tcp.h, and its length up to infoBufferAt's (Linux 4.10); what was marked is told since 4.18, the peer's window is told since 5.4,
// our own since 6.2. The largest that ours may be at present (rcv_ssthresh) is older.
const (
	infoMSSAt       = 16
	infoUnackedAt   = 24
	infoThresholdAt = 64
	infoRTTAt       = 68
	infoCwndAt      = 80
	infoResentAt    = 100
	infoAckedAt     = 120
	infoReceivedAt  = 128
	infoUnsentAt    = 144
	infoMinRTTAt    = 148
	infoDataInAt    = 152
	infoDataOutAt   = 156
	infoBusyAt      = 168
	infoReceiverAt  = 176
	infoBufferAt    = 184
	infoMarkedAt    = 196
	infoLen         = 192

	infoPeerWindowAt = 228
	infoOwnWindowAt  = 232
)

// The timers of inet_diag_msg that say what a connection waits for: to send again
// what nobody acknowledged, or to ask whether the peer's window is open again.
const (
	timerRetransmit = 1
	timerProbe      = 4
)

// Lengths of struct inet_diag_req, whose states stand at statesAt, and of struct
// inet_diag_msg.
const (
	inetReqLen = 60
	statesAt   = 52
	inetMsgLen = 72
)

// endpoint is an address and a port; IPv4 stands in its v4-mapped form, so
// that a connection has one name whatever the family of its socket.
type endpoint struct {
	addr [16]byte
	port uint16
}

// inetSock is one TCP socket of a sock_diag dump.
type inetSock struct {
	state    uint8
	src, dst endpoint
	// queue and limit are the accept queue's length and bound (sk_ack_backlog,
	// sk_max_ack_backlog) of a listener. Of a connection they are the bytes that
	// its process has not read, and those sent that the peer has not acknowledged.
	queue, limit uint32
	// inode is 0 when no process holds the socket: not accepted yet, TIME_WAIT, orphaned.
	inode  uint32
	cookie uint64
	// drops are the packets the socket refused since it was made; it wraps.
	drops    uint32
	hasDrops bool
	// holds are the bytes of memory with what has come and was not read, out of its order or not.
	holds uint32
	// buffer is how many such bytes there may be (sk_rcvbuf).
	buffer uint32
	// timer is the timer that runs, and retries how often in a row it has gone off.
	timer, retries uint8
	// byLoss says that congestion control makes the window smaller for losses and marks alone, and has no word against the kernel's beginning anew after a pause.
	byLoss  bool
	info    tcpInfo
	hasInfo bool
}

// tcpInfo is what a connection tells of its sending side, and a little of its receiving one.
type tcpInfo struct {
	mss uint32 // bytes in a full-sized segment
	rtt uint32 // the smoothed round trip, in µs
	// shortest is the shortest round trip of the last minutes, in µs (net.ipv4.tcp_min_rtt_wlen);
	// noRTT before there was one.
	shortest uint32
	// unacked and window are the segments under way and how many may be (the congestion window).
	unacked, window uint32
	unsent          uint32 // bytes that were written and have not left
	resent          uint32 // segments that were sent again since it was opened
	marked          uint32 // segments that met a congestion mark (ECN), where the kernel tells it
	dataOut         uint32 // segments with data that were sent, these included
	dataIn          uint32 // segments with data that came
	// peerWindow is how many bytes the peer takes, where the kernel tells it.
	peerWindow    uint32
	hasPeerWindow bool
	// ownWindow is how many bytes the peer was told that it may send; before Linux 6.2 the most that it is told at present.
	ownWindow uint32
	// acked is how many bytes the peer has acknowledged, received how many came from it.
	acked, received uint64
	// held is how long it has had bytes to send, by what held them.
	held heldFor
}

// gap says whether segments have come that nobody can read, since one before them is missing. What
// closes a connection is held as well, and is not to be read, so only of an established one.
func (s *inetSock) gap() bool { return s.state == tcpEstablished && s.queue == 0 && s.holds > 0 }

// tcpRequest asks for all TCP sockets in the states of the mask, with attributes.
func tcpRequest(states uint32, attributes ...int) []byte {
	b := make([]byte, inetReqLen)
	for _, a := range attributes {
		b[3] |= 1 << (a - 1)
	}
	binary.NativeEndian.PutUint32(b[statesAt:], states)
	return b
}

// parseInet reads one struct inet_diag_msg and what follows it into s.
func parseInet(b []byte, s *inetSock) error {
	if len(b) < inetMsgLen {
		return fmt.Errorf("inet_diag message: %d bytes, want %d or more", len(b), inetMsgLen)
	}
	family := b[0]
	if family != unix.AF_INET && family != unix.AF_INET6 {
		return fmt.Errorf("inet_diag message: address family %d, want IPv4 or IPv6", family)
	}
	s.state, s.timer, s.retries = b[1], b[2], b[3]
	s.src.port = binary.BigEndian.Uint16(b[4:])
	s.dst.port = binary.BigEndian.Uint16(b[6:])
	s.src.addr = address(family, b[8:24])
	s.dst.addr = address(family, b[24:40])
	s.cookie = binary.NativeEndian.Uint64(b[44:])
	s.queue = binary.NativeEndian.Uint32(b[56:])
	s.limit = binary.NativeEndian.Uint32(b[60:])
	s.inode = binary.NativeEndian.Uint32(b[68:])
	s.drops, s.hasDrops, s.holds, s.buffer, s.hasInfo, s.byLoss = 0, false, 0, 0, false, false
	for rest := b[inetMsgLen:]; ; {
		typ, value, next, ok := netlink.NextAttr(rest)
		if !ok {
			return nil
		}
		if typ == inetDiagSKMemInfo && len(value) >= 4*(skMemInfoBuffer+1) {
			s.holds = binary.NativeEndian.Uint32(value[4*skMemInfoReceived:])
			s.buffer = binary.NativeEndian.Uint32(value[4*skMemInfoBuffer:])
		}
		if typ == inetDiagSKMemInfo && len(value) >= 4*(skMemInfoDrops+1) {
			s.drops = binary.NativeEndian.Uint32(value[4*skMemInfoDrops:])
			s.hasDrops = true
		}
		if typ == inetDiagCong {
			name := unix.ByteSliceToString(value)
			s.byLoss = name == "cubic" || name == "reno"
		}
		if typ == inetDiagInfo && len(value) >= infoLen {
			s.info.read(value)
			s.hasInfo = true
		}
		rest = next
	}
}

// read takes what is wanted of a struct tcp_info.
func (t *tcpInfo) read(b []byte) {
	t.mss = binary.NativeEndian.Uint32(b[infoMSSAt:])
	t.rtt = binary.NativeEndian.Uint32(b[infoRTTAt:])
	t.shortest = binary.NativeEndian.Uint32(b[infoMinRTTAt:])
	t.resent = binary.NativeEndian.Uint32(b[infoResentAt:])
	t.dataOut = binary.NativeEndian.Uint32(b[infoDataOutAt:])
	t.dataIn = binary.NativeEndian.Uint32(b[infoDataInAt:])
	t.unacked = binary.NativeEndian.Uint32(b[infoUnackedAt:])
	t.window = binary.NativeEndian.Uint32(b[infoCwndAt:])
	t.unsent = binary.NativeEndian.Uint32(b[infoUnsentAt:])
	t.marked = 0
	if len(b) >= infoMarkedAt+4 {
		t.marked = binary.NativeEndian.Uint32(b[infoMarkedAt:])
	}
	if t.hasPeerWindow = len(b) >= infoPeerWindowAt+4; t.hasPeerWindow {
		t.peerWindow = binary.NativeEndian.Uint32(b[infoPeerWindowAt:])
	}
	t.ownWindow = binary.NativeEndian.Uint32(b[infoThresholdAt:])
	if len(b) >= infoOwnWindowAt+4 {
		t.ownWindow = binary.NativeEndian.Uint32(b[infoOwnWindowAt:])
	}
	t.acked = binary.NativeEndian.Uint64(b[infoAckedAt:])
	t.received = binary.NativeEndian.Uint64(b[infoReceivedAt:])
	busy := binary.NativeEndian.Uint64(b[infoBusyAt:])
	t.held[byReceiver] = binary.NativeEndian.Uint64(b[infoReceiverAt:])
	t.held[byBuffer] = binary.NativeEndian.Uint64(b[infoBufferAt:])
	t.held[byWay] = busy - min(busy, t.held[byReceiver]+t.held[byBuffer])
}

// heldBack says whether less than a segment waits for no other reason than that an earlier one is
// not acknowledged: Nagle's algorithm (tcp_nagle_check), or TCP_CORK.
func (t *tcpInfo) heldBack() bool {
	return t.unsent > 0 && t.unsent < t.mss && t.unacked > 0 && t.unacked < t.window
}

// initialWindow is with how many segments a connection may begin (RFC 6928).
const initialWindow = 10

// noRTT is the shortest round trip where there was none yet.
const noRTT = ^uint32(0)

// windowSmall says whether more was written than the congestion window lets leave, which is
// smaller than the one that a connection begins with, although nothing was ever lost:
// somebody told it to be.
func (t *tcpInfo) windowSmall() bool {
	return t.unsent > 0 && t.unacked >= t.window && t.window < initialWindow && t.resent == 0
}

const (
	// initialBytes is with how many bytes a connection may begin where a segment is a usual one (RFC 6928).
	initialBytes = 14600
	// smallSegment is a full segment of an end that was told nothing (RFC 9293, section 3.7.1); each link that people have carries more.
	smallSegment = 536
)

// segmentsSmall says whether a segment or more waits to leave, and fewer bytes are under way than a connection
// may begin with, since its segments are so small: the peer would take more.
// (The window itself need not be full: BBR paces what it lets leave.)
func (t *tcpInfo) segmentsSmall() bool {
	under := t.unacked * t.mss
	return t.unsent >= t.mss && under > 0 && t.mss <= smallSegment && under < initialBytes && under+t.mss <= t.peerWindow && t.resent == 0
}

// windowFilled says whether so many bytes as came in that time are nearly as many as the receive window lets come, one window in
// a round trip, and nothing waits to be read. A window that can grow is kept at twice what comes in a round trip
// (tcp_rcv_space_adjust), so one of which more than half is used cannot; a quarter is left for round trips that took longer than the shortest.
func (s *inetSock) windowFilled(came uint64, took time.Duration) bool {
	if s.queue > 0 || s.info.shortest == noRTT || took < shortLook {
		return false
	}
	trips := took.Seconds() * 1e6 / float64(max(s.info.shortest, 1))
	return trips >= 1 && float64(came) >= 0.75*float64(s.info.ownWindow)*trips && s.info.ownWindow > 0
}

func address(family uint8, b []byte) (a [16]byte) {
	if family == unix.AF_INET6 {
		copy(a[:], b)
		return a
	}
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], b[:4])
	return a
}

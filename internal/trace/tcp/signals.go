package tcp

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	atState         = "tcp_state"
	atRetransmit    = "tcp_again"
	atRetransmitSYN = "tcp_again_synack"
	atResetSent     = "tcp_reset_sent"
	atResetReceived = "tcp_reset_recvd"
)

const (
	fromState = "BPF on the tracepoint inet_sock_set_state"
	theEnd    = " role is server, with the port of the listener, or client, with dst, where it connects to."
)

var where = []string{"role", "port", "dst"}

var (
	retransmits = &model.Signal{
		Name: "plimsoll_tcp_retransmits_total", Kind: model.Counter, Unit: "segments", StartsAtZero: true,
		Help:   "Segments that were sent again; kind is syn, synack or data." + theEnd,
		Labels: append(where[:3:3], "kind"), Source: "BPF on the tracepoints tcp_retransmit_skb and tcp_retransmit_synack", ByHand: "tcpretrans-bpfcc; nstat -az TcpRetransSegs",
	}
	resetsSent = &model.Signal{
		Name: "plimsoll_tcp_resets_sent_total", Kind: model.Counter, Unit: "segments", StartsAtZero: true,
		Help:   "Resets that the kernel sent, with its own reason; the reason is empty before Linux 6.10, which does not tell it." + theEnd,
		Labels: append(where[:3:3], "reason"), Source: "BPF on the tracepoint tcp_send_reset", ByHand: "perf trace -a -e tcp:tcp_send_reset; nstat -az TcpOutRsts",
	}
	resetsReceived = &model.Signal{
		Name: "plimsoll_tcp_resets_received_total", Kind: model.Counter, Unit: "segments", StartsAtZero: true,
		Help:   "Resets that a socket accepted, by the state in which they found it: in SYN_SENT the connection was refused." + theEnd,
		Labels: append(where[:3:3], "state"), Source: "BPF on the tracepoint tcp_receive_reset", ByHand: "perf trace -a -e tcp:tcp_receive_reset",
	}
	connectSum = &model.Signal{
		Name: "plimsoll_tcp_connect_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long connects that succeeded took, from the call of connect() until the handshake was complete.",
		Labels: []string{"groupname", "dst"}, Source: fromState, ByHand: "tcpconnlat-bpfcc",
	}
	connectCount = &model.Signal{
		Name: "plimsoll_tcp_connect_seconds_count", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connects that succeeded.",
		Labels: []string{"groupname", "dst"}, Source: fromState, ByHand: "tcpconnlat-bpfcc",
	}
	connectBucket = &model.Signal{
		Name: "plimsoll_tcp_connect_seconds_bucket", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connects that took less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "dst", "le"}, Source: fromState, ByHand: "tcpconnlat-bpfcc",
	}
	setupSum = &model.Signal{
		Name: "plimsoll_tcp_connect_setup_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long connect() worked before its SYN went out, or until it found no port: mostly the search for a free local port.",
		Labels: []string{"groupname", "dst"}, Source: fromState + ", and the time that the socket notes when it sends", ByHand: "perf trace -e connect (of blocking sockets, with the handshake)",
	}
	setupCount = &model.Signal{
		Name: "plimsoll_tcp_connect_setup_seconds_count", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connects whose own work before the SYN is known: all but those whose SYN was sent again.",
		Labels: []string{"groupname", "dst"}, Source: fromState + ", and the time that the socket notes when it sends", ByHand: "perf trace -e connect (of blocking sockets, with the handshake)",
	}
	setupBucket = &model.Signal{
		Name: "plimsoll_tcp_connect_setup_seconds_bucket", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connects that worked for less than le seconds before the SYN; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "dst", "le"}, Source: fromState + ", and the time that the socket notes when it sends", ByHand: "perf trace -e connect (of blocking sockets, with the handshake)",
	}
	connectFailures = &model.Signal{
		Name: "plimsoll_tcp_connect_failures_total", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connects that failed: error is the kernel's (ECONNREFUSED, ETIMEDOUT …), EADDRNOTAVAIL where no SYN went out for want of a local port, given_up where the process closed the socket before an answer came.",
		Labels: []string{"groupname", "dst", "error"}, Source: fromState, ByHand: "perf trace -a -e connect --failure",
	}
	arrivals = &model.Signal{
		Name: "plimsoll_tcp_accept_queue_arrivals_total", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connections whose handshake was completed by a client, and which then waited to be accepted, by the listener's port.",
		Labels: []string{"port"}, Source: fromState, ByHand: "tcpaccept-bpfcc",
	}
	ahead = &model.Signal{
		Name: "plimsoll_tcp_accept_queue_ahead_sum", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connections that those arrivals found waiting ahead of them; divided by the arrivals it is the mean queue as an arriving connection sees it.",
		Labels: []string{"port"}, Source: fromState, ByHand: "ss -ltn (Recv-Q, several times)",
	}
	changes = &model.Signal{
		Name: "plimsoll_tcp_state_changes_total", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Changes of state. From ESTABLISHED to FIN_WAIT1 this side closes first, to CLOSE_WAIT the other. Steps that follow by themselves are left out: to SYN_SENT, to SYN_RECV, to FIN_WAIT2, and the plain last one to CLOSE." + theEnd,
		Labels: append(where[:3:3], "from", "to"), Source: fromState, ByHand: "tcpstates-bpfcc",
	}
	lost = trace.LostSignal("tcp", "events", "Events of the tcp tracer that found no room: more endpoints, destinations or failures than it can hold.")
)

var signals = []*model.Signal{retransmits, resetsSent, resetsReceived, connectSum, connectCount, connectBucket,
	setupSum, setupCount, setupBucket, connectFailures, arrivals, ahead, changes, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	retransmits:     {atRetransmit, atRetransmitSYN},
	resetsSent:      {atResetSent},
	resetsReceived:  {atResetReceived},
	connectSum:      {atState},
	connectCount:    {atState},
	connectBucket:   {atState},
	setupSum:        {atState},
	setupCount:      {atState},
	setupBucket:     {atState},
	connectFailures: {atState},
	arrivals:        {atState},
	ahead:           {atState},
	changes:         {atState},
	lost:            nil,
}

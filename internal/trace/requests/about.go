package requests

import (
	"slices"

	"plimsoll/internal/trace"
)

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "requests",
		Short:       "requests as services get them, told by turns",
		About:       "requests as services get them and as they ask them of others: how many, how long each lay unread, was in hand and was on its way back",
		Long:        long,
		Level:       trace.Light,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: append(slices.Clone(turnPoints), "inet_sock_set_state", "hrtimer_expire_entry"),
		Functions:   functions,
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 30, Replies: "0.974 (0.962–0.979)", CPU: "1.028 (1.024–1.034)"},
		Blind:       blind,
		ByHand:      "bpftrace on sock:sk_data_ready, sock:sock_recv_length, sock:sock_send_length (before Linux 6.3 kfunc:sock_def_readable, kretfunc:inet_recvmsg, kretfunc:inet_sendmsg); the service's own log; ss -ti",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Watches requests as services get them, and what they ask of others, whatever the
protocol: who takes turns at asking and answering is known by when its sockets
get bytes, are read and written. No content is looked at. "unread" is from a
request's first byte to the first read; "in hand" from the read of its last bytes
to the first byte of the reply; "last byte", until the last of it, is known when
the next request comes, or the connection ends. At a client, "waits" is from the
last byte of what it asks to the first of the reply. What is sent together and
answered together (pipelining) counts once. Where a listener gets more than some
1,000 a second, a part of them is followed, and the numbers are estimates. Times
are counted in four slots for each doubling: 99 % < 4 ms means that it lies
between 3.5 and 4.`

const cost = "some 0.3 µs of BPF run time at each of the three events of a request that is followed, under 0.1 µs where it is passed over; " +
	"at each place some 1,000 a second are followed (Linux 6.18, 2 CPUs, a shared machine); in a run, where it watches in bursts when it is called " +
	"very often, 0.4 % of a saturated nginx's replies (0.1 to 0.7, 46 pairs)"

var blind = []string{
	"before Linux 6.3, which has no tracepoints for it, it is on functions of the kernel instead, where that allows it (amd64; lockdown and security modules may not): then a read that waited when the tracer was started is not seen, and the first request of each such connection is in hand from its arrival",
	"a request is a turn: several that are sent together and answered together (pipelined, or streams of HTTP/2 that begin at once) count as one",
	"who asks on before all of the reply is acknowledged, or before the server has written it, takes no turns: such a connection is counted as overlapped and left alone from then on; HTTP/2 or a WebSocket with so little to do that it looks like turns is counted as such",
	"a long poll cannot be told from a slow reply: it is in hand for as long as it is held",
	"an upload that asks first (100 Continue), and a reply before the request was wholly read, make two turns of one request",
	"handshakes of TLS are told by how the server reads (a peek of one byte, or the 5 bytes of a record's header); where it reads otherwise, as Go does, and at the side that asks, a new connection counts one or two turns more",
	"a request that is answered by a process that splices or maps what it reads is in hand from its arrival: no read is seen",
	"the time until a reply is acknowledged includes what the client's kernel puts an ACK off for (40 ms); what the next request acknowledges is counted apart",
	"no tracepoint tells when a Unix socket is closed: requests that end so fail unseen at the server's side, and how long their replies took to the last byte is in no bucket",
	"an event loop's upstream requests are known by process and destination, not by the request that they serve",
	"what a request waits for inside its process is known where the thread that read it works on it; where that hands it to another, or many requests share few threads, it is not, and what the reading thread does is told",
	"a timer that is a descriptor (timerfd), a signal or io_uring's is not seen, nor one whose thread hands the work to another; a reply whose thread slept between, as in a lock or a write to a disk, does not follow from its timer either",
	"what is answered by chance when another timer of the thread has just ended counts as following from that; where turns are drawn, one that follows from an answer counts only if that was followed, too",
	"who asks for others is not told, and why is, for a minute after not all requests were followed that came to who asks (more than some 1,000 a second, bursts, no room); a thread whose request began before the tracer, or came over a connection without turns, counts as one that asks for others",
	"where the kernel lets no program look at all sockets of a map, those under way are looked for in the open files of all processes: what only io_uring has open, or an MPTCP connection, is not among them, nor anything in a PID namespace of our own; of a million files it is done every few minutes",
	"turns that were begun when the tracer started are left out, and at most 65,536 sockets are remembered at once",
	"where turns are drawn, those of Unix sockets that live for one request are estimated too low, by some percent: a socket's memory is used again, and with it what was noted of the last",
	"where turns of a Unix socket are drawn, one that comes before the tracepoint of the last write is reached may miss its draw, which scarce CPUs make frequent; over TCP sequence numbers tell them apart",
	"over a Unix socket, the first request of a connection that was read and answered before the tracepoint of its arrival was reached is begun and not answered",
	"where its programs are called more than 20,000 times a second on a CPU, a run has it begin nothing new but for 0.1 s or more of every two seconds (run.json says for which share): all is estimated then, and requests that take longer than a tenth of a second are seen as under way alone",
	"over a Unix socket, one request in some 100,000 is missed: both ends of the socket are at work on two CPUs in one moment (one of 9,000 in one of 13 runs)",
	"over TLS, a client that closes without having read the farewell resets the connection, which counts as cut although it had the whole reply",
	"a thread that reads the next request before the tracepoint of the other's write is reached makes one turn of two (Unix sockets)",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

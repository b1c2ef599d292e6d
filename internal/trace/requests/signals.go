package requests

import (
	"slices"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// The programs.
const (
	atCame      = "requests_came"
	atRead      = "requests_read"
	atWritten   = "requests_written"
	atState     = "requests_state"
	atOpen      = "requests_open"
	atListeners = "requests_listeners"
	atTimer     = "requests_timer"
	// atWakeup is run once; without it, timers are told by less.
	atWakeup = "requests_wakeup"
)

// inFunctions are the programs that do instead of the first three; those on what this kernel
// has not got are left out (way). All of the others are needed: without one, what comes is
// seen all the same, and lies there as unread for ever.
var inFunctions = []string{"in_sock_def_readable",
	"in_inet_recvmsg", "in_inet_sendmsg", "in_inet_sendpage", "in_inet6_recvmsg", "in_inet6_sendmsg",
	"in_unix_stream_recvmsg", "in_unix_stream_sendmsg", "in_unix_stream_sendpage",
	"in_unix_seqpacket_recvmsg", "in_unix_seqpacket_sendmsg"}

const (
	source = "BPF on the tracepoints sk_data_ready, sock_recv_length, sock_send_length, or the kernel's functions in which they stand"
	states = "BPF on the tracepoint inet_sock_set_state"
	walk   = "a BPF iterator over the sockets that are followed"
	timers = source + "; hrtimer_expire_entry"
	byHand = "bpftrace on sock:sk_data_ready, sock:sock_recv_length, sock:sock_send_length"
	// fromTimer says what a timer is here.
	fromTimer = "A reply follows from a timer if its thread has not slept since one ended that it had set for its own sleep (in epoll_wait, poll, nanosleep, futex …), or has just read the answer to what was asked so. Then is what was done when the timer had ended: replied, or asked if others were asked first."
	slots     = " The bounds are four for each doubling, from 1 µs to 67 s."
)

// times are a sum, a count and buckets of durations.
type times struct{ sum, count, bucket *model.Signal }

func durations(name, unit, what string, labels ...string) times {
	name = "plimsoll_requests_" + name
	return times{
		&model.Signal{Name: name + "_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
			Help: what + " Added up.", Labels: labels, Source: source, ByHand: byHand},
		&model.Signal{Name: name + "_count", Kind: model.Counter, Unit: unit, StartsAtZero: true,
			Help: what + " How many.", Labels: labels, Source: source, ByHand: byHand},
		&model.Signal{Name: name + "_bucket", Kind: model.Counter, Unit: unit, StartsAtZero: true,
			Help: what + " How many took less than le seconds." + slots, Labels: append(labels[:len(labels):len(labels)], "le"), Source: source, ByHand: byHand},
	}
}

func counter(name, unit, help, source string, labels ...string) *model.Signal {
	return &model.Signal{Name: "plimsoll_requests_" + name, Kind: model.Counter, Unit: unit, StartsAtZero: true,
		Help: help, Labels: labels, Source: source, ByHand: byHand}
}

func gauge(name, unit, help string, labels ...string) *model.Signal {
	return &model.Signal{Name: "plimsoll_requests_" + name, Kind: model.Gauge, Unit: unit,
		Help: help, Labels: labels, Source: walk, ByHand: byHand}
}

// side is what is told of one side of connections: listeners, or what is connected to.
type side struct {
	begun, followed   *model.Signal
	unread, inHand    times
	served            times
	reply             *model.Signal
	failed, excluded  *model.Signal
	waiting, underWay *model.Signal
}

const (
	hows = "how is closed (this end closed), left (the other end closed first), left_early (likewise, of a listener's client less than a tenth of a second after it had asked), reset (by the other end), aborted (reset by this end), timed_out, or cut (reset when the reply had begun, by who had not closed it before)."
	whys = "why is overlapped (connections that asked on before the reply was there, as with pipelining or HTTP/2; they are left alone from then on), one_way (turns that went on sending for a second without an answer), streamed (replies that paused for a second), tls (its handshakes and alerts), or farewell (bytes whose sender closed at once, and waited for no answer)."
)

var server = side{
	begun: counter("begun_total", "requests", "Requests of which the first bytes came to a listener's connections, read or not.", source, "listen"),
	followed: counter("followed_total", "requests",
		"Of these, those that were followed themselves. Where they are fewer, the others' numbers are estimates from them.", source, "listen"),
	unread:   durations("unread_seconds", "requests", "How long requests lay unread, from their first byte to the first read.", "listen", "groupname"),
	inHand:   durations("in_hand_seconds", "requests", "How long requests were in hand, from the read of their last bytes to the first byte of the reply.", "listen", "groupname"),
	served:   durations("served_seconds", "requests", "How long requests were in hand until the last byte of the reply was written, of those known to be over: since the next came, or the connection ended.", "listen", "groupname"),
	reply:    counter("reply_seconds_sum", "seconds", "How long replies were being written, from the first byte to the last so far; pauses of a second and more are left out.", source, "listen", "groupname"),
	failed:   counter("failed_total", "requests", "Requests that got no reply, or not all of it: "+hows, states, "listen", "groupname", "how"),
	excluded: counter("excluded_total", "events", "What is no turn of one request and its reply: "+whys, source, "listen", "groupname", "why"),
	waiting:  gauge("in_hand", "requests", "Requests that were read and not answered.", "listen", "groupname"),
	underWay: gauge("under_way_seconds", "seconds",
		"How long ago the first bytes came of the requests that are not answered, added up.", "listen"),
}

var upstream = side{
	begun: counter("upstream_begun_total", "requests", "Requests that processes wrote to connections of theirs.", source, "dst"),
	followed: counter("upstream_followed_total", "requests",
		"Of these, those that were followed themselves. Where they are fewer, the others' numbers are estimates from them.", source, "dst"),
	unread:   durations("upstream_unread_seconds", "requests", "How long replies of upstreams lay unread, from their first byte to the first read.", "groupname", "dst"),
	inHand:   durations("upstream_wait_seconds", "requests", "How long processes waited for an upstream, from the last byte of a request to the first of the reply.", "groupname", "dst"),
	served:   durations("upstream_served_seconds", "requests", "The same until the last byte of the reply, of those known to be over: since the next was asked, or the connection ended.", "groupname", "dst"),
	reply:    counter("upstream_reply_seconds_sum", "seconds", "How long replies of upstreams were coming, from the first byte to the last that was read.", source, "groupname", "dst"),
	failed:   counter("upstream_failed_total", "requests", "Requests to upstreams that got no reply: "+hows, states, "groupname", "dst", "how"),
	excluded: counter("upstream_excluded_total", "events", "What is no turn of one request and its reply: "+whys, source, "groupname", "dst", "why"),
	waiting:  gauge("upstream_waiting", "requests", "Requests to upstreams that have no reply yet: so many threads or events of the process wait for it.", "groupname", "dst"),
	underWay: gauge("upstream_under_way_seconds", "seconds", "How long ago these were begun, added up.", "dst"),
}

var (
	unreadNow = gauge("unread", "requests", "Requests that nobody has read yet, of all that are under way.", "listen")
	holders   = &model.Signal{Name: "plimsoll_requests_holder_threads", Kind: model.Gauge, Unit: "threads",
		Help:   "Threads that had read a request and not answered it, by what they did when they were looked at: running (or ready to), or what they waited for, as in plimsoll_wait_blocked_seconds_total. Of an event loop's many requests, and of those that another thread works on than read them, it tells what the thread does that read. Where a part of the turns is followed, estimates.",
		Labels: []string{"listen", "groupname", "doing"}, Source: walk + "; /proc/TID/syscall of at most 128 of their threads", ByHand: "cat /proc/PID/task/*/syscall; ss -tnp"}
	asking = &model.Signal{Name: "plimsoll_requests_asking_threads", Kind: model.Gauge, Unit: "threads",
		Help:   "Threads that had written a request to an upstream which has no reply yet: - those that have a request in hand themselves, or had one at one of the last 32 looks, the rest by their names without the numbers at the end, so that those of a pool are one. Those of a destination that has no room for more names are other. Of who gets requests that are not all followed it is not told.",
		Labels: []string{"groupname", "dst", "thread"}, Source: walk + "; /proc/TID/comm of at most 128 of their threads", ByHand: "ss -tnp; cat /proc/PID/task/*/comm"}
	receivingSum = counter("receiving_seconds_sum", "seconds",
		"How long requests in several pieces were being received, from the first read to the read of the last: the sender's and the network's time. It lies between the time unread and the time in hand.", source, "listen", "groupname")
	receivingCount = counter("receiving_seconds_count", "requests", "Requests that were read in several pieces, as they came.", source, "listen", "groupname")
	timerSum       = counter("timer_seconds_sum", "seconds", "How long requests stood until a timer ended from which the reply follows: from the read of their last bytes, or where the process read them no sooner, from their first byte. "+fromTimer, timers, "listen", "groupname", "then")
	timerCount     = counter("timer_seconds_count", "requests", "Requests that were answered so. "+fromTimer, timers, "listen", "groupname", "then")
	acked          = durations("acknowledged_seconds", "replies",
		"How long replies were on their way: from their last byte until it was acknowledged, where that came before the next request.", "listen", "groupname")
	withNext    = counter("acknowledged_with_next_total", "replies", "Replies that the next request acknowledged: when they were there is not known.", source, "listen", "groupname")
	withoutByte = counter("connections_without_reply_total", "connections",
		"Connections that ended before the listener's process had written a byte: asked is yes if the client had sent something, left_early if it closed less than a tenth of a second after that, and of those on which it had sent nothing left if it was the client that closed, else no.", states, "listen", "asked")
	failedAfter = counter("failed_seconds_total", "seconds",
		"How long ago requests that got no reply, or not all of it, had begun when they ended so, added up. how as in plimsoll_requests_failed_total.", states, "listen", "groupname", "how")
	peerAnswered = counter("peer_answered_total", "requests", "Requests that were answered, by who asked.", source, "listen", "peer")
	peerSeconds  = counter("peer_seconds_total", "seconds", "How long these lay unread and were in hand until the first byte of the reply.", source, "listen", "peer")
	lost         = trace.LostSignal("requests", "events", "What the requests tracer had no room for: places, peers, or requests on more sockets than it can hold; threads, at each walk over the sockets; and what it passed over by mistake while only some turns are followed.")
)

// needs says which programs a signal rests on.
var needs = func() map[*model.Signal][]string {
	turns := append([]string{atCame, atRead, atWritten}, inFunctions...)
	walked := append(slices.Clone(turns), atOpen)
	needs := map[*model.Signal][]string{withoutByte: {atState}, lost: nil, unreadNow: walked, holders: walked, asking: walked}
	put := func(programs []string, signals ...*model.Signal) {
		for _, s := range signals {
			needs[s] = programs
		}
	}
	for _, s := range []side{server, upstream} {
		put(turns, s.begun, s.followed, s.reply, s.excluded)
		put(append(slices.Clone(turns), atState), s.failed)
		put(walked, s.waiting, s.underWay)
		for _, t := range []times{s.unread, s.inHand, s.served} {
			put(turns, t.sum, t.count, t.bucket)
		}
	}
	put(turns, receivingSum, receivingCount, acked.sum, acked.count, acked.bucket, withNext, peerAnswered, peerSeconds)
	put(append(slices.Clone(turns), atState, atTimer), timerSum, timerCount)
	needs[failedAfter] = needs[server.failed]
	return needs
}()

var signals = func() []*model.Signal {
	var list []*model.Signal
	of := func(s side, more ...*model.Signal) {
		list = append(list, s.begun, s.followed)
		for _, t := range []times{s.unread, s.inHand, s.served} {
			list = append(list, t.sum, t.count, t.bucket)
		}
		list = append(append(list, s.reply, s.failed, s.excluded, s.waiting, s.underWay), more...)
	}
	of(server, unreadNow, holders, receivingSum, receivingCount, timerSum, timerCount, acked.sum, acked.count, acked.bucket, withNext,
		failedAfter, withoutByte, peerAnswered, peerSeconds)
	of(upstream, asking)
	return append(list, lost)
}()

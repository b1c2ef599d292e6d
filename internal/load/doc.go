// Package load is Plimsoll's load generator: HTTP/1.1 and HTTP/2, plain or over TLS, over an event loop of its
// own, closed loop or open loop, in which every request that begins ends in
// exactly one outcome, and which watches itself.
//
// # Processes and threads
//
// Run is meant for a process of its own (the binary executed again), because
// its threads behave badly towards a Go program around them. Each of
// LoadPlan.Threads goroutines is locked to an OS thread, has an epoll, a buffer
// and histograms of its own, shares nothing while it works, allocates nothing
// for a request, and blocks in raw system calls that the Go scheduler does not
// know of. A stop of the world must interrupt it by a signal, so the caller
// should switch the garbage collector off (debug.SetGCPercent(-1)) and set a
// memory limit (debug.SetMemoryLimit) for long runs: only the collector
// allocates, some tens of kilobytes for each record; a thread does when a duration or an
// outcome comes that it has no room for yet (counts).
//
// The goroutine that calls Run is the collector. Once a second and at each
// change of phase it asks the threads for what they counted; each hands over
// its tally between two turns of its loop and goes on in a second one, so
// neither waits and nothing is copied. Run raises the soft limit of open files
// to the hard one, and GOMAXPROCS while it lasts. The threads are named
// load-0, load-1 …; naming the process is left to the caller.
//
// How many files a process may open is a limit of each table of descriptors. Where all connections do not fit
// into one, each thread has a table of its own (unshare), so that a million connections need one process
// and as many threads as it takes (ThreadsFor). Not over TLS.
//
// Over TLS each handshake is a goroutine's, beside the hot threads, as its signatures take
// longer than many replies; it is given the connection's events, and puts itself into the
// thread's mailbox when it is over. From then on crypto/tls is called by the thread, and
// never waits: it gets what was received, and what it writes is sent. Nothing of it is done
// by the kernel (kTLS). A connection keeps its own session, as a user's browser does, and
// resumes it when it connects again, unless TLSPlan.NeverResume.
//
// Of the files, each uses only what lies beneath it: run; collect; engine (the
// threads together); h2 (requests as streams) and pipelined (several on a connection), and lanes (what these share); chains (a connection for each, by io_uring); stays (connections that stay, by io_uring); loop (what a thread does in a turn); request (what becomes
// of a request on a connection); secure (the same of its TLS); book (what its time is counted under); thread
// (what a thread knows and counts by itself); and what stands for itself.
//
// # The course of a load
//
// calm: one connection, one request after another. ramp: the connections open,
// evenly; in an open loop the rate grows from nothing to its full value. hold:
// the load that was asked for. drain: nothing begins; what is in flight ends,
// by timeout at the latest. With LoadPlan.Requests exactly so many requests
// begin in hold, and hold lasts until the last of them has its outcome (or
// DurationMS, if given, has passed). A phase without length is left out.
//
// Closed loop: a connection sends its next request as soon as it has read the
// reply to the last. While eight requests and more are in flight and fewer than eight replies, or pieces of one, came in a turn, the thread lets replies gather before it
// looks again, for 60 µs at most, and for a twentieth of what the quickest ones take: a server that is the limit pays for each wake-up of ours.
// By so much at most a reply is told later than it came, and the wait is booked as the server's (first_byte), not as lag. After a connect that failed it rests for 100 ms, give or
// take a fifth, and tries again. Each attempt has an outcome, by which its time is
// told; but one that failed was no request, and what people are shown keeps apart
// the attempts, the connections that never stood, and the requests.
//
// Open loop (LoadPlan.Rate > 0): each request has a planned time. Where a thread is to
// send thousands a second, these lie on a grid of 100 to 500 µs: it wakes for each step,
// sends what is due (up to 60 µs early, rather than wait again), and turns to the replies when it wakes next, as long as there are
// connections to spare. When a reply came is told by the kernel's time stamps, in
// open loops on all connections, so that latency has nothing of that in it. It goes to the
// connection that has been free for longest; when none is free it waits, and
// its planned time stays what it was, so that a stall is not omitted. Every
// request planned before the end of hold counts as begun at its planned time;
// one that finds no connection within the timeout ends as queue:timeout, one
// that still waits when the load is cancelled as queue:cancelled.
//
// With LoadPlan.MaxConnections places are held in reserve: when a request is due and none is free, one of them is taken for
// good, before anything waits. Their limit is a thread's part of it.
//
// A request that needs a connection pays for it: its latency contains the
// connect and the TLS handshake, and its timeout (from the moment a connection was given to it, the
// connect included) covers all. A connection that the server closes while it
// is idle costs nobody a request. One that ends instead of a complete reply
// does (read:eof); nothing is ever sent twice.
//
// Over TLS a connection stands when its handshake is done; a handshake that fails was an attempt to
// connect, and rests as one. In TLS 1.3 the server judges our certificate only after that, so an alert before its
// first reply is the handshake's. A reply's first byte is the first that was opened: a record
// can be opened when all of it is there, so with long records it comes later than on
// the wire. Sessions and new keys that a server sends are no bytes of a reply. An end
// without a close_notify alert completes no reply that only an end can complete.
//
// Over HTTP/2 (LoadPlan.HTTP2) a connection carries LoadPlan.Streams places for requests, each of which does
// what a connection does otherwise; there are Connections times Streams of them. A connection is opened for one
// request, which pays for it, and goes out with the first bytes; the others begin when the server's SETTINGS have come, as
// many as these allow. Requests that begin in one turn leave in one call; in a closed loop those of a connection wait for one another
// while its server goes on sending replies, for 0.24 ms at most, and begin when they leave. The thread lets replies gather meanwhile, as above. A request that times out is cancelled, and its
// connection goes on, unless nothing at all was heard on it: then it takes no more requests, as after a GOAWAY, and
// its places connect anew when its last request has ended. What a GOAWAY leaves unanswered ends as
// goaway:CODE; nothing is sent twice. A wrong reply ends its stream, wrong frames the connection, and all that is in flight there
// with the same outcome. Our windows (1 GiB) hold no reply up; a server's hold a body up until the timeout.
//
// With LoadPlan.Engine io_uring and connections that stay (stays), what has come is taken, and what is to be sent is handed over, in one call a turn, or
// in several of ten requests, which begin when it does. The kernel receives by itself, into buffers that connections share, and as
// long as a socket stands. Sockets are slots of the thread's ring besides, as long as there may be so many. From a connection's first long reply on the thread receives what comes there, and is told that something did. All else is as by epoll.
//
// With a connection for each request closing the one before, connecting, sending and receiving are handed to the kernel together, one connection after the other (chains): a request
// is sent as soon as its connection stands, and not when those of others were opened as well. That it went is then mostly told before the end of its connect, and the connect's time ends there. Sockets are slots of the thread's ring. For that the connection is closed by us, and nothing is known of what the
// server said before it was asked, how long connect() took, or how long a reply lay unread. What times out is cancelled, and
// its place goes on when the kernel has told the end of it.
//
// On a connection that stays, with one request of up to 4 KiB on its way at a time, congestion control has nothing to decide: any initial window holds that. So these go by Reno's, which costs least, and
// not by the host's (TCP_CONGESTION): BBR, where that is it, weighs each acknowledgement and paces each send. What the server sends goes by the server's.
//
// With LoadPlan.Pipeline a connection of HTTP/1.1 carries so many requests at once, each in a place of its own as over HTTP/2; what
// begins in one turn leaves in one call, and in a closed loop requests wait for one another as there. Replies are told apart by their order alone, so one that a server sends out of order is taken for
// another's. Where the connection ends, or a reply is wrong, all that is behind it ends with the same outcome. A request that times
// out is given up: the connection takes no more, goes on for those behind it, and the late reply is passed over.
//
// A reply that nobody asked for is none: what comes on an idle connection costs
// the connection and the next request on it, what was there before a request was
// sent costs that request (both protocol:unasked_reply, unless it is an error by
// which the server says why it hangs up). One that comes when the next request is
// already sent cannot be told from its reply; the one too many is noticed later. A 101 (Switching Protocols) where the request has no
// Upgrade header is protocol:unasked_upgrade.
//
// With LoadPlan.Targets, which of them a request asks for is drawn when it begins, by their weights, with numbers that
// each run draws again. A text that has to be in a body is looked for in what is read of it, and nothing is kept.
//
// With LoadPlan.Recorded and a speed, request k of the hold phase is number k of the recording: its time, divided by the speed, and its target.
// Before that requests are drawn.
//
// LoadPlan.Variables are put into the requests before the load: there is one of each for each row. In an open loop request k takes row k modulo
// their number; in a closed one each thread takes every so manyth.
//
// LoadPlan.Stages change the rate of an open loop at moments of the hold phase, at once. Request k is due when the integral
// of the rate is k, so nothing is lost or added at a change; each stage has a grid of its own, or none. What became of
// its requests is counted by the stage in which they were due, and a load without stages pays nothing for that.
//
// Over a Unix socket (LoadPlan.UnixSocket) the kernel neither stamps what comes nor throws away bodies, so there is no grid, and
// bodies are read. Its connect fails with EAGAIN when the listener's queue is full.
//
// LoadPlan.ConnectRate spaces the attempts to connect, each thread's by itself; who wants a connection and may not have one
// yet waits in line, and nothing of it is a request's time in a closed loop. In an open loop requests wait, for want of a connection. Of what
// a thread misses it makes up for 2 ms. LoadPlan.Sources are bound in turn, each attempt to the next, without a port
// (IP_BIND_ADDRESS_NO_PORT): connect chooses one that is free towards the target.
//
// LoadPlan.Arrivals says when requests are due: at constant distances, or at random (Poisson), as many in each phase,
// and stage, as the rate asks for either way. The times of the threads are independent of one another, and follow from the seed.
//
// # Outcomes
//
//	1xx … 5xx              a complete reply of that class (1xx: only a 101 to a request with an Upgrade header)
//	connect:ERRNO          socket or connect failed: connect:ECONNREFUSED, connect:EADDRNOTAVAIL, connect:EMFILE …
//	write:ERRNO, read:ERRNO   write:EPIPE, read:ECONNRESET …
//	connect:timeout, write:timeout, read:timeout   where the request was when its time was up
//	tls:REASON             the handshake failed: certificate_expired, certificate_not_yet_valid, certificate_wrong_host,
//	                       certificate_self_signed, certificate_unknown_authority, certificate_invalid, not_tls,
//	                       protocol_error, no_http2 (ALPN), alert_NAME (the server's, by RFC 8446's names), eof, timeout, ERRNO
//	read:alert_NAME, read:protocol_error, read:no_close_notify   over TLS, after the handshake
//	read:eof               the connection ended before the reply was complete
//	queue:timeout, queue:cancelled   open loop: no connection became free in time
//	expected:4xx, expected:5xx   such a reply, which its target expects (model.Target)
//	check:status, check:body, check:length   a reply below 400 that is not the one that its target expects; its time is a failed request's
//	protocol:FAULT         bad_status_line, bad_header, bad_content_length, bad_chunk, head_too_large, too_many_interim, excess_data, unasked_reply,
//	                       unasked_upgrade;
//	                       HTTP/2: not_http2, bad_frame, bad_frame_size, bad_header_block, bad_status, bad_settings, bad_window, frame_flood
//	goaway:CODE, rst_stream:CODE   HTTP/2: the server said that it will not answer, by RFC 9113's names: rst_stream:REFUSED_STREAM
//
// A name that does not resolve is an error of Run, since then no request can begin.
//
// # Records
//
// A Record is emitted at the start, once a second, at every change of phase
// (exactly one, with phase_ended and phase_started) and at the end (final). As
// JSON, shortened:
//
//	{"t_ms":1700000003000,"phase":"hold","phase_ended":"ramp","phase_started":"hold","target":"192.0.2.1:80",
//	 "phases":[{"phase":"calm","start_ms":…,"end_ms":…,"requests":812,"outcomes":{"2xx":811,"read:timeout":1},
//	   "waits_seconds":{"2xx":0.9,"read:timeout":2.0},
//	   "parts_seconds":{"connect":0.1,"first_byte":2.7,"body":0.05,"reply_lag":0.05, …},
//	   "connect_attempts":812,"connect_calls":{"count":812,"seconds":0.03},"reply_unread":{"count":101,"seconds":0.002},
//	   "response_us":{"count":811,"mean":…,"p50":…,"p90":…,"p99":…,"p999":…,"max":…},"service_us":{…},
//	   "connect_us":{…},"waited_us":{…},"send_delay_us":{…},"unread_us":{…}}, …],
//	 "tls":{"handshakes":[{"phase":"ramp","version":"1.3","cipher":"TLS_AES_128_GCM_SHA256","resumed":false,"count":100}],
//	   "full_us":{…},"resumed_us":{…},"crypto":{"count":101,"seconds":0.0002}},
//	 "causes":{"tls:certificate_expired":"tls: failed to verify certificate: x509: …"},
//	 "intervals":[{"phase":"ramp","kind":"service","start_ms":…,"end_ms":…,"histogram":"HISTFAAAA…"}],
//	 "connections":{"connecting":0,"open":100,"idle":0,"failed":0,"untried":0},
//	 "threads":[{"thread":"0","user_seconds":0.1,"system_seconds":0.9},{"thread":"rest",…}]}
//
// Counters and quantiles are cumulative since their phase began, and a request
// belongs to the phase in which it began; intervals cover the time since the
// record before. Quantiles are microseconds, clamped at 60 s. The final record
// has totals besides; in it the outcomes of each phase add up to its requests,
// and the seconds of the parts to those of the waits.
//
// Where a request's time went (parts_seconds) costs no look at the clock but two
// for each connect: a time is booked when an event is handled, at the clock read
// for that event. What passed between the return of epoll_wait and that moment
// is the generator's own lag; that it let replies gather (closed loop, above) is not in it. It is the least that it may be: that the thread
// itself waited for a CPU does not show in it, and does in reply_unread.
package load

package sockets

import "plimsoll/internal/model"

const (
	fromListeners   = "netlink sock_diag: TCP and Unix listeners"
	fromConnections = "netlink sock_diag: all TCP sockets"
)

var (
	listenQueue = &model.Signal{
		Name: "plimsoll_tcp_listen_queue", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Connections waiting to be accepted: the longest queue seen since the last reading, looked at ten times a second, and four times while nothing waits. Unix stream listeners are here, too (listen=\"unix:PATH\").",
		Source: fromListeners, ByHand: "ss -ltn; ss -lx (Recv-Q)",
	}
	listenQueueMean = &model.Signal{
		Name: "plimsoll_tcp_listen_queue_mean", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Connections waiting to be accepted: the mean of the looks since the last reading, ten a second, and four while nothing waits. A burst that is soon accepted has a long queue and a short mean.",
		Source: fromListeners, ByHand: "ss -ltn; ss -lx (Recv-Q, several times)",
	}
	listenLimit = &model.Signal{
		Name: "plimsoll_tcp_listen_queue_limit", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Connections that may wait to be accepted; the kernel lets one more in. Sockets that share the address are added up.",
		Source: fromListeners, ByHand: "ss -ltn; ss -lx (Send-Q)",
	}
	listenLimitBy = &model.Signal{
		Name: "plimsoll_tcp_listen_queue_limit_by", Kind: model.Gauge, Unit: "none", Labels: []string{"listen", "owner", "by"},
		Help:   "What sets the limit of the accept queue, always 1: by=\"somaxconn\" when it equals net.core.somaxconn, else by=\"backlog\", the application's own.",
		Source: fromListeners + "; net/core/somaxconn", ByHand: "ss -ltn; sysctl net.core.somaxconn",
	}
	listenAbsent = &model.Signal{
		Name: "plimsoll_tcp_listen_absent_ratio", Kind: model.Gauge, Unit: "ratio", Labels: []string{"listen", "owner"},
		Help:   "Share of the looks since the last reading, four to ten a second, in which nobody listened at an address where somebody had before in this run, for two minutes; the kernel refuses who connects then. Unix listeners are not here.",
		Source: fromListeners, ByHand: "ss -ltn (several times a second)",
	}
	listenDrops = &model.Signal{
		Name: "plimsoll_tcp_listen_drops_total", Kind: model.Counter, Unit: "packets", Labels: []string{"listen", "owner"},
		Help:   "Connection attempts (SYN or final ACK) that this listener dropped since Plimsoll began to look, nearly always because its accept queue was full.",
		Source: fromListeners + ", SK_MEMINFO_DROPS", ByHand: "ss -ltnm (dN in skmem: since the socket was made)", StartsAtZero: true,
	}
	listenAccepted = &model.Signal{
		Name: "plimsoll_tcp_listen_accepted", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Established connections of the listener that a process has accepted and not closed.",
		Source: fromConnections + "; Unix stream sockets", ByHand: "ss -tne state established state close-wait (those with ino:)",
	}
	listenSynRecv = &model.Signal{
		Name: "plimsoll_tcp_listen_syn_recv", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Connections of the listener that are half open: their SYN was answered, the final ACK has not come. With SYN cookies the kernel keeps none.",
		Source: fromConnections, ByHand: "ss -tn state syn-recv",
	}
	listenLeft = &model.Signal{
		Name: "plimsoll_tcp_listen_queue_left", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Connections in the accept queue whose client has closed without ever having sent a byte, as one that only tries whether a port is open. Of TCP only.",
		Source: fromConnections, ByHand: "ss -tne state close-wait (those without ino:, Recv-Q 1)",
	}
	listenUnread = &model.Signal{
		Name: "plimsoll_tcp_listen_unread", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener on which bytes lie that its process has not read. Of TCP only.",
		Source: fromConnections, ByHand: "ss -tne state established (Recv-Q)",
	}
	listenGaps = &model.Signal{
		Name: "plimsoll_tcp_listen_gaps", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener on which segments have come that its process cannot read, since one before them is missing, and nothing else is there to read. Of TCP only.",
		Source: fromConnections + ", SK_MEMINFO_RMEM_ALLOC", ByHand: "ss -tnm state established (Recv-Q 0, r above 0 in skmem)",
	}
	listenUnacked = &model.Signal{
		Name: "plimsoll_tcp_listen_unacknowledged", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener with bytes written that the peer has not acknowledged: the reply is on its way, or the peer takes no more. Of TCP only.",
		Source: fromConnections, ByHand: "ss -tne state established (Send-Q)",
	}
	listenShut = &model.Signal{
		Name: "plimsoll_tcp_listen_window_shut", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener that may send nothing, since the peer's receive window is shut: its program does not read what has come. Of TCP only.",
		Source: fromConnections, ByHand: "ss -tno state established (timer:(persist,…))",
	}
	listenRepeated = &model.Signal{
		Name: "plimsoll_tcp_listen_repeated", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener that have sent the same segment again twice or more often, and nobody has acknowledged it yet. Of TCP only.",
		Source: fromConnections, ByHand: "ss -tno state established (timer:(on,…,2) and more)",
	}
	listenRepeatedLarge = &model.Signal{
		Name: "plimsoll_tcp_listen_repeated_large", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Of the repeated ones, those with at least a full-sized segment that is not acknowledged, so that the one which is sent again is such.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tnoi state established (Send-Q, mss:)",
	}
	listenRoundTrip = &model.Signal{
		Name: "plimsoll_tcp_listen_round_trip_seconds", Kind: model.Gauge, Unit: "seconds", Labels: []string{"listen", "owner"},
		Help:   "The round trip of the listener's connections with bytes under way, each one's smoothed by the kernel; the mean.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (rtt:)",
	}
	listenShortestTrip = &model.Signal{
		Name: "plimsoll_tcp_listen_shortest_round_trip_seconds", Kind: model.Gauge, Unit: "seconds", Labels: []string{"listen", "owner"},
		Help:   "The shortest round trip of the last minutes (net.ipv4.tcp_min_rtt_wlen) of the same connections; the mean. What theirs takes beyond it, their packets wait in queues.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (minrtt:)",
	}
	listenHeldBack = &model.Signal{
		Name: "plimsoll_tcp_listen_held_back", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener on which less than a segment has been written and may not leave before an earlier one is acknowledged, although the peer and congestion control would let it: Nagle's algorithm, or TCP_CORK.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (notsent: below mss:, unacked: below cwnd:)",
	}
	listenWindowSmall = &model.Signal{
		Name: "plimsoll_tcp_listen_window_small", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener on which more was written than may leave: their congestion window is full, and smaller than the ten segments that a connection may begin with (RFC 6928), although none of their segments was ever sent again.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (cwnd:, notsent:, no retrans:)",
	}
	listenRestarted = &model.Signal{
		Name: "plimsoll_tcp_listen_window_restarted", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener that have more to send than their congestion window lets leave, which is half of what it was in a pause before, or less, though nothing was lost or marked since, and a round trip takes less than twice the shortest (else the way is full): after a pause the kernel had them begin slowly again. Of cubic and reno only, which obey that.",
		Source: fromConnections + ", tcp_info, the name of the congestion control", ByHand: "ss -tni state established, in a pause and after it (cwnd, unacked, notsent)",
	}
	destinationRestarted = &model.Signal{
		Name: "plimsoll_tcp_destination_window_restarted", Kind: model.Gauge, Unit: "sockets", Labels: []string{"dst"},
		Help:   "Connections that were opened to a destination and have more to send than their congestion window lets leave, which is half of what it was in a pause before, or less, though nothing was lost or marked since, and a round trip takes less than twice the shortest (else the way is full): after a pause the kernel had them begin slowly again. Of cubic and reno only, which obey that.",
		Source: fromConnections + ", tcp_info, the name of the congestion control", ByHand: "ss -tni state established dst ADDR:PORT, in a pause and after it (cwnd, unacked, notsent)",
	}
	listenSegmentsSmall = &model.Signal{
		Name: "plimsoll_tcp_listen_segments_small", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener on which a segment or more waits to leave, and fewer bytes are under way than the 14,600 with which a connection may begin (RFC 6928), though the peer would take more: a full segment of theirs has at most 536 bytes, as where no end says what it takes (RFC 9293). None of their segments was ever sent again.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (mss:, unacked:, notsent:, snd_wnd:, no retrans:)",
	}
	listenFilled = &model.Signal{
		Name: "plimsoll_tcp_listen_receive_window_filled", Kind: model.Gauge, Unit: "connections", Labels: []string{"listen", "owner"},
		Help:   "Accepted connections of the listener that were sent three quarters of their receive window or more in each round trip since the last look, the shortest one, and on which nothing lies unread: the peer waits for room, and the process reads at once. Of TCP only.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tnim state established (bytes_received over time, rcv_wnd, minrtt, Recv-Q 0)",
	}
	listenWindow = &model.Signal{
		Name: "plimsoll_tcp_listen_receive_window_bytes", Kind: model.Gauge, Unit: "bytes", Labels: []string{"listen", "owner"},
		Help:   "The receive windows of these, the mean; before Linux 6.2 the largest that they may be at present.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (rcv_wnd; rcv_ssthresh)",
	}
	listenBuffer = &model.Signal{
		Name: "plimsoll_tcp_listen_receive_buffer_bytes", Kind: model.Gauge, Unit: "bytes", Labels: []string{"listen", "owner"},
		Help:   "Their receive buffers, of which the window is a part, the mean.",
		Source: fromConnections + ", SK_MEMINFO_RCVBUF", ByHand: "ss -tnm state established (rb in skmem)",
	}
	listenWay = &model.Signal{
		Name: "plimsoll_tcp_listen_receive_round_trip_seconds", Kind: model.Gauge, Unit: "seconds", Labels: []string{"listen", "owner"},
		Help:   "Their shortest round trips, the mean.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (minrtt)",
	}
	listenHeld = &model.Signal{
		Name: "plimsoll_tcp_listen_busy_seconds_total", Kind: model.Counter, Unit: "seconds", Labels: []string{"listen", "owner", "held"}, StartsAtZero: true,
		Help:   "How long accepted connections had bytes to send, by what held these: held=\"receiver\" is the peer's window, held=\"buffer\" the socket's own send buffer, which was too small for what the process would have sent, held=\"way\" the rest, at the pace of the way. Of a connection that ends, the time since the last look is missed.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (busy, rwnd_limited, sndbuf_limited)",
	}
	listenSent = &model.Signal{
		Name: "plimsoll_tcp_listen_sent_bytes_total", Kind: model.Counter, Unit: "bytes", Labels: []string{"listen", "owner"}, StartsAtZero: true,
		Help:   "Bytes that went out on accepted connections and were acknowledged. Of a connection that ends, those since the last look are missed.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (bytes_acked)",
	}
	listenSegments = &model.Signal{
		Name: "plimsoll_tcp_listen_segments_total", Kind: model.Counter, Unit: "segments", Labels: []string{"listen", "owner", "to"}, StartsAtZero: true,
		Help:   "Segments with data that were sent on accepted connections, those that were sent again included; to=\"one\" are those to the peer's address to which most was sent again lately, to=\"others\" those to all others. Peers at a loopback address, or at the listener's own, are left out. Of a connection that ends, those since the last look are missed, and of one that lives between two looks all.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state connected (data_segs_out:)",
	}
	listenAgain = &model.Signal{
		Name: "plimsoll_tcp_listen_resent_segments_total", Kind: model.Counter, Unit: "segments", Labels: []string{"listen", "owner", "to"}, StartsAtZero: true,
		Help:   "Those that were sent again, of the same peers. On a host 256 of the peers that lose any are told apart; what is sent again to further ones is the others'. What counts towards who has most lately halves at every sixtieth look.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state connected (retrans:, the number behind the slash)",
	}
	listenCame = &model.Signal{
		Name: "plimsoll_tcp_listen_received_segments_total", Kind: model.Counter, Unit: "segments", Labels: []string{"listen", "owner", "to"}, StartsAtZero: true,
		Help:   "Segments with data that came from the same peers, as a request is; to=\"one\" is the peer to which most was sent again lately here, too.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state connected (data_segs_in:)",
	}
	portsUsed = &model.Signal{
		Name: "plimsoll_tcp_destination_ports_used", Kind: model.Gauge, Unit: "ports", Labels: []string{"dst"},
		Help:   "Local ports of the usable range that are taken towards a destination, in any state, on the local address that uses most.",
		Source: fromConnections, ByHand: "ss -tan dst ADDR:PORT | wc -l",
	}
	portsTimeWait = &model.Signal{
		Name: "plimsoll_tcp_destination_ports_time_wait", Kind: model.Gauge, Unit: "ports", Labels: []string{"dst"},
		Help:   "Of the ports used towards a destination, those that only TIME_WAIT holds, on the same local address.",
		Source: fromConnections, ByHand: "ss -tan state time-wait dst ADDR:PORT | wc -l",
	}
	portsUsable = &model.Signal{
		Name: "plimsoll_tcp_destination_ports_usable", Kind: model.Gauge, Unit: "ports", Labels: []string{"dst"},
		Help:   "Local ports that connect() may choose from towards a destination, for each local address.",
		Source: "net/ipv4/ip_local_port_range less net/ipv4/ip_local_reserved_ports", ByHand: "sysctl net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports",
	}
	destinationSockets = &model.Signal{
		Name: "plimsoll_tcp_destination_sockets", Kind: model.Gauge, Unit: "sockets", Labels: []string{"dst", "state"},
		Help:   "Sockets of the connecting side towards a destination, over all local addresses and ports; state is established, time_wait, syn_sent, close_wait, fin_wait or other.",
		Source: fromConnections, ByHand: "ss -tan dst ADDR:PORT",
	}
	destinationUnacked = &model.Signal{
		Name: "plimsoll_tcp_destination_unacknowledged", Kind: model.Gauge, Unit: "sockets", Labels: []string{"dst"},
		Help:   "Established sockets of the connecting side with bytes written that the destination has not acknowledged: the request is on its way, or the destination takes no more.",
		Source: fromConnections, ByHand: "ss -tn state established dst ADDR:PORT (Send-Q)",
	}
	destinationSilent = &model.Signal{
		Name: "plimsoll_tcp_destination_silent", Kind: model.Gauge, Unit: "sockets", Labels: []string{"dst"},
		Help:   "Established sockets of the connecting side on which nothing was acknowledged though it was sent again three times or more: the other end is gone, or somebody on the way throws their packets away, and nobody said so.",
		Source: fromConnections, ByHand: "ss -tno state established dst ADDR:PORT (timer:(on,…,3) and more)",
	}
	destinationResending = &model.Signal{
		Name: "plimsoll_tcp_destination_resending", Kind: model.Gauge, Unit: "sockets", Labels: []string{"dst"},
		Help:   "Established sockets of the connecting side on which nothing was acknowledged though it was sent again once or twice, as after a loss.",
		Source: fromConnections, ByHand: "ss -tno state established dst ADDR:PORT (timer:(on,…,1) or 2)",
	}
	destinationGaps = &model.Signal{
		Name: "plimsoll_tcp_destination_gaps", Kind: model.Gauge, Unit: "sockets", Labels: []string{"dst"},
		Help:   "Established sockets of the connecting side on which segments have come that cannot be read, since one before them is missing, and nothing else is there to read.",
		Source: fromConnections + ", SK_MEMINFO_RMEM_ALLOC", ByHand: "ss -tnm state established dst ADDR:PORT (Recv-Q 0, r above 0 in skmem)",
	}
	destinationReceived = &model.Signal{
		Name: "plimsoll_tcp_destination_received_bytes_total", Kind: model.Counter, Unit: "bytes", Labels: []string{"dst"}, StartsAtZero: true,
		Help:   "Bytes that came from a destination on connections that were opened to it. Of a connection that ends, those since the last look are missed.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established (bytes_received)",
	}
	destinationSent = &model.Signal{
		Name: "plimsoll_tcp_destination_sent_bytes_total", Kind: model.Counter, Unit: "bytes", Labels: []string{"dst"}, StartsAtZero: true,
		Help:   "Bytes that went to a destination on connections that were opened to it, and were acknowledged. Of a connection that ends, those since the last look are missed.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established dst ADDR:PORT (bytes_acked)",
	}
	destinationHeld = &model.Signal{
		Name: "plimsoll_tcp_destination_busy_seconds_total", Kind: model.Counter, Unit: "seconds", Labels: []string{"dst", "held"}, StartsAtZero: true,
		Help:   "How long connections that were opened to a destination had bytes to send, by what held these: held=\"receiver\" is the destination's window, since its program does not read, held=\"buffer\" the socket's own send buffer, held=\"way\" the rest, at the pace of the way. Of a connection that ends, the time since the last look is missed.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established dst ADDR:PORT (busy, rwnd_limited, sndbuf_limited)",
	}
	destinationSmoothed = &model.Signal{
		Name: "plimsoll_tcp_destination_smoothed_round_trip_seconds", Kind: model.Gauge, Unit: "seconds", Labels: []string{"dst"},
		Help:   "The round trip to a destination at present, smoothed by the kernel, of each established socket of the connecting side with bytes that the destination has not acknowledged; the mean.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established dst ADDR:PORT (rtt:)",
	}
	destinationRoundTrip = &model.Signal{
		Name: "plimsoll_tcp_destination_round_trip_seconds", Kind: model.Gauge, Unit: "seconds", Labels: []string{"dst"},
		Help:   "The way to a destination and back: the shortest round trip of the last minutes of each established socket of the connecting side; the mean. What the destination takes for its replies is not in it.",
		Source: fromConnections + ", tcp_info", ByHand: "ss -tni state established dst ADDR:PORT (minrtt:)",
	}
	listenDefers = &model.Signal{
		Name: "plimsoll_tcp_listen_defers_seconds", Kind: model.Gauge, Unit: "seconds", Labels: []string{"listen", "owner"},
		Help:   "For how long the kernel keeps a connection back while its client says nothing (the option TCP_DEFER_ACCEPT); 0: it is handed over at once. Asked once of each listener that is found; none where it may not be asked.",
		Source: "getsockopt(TCP_DEFER_ACCEPT) of the process's own socket (pidfd_getfd)", ByHand: "strace -f -e trace=setsockopt PROGRAM  # as it starts",
	}
	datagramPlaces = &model.Signal{
		Name: "plimsoll_unix_datagram_places", Kind: model.Gauge, Unit: "datagrams", Labels: []string{"towards", "owner"},
		Help: "Unix datagram sockets that have a name, with the process that reads from them, where it is found, 64 at most, those that are files first. The value is net.unix.max_dgram_qlen: so many datagrams and one may lie in one that is made now; " +
			"who sends another waits. A socket keeps what was set when it was made.",
		Source: "sock_diag (unix), PID/fd, net.unix.max_dgram_qlen", ByHand: "ss -xap; sysctl net.unix.max_dgram_qlen",
	}
	asideThreads = &model.Signal{
		Name: "plimsoll_process_aside_threads", Kind: model.Gauge, Unit: "threads", Labels: []string{"groupname", "reason"},
		Help: "Threads of processes that share no more than a program's name with one that listens: they neither listen nor descend from one of that name that does (jobs beside a service, both python3). " +
			"By what they were about: running, or the reason for which they were blocked, as of the wait tracer; - where that may not be seen.",
		Source: "PID/fd of who listens, PID/stat, PID/task/TID/syscall", ByHand: "ps -eo pid,ppid,args; ss -ltnp; cat /proc/PID/task/*/syscall",
	}
	destinationOwner = &model.Signal{
		Name: "plimsoll_tcp_destination_owner_info", Kind: model.Gauge, Unit: "none", Labels: []string{"dst", "owner"},
		Help:   "1 for each process name that was found to hold an established connection towards a destination. One connection is looked up at a time, so further owners are found late.",
		Source: fromConnections + "; PID/fd", ByHand: "ss -tnp dst ADDR:PORT",
	}
)

// connectionSignals come from the dump of all connections.
var connectionSignals = []*model.Signal{listenAccepted, listenSynRecv, listenLeft, listenUnread, listenGaps, listenUnacked, listenShut, listenRepeated, listenRepeatedLarge, listenRoundTrip, listenShortestTrip, listenHeldBack,
	listenWindowSmall, listenRestarted, destinationRestarted, listenSegmentsSmall, listenFilled, listenWindow, listenBuffer, listenWay, listenHeld, listenSent, listenSegments, listenAgain, listenCame, portsUsed, portsTimeWait, portsUsable, destinationSockets, destinationUnacked, destinationSilent, destinationResending, destinationGaps, destinationRoundTrip, destinationSmoothed, destinationReceived, destinationSent, destinationHeld, destinationOwner}

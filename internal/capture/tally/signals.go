package tally

import "plimsoll/internal/model"

const source = "packets: a capture file, or a packet socket (run --capture)"

// counter declares what a Tally counts up itself.
func counter(name, unit, help, byHand string, labels ...string) *model.Signal {
	return &model.Signal{Name: "plimsoll_capture_" + name, Kind: model.Counter, Unit: unit, Help: help, Labels: labels,
		StartsAtZero: true, Source: source, ByHand: byHand}
}

func gauge(name, unit, help, byHand string, labels ...string) *model.Signal {
	return &model.Signal{Name: "plimsoll_capture_" + name, Kind: model.Gauge, Unit: unit, Help: help, Labels: labels,
		Source: source, ByHand: byHand}
}

// The label server is the address and port that was connected to ("other" beyond the
// first maxServers), by is the side that sent it, client or server.
var (
	packetsTotal = counter("packets_total", "packets", "Packets that were captured, of whatever kind.", "capinfos -c FILE")
	bytesTotal   = counter("bytes_total", "bytes", "Their bytes on the wire, whatever was kept of them.", "capinfos -d FILE")
	droppedTotal = counter("dropped_total", "packets", "Packets that the capture itself lost for want of room; what looks lost on the way may be these.", "tcpdump -i any -w FILE  # \"dropped by kernel\", at its end")
	connections  = gauge("connections", "connections", "TCP connections that were open: seen to begin or to carry something, and not seen to end.", "tshark -r FILE -q -z conv,tcp")

	segmentsTotal = counter("segments_total", "segments", "TCP segments.", "tshark -r FILE -q -z conv,tcp", "server", "by")
	dataTotal     = counter("data_segments_total", "segments", "TCP segments with payload.", "tshark -r FILE -Y 'tcp.len > 0' | wc -l", "server", "by")
	tinyTotal     = counter("tiny_segments_total", "segments", "TCP segments with less than 100 bytes of payload, or none.", "tshark -r FILE -Y 'tcp.len < 100' | wc -l", "server", "by")
	resentTotal   = counter("resent_total", "segments",
		"TCP segments that Wireshark labels as sent again or out of order, by what they were: lost_before and lost_after the place of capture, needless, delayed_ack, receiver_full, reordered, handshake, captured_twice (docs/capture.md); unanswered, where the other side said nothing any more; fin, which carry nothing else.",
		"tshark -r FILE -Y 'tcp.analysis.retransmission || tcp.analysis.out_of_order' | wc -l", "server", "by", "judgement")
	resentSeconds = counter("resent_seconds_total", "seconds", "Time between a segment that was lost and the same sent again, added up.",
		"tshark -r FILE -Y tcp.analysis.rto -T fields -e tcp.analysis.rto", "server", "by")

	attemptsTotal    = counter("attempts_total", "connections", "Connections that clients asked for; a SYN that is sent again is none, unless it comes when no client would send it (RFC 6298: after a second, and then after as long or twice as long), as those of a flood do.", "tshark -r FILE -Y 'tcp.flags.syn == 1 && tcp.flags.ack == 0 && !tcp.analysis.retransmission' | wc -l", "server")
	askedTotal       = counter("client_attempts_total", "connections", "The same by the client's address, as many as came first, 256; the label is other for the rest.", "tshark -r FILE -Y 'tcp.flags.syn == 1 && tcp.flags.ack == 0' -T fields -e ip.src | sort | uniq -c | sort -n", "client")
	synsResentTotal  = counter("syns_resent_total", "segments", "SYNs that clients sent again since nothing had come back.", "tshark -r FILE -Y 'tcp.flags.syn == 1 && tcp.flags.ack == 0 && tcp.analysis.retransmission' | wc -l", "server")
	handshakeSeconds = counter("handshake_seconds_sum", "seconds", "Time from the SYN to the client's ACK, of the handshakes that were completed.", "tshark -r FILE -Y tcp.analysis.initial_rtt -T fields -e tcp.analysis.initial_rtt", "server")
	handshakes       = counter("handshake_seconds_count", "connections", "Handshakes that clients completed.", "tshark -r FILE -Y 'tcp.completeness.syn-ack == 1 && tcp.completeness.ack == 1' -T fields -e tcp.stream | sort -u | wc -l", "server")
	icmpTotal        = counter("icmp_errors_total", "packets", "ICMP errors about what was sent to a server: prohibited, port, host, net, too_big, other.", "tshark -r FILE -Y 'icmp.type == 3 || icmpv6.type < 128' | wc -l", "server", "what")

	resetsTotal = counter("resets_total", "connections", "Connections that were reset, by who sent the RST (unknown where the handshake was not captured) and why (docs/capture.md).", "tshark -r FILE -Y tcp.flags.reset==1", "server", "by", "cause")
	closesTotal = counter("closes_total", "connections", "Connections, by which side closed them first.", "tshark -r FILE -Y tcp.flags.fin==1", "server", "by")
	idleTimeout = gauge("idle_timeout_seconds", "seconds", "After which idle time the server closes connections, where several that it closed agree on one.", "tshark -r FILE -Y tcp.flags.fin==1 -T fields -e tcp.srcport -e tcp.time_delta", "server")
	turnSeconds = counter("turn_seconds_sum", "seconds", "Time from the client's last payload to the server's first after it: what the server took to answer, at the place of capture.", "tshark -r FILE -z http,tree -q", "server")
	turns       = counter("turn_seconds_count", "replies", "How often a server's payload followed on a client's.", "tshark -r FILE -z http,tree -q", "server")
	busySeconds = counter("busy_seconds_total", "seconds", "Time from payload to payload, but for a client's pause after an answer: a side was sending, or the server's answer was awaited.", "tshark -r FILE -Y 'tcp.len > 0' -T fields -e tcp.stream -e tcp.time_delta", "server")
	heldSeconds = counter("held_back_seconds_sum", "seconds", "Time for which segments were held back until the ACK of the one before them had come, which its receiver had delayed (Nagle's algorithm).", "tshark -r FILE -Y 'tcp.analysis.ack_rtt > 0.03 && tcp.len == 0'", "server", "by")
	heldCount   = counter("held_back_seconds_count", "segments", "Segments that were held back so.", "tshark -r FILE -Y 'tcp.analysis.ack_rtt > 0.03 && tcp.len == 0' | wc -l", "server", "by")
	shutSeconds = counter("window_shut_seconds_sum", "seconds", "Time for which receive windows were closed, by whose: what that side's program had not read filled its buffer.", "tshark -r FILE -Y 'tcp.analysis.zero_window || tcp.analysis.window_update'", "server", "by")
	shutCount   = counter("window_shut_seconds_count", "windows", "How often a receive window was closed.", "tshark -r FILE -Y tcp.analysis.zero_window | wc -l", "server", "by")
)

// Signals are all that a Tally puts.
var Signals = []*model.Signal{
	packetsTotal, bytesTotal, droppedTotal, connections, segmentsTotal, dataTotal, tinyTotal, resentTotal, resentSeconds,
	attemptsTotal, askedTotal, synsResentTotal, handshakeSeconds, handshakes, icmpTotal, resetsTotal, closesTotal, idleTimeout,
	turnSeconds, turns, busySeconds, heldSeconds, heldCount, shutSeconds, shutCount,
}

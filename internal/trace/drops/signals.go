package drops

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// Programs.
const (
	atFree   = "drops_kfree_skb"
	atStands = "drops_stands"
)

const (
	source     = "BPF on the tracepoint kfree_skb"
	sourceLate = "BPF on the tracepoints kfree_skb and inet_sock_set_state"
)

var (
	packets = &model.Signal{
		Name: "plimsoll_drops_packets_total", Kind: model.Counter, Unit: "packets", StartsAtZero: true,
		Help:   "Packets that the kernel threw away, with its own reason (empty before Linux 5.17, which tells none) and the kernel function that did it. Not every reason is a fault.",
		Labels: []string{"reason", "location"}, Source: source, ByHand: "perf trace -a -e skb:kfree_skb; dropwatch -l kas",
	}
	portPackets = &model.Signal{
		Name: "plimsoll_drops_port_packets_total", Kind: model.Counter, Unit: "packets", StartsAtZero: true,
		Help:   "Packets of TCP and UDP that the kernel threw away, by its reason and the port of the service at one of their ends.",
		Labels: []string{"reason", "port"}, Source: source, ByHand: "perf trace -a -e skb:kfree_skb",
	}
	lateConnections = &model.Signal{
		Name: "plimsoll_drops_late_connections_total", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Connections that others opened to a service here and that stood in the end, of which the kernel had thrown a SYN away before, by its reason for the last one and the port of the service.",
		Labels: []string{"reason", "port"}, Source: sourceLate, ByHand: "perf trace -a -e skb:kfree_skb -e sock:inet_sock_set_state",
	}
	lateSeconds = &model.Signal{
		Name: "plimsoll_drops_late_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long these took, all together, from when the first SYN of each was thrown away until it stood.",
		Labels: []string{"reason", "port"}, Source: sourceLate, ByHand: "perf trace -a -e skb:kfree_skb -e sock:inet_sock_set_state",
	}
	refusedConnects = &model.Signal{
		Name: "plimsoll_drops_refused_connects_total", Kind: model.Counter, Unit: "packets", StartsAtZero: true,
		Help:   "SYNs to an address and port of this host at which nobody listened, as they are after translation (DNAT); the kernel answers each with a reset (\"connection refused\"). Fewer than ten since the start are left out. From Linux 5.17 on, of IPv6 from 5.18 on.",
		Labels: []string{"address", "port"}, Source: source, ByHand: "perf trace -a -e skb:kfree_skb; tcpdump -ni any 'tcp[tcpflags] & tcp-rst != 0'",
	}
	lost = trace.LostSignal("drops", "events", "Drops that found no room: what=\"fates\" are not counted at all, what=\"ports\" only without their port; what=\"syns\", SYNs that were forgotten before they could be sent again, so that nobody can be late; and what=\"late\", connections that stood late.")
)

var signals = []*model.Signal{packets, portPackets, lateConnections, lateSeconds, refusedConnects, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{packets: {atFree}, portPackets: {atFree}, lateConnections: {atFree, atStands}, lateSeconds: {atFree, atStands}, refusedConnects: {atFree}, lost: nil}

package drops

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const atFree = "drops_kfree_skb"

const source = "BPF on the tracepoint kfree_skb"

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
	lost = trace.LostSignal("drops", "events", "Drops that found no room: what=\"fates\" are not counted at all, what=\"ports\" only without their port.")
)

var signals = []*model.Signal{packets, portPackets, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{packets: {atFree}, portPackets: {atFree}, lost: nil}

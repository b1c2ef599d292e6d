package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var arpEntries = &model.Signal{Name: "node_arp_entries", Kind: model.Gauge, Unit: "entries",
	Help:   "IPv4 neighbours known on each device; net.ipv4.neigh.default.gc_thresh3 limits their sum over all namespaces.",
	Labels: []string{"device"}, Source: "/proc/net/arp", ByHand: "ip -4 neigh show | wc -l"}

var arpUnanswered = &model.Signal{Name: "plimsoll_arp_unanswered", Kind: model.Gauge, Unit: "ratio",
	Help:   "1 for each IPv4 neighbour that was asked for its hardware address and has not answered (FAILED or INCOMPLETE); none where there are more than 16.",
	Labels: []string{"device", "address"}, Source: "/proc/net/arp", ByHand: "ip -4 neigh show | grep -E 'FAILED|INCOMPLETE'"}

// mostUnanswered is how many silent neighbours are named. A scan of a network leaves thousands, others in each round: of more none is,
// or a run would fill with their series.
const mostUnanswered = 16

// ARP counts the neighbours of a network namespace.
func ARP() probe.Probe {
	p := probe.Probe{Name: "arp", Every: 5 * time.Second, Cost: costARP,
		Blind: []string{"IPv6 neighbours"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/net/arp", hint: "this kernel has no IPv4", signals: []*model.Signal{arpEntries, arpUnanswered}, put: putARP}}
	})
}

func putARP(b []byte, out *probe.Out) error {
	counts, silent, err := parseARP(b)
	if err != nil {
		return err
	}
	for _, n := range silent {
		out.Put(arpUnanswered, 1, n.device, n.address)
	}
	for device, n := range counts {
		out.Put(arpEntries, float64(n), device)
	}
	return nil
}

// neighbour is an address on a device.
type neighbour struct{ device, address string }

// parseARP counts the rows below the header by their last column, the device, and names
// those that have not answered, unless they are too many: their flags are 0x0.
func parseARP(b []byte) (counts map[string]int, silent []neighbour, err error) {
	header, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !bytes.HasSuffix(bytes.TrimSpace(header), []byte("Device")) {
		return nil, nil, errors.New("want a header that ends with Device")
	}
	counts = map[string]int{}
	for line := range bytes.Lines(rest) {
		f := bytes.Fields(line)
		if len(f) != 6 {
			return nil, nil, fmt.Errorf("want 6 columns, got %q", line)
		}
		counts[string(f[5])]++
		if string(f[2]) == "0x0" {
			silent = append(silent, neighbour{device: string(f[5]), address: string(f[0])})
		}
	}
	if len(silent) > mostUnanswered {
		silent = nil
	}
	return counts, silent, nil
}

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

// ARP counts the neighbours of a network namespace.
func ARP() probe.Probe {
	p := probe.Probe{Name: "arp", Every: 5 * time.Second, Cost: costARP,
		Blind: []string{"IPv6 neighbours"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/net/arp", hint: "this kernel has no IPv4", signals: []*model.Signal{arpEntries}, put: putARP}}
	})
}

func putARP(b []byte, out *probe.Out) error {
	counts, err := parseARP(b)
	if err != nil {
		return err
	}
	for device, n := range counts {
		out.Put(arpEntries, float64(n), device)
	}
	return nil
}

// parseARP counts the rows below the header by their last column, the device.
func parseARP(b []byte) (map[string]int, error) {
	header, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !bytes.HasSuffix(bytes.TrimSpace(header), []byte("Device")) {
		return nil, errors.New("want a header that ends with Device")
	}
	counts := map[string]int{}
	for line := range bytes.Lines(rest) {
		f := bytes.Fields(line)
		if len(f) != 6 {
			return nil, fmt.Errorf("want 6 columns, got %q", line)
		}
		counts[string(f[5])]++
	}
	return counts, nil
}

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	neighbourFiles  = "/proc/1/net/stat/arp_cache, /proc/1/net/stat/ndisc_cache"
	neighbourByHand = "cat /proc/1/net/stat/arp_cache  # the numbers are hexadecimal"
)

var (
	neighbourEntries = &model.Signal{Name: "plimsoll_neighbour_entries", Kind: model.Gauge, Unit: "entries", Labels: []string{"family"},
		Help:   "Entries in the kernel's table of neighbours, which is one for all network namespaces; family is ipv4 (ARP) or ipv6.",
		Source: neighbourFiles, ByHand: neighbourByHand}
	neighbourFulls = &model.Signal{Name: "plimsoll_neighbour_table_fulls_total", Kind: model.Counter, Unit: "packets", Labels: []string{"family"},
		Help:   "How often a packet to a neighbour that is not in the table was thrown away, since the table had as many entries as gc_thresh3 lets it, and none could be thrown out.",
		Source: neighbourFiles, ByHand: neighbourByHand}
)

// Neighbours reads the statistics of the machine's tables of neighbours; only its own network namespace shows them.
func Neighbours() probe.Probe {
	p := probe.Probe{Name: "neighbours", Scope: probe.PerMachine, Cost: costNeighbours,
		Blind: []string{"inside a container the machine's tables are hidden: they are absent there"}}
	return fromFiles(p, func() []source {
		return []source{
			{path: "proc/1/net/stat/arp_cache", hint: "the machine's table of neighbours is not shown here", signals: []*model.Signal{neighbourEntries, neighbourFulls}, put: putNeighbours("ipv4")},
			{path: "proc/1/net/stat/ndisc_cache", put: putNeighbours("ipv6")}, // absent without IPv6
		}
	})
}

func putNeighbours(family string) func(b []byte, out *probe.Out) error {
	return func(b []byte, out *probe.Out) error {
		entries, fulls, err := parseNeighbours(b)
		if err != nil {
			return err
		}
		out.Put(neighbourEntries, float64(entries), family)
		if fulls < 0 {
			out.Mark(neighbourFulls, errNoField("arp_cache", "table_fulls"))
			return nil
		}
		out.Put(neighbourFulls, float64(fulls), family)
		return nil
	}
}

// parseNeighbours parses a header and a line of hexadecimal numbers for each CPU. All lines have the same entries; the
// counts are each CPU's own. fulls is -1 before Linux 4.3, which does not count them.
func parseNeighbours(b []byte) (entries uint64, fulls int64, err error) {
	header, rest, _ := bytes.Cut(b, []byte("\n"))
	column, columns := -1, bytes.Fields(header)
	for i, name := range columns {
		if string(name) == "table_fulls" {
			column = i
		}
	}
	if len(columns) == 0 || string(columns[0]) != "entries" {
		return 0, 0, errors.New("want a header that begins with entries")
	}
	if column < 0 {
		fulls = -1
	}
	lines := 0
	for line := range bytes.Lines(rest) {
		f := bytes.Fields(line)
		if len(f) != len(columns) {
			return 0, 0, fmt.Errorf("want %d columns, got %.200q", len(columns), line)
		}
		if entries, err = strconv.ParseUint(string(f[0]), 16, 32); err != nil {
			return 0, 0, err
		}
		if column >= 0 {
			n, err := strconv.ParseUint(string(f[column]), 16, 32)
			if err != nil {
				return 0, 0, err
			}
			fulls += int64(n)
		}
		lines++
	}
	if lines == 0 {
		return 0, 0, host.Absent("the table of neighbours has no line for any CPU")
	}
	return entries, fulls, nil
}

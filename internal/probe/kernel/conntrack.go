package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	conntrackHint   = "connections are not tracked in this kernel (module nf_conntrack is not loaded)"
	conntrackByHand = "conntrack -S"
	sizeofNfgenmsg  = 4 // struct nfgenmsg of linux/netfilter/nfnetlink.h
	conntrackCount  = "proc/sys/net/netfilter/nf_conntrack_count"
)

var (
	conntrackEntries = &model.Signal{Name: "node_nf_conntrack_entries", Kind: model.Gauge, Unit: "entries",
		Help:   "Connections in this namespace's tracking table; 0 where no firewall rule switches tracking on.",
		Source: "/" + conntrackCount, ByHand: "sysctl net.netfilter.nf_conntrack_count"}
	conntrackLimit = &model.Signal{Name: "node_nf_conntrack_entries_limit", Kind: model.Gauge, Unit: "entries",
		Help:   "Most connections each namespace may track; one number for the whole machine.",
		Source: "/proc/sys/net/netfilter/nf_conntrack_max", ByHand: "sysctl net.netfilter.nf_conntrack_max"}
)

// conntrackStat is a statistic with its netlink attribute (enum
// ctattr_stats_cpu) and its column of /proc/net/stat/nf_conntrack.
type conntrackStat struct {
	column string
	attr   uint16
	signal *model.Signal
}

var conntrackStats = []conntrackStat{
	conntrackSignal("found", 2, "lookups", "Lookups that found an entry other than the usual way (a clash with one just made)."),
	conntrackSignal("invalid", 4, "packets", "Packets that fit no connection and cannot begin one."),
	conntrackSignal("ignore", 5, "packets", "Packets seen that were tracked already; not counted since Linux 5.10."),
	conntrackSignal("insert", 8, "entries", "Entries put into the table; not counted by newer kernels, which leave it at 0."),
	conntrackSignal("insert_failed", 9, "entries", "Entries that could not be put into the table because the same one was there."),
	conntrackSignal("drop", 10, "packets", "Packets dropped because the table was full or memory was short."),
	conntrackSignal("early_drop", 11, "entries", "Unassured entries thrown out to make room in a full table."),
	conntrackSignal("search_restart", 13, "lookups", "Lookups begun again because the table was resized meanwhile."),
}

func conntrackSignal(name string, attr uint16, unit, help string) conntrackStat {
	return conntrackStat{name, attr, &model.Signal{Name: "node_nf_conntrack_stat_" + name, Kind: model.Counter, Unit: unit,
		Help: help + " Summed over CPUs.", Source: "ctnetlink (IPCTNL_MSG_CT_GET_STATS_CPU), else /proc/net/stat/nf_conntrack", ByHand: conntrackByHand}}
}

// Conntrack reads the size, the limit and the statistics of a network
// namespace's connection-tracking table.
func Conntrack() probe.Probe {
	p := fromFiles(probe.Probe{Name: "conntrack", Cost: costConntrack,
		Blind: []string{
			"a table that fills and drains between two samples looks innocent; its drop counter tells",
			"a namespace of another host on the way may drop packets that are invisible from here"}},
		func() []source {
			return []source{
				{path: conntrackCount, hint: conntrackHint, signals: []*model.Signal{conntrackEntries}, put: putNumber(conntrackEntries)},
				{path: "proc/sys/net/netfilter/nf_conntrack_max", hint: conntrackHint, signals: []*model.Signal{conntrackLimit}, put: putNumber(conntrackLimit)},
			}
		})
	for _, s := range conntrackStats {
		p.Signals = append(p.Signals, s.signal)
	}
	openFiles := p.Open
	p.Open = func(h *host.Host) (probe.Reader, error) {
		files, err := openFiles(h)
		if err != nil {
			return nil, err
		}
		return &conntrack{Reader: files, host: h}, nil
	}
	return p
}

// putNumber records a file that holds one whole number.
func putNumber(sig *model.Signal) func(b []byte, out *probe.Out) error {
	return func(b []byte, out *probe.Out) error {
		v, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
		if err != nil {
			return fmt.Errorf("want one number: %w", err)
		}
		out.Put(sig, float64(v))
		return nil
	}
}

// conntrack adds the statistics to the two files.
type conntrack struct {
	probe.Reader
	host *host.Host
	conn *netlink.Conn // nil until it is needed, and where netlink is refused
}

// conntrackPatience is how long the kernel may take to answer; it has been
// seen not to end an answer at all.
const conntrackPatience = 500 * time.Millisecond

// Read asks netlink only when the files are there: the question alone would
// make the kernel load its connection-tracking module.
func (c *conntrack) Read(out *probe.Out) error {
	if err := c.Reader.Read(out); err != nil {
		return err
	}
	sums, err := c.stats()
	for _, s := range conntrackStats {
		v, ok := sums[s.column]
		switch {
		case err != nil:
			out.Mark(s.signal, err)
		case !ok:
			out.Mark(s.signal, errNoField("connection-tracking statistics", s.column))
		default:
			out.Put(s.signal, float64(v))
		}
	}
	return nil
}

func (c *conntrack) stats() (map[string]uint64, error) {
	if !c.host.Recorded() {
		f, err := host.OpenFile(c.host.Path(conntrackCount))
		if err != nil {
			return nil, (&source{hint: conntrackHint}).err(err)
		}
		f.Close()
		if sums, err := c.ask(); err == nil {
			return sums, nil
		}
	}
	// Without CAP_NET_ADMIN netlink refuses, and the file may still be read.
	f, err := host.OpenFile(c.host.Path("proc/net/stat/nf_conntrack"))
	if err != nil {
		return nil, fmt.Errorf("connection-tracking statistics need root, or a kernel with /proc/net/stat/nf_conntrack: %w", err)
	}
	defer f.Close()
	b, err := f.Bytes()
	if err != nil {
		return nil, err
	}
	sums, err := parseConntrackStat(b)
	if err != nil {
		return nil, fmt.Errorf("parse /proc/net/stat/nf_conntrack: %w", err)
	}
	return sums, nil
}

// ask dumps the statistics over ctnetlink: one message a CPU.
func (c *conntrack) ask() (map[string]uint64, error) {
	if c.conn == nil {
		conn, err := netlink.Open(unix.NETLINK_NETFILTER)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	const getStatsCPU = unix.NFNL_SUBSYS_CTNETLINK<<8 | 4 // IPCTNL_MSG_CT_GET_STATS_CPU
	sums := map[string]uint64{}
	err := c.conn.Dump(getStatsCPU, make([]byte, sizeofNfgenmsg), conntrackPatience, func(payload []byte) error {
		return addConntrackAttrs(payload, sums)
	})
	return sums, err
}

// addConntrackAttrs adds one CPU's message, struct nfgenmsg and attributes of
// 32 bits in network order, to sums.
func addConntrackAttrs(payload []byte, sums map[string]uint64) error {
	if len(payload) < sizeofNfgenmsg {
		return fmt.Errorf("ctnetlink message of %d bytes, want %d or more", len(payload), sizeofNfgenmsg)
	}
	rest := payload[sizeofNfgenmsg:]
	for {
		kind, value, more, ok := netlink.NextAttr(rest)
		if !ok {
			return nil
		}
		rest = more
		for _, s := range conntrackStats {
			if s.attr == kind && len(value) == 4 {
				sums[s.column] += uint64(binary.BigEndian.Uint32(value))
			}
		}
	}
}

// parseConntrackStat sums the rows of /proc/net/stat/nf_conntrack, one a CPU,
// by the header's names: the columns were renamed over time. A row may be
// shorter or longer than the header, but never in the columns wanted.
func parseConntrackStat(b []byte) (map[string]uint64, error) {
	header, rest, _ := bytes.Cut(b, []byte("\n"))
	names := bytes.Fields(header)
	sums := map[string]uint64{}
	n := 0
	for line := range bytes.Lines(rest) {
		n++
		cells := bytes.Fields(line)
		if len(cells) < len(names) {
			return nil, fmt.Errorf("line %d: want %d columns, got %d", n+1, len(names), len(cells))
		}
		for i, name := range names {
			v, err := strconv.ParseUint(string(cells[i]), 16, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d, column %s: want hex: %w", n+1, name, err)
			}
			sums[string(name)] += v
		}
	}
	if n == 0 {
		return nil, errors.New("want a header and a row for each CPU, got none")
	}
	return sums, nil
}

// Close closes the files and the socket.
func (c *conntrack) Close() error {
	err := c.Reader.Close()
	if c.conn != nil {
		err = errors.Join(err, c.conn.Close())
	}
	return err
}

package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	qdiscByHand = "tc -s qdisc show"
	qdiscSource = "rtnetlink (RTM_GETQDISC, TCA_STATS2)"
)

func qdiscSignal(name string, kind model.Kind, unit, help string) *model.Signal {
	return &model.Signal{Name: "node_qdisc_" + name, Kind: kind, Unit: unit, Help: help,
		Labels: []string{"device", "kind"}, Source: qdiscSource, ByHand: qdiscByHand}
}

var (
	qdiscBytes      = qdiscSignal("bytes_total", model.Counter, "bytes", "Bytes that left through the device's root queueing discipline.")
	qdiscPackets    = qdiscSignal("packets_total", model.Counter, "packets", "Packets that left through the device's root queueing discipline.")
	qdiscDrops      = qdiscSignal("drops_total", model.Counter, "packets", "Packets that found no room in the queue of the discipline.")
	qdiscRequeues   = qdiscSignal("requeues_total", model.Counter, "packets", "Packets that the device would not take yet.")
	qdiscOverlimits = qdiscSignal("overlimits_total", model.Counter, "times", "How often a packet had to wait for the discipline's own limit of rate.")
	qdiscQueue      = qdiscSignal("current_queue_length", model.Gauge, "packets", "Packets that wait in the queue.")
	qdiscBacklog    = qdiscSignal("backlog", model.Gauge, "bytes", "Bytes that wait in the queue.")
	qdiscRate       = &model.Signal{Name: "plimsoll_qdisc_rate_bytes", Kind: model.Gauge, Unit: "bytes",
		Help:   "Bytes a second that a token bucket (tbf) lets pass. Other disciplines have no sample.",
		Labels: []string{"device", "kind"}, Source: "rtnetlink (RTM_GETQDISC, TCA_TBF_PARMS)", ByHand: qdiscByHand}
)

// Qdisc reads the root queueing disciplines of a namespace's devices, which
// hold and shape what leaves.
func Qdisc() probe.Probe {
	p := probe.Probe{Name: "qdisc", Cost: costQdisc,
		Signals: []*model.Signal{qdiscBytes, qdiscPackets, qdiscDrops, qdiscRequeues, qdiscOverlimits, qdiscQueue, qdiscBacklog, qdiscRate},
		Blind:   []string{"classes below a root discipline, of which the root has the sums", "policers (tc filter … action police)", "limits of the network behind the device"}}
	overNetlink(&p, "queueing disciplines", unix.NETLINK_ROUTE, func(conn *netlink.Conn) probe.Reader { return &qdiscs{conn} })
	return p
}

// overNetlink makes a probe read what it is about, in words, through a netlink
// socket of its own.
func overNetlink(p *probe.Probe, what string, protocol int, reader func(*netlink.Conn) probe.Reader) {
	p.CanRun = func(h *host.Host) error {
		if h.Recorded() {
			return host.Absent(what + " are read over netlink, and a recorded tree has none")
		}
		return nil
	}
	p.Open = func(*host.Host) (probe.Reader, error) {
		conn, err := netlink.Open(protocol)
		if err != nil {
			return nil, err
		}
		return reader(conn), nil
	}
}

type qdiscs struct{ conn *netlink.Conn }

// Read dumps the disciplines, and the devices for their names.
func (q *qdiscs) Read(out *probe.Out) error {
	var list []qdisc
	err := q.conn.Dump(unix.RTM_GETQDISC, make([]byte, tcmsgLen), time.Second, func(payload []byte) error {
		d, root, err := parseQdisc(payload)
		if root {
			list = append(list, d)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list queueing disciplines: %w", err)
	}
	names := map[int32]string{}
	err = q.conn.Dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg), time.Second, func(payload []byte) error {
		l, err := parseLink(payload)
		if err != nil {
			return err
		}
		names[int32(binary.NativeEndian.Uint32(payload[4:]))] = l.name // ifi_index
		return nil
	})
	if err != nil {
		return fmt.Errorf("list network devices: %w", err)
	}
	for _, d := range list {
		if name, ok := names[d.device]; ok {
			d.put(name, out)
		}
	}
	return nil
}

// Close closes the socket.
func (q *qdiscs) Close() error { return q.conn.Close() }

// tcmsgLen is the size of struct tcmsg of linux/rtnetlink.h, and the kinds of
// attribute are those of linux/rtnetlink.h, gen_stats.h and pkt_sched.h.
const (
	tcmsgLen = 20
	tcRoot   = 0xffffffff // TC_H_ROOT

	tcaKind, tcaOptions, tcaStats2 = 1, 2, 7
	statsBasic, statsQueue         = 1, 3
	statsPackets64                 = 8
	tbfParms, tbfRate64            = 1, 4
)

type qdisc struct {
	device                                       int32
	kind                                         string
	bytes, packets                               uint64
	basic, queued                                bool // which statistics the kernel gave
	length, backlog, drops, requeues, overlimits uint32
	rate                                         uint64 // bytes a second; 0 when it has none
}

func (d qdisc) put(device string, out *probe.Out) {
	if d.basic {
		out.Put(qdiscBytes, float64(d.bytes), device, d.kind)
		out.Put(qdiscPackets, float64(d.packets), device, d.kind)
	}
	if d.queued {
		out.Put(qdiscDrops, float64(d.drops), device, d.kind)
		out.Put(qdiscRequeues, float64(d.requeues), device, d.kind)
		out.Put(qdiscOverlimits, float64(d.overlimits), device, d.kind)
		out.Put(qdiscQueue, float64(d.length), device, d.kind)
		out.Put(qdiscBacklog, float64(d.backlog), device, d.kind)
	}
	if d.rate > 0 {
		out.Put(qdiscRate, float64(d.rate), device, d.kind)
	}
}

// parseQdisc parses one RTM_NEWQDISC: struct tcmsg and attributes. root is
// false for a discipline below another one.
func parseQdisc(b []byte) (d qdisc, root bool, err error) {
	if len(b) < tcmsgLen {
		return qdisc{}, false, fmt.Errorf("rtnetlink message of %d bytes, want %d or more", len(b), tcmsgLen)
	}
	d.device = int32(binary.NativeEndian.Uint32(b[4:]))
	root = binary.NativeEndian.Uint32(b[12:]) == tcRoot
	var options []byte
	eachAttr(b[tcmsgLen:], func(kind uint16, value []byte) {
		switch kind {
		case tcaKind:
			name, _, _ := bytes.Cut(value, []byte{0})
			d.kind = string(name)
		case tcaOptions:
			options = value
		case tcaStats2:
			eachAttr(value, d.stats)
		}
	})
	if d.kind == "" {
		return qdisc{}, false, errors.New("rtnetlink message without a kind of queueing discipline")
	}
	if d.kind == "tbf" {
		eachAttr(options, d.tbf)
	}
	return d, root, nil
}

// stats takes one attribute of TCA_STATS2.
func (d *qdisc) stats(kind uint16, value []byte) {
	u32 := func(i int) uint32 { return binary.NativeEndian.Uint32(value[4*i:]) }
	switch {
	case kind == statsBasic && len(value) >= 12:
		d.basic = true
		d.bytes = binary.NativeEndian.Uint64(value)
		d.packets = max(d.packets, uint64(u32(2)))
	case kind == statsPackets64 && len(value) >= 8:
		d.packets = binary.NativeEndian.Uint64(value)
	case kind == statsQueue && len(value) >= 20:
		d.queued = true
		d.length, d.backlog, d.drops, d.requeues, d.overlimits = u32(0), u32(1), u32(2), u32(3), u32(4)
	}
}

// tbf takes one attribute of a token bucket's options; the rate is the last
// field of the struct tc_ratespec with which TCA_TBF_PARMS begins.
func (d *qdisc) tbf(kind uint16, value []byte) {
	switch {
	case kind == tbfParms && len(value) >= 12:
		d.rate = max(d.rate, uint64(binary.NativeEndian.Uint32(value[8:])))
	case kind == tbfRate64 && len(value) >= 8:
		d.rate = binary.NativeEndian.Uint64(value)
	}
}

// eachAttr hands every netlink attribute of b to f.
func eachAttr(b []byte, f func(kind uint16, value []byte)) {
	for {
		kind, value, rest, ok := netlink.NextAttr(b)
		if !ok {
			return
		}
		f(kind, value)
		b = rest
	}
}

package kernel

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const netdevByHand = "ip -s -s link show"

// netdevCounter is a counter of a network device and the fields of struct
// rtnl_link_stats64 whose sum it is.
type netdevCounter struct {
	signal *model.Signal
	fields []int
}

var netdevCounters = []netdevCounter{
	netdevSignal("receive_packets_total", "packets", "Packets received.", 0),
	netdevSignal("transmit_packets_total", "packets", "Packets sent.", 1),
	netdevSignal("receive_bytes_total", "bytes", "Bytes received.", 2),
	netdevSignal("transmit_bytes_total", "bytes", "Bytes sent.", 3),
	netdevSignal("receive_errs_total", "packets", "Packets received with an error.", 4),
	netdevSignal("transmit_errs_total", "packets", "Packets not sent for an error.", 5),
	netdevSignal("receive_drop_total", "packets", "Sound packets lost on the way in: no room, or nobody wanted them.", 6, 15),
	netdevSignal("transmit_drop_total", "packets", "Packets lost on the way out.", 7),
	netdevSignal("receive_multicast_total", "packets", "Multicast packets received.", 8),
	netdevSignal("receive_fifo_total", "packets", "Packets lost because the device's own buffer was full.", 14),
}

func netdevSignal(name, unit, help string, fields ...int) netdevCounter {
	return netdevCounter{&model.Signal{Name: "node_network_" + name, Kind: model.Counter, Unit: unit, Help: help,
		Labels: []string{"device"}, Source: "rtnetlink (RTM_GETLINK, IFLA_STATS64)", ByHand: netdevByHand}, fields}
}

var (
	netdevUp = &model.Signal{Name: "node_network_up", Kind: model.Gauge, Unit: "bool",
		Help: "1 when the device's operational state is up, else 0.", Labels: []string{"device"},
		Source: "rtnetlink (IFLA_OPERSTATE)", ByHand: "ip link show"}
	netdevDowns = &model.Signal{Name: "node_network_carrier_down_changes_total", Kind: model.Counter, Unit: "changes",
		Help: "How often the device lost its carrier: a cable, a switch's port, or the other end of a virtual pair went down.", Labels: []string{"device"},
		Source: "rtnetlink (IFLA_CARRIER_DOWN_COUNT, since Linux 4.16)", ByHand: "cat /sys/class/net/DEVICE/carrier_down_count"}
	netdevMTU = &model.Signal{Name: "node_network_mtu_bytes", Kind: model.Gauge, Unit: "bytes",
		Help: "Largest packet the device sends.", Labels: []string{"device"},
		Source: "rtnetlink (IFLA_MTU)", ByHand: "ip link show"}
	netdevSpeed = &model.Signal{Name: "node_network_speed_bytes", Kind: model.Gauge, Unit: "bytes",
		Help:   "Bytes a second the device can carry, as its driver says; a virtual device's is made up. No sample where the driver does not know.",
		Labels: []string{"device"}, Source: "ioctl SIOCETHTOOL (ETHTOOL_GSET)", ByHand: "ethtool DEVICE | grep Speed"}
	netdevOffload = &model.Signal{Name: "plimsoll_network_offload", Kind: model.Gauge, Unit: "bool",
		Help: "1 when the device is handed large pieces that it (tso), or the kernel right before it (gso), cuts into packets; else 0. " +
			"No sample where it cannot be: of a device that takes no data from several places (scatter-gather).",
		Labels: []string{"device", "feature"}, Source: "ioctl SIOCETHTOOL (ETHTOOL_GFEATURES, ETHTOOL_GTSO, ETHTOOL_GGSO)",
		ByHand: "ethtool -k DEVICE"}
)

// askEvery is how often a device is asked for its speed and its offloads: some
// drivers take milliseconds to answer.
const askEvery = 10 * time.Second

// askAtMost is how many devices are asked: each request takes the lock of all
// that the kernel does with devices, and of veths there may be hundreds.
const askAtMost = 64

// offloads are the requests that tell of each feature.
var offloads = map[string]uint32{"tso": unix.ETHTOOL_GTSO, "gso": unix.ETHTOOL_GGSO}

// NetDev reads the network devices of a namespace over rtnetlink; sysfs would
// show those of the namespace in which it was mounted.
func NetDev() probe.Probe {
	p := probe.Probe{Name: "netdev", Cost: costNetDev,
		Blind: []string{"a veth carries packets of up to 64 KiB unless offloads are switched off", "limits of a cloud provider behind the device",
			fmt.Sprintf("speed and offloads of more than %d devices: those are asked that carry the most packets", askAtMost)}}
	for _, c := range netdevCounters {
		p.Signals = append(p.Signals, c.signal)
	}
	p.Signals = append(p.Signals, netdevUp, netdevDowns, netdevMTU, netdevSpeed, netdevOffload)
	p.CanRun = func(h *host.Host) error {
		if h.Recorded() {
			return host.Absent("network devices are read over netlink, and a recorded tree has none")
		}
		return nil
	}
	p.Open = func(*host.Host) (probe.Reader, error) { return openNetDev() }
	return p
}

// openNetDev opens both sockets in the calling thread's namespace.
func openNetDev() (*netdev, error) {
	conn, err := netlink.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a socket to ask network devices: %w", err), conn.Close())
	}
	return &netdev{conn: conn, ioctl: fd, asked: map[string]answers{}}, nil
}

type netdev struct {
	conn    *netlink.Conn
	ioctl   int                // any socket of the namespace
	asked   map[string]answers // by device
	at      time.Time          // when it was asked
	carried map[string]uint64  // packets of each device up to then
}

// answers are what a device said of itself; what it does not know is not there.
type answers struct {
	speed    uint64 // bytes a second, or 0
	offloads map[string]bool
}

// Read dumps all devices.
func (n *netdev) Read(out *probe.Out) error {
	var links []link
	err := n.conn.Dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg), time.Second, func(payload []byte) error {
		l, err := parseLink(payload)
		if err != nil {
			return err
		}
		links = append(links, l)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list network devices: %w", err)
	}
	if out.Now().Sub(n.at) >= askEvery {
		n.at = out.Now()
		n.ask(links)
	}
	for _, l := range links {
		n.put(l, out)
	}
	return nil
}

func (n *netdev) put(l link, out *probe.Out) {
	for _, c := range netdevCounters {
		if l.stats == nil {
			out.Mark(c.signal, errNoField("rtnetlink", "IFLA_STATS64"))
			continue
		}
		var sum uint64
		for _, f := range c.fields {
			sum += l.stats[f]
		}
		out.Put(c.signal, float64(sum), l.name)
	}
	up := 0.0
	if l.up {
		up = 1
	}
	out.Put(netdevUp, up, l.name)
	if l.counted {
		out.Put(netdevDowns, float64(l.downs), l.name)
	} else {
		out.Mark(netdevDowns, errNoField("rtnetlink", "IFLA_CARRIER_DOWN_COUNT"))
	}
	out.Put(netdevMTU, float64(l.mtu), l.name)
	if said := n.asked[l.name]; said.speed > 0 {
		out.Put(netdevSpeed, float64(said.speed), l.name)
	}
	for feature, on := range n.asked[l.name].offloads {
		v := 0.0
		if on {
			v = 1
		}
		out.Put(netdevOffload, v, l.name, feature)
	}
}

// ask asks the busiest devices.
func (n *netdev) ask(links []link) {
	clear(n.asked)
	for _, l := range n.busiest(links) {
		said := answers{offloads: map[string]bool{}}
		said.speed, _ = askSpeed(n.ioctl, l.name)
		if canGather(n.ioctl, l.name) {
			for feature, request := range offloads {
				if on, ok := askOffload(n.ioctl, l.name, request); ok {
					said.offloads[feature] = on
				}
			}
		}
		n.asked[l.name] = said
	}
}

// busiest returns the askAtMost devices that carried the most packets since the
// last call.
func (n *netdev) busiest(links []link) []link {
	carried, since := map[string]uint64{}, map[string]uint64{}
	for _, l := range links {
		if l.stats != nil {
			carried[l.name] = l.stats[0] + l.stats[1] // received and sent
		}
		since[l.name] = carried[l.name] - n.carried[l.name]
	}
	n.carried = carried
	most := slices.Clone(links)
	slices.SortStableFunc(most, func(a, b link) int { return cmp.Compare(since[b.name], since[a.name]) })
	return most[:min(len(most), askAtMost)]
}

// Close closes the sockets.
func (n *netdev) Close() error {
	return errors.Join(n.conn.Close(), unix.Close(n.ioctl))
}

// linkStats is how many fields of struct rtnl_link_stats64 are read; every
// kernel with IFLA_STATS64 has them.
const linkStats = 16

type link struct {
	name    string
	mtu     uint32
	up      bool
	downs   uint32 // if counted
	counted bool
	stats   []uint64 // linkStats of them, or nil
}

// parseLink parses one RTM_NEWLINK: struct ifinfomsg and attributes.
func parseLink(b []byte) (link, error) {
	if len(b) < unix.SizeofIfInfomsg {
		return link{}, fmt.Errorf("rtnetlink message of %d bytes, want %d or more", len(b), unix.SizeofIfInfomsg)
	}
	var l link
	rest := b[unix.SizeofIfInfomsg:]
	for {
		kind, value, more, ok := netlink.NextAttr(rest)
		if !ok {
			break
		}
		rest = more
		switch {
		case kind == unix.IFLA_IFNAME:
			name, _, _ := bytes.Cut(value, []byte{0})
			l.name = string(name)
		case kind == unix.IFLA_MTU && len(value) == 4:
			l.mtu = binary.NativeEndian.Uint32(value)
		case kind == unix.IFLA_OPERSTATE && len(value) == 1:
			const operUp = 6 // IF_OPER_UP
			l.up = value[0] == operUp
		case kind == unix.IFLA_CARRIER_DOWN_COUNT && len(value) == 4:
			l.downs, l.counted = binary.NativeEndian.Uint32(value), true
		case kind == unix.IFLA_STATS64 && len(value) >= linkStats*8:
			l.stats = make([]uint64, linkStats)
			for i := range l.stats {
				l.stats[i] = binary.NativeEndian.Uint64(value[i*8:])
			}
		}
	}
	if l.name == "" {
		return link{}, errors.New("rtnetlink message without a device name")
	}
	return l, nil
}

// ethtoolCmd is struct ethtool_cmd of linux/ethtool.h: the old request, which
// needs no privilege and which every driver answers.
type ethtoolCmd struct {
	cmd, supported, advertising uint32
	speed                       uint16
	_                           [14]byte
	speedHi                     uint16
	_                           [14]byte
}

// askSpeed returns a device's speed in bytes a second; ok is false when it or
// its driver does not know.
func askSpeed(socket int, device string) (bytesPerSecond uint64, ok bool) {
	cmd := &ethtoolCmd{cmd: unix.ETHTOOL_GSET}
	if !ethtool(socket, device, unsafe.Pointer(cmd)) {
		return 0, false
	}
	megabits := uint32(cmd.speedHi)<<16 | uint32(cmd.speed)
	if megabits == 0 || megabits == 0xffff || megabits == 0xffffffff { // SPEED_UNKNOWN, old and new
		return 0, false
	}
	return uint64(megabits) * 1e6 / 8, true
}

// ethtoolValue is struct ethtool_value of linux/ethtool.h, with which one
// feature is asked for.
type ethtoolValue struct{ cmd, data uint32 }

// askOffload says whether a feature of a device is switched on; ok is false
// where there is no such device any more, or the kernel does not know the request.
func askOffload(socket int, device string, request uint32) (on, ok bool) {
	value := &ethtoolValue{cmd: request}
	ok = ethtool(socket, device, unsafe.Pointer(value))
	return value.data != 0, ok
}

// ethtoolFeatures is struct ethtool_gfeatures of linux/ethtool.h with room for
// the first 32 features.
type ethtoolFeatures struct{ cmd, size, available, requested, active, neverChanged uint32 }

// canGather says whether a device takes data from several places, or would if
// somebody switched that on. Without it the kernel switches TSO and GSO off.
func canGather(socket int, device string) bool {
	const gather = 1 // NETIF_F_SG
	features := &ethtoolFeatures{cmd: unix.ETHTOOL_GFEATURES, size: 1}
	return ethtool(socket, device, unsafe.Pointer(features)) && (features.available|features.active)&gather != 0
}

// ethtool makes a request of linux/ethtool.h about a device.
func ethtool(socket int, device string, request unsafe.Pointer) (ok bool) {
	var ifreq struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of the union
	}
	copy(ifreq.name[:unix.IFNAMSIZ-1], device)
	ifreq.data = request
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq)))
	return errno == 0
}

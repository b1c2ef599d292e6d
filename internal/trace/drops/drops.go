// Package drops is the tracer of packets that the kernel throws away: why, as
// the kernel itself says, and in which of its functions.
package drops

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/symbol"
	"plimsoll/internal/trace/tcp"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 10}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "drops",
		Short:       "packets thrown away, the kernel's reason and function",
		About:       "packets that the kernel throws away, with its own reason, the function that did it, and the service's port",
		Long:        long,
		Level:       trace.Light,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"kfree_skb"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 7, Replies: "0.995 (0.988–1.010)", CPU: "1.006 (0.990–1.010)"},
		Blind:       blind,
		ByHand:      "perf trace -a -e skb:kfree_skb; dropwatch -l kas; nstat for the sums",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Counts the packets that the kernel throws away, with its own reason (from the
running kernel, not from a table), the kernel function that did it, and the port
of the service: the listener's, that to which a SYN goes, or the lower one of the
two. Not every reason is a fault: those that also occur where all is well stand
apart. Where a SYN is sent again and the connection stands in the end, that
connection is counted, and how much later it stood.`

const cost = "0.25 µs of BPF run time a packet that is thrown away, 0.3 µs more for a SYN, and 0.08 µs for each change of a connection's state; other packets cost nothing (Linux 6.18, 2 CPUs, a shared machine)"

var blind = []string{
	"a SYN that finds the accept queue full is used up rather than dropped, as the kernel sees it: nstat counts it (ListenOverflows), and here only the last ACK of a handshake is TCP_LISTEN_OVERFLOW",
	"what a network card drops never was a packet to the kernel (ethtool -S), and what a driver or XDP throws away before there is one neither",
	"before Linux 5.17 there are no reasons, closing sockets look the same as faults, and who came late is not told",
	"the port is the lower one of the two where neither a listener nor a SYN tells the service's; of encrypted, tunnelled or fragmented packets there is none",
	"of connections that stand late only those are seen that stand in the end; who gives up is not, nor who comes through a proxy or a gateway that opens a connection of its own",
	"65,536 SYNs that were thrown away have a place, by address and port: in a flood one is forgotten before it is sent again, and counted as lost",
	"a packet counts once, however many segments it holds (GSO, GRO)",
	"drops are in nobody's name: leaving out or singling out processes does not apply",
}

// usual are reasons that also occur where nothing is wrong: a socket is closed, a
// packet came twice or for nobody, a caller gave no reason.
var usual = []string{"NOT_SPECIFIED", "CONSUMED", "SOCKET_CLOSE", "QUEUE_PURGE", "UNIX_DISCONNECT", "TCP_CLOSE", "TCP_RESET", "TCP_OLD_DATA",
	"TCP_OFOMERGE", "TCP_OLD_ACK", "NO_SOCKET", "OTHERHOST", "UNHANDLED_PROTO", "IPV6DISABLED", "SOCKET_FILTER"}

// Drops is how many packets of a network namespace met the same fate.
type Drops struct {
	// Netns is its inode; 0 where neither a socket nor a device told it.
	Netns uint32 `json:"netns"`
	// Reason is the kernel's; "" where it tells none.
	Reason string `json:"reason"`
	// Location is the kernel's function; "" in those by port, and where the names
	// of the kernel's functions cannot be read.
	Location string `json:"location,omitempty"`
	// Port is the service's, 0 in those by location.
	Port    uint16 `json:"port,omitempty"`
	Packets uint64 `json:"packets"`
}

// Late is how many connections to a port stood only after a SYN of theirs had been
// thrown away.
type Late struct {
	Netns uint32 `json:"netns"`
	// Reason is the kernel's for the last SYN; "" where it tells none.
	Reason      string `json:"reason"`
	Port        uint16 `json:"port"`
	Connections uint64 `json:"connections"`
	// Waited is from the first SYN that was thrown away until they stood, of all together.
	Waited time.Duration `json:"waited_ns"`
}

// Refused is how many SYNs came to an address and port of this host at which nobody listened.
type Refused struct {
	Netns   uint32         `json:"netns"`
	Address netip.AddrPort `json:"address"`
	SYNs    uint64         `json:"syns"`
}

// Snapshot is everything since the start, most packets first: all of them by
// location, and those in which there was a port, by port.
type Snapshot struct {
	Drops  []Drops `json:"drops"`
	ByPort []Drops `json:"by_port"`
	// Late has the connections of which a SYN was thrown away, those that took longest first.
	Late []Late `json:"late"`
	// Refused has those that the kernel answered with a reset, the most first.
	Refused []Refused `json:"refused"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	symbols *symbol.Resolver
	named   map[uint64]string // functions that were asked for, by address
	reasons map[uint32]string // nil if this kernel tells none
	systems map[uint32]string // parts of the kernel with reasons of their own
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

// programs are fit for this kernel.
func programs() (*ebpf.CollectionSpec, error) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	n, err := trace.Arguments(kernel, "kfree_skb")
	if err != nil {
		return nil, err
	}
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	return spec, tells(spec, n)
}

// tells says by arguments how much kfree_skb tells. Without reasons nobody's connection is
// late: a SYN to a port where nobody listens would look the same as one that a filter stops.
func tells(spec *ebpf.CollectionSpec, arguments int) error {
	if arguments < 3 {
		delete(spec.Programs, atStands)
	}
	return errors.Join(trace.SetConstant(spec, bpfVarHasReason, arguments >= 3), trace.SetConstant(spec, bpfVarHasReceiver, arguments >= 4))
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	var told bool
	if err := spec.Variables[bpfVarHasReason].Get(&told); err != nil {
		return nil, err
	}
	t := &Trace{symbols: symbol.New(), named: map[uint64]string{}}
	if told {
		if t.reasons, t.systems, err = readReasons(kernel); err != nil {
			return nil, err
		}
		if err := errors.Join(trace.SetConstant(spec, bpfVarUsual, t.usualBits()), trace.SetConstant(spec, bpfVarNoSocket, t.number("NO_SOCKET"))); err != nil {
			return nil, err
		}
	}
	_ = t.symbols.KernelErr() // makes ready to name functions, for which a packet of ours may be thrown away
	if t.Set, err = trace.Load(spec, since, needs); err != nil {
		return nil, errors.Join(err, t.symbols.Close())
	}
	return t, nil
}

// readReasons asks the kernel for the names of its reasons, and of the parts of
// it that have their own: those bear the part's number in the upper 16 bits.
func readReasons(kernel *btf.Spec) (reasons, systems map[uint32]string, err error) {
	if reasons, err = tcp.EnumNames(kernel, "skb_drop_reason", "SKB_"); err != nil {
		return nil, nil, err
	}
	for n, name := range reasons {
		reasons[n] = strings.TrimPrefix(name, "DROP_REASON_")
	}
	for _, own := range []string{"ovs_drop_reason", "mac80211_drop_reason"} {
		if names, err := tcp.EnumNames(kernel, own, ""); err == nil { // else it is in a module, or not there
			maps.Copy(reasons, names)
		}
	}
	systems, err = tcp.EnumNames(kernel, "skb_drop_reason_subsys", "SKB_DROP_REASON_SUBSYS_")
	if errors.Is(err, fs.ErrNotExist) { // before Linux 6.4 there are none
		err = nil
	}
	return reasons, systems, err
}

// usualBits has a bit for each reason that is no fault, by the number that this kernel gives it.
func (t *Trace) usualBits() (bits [4]uint64) {
	for n, name := range t.reasons {
		if n < uint32(64*len(bits)) && slices.Contains(usual, name) {
			bits[n/64] |= 1 << (n % 64)
		}
	}
	return bits
}

// number is that of a reason on this kernel, 0 if it has none of that name.
func (t *Trace) number(reason string) uint32 {
	for n, name := range t.reasons {
		if name == reason {
			return n
		}
	}
	return 0
}

// Status says for each signal whether it is read.
func (t *Trace) Status() map[string]model.Status {
	status := t.Set.Status()
	if t.reasons == nil {
		for _, s := range []*model.Signal{lateConnections, lateSeconds, refusedConnects} {
			status[s.Name] = host.StatusOf(host.Absent("needs Linux 5.17: before, the kernel tells no reason with a packet that it throws away"))
		}
	}
	return status
}

// reason names one: "" where the kernel tells none.
func (t *Trace) reason(n uint32) string {
	if t.reasons == nil {
		return ""
	}
	if name, ok := t.reasons[n]; ok {
		return name
	}
	own := strconv.Itoa(int(n & 0xffff))
	if name, ok := t.systems[n>>16]; ok && n>>16 > 0 {
		return name + " reason " + own
	}
	return "reason " + strconv.Itoa(int(n))
}

// Close detaches the programs.
func (t *Trace) Close() error { return errors.Join(t.symbols.Close(), t.Set.Close()) }

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	byPlace, byPort, err := t.read()
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Drops: list(byPlace), ByPort: list(byPort)}
	if s.Late, err = t.late(); err != nil {
		return Snapshot{}, err
	}
	if s.Refused, err = t.refused(); err != nil {
		return Snapshot{}, err
	}
	s.Lost, err = t.Lost()
	return s, err
}

// late reads the connections that stood late, those that took longest first.
func (t *Trace) late() ([]Late, error) {
	var all []Late
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapLate], func(fate *bpfPortFate, cpus []bpfDelayed) {
		l := Late{Netns: fate.Netns, Reason: t.reason(fate.Reason), Port: uint16(fate.Port)}
		for _, d := range cpus {
			l.Connections += d.Connections
			l.Waited += time.Duration(d.Ns)
		}
		all = append(all, l)
	})
	if err != nil {
		return nil, fmt.Errorf("read the connections that stood late: %w", err)
	}
	slices.SortFunc(all, func(a, b Late) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), strings.Compare(a.Reason, b.Reason), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Netns, b.Netns))
	})
	return all, nil
}

// refused reads the SYNs that found no listener, the most first.
func (t *Trace) refused() ([]Refused, error) {
	var all []Refused
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapRefused], func(at *bpfUnserved, cpus []uint64) {
		all = append(all, Refused{at.Netns, netip.AddrPortFrom(netip.AddrFrom16(at.Addr).Unmap(), uint16(at.Port)), total(cpus)})
	})
	if err != nil {
		return nil, fmt.Errorf("read the SYNs that found no listener: %w", err)
	}
	slices.SortFunc(all, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.SYNs, a.SYNs), a.Address.Compare(b.Address), cmp.Compare(a.Netns, b.Netns))
	})
	return all, nil
}

// read adds up everything since the start. Of the keys, the number is 0.
func (t *Trace) read() (byPlace, byPort map[Drops]uint64, err error) {
	byPlace = map[Drops]uint64{} // places within one function are one
	err = trace.EachPerCPU(t.Maps.Maps[bpfMapFates], func(fate *bpfFate, cpus []uint64) {
		byPlace[Drops{Netns: fate.Netns, Reason: t.reason(fate.Reason), Location: t.function(fate.Location)}] += total(cpus)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the drops: %w", err)
	}
	byPort = map[Drops]uint64{}
	err = trace.EachPerCPU(t.Maps.Maps[bpfMapPorts], func(port *bpfPortFate, cpus []uint64) {
		byPort[Drops{Netns: port.Netns, Reason: t.reason(port.Reason), Port: uint16(port.Port)}] += total(cpus)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the drops by port: %w", err)
	}
	return byPlace, byPort, nil
}

// function names what dropped a packet, by the address to which its call returns.
func (t *Trace) function(returns uint64) string {
	name, known := t.named[returns]
	if !known {
		name = t.symbols.Kernel(returns - 1).Function
		t.named[returns] = name
	}
	return name
}

func total(cpus []uint64) uint64 {
	var n uint64
	for _, v := range cpus {
		n += v
	}
	return n
}

func list(sums map[Drops]uint64) []Drops {
	var all []Drops
	for d, n := range sums {
		d.Packets = n
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Drops) int {
		if c := cmp.Compare(b.Packets, a.Packets); c != 0 { // cmp.Or would compare the names all the same
			return c
		}
		return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Location, b.Location),
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Netns, b.Netns))
	})
	return all
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	byPlace, byPort, err := t.read()
	if err != nil {
		return err
	}
	put := func(signal *model.Signal, d Drops, n uint64, label string) {
		if t.Has(signal) {
			out.Net(d.Netns).Put(signal, float64(n), d.Reason, label)
		}
	}
	for d, n := range byPlace {
		put(packets, d, n, d.Location)
	}
	for d, n := range byPort {
		put(portPackets, d, n, strconv.Itoa(int(d.Port)))
	}
	if err := errors.Join(t.readLate(out), t.readRefused(out)); err != nil {
		return err
	}
	missed, err := t.Lost()
	if err != nil {
		return err
	}
	trace.PutLost(out, lost, missed)
	return nil
}

func (t *Trace) readLate(out trace.Out) error {
	if t.reasons == nil || !t.Has(lateConnections) {
		return nil
	}
	all, err := t.late()
	if err != nil {
		return err
	}
	for _, l := range all {
		sink, port := out.Net(l.Netns), strconv.Itoa(int(l.Port))
		sink.Put(lateConnections, float64(l.Connections), l.Reason, port)
		sink.Put(lateSeconds, l.Waited.Seconds(), l.Reason, port)
	}
	return nil
}

// fewRefused is what a scan of ports leaves at each: a series for each of a thousand would tell nobody anything.
const fewRefused = 10

func (t *Trace) readRefused(out trace.Out) error {
	if t.reasons == nil || !t.Has(refusedConnects) {
		return nil
	}
	all, err := t.refused()
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.SYNs < fewRefused {
			continue
		}
		out.Net(r.Netns).Put(refusedConnects, float64(r.SYNs), r.Address.Addr().String(), strconv.Itoa(int(r.Address.Port())))
	}
	return nil
}

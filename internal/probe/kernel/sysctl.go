package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// sysctl is one setting: its dotted name, and how many numbers it holds.
type sysctl struct {
	name    string
	numbers int
	unit    string
	help    string
}

// hostSysctls belong to a network namespace, or can at least be read in one.
var hostSysctls = []sysctl{
	{"net.core.somaxconn", 1, "connections", "Upper limit of every listener's accept queue, whatever backlog the program asks for."},
	{"net.core.rmem_default", 1, "bytes", "Receive buffer of a datagram socket whose program asks for no other."},
	{"net.core.rmem_max", 1, "bytes", "Largest receive buffer a program may ask for."},
	{"net.core.wmem_max", 1, "bytes", "Largest send buffer a program may ask for."},
	{"net.ipv4.ip_local_port_range", 2, "port", "First (index 0) and last (index 1) port given to connections that leave from here."},
	{"net.ipv4.tcp_tw_reuse", 1, "switch", "1: a new connection may take the port of one in TIME_WAIT; 2: on loopback only; 0: never."},
	{"net.ipv4.tcp_max_tw_buckets", 1, "sockets", "Most sockets in TIME_WAIT; beyond that they are closed at once."},
	{"net.ipv4.tcp_max_syn_backlog", 1, "connections", "Most half-open connections of a listener that SYN cookies do not protect."},
	{"net.ipv4.tcp_syncookies", 1, "switch", "1: SYN cookies when a queue is full; 2: always; 0: never."},
	{"net.ipv4.tcp_abort_on_overflow", 1, "switch", "1: where the accept queue is full, the ACK that ends a handshake is answered with a reset; 0: with nothing, and the client tries again. A SYN is dropped in silence either way."},
	{"net.ipv4.tcp_fin_timeout", 1, "seconds", "How long an orphan stays in FIN-WAIT-2 (not TIME_WAIT, which is 60 s always)."},
	{"net.ipv4.tcp_timestamps", 1, "switch", "TCP time stamps; tcp_tw_reuse needs them."},
	{"net.ipv4.tcp_ecn", 1, "switch", "1: SYNs ask for explicit congestion notification (ECN); 2: it is used where the other side asks; 0: never. Since Linux 6.18 3 and 4 ask, too, 5 does not."},
	{"net.ipv4.tcp_syn_retries", 1, "times", "How often a SYN is sent again at most: after 1, 3, 7, 15 s and so on. Since Linux 6.5 that is net.ipv4.tcp_syn_linear_timeouts (4) times more often: after 1, 2, 3, 4, 5, 7, 11 s and so on."},
	{"net.ipv4.tcp_synack_retries", 1, "times", "How often a SYN-ACK is sent again."},
	{"net.ipv4.ipfrag_high_thresh", 1, "bytes", "Most memory for fragments of packets whose rest is awaited; beyond it the fragments of no other packet are taken."},
	{"net.ipv4.ipfrag_time", 1, "seconds", "How long the rest of a fragmented packet is awaited."},
	{"net.ipv4.tcp_slow_start_after_idle", 1, "switch", "1: an idle connection begins slowly again."},
	{"net.ipv4.tcp_rmem", 3, "bytes", "Smallest, first and largest receive buffer of a TCP socket."},
	{"net.ipv4.tcp_wmem", 3, "bytes", "Smallest, first and largest send buffer of a TCP socket."},
	{"net.netfilter.nf_conntrack_max", 1, "entries", "Most connections each namespace may track; set on the machine only."},
	{"net.netfilter.nf_conntrack_buckets", 1, "buckets", "Size of the connection-tracking hash table; set on the machine only."},
	{"net.netfilter.nf_conntrack_tcp_timeout_time_wait", 1, "seconds", "How long a closed connection stays in the tracking table."},
	{"net.netfilter.nf_conntrack_tcp_timeout_established", 1, "seconds", "How long an idle connection stays in the tracking table."},
}

// machineSysctls are the machine's; a child namespace does not show them, so
// they are read where we run, else from the machine's own.
var machineSysctls = []sysctl{
	{"net.core.netdev_max_backlog", 1, "packets", "Most packets in a CPU's backlog between interrupt and reception."},
	{"net.core.netdev_budget", 1, "packets", "Most packets taken in one run of the receiving soft interrupt."},
	{"net.core.netdev_budget_usecs", 1, "microseconds", "Longest run of the receiving soft interrupt."},
	{"net.ipv4.tcp_max_orphans", 1, "sockets", "Most TCP sockets that no program holds; beyond that they are reset."},
	{"net.ipv4.tcp_mem", 3, "pages", "Memory of all TCP buffers: no pressure below, pressure above, most."},
	{"net.ipv4.neigh.default.gc_thresh1", 1, "entries", "Neighbours below which none is thrown out."},
	{"net.ipv4.neigh.default.gc_thresh2", 1, "entries", "Neighbours above which old ones are thrown out."},
	{"net.ipv4.neigh.default.gc_thresh3", 1, "entries", "Most neighbours; beyond that packets to new ones fail."},
	{"fs.file-max", 1, "files", "Most open files of the machine."},
	{"fs.nr_open", 1, "files", "Most descriptors a process may set as its limit."},
	{"kernel.threads-max", 1, "threads", "Most threads of the machine."},
	{"kernel.pid_max", 1, "processes", "Largest process number: most processes and threads."},
	{"vm.max_map_count", 1, "mappings", "Most memory mappings of a process."},
}

// reservedPorts is a list in the kernel; rules need how many there are.
var reservedPorts = &model.Signal{Name: "plimsoll_ip_local_reserved_ports", Kind: model.Gauge, Unit: "ports",
	Help:   "Ports of the local range that connections must not take (net.ipv4.ip_local_reserved_ports), counted over all ports.",
	Source: "/proc/sys/net/ipv4/ip_local_reserved_ports", ByHand: "sysctl net.ipv4.ip_local_reserved_ports"}

const sysctlEvery = 5 * time.Second

// Sysctl reads the settings of a network namespace.
func Sysctl() probe.Probe {
	signals := sysctlSignals(hostSysctls)
	p := probe.Probe{Name: "sysctl", Every: sysctlEvery, Cost: costSysctl,
		Blind: []string{"a setting that is changed and changed back within five seconds"}}
	return fromFiles(p, func() []source {
		reserved := sysctlSource("net.ipv4.ip_local_reserved_ports", reservedPorts)
		reserved.put = putReservedPorts
		return append(sysctlSources(hostSysctls, signals), reserved)
	})
}

// MachineSysctl reads the settings of the machine.
func MachineSysctl() probe.Probe {
	signals := sysctlSignals(machineSysctls)
	p := probe.Probe{Name: "sysctl_machine", Scope: probe.PerMachine, Every: sysctlEvery, Cost: costMachineSysctl,
		Blind: []string{"inside a container the machine's network settings are hidden: they are absent there"}}
	return fromFiles(p, func() []source {
		sources := sysctlSources(machineSysctls, signals)
		for i := range sources {
			sources[i].machines = true
		}
		return sources
	})
}

func sysctlSignals(list []sysctl) []*model.Signal {
	var signals []*model.Signal
	for _, s := range list {
		sig := &model.Signal{Name: "node_sysctl_" + strings.NewReplacer(".", "_", "-", "_").Replace(s.name),
			Kind: model.Gauge, Unit: s.unit, Help: s.help, Source: "/" + sysctlPath(s.name), ByHand: "sysctl " + s.name}
		if s.numbers > 1 {
			sig.Labels = []string{"index"}
		}
		signals = append(signals, sig)
	}
	return signals
}

func sysctlPath(name string) string { return "proc/sys/" + strings.ReplaceAll(name, ".", "/") }

func sysctlSource(name string, sig *model.Signal) source {
	hint := "this kernel has no such setting, or does not show it in this network namespace"
	if strings.HasPrefix(name, "net.netfilter.nf_conntrack_") {
		hint = conntrackHint
	}
	return source{path: sysctlPath(name), signals: []*model.Signal{sig}, hint: hint}
}

func sysctlSources(list []sysctl, signals []*model.Signal) []source {
	var sources []source
	for i, s := range list {
		src, sig := sysctlSource(s.name, signals[i]), signals[i]
		src.put = putNumber(sig)
		if s.numbers > 1 {
			src.put = func(b []byte, out *probe.Out) error { return putNumbers(b, s.numbers, sig, out) }
		}
		sources = append(sources, src)
	}
	return sources
}

func putNumbers(b []byte, n int, sig *model.Signal, out *probe.Out) error {
	numbers, err := parseUints(b)
	if err != nil {
		return err
	}
	if len(numbers) != n {
		return fmt.Errorf("want %d numbers, got %d", n, len(numbers))
	}
	for i, v := range numbers {
		out.Put(sig, float64(v), strconv.Itoa(i))
	}
	return nil
}

func putReservedPorts(b []byte, out *probe.Out) error {
	n, err := countPorts(b)
	if err != nil {
		return err
	}
	out.Put(reservedPorts, float64(n))
	return nil
}

// countPorts counts the ports of a list such as "8080,9000-9100"; the kernel
// prints it sorted and without overlaps.
func countPorts(b []byte) (int, error) {
	list := string(bytes.TrimSpace(b))
	if list == "" {
		return 0, nil
	}
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err == nil && last < first {
			err = errors.New("it ends before it begins")
		}
		if err != nil {
			return 0, fmt.Errorf("ports %q: want PORT or FIRST-LAST: %w", part, err)
		}
		n += int(last-first) + 1
	}
	return n, nil
}

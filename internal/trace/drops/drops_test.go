package drops

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tcptest.Main(m, Tracer())) }

func begin(t *testing.T, arguments func(actual int) int) *Trace {
	t.Helper()
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	n, err := trace.Arguments(kernel, "kfree_skb")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	if err := tells(spec, min(n, arguments(n))); err != nil {
		t.Fatal(err)
	}
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// packetsOf sums up the drops of one namespace by reason.
func packetsOf(t *testing.T, tr *Trace, ns uint32) (byReason map[string]uint64, byPort map[Drops]uint64) {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost)
	byReason, byPort = map[string]uint64{}, map[Drops]uint64{}
	for _, d := range s.Drops {
		if d.Netns == ns {
			byReason[d.Reason] += d.Packets
		}
	}
	for _, d := range s.ByPort {
		if d.Netns == ns {
			byPort[Drops{Reason: d.Reason, Port: d.Port}] += d.Packets
		}
	}
	return byReason, byPort
}

// blocked sends n datagrams to a port and some to another, and drops the former by a rule.
func blocked(t *testing.T, n int) {
	t.Helper()
	tcptest.Run(t, "nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in udp dport 4001 counter drop")
	for port, times := range map[int]int{4001: n, 4002: 11} {
		receiver, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Fatal(err)
		}
		defer receiver.Close()
		c, err := net.Dial("udp", receiver.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range times {
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if port == 4001 {
				continue
			}
			if _, _, err := receiver.ReadFrom(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFirewallDrops: as many as a rule drops, by the kernel's reason and the port.
func TestFirewallDrops(t *testing.T) {
	const dropped = 101
	for name, c := range map[string]struct {
		arguments func(int) int
		reason    string
	}{
		"as this kernel is":       {func(n int) int { return n }, "NETFILTER_DROP"},
		"as a kernel before 6.11": {func(int) int { return 3 }, "NETFILTER_DROP"},
		"as a kernel before 5.17": {func(int) int { return 2 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ns := tcptest.OwnNetns(t, Tracer())
			tr := begin(t, c.arguments)
			if tr.reasons == nil { // this kernel is one before 5.17 itself
				c.reason = ""
			} else {
				tracetest.AllAttached(t, Tracer(), tr)
			}
			blocked(t, dropped)
			var reasons map[string]uint64
			var ports map[Drops]uint64
			tracetest.Eventually(t, "all are dropped", func() bool { // the sender does not wait for that
				reasons, ports = packetsOf(t, tr, ns)
				return reasons[c.reason] >= dropped
			})
			if d := cmp.Diff(map[string]uint64{c.reason: dropped}, reasons); d != "" {
				t.Errorf("by reason (-want +got)\n%s", d)
			}
			if d := cmp.Diff(map[Drops]uint64{{Reason: c.reason, Port: 4001}: dropped}, ports); d != "" {
				t.Errorf("by port (-want +got)\n%s", d)
			}
			checkSamples(t, tr, ns, c.reason, dropped)
		})
	}
}

// checkSamples looks at the same through Read. The function that drops has a name.
func checkSamples(t *testing.T, tr *Trace, ns uint32, reason string, dropped float64) {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	location := ""
	for _, d := range s.Drops {
		if d.Netns == ns {
			location = d.Location
		}
	}
	if location == "" && tr.symbols.KernelErr() == nil {
		t.Error("the function that dropped them has no name")
	}
	t.Logf("%s in %s", reason, location)
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	at := strconv.Itoa(int(ns)) + "@"
	for series, want := range map[string]float64{
		at + "plimsoll_drops_packets_total{" + reason + "," + location + "}": dropped,
		at + "plimsoll_drops_port_packets_total{" + reason + ",4001}":        dropped,
		"plimsoll_drops_lost_total{fates}":                                   0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// TestNobodyListens: a SYN to a port without a listener is dropped at that port, and refused at that address.
func TestNobodyListens(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t, func(n int) int { return n })
	peer := tcptest.StartPeer(t)
	peer.Do("connect [::1]:4003 %d", 53)
	peer.Do("connect 127.0.0.1:4008 %d", 7)
	at4003 := func() (n uint64, reasons []string) {
		_, ports := packetsOf(t, tr, ns)
		for d, packets := range ports {
			if d.Port == 4003 {
				n, reasons = n+packets, append(reasons, d.Reason)
			}
		}
		return n, reasons
	}
	tracetest.Eventually(t, "all are dropped", func() bool { // the answer is sent before that
		n, _ := at4003()
		return n >= 53
	})
	// Linux before 5.17 tells no reason, and before 5.18 none of IPv6.
	if n, reasons := at4003(); n != 53 || len(reasons) != 1 || !slices.Contains([]string{"NO_SOCKET", "NOT_SPECIFIED", ""}, reasons[0]) {
		t.Errorf("%d drops at 4003 for %q, want 53 for NO_SOCKET", n, reasons)
	}
	if tr.number("NO_SOCKET") == 0 {
		t.Skip("this kernel has no reason for a SYN that finds no listener")
	}
	want := map[string]uint64{"127.0.0.1:4008": 7}
	if n, reasons := at4003(); n > 0 && reasons[0] == "NO_SOCKET" {
		want["[::1]:4003"] = 53
	}
	var got map[string]uint64
	tracetest.Eventually(t, "those of IPv4 are dropped as well", func() bool {
		got = refusedIn(t, tr, ns)
		return got["127.0.0.1:4008"] >= 7
	})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("refused (-want +got)\n%s", d)
	}
}

// refusedIn is how many SYNs found no listener in a namespace, by address and port. Read says the same.
func refusedIn(t *testing.T, tr *Trace, ns uint32) map[string]uint64 {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, r := range s.Refused {
		if r.Netns != ns {
			continue
		}
		all[r.Address.String()] = r.SYNs
		series := fmt.Sprintf("%d@plimsoll_drops_refused_connects_total{%s,%d}", ns, r.Address.Addr(), r.Address.Port())
		n, told := samples[series]
		if told != (r.SYNs >= fewRefused) || told && n < float64(r.SYNs) { // it was read later, and so is no less
			t.Errorf("%s = %v (%v), want %d, or none if that is few", series, n, told, r.SYNs)
		}
	}
	return all
}

// firstSYNsDropped has the filter throw the first SYN of each connection to ports 4004 and
// 4007 away, and every one to port 4005.
const firstSYNsDropped = `
table inet t {
	set seen4 { type ipv4_addr . inet_service; flags dynamic; size 100; }
	set seen6 { type ipv6_addr . inet_service; flags dynamic; size 100; }
	chain in {
		type filter hook input priority 0;
		tcp dport 4005 drop
		tcp dport != { 4004, 4007 } accept
		tcp flags & (syn | ack) != syn accept
		ip saddr . tcp sport @seen4 accept
		ip6 saddr . tcp sport @seen6 accept
		add @seen4 { ip saddr . tcp sport } drop
		add @seen6 { ip6 saddr . tcp sport } drop
	}
}`

// open begins to connect, from a port of its own choice or a given one, and waits for
// nothing: goroutines of their own would be in another namespace.
func open(t *testing.T, from uint16, to string) (fd int) {
	t.Helper()
	var far, near unix.Sockaddr
	family, at := unix.AF_INET, netip.MustParseAddrPort(to)
	if at.Addr().Is6() {
		family, far = unix.AF_INET6, &unix.SockaddrInet6{Addr: at.Addr().As16(), Port: int(at.Port())}
	} else {
		far, near = &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}, &unix.SockaddrInet4{Port: int(from)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if from > 0 {
		if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, near)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Connect(fd, far); err != unix.EINPROGRESS && err != nil {
		t.Fatal(err)
	}
	return fd
}

// needReasons skips on a kernel that does not say why it throws a packet away.
func needReasons(t *testing.T) {
	t.Helper()
	tracetest.Need(t, Tracer())
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := trace.Arguments(kernel, "kfree_skb"); err != nil || n < 3 {
		t.Skipf("kfree_skb has %d arguments (%v): no reason", n, err)
	}
}

// TestLateConnections: those whose first SYN is thrown away and whose second gets in,
// and none that never stands, or that has the port of one that did not.
func TestLateConnections(t *testing.T) {
	const v4, v6, mapped = 7, 5, 3
	needReasons(t)
	ns := tcptest.OwnNetns(t, Tracer())
	tcptest.Run(t, "nft", firstSYNsDropped)
	for _, at := range []string{"127.0.0.1:4004", "[::1]:4004", "127.0.0.1:4005", "127.0.0.1:4006", "[::]:4007"} {
		tcptest.Listen(t, at)
	}
	tr := begin(t, func(n int) int { return n })
	tracetest.AllAttached(t, Tracer(), tr)
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for to, n := range map[string]int{"127.0.0.1:4004": v4, "[::1]:4004": v6, "127.0.0.1:4007": mapped} {
		for range n {
			fds = append(fds, open(t, 0, to))
		}
	}
	unix.Close(open(t, 41001, "127.0.0.1:4005")) // gives up at once
	fds = append(fds, open(t, 41001, "127.0.0.1:4006"), open(t, 41002, "127.0.0.1:4005"))
	const reason = "NETFILTER_DROP"
	var late map[Late]uint64
	var waited time.Duration
	tracetest.Eventually(t, "all stand", func() bool {
		s, err := tr.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		tracetest.NothingLost(t, s.Lost)
		late, waited = map[Late]uint64{}, 0
		for _, l := range s.Late {
			if l.Netns == ns {
				late[Late{Reason: l.Reason, Port: l.Port}] += l.Connections
				waited += l.Waited
			}
		}
		return late[Late{Reason: reason, Port: 4004}] >= v4+v6 && late[Late{Reason: reason, Port: 4007}] >= mapped
	})
	if d := cmp.Diff(map[Late]uint64{{Reason: reason, Port: 4004}: v4 + v6, {Reason: reason, Port: 4007}: mapped}, late); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if waited < (v4+v6+mapped)*900*time.Millisecond {
		t.Errorf("they waited for %v, want a second each", waited)
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	at := strconv.Itoa(int(ns)) + "@"
	for _, port := range []string{"4004", "4007"} {
		waited -= time.Duration(samples[at+"plimsoll_drops_late_seconds_total{"+reason+","+port+"}"] * float64(time.Second)).Round(time.Nanosecond)
	}
	if n := samples[at+"plimsoll_drops_late_connections_total{"+reason+",4007}"]; n != mapped || waited.Abs() > time.Microsecond {
		t.Errorf("%v late connections at 4007 are put, want %d; and %v lack of the time", n, mapped, waited)
	}
}

// A kernel that tells no reason cannot tell who is late: that is not nobody.
func TestNobodyIsLateWithoutReasons(t *testing.T) {
	tcptest.OwnNetns(t, Tracer())
	tr := begin(t, func(int) int { return 2 })
	for _, s := range []*model.Signal{lateConnections, lateSeconds} {
		if got := tr.Status()[s.Name]; got.State != model.Absent || !strings.Contains(got.Why, "Linux 5.17") {
			t.Errorf("%s is %+v", s.Name, got)
		}
	}
	if got := tr.Status()[packets.Name]; got.State != model.Read {
		t.Errorf("packets are %+v", got)
	}
}

// Of more SYNs than have a place some are forgotten, which is counted; those of a port where
// nobody listens take no place.
func TestForgottenSYNsAreCounted(t *testing.T) {
	const filtered, refused = 9, 23
	needReasons(t)
	tcptest.OwnNetns(t, Tracer())
	spec, err := programs()
	if err == nil {
		err = trace.SetConstant(spec, bpfVarLastPlace, uint32(0))
	}
	if err != nil {
		t.Fatal(err)
	}
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tcptest.Run(t, "nft", firstSYNsDropped)
	for n, to := range map[uint16]string{filtered: "127.0.0.1:4005", refused: "127.0.0.1:4006"} {
		for i := range n {
			unix.Close(open(t, 42000+100*n+i, to)) // so that it is sent once
		}
	}
	tracetest.Eventually(t, "all but one are forgotten", func() bool {
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		if lost["syns"] > filtered-1 {
			t.Fatalf("%d are forgotten, want %d", lost["syns"], filtered-1)
		}
		return lost["syns"] == filtered-1
	})
}

// What finds no room is counted.
func TestLossIsCounted(t *testing.T) {
	tcptest.OwnNetns(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapFates].MaxEntries = 1
	spec.Maps[bpfMapPorts].MaxEntries = 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	blocked(t, 3)
	tcptest.Run(t, "nft", "flush ruleset")
	for port := 5001; port < 5004; port++ { // nobody is there
		if c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_, _ = c.Write([]byte("x"))
			c.Close()
		}
	}
	tracetest.Eventually(t, "some fate finds no room", func() bool {
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return lost["fates"] > 0
	})
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestReasonsHaveNames(t *testing.T) {
	tr := &Trace{reasons: map[uint32]string{12: "NETFILTER_DROP"}, systems: map[uint32]string{0: "CORE", 2: "OPENVSWITCH"}}
	got := []string{tr.reason(12), tr.reason(4000), tr.reason(2<<16 | 3), tr.reason(9 << 16), (&Trace{}).reason(12)}
	want := []string{"NETFILTER_DROP", "reason 4000", "OPENVSWITCH reason 3", "reason 589824", ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// The names of this kernel's own reasons lack their prefix.
func TestReasonsOfThisKernel(t *testing.T) {
	tracetest.Need(t, Tracer())
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	reasons, _, err := readReasons(kernel)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range reasons {
		found[name] = true
	}
	for _, want := range append(usual, "NETFILTER_DROP") {
		if !found[want] {
			t.Logf("this kernel has no reason %s", want) // they come and go
		}
	}
	if !found["NETFILTER_DROP"] || !found["NOT_SPECIFIED"] {
		t.Errorf("names %v", reasons)
	}
}

package tcp

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tcptest.Main(m, Tracer())) }

func begin(t *testing.T) *Trace {
	t.Helper()
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	tracetest.AllAttached(t, Tracer(), tr)
	return tr
}

// serve accepts connections and, unless it holds them, ends each when the other side does.
func serve(l net.Listener, hold bool) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !hold {
			go func() {
				_, _ = io.Copy(io.Discard, c) // until the other side closes or resets
				c.Close()
			}()
		}
	}
}

// seen is what the tracer saw in one namespace.
type seen struct {
	connects map[string]Connects // by destination
	sides    map[string]Side     // as Endpoint.String
}

func look(t *testing.T, tr *Trace, ns uint32) seen {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost)
	of := seen{map[string]Connects{}, map[string]Side{}}
	for _, c := range s.Connects {
		if c.Netns == ns {
			of.connects[c.Destination] = c
		}
	}
	for _, side := range s.Sides {
		if side.Netns == ns {
			of.sides[side.String()] = side
		}
	}
	return of
}

const connections = 101

// TestConnectsAndAccepts: as many as there were, at both ends, with the process's
// name, over IPv4 and IPv6; and who closed first.
func TestConnectsAndAccepts(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	c := tcptest.StartPeer(t)
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, addr := tcptest.Listen(t, host)
		go serve(l, false)
		before := tracetest.Skipped(t)
		if said := c.Do("connect %v %d", addr, connections); said != "" {
			t.Fatal(said)
		}
		c.Do("close")
		tcptest.Closed(t, addr.Port())
		of, skipped := look(t, tr, ns), tracetest.Skipped(t)-before
		all := func(n uint64) bool { return n <= connections && n+skipped >= connections }
		got, client := of.connects[addr.String()], of.sides["to "+addr.String()]
		if got.Name != c.Name || !all(got.Connected.Count()) || !all(got.Setups.Count()) || got.Failures != nil {
			t.Errorf("%v: %+v, want %d connects of %s, but for %d that the kernel may have skipped", addr, got, connections, c.Name, skipped)
		}
		if got.Setup <= 0 || got.Took <= got.Setup {
			t.Errorf("%v: connects took %v, of these %v before the SYN", addr, got.Took, got.Setup)
		}
		server := of.sides[fmt.Sprintf(":%d", addr.Port())]
		if !all(server.Arrivals()) || !all(server.Changes[closed]) || !all(client.Changes[opened]) || !all(client.Changes[Change{"ESTABLISHED", "FIN_WAIT1"}]) {
			t.Errorf("%v: server %+v, client %+v, of which the kernel may have skipped %d", addr, server, client, skipped)
		}
		checkSamples(t, tr, ns, addr, of)
	}
}

var opened, closed = Change{"SYN_SENT", "ESTABLISHED"}, Change{"ESTABLISHED", "CLOSE_WAIT"}

// checkSamples looks at the same through Read.
func checkSamples(t *testing.T, tr *Trace, ns uint32, addr netip.AddrPort, of seen) {
	t.Helper()
	c, client, server := of.connects[addr.String()], of.sides["to "+addr.String()], of.sides[fmt.Sprintf(":%d", addr.Port())]
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	port, at := strconv.Itoa(int(addr.Port())), strconv.Itoa(int(ns))+"@"
	for series, want := range map[string]float64{
		at + "plimsoll_tcp_connect_seconds_count{" + c.Name + "," + addr.String() + "}":             float64(c.Connected.Count()),
		at + "plimsoll_tcp_connect_seconds_sum{" + c.Name + "," + addr.String() + "}":               c.Took.Seconds(),
		at + "plimsoll_tcp_connect_seconds_bucket{" + c.Name + "," + addr.String() + ",+Inf}":       float64(c.Connected.Count()),
		at + "plimsoll_tcp_connect_setup_seconds_count{" + c.Name + "," + addr.String() + "}":       float64(c.Setups.Count()),
		at + "plimsoll_tcp_accept_queue_arrivals_total{" + port + "}":                               float64(server.Arrivals()),
		at + "plimsoll_tcp_state_changes_total{server," + port + ",,ESTABLISHED,CLOSE_WAIT}":        float64(server.Changes[closed]),
		at + "plimsoll_tcp_state_changes_total{client,," + addr.String() + ",SYN_SENT,ESTABLISHED}": float64(client.Changes[opened]),
		"plimsoll_tcp_lost_total{events}":                                                           0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// TestRefusedConnects: they fail with the kernel's error, and the resets that
// refuse them are those of the namespace's own counter.
func TestRefusedConnects(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	c := tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:0")
	l.Close()
	if said := c.Do("connect %v %d", addr, connections); said != unix.ECONNREFUSED.Error() {
		t.Fatal(said)
	}
	of := look(t, tr, ns)
	if d := cmp.Diff(map[string]uint64{"ECONNREFUSED": connections}, of.connects[addr.String()].Failures); d != "" {
		t.Errorf("failures (-want +got)\n%s", d)
	}
	if got := of.connects[addr.String()]; got.Connected.Count() != 0 || got.Setups.Count() != connections {
		t.Errorf("%+v, want no connects, and yet the work of %d", got, connections)
	}
	if d := cmp.Diff(map[string]uint64{"SYN_SENT": connections}, of.sides["to "+addr.String()].ResetsReceived); d != "" {
		t.Errorf("resets received (-want +got)\n%s", d)
	}
	if tr.reasons == nil { // before Linux 6.10, which does not tell of resets where there is no socket
		return
	}
	if d := cmp.Diff(map[string]uint64{"NO_SOCKET": connections}, of.sides[fmt.Sprintf(":%d", addr.Port())].ResetsSent); d != "" {
		t.Errorf("resets sent (-want +got)\n%s", d)
	}
	checkResets(t, tr, ns)
}

// checkResets compares with the kernel's counter.
func checkResets(t *testing.T, tr *Trace, ns uint32) {
	t.Helper()
	var got uint64
	for _, side := range look(t, tr, ns).sides {
		got += sum(side.ResetsSent)
	}
	if want := tcptest.Counter(t, "OutRsts"); got != want {
		t.Errorf("%d resets sent, the kernel counted %d", got, want)
	}
}

// TestAbortedConnections: resets by a client are the client's, whatever their reason is called.
func TestAbortedConnections(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	c := tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:0")
	go serve(l, true)
	c.Do("connect %v %d", addr, 53)
	c.Do("abort")
	var of seen
	server := fmt.Sprintf(":%d", addr.Port())
	tracetest.Eventually(t, "all resets have arrived", func() bool { // the kernel may put their work off
		of = look(t, tr, ns)
		return sum(of.sides[server].ResetsReceived) >= 53
	})
	if n := sum(of.sides["to "+addr.String()].ResetsSent); n != 53 {
		t.Errorf("%d resets sent by the client, want 53: %+v", n, of.sides)
	}
	if d := cmp.Diff(map[string]uint64{"ESTABLISHED": 53}, of.sides[server].ResetsReceived); d != "" {
		t.Errorf("resets received (-want +got)\n%s", d)
	}
	checkResets(t, tr, ns)
}

// TestRetransmits: under loss, those that the namespace's own counter counts.
func TestRetransmits(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr, before := begin(t), tracetest.Skipped(t)
	c, port := lossy(t, "input", 7)
	c.Do("send %d", 8<<20)
	tcptest.Run(t, "nft", "flush ruleset")
	c.Do("close")
	allSent(t, tr, ns, port, before)
}

// TestRetransmitsThatFail: also where the sender itself drops them, and so is told.
// Kernels that do not tell tracers of those have a counter of them.
func TestRetransmitsThatFail(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr, before := begin(t), tracetest.Skipped(t)
	c, port := lossy(t, "output", 4)
	// What the sender drops itself it need not send again: for that, more is lost on the way.
	tcptest.Run(t, "nft", "add chain inet t d { type filter hook input priority 0; }; "+
		fmt.Sprintf("add rule inet t d tcp dport %d numgen inc mod 7 == 0 drop", port))
	for tcptest.Counter(t, "TCPRetransFail") == 0 {
		c.Do("send %d", 1<<20)
	}
	tcptest.Run(t, "nft", "flush ruleset")
	c.Do("close")
	allSent(t, tr, ns, port, before)
}

// lossy connects over loopback, where of the packets to the server one in so many,
// and the first SYN, is dropped at a hook.
func lossy(t *testing.T, hook string, oneIn int) (c *tcptest.Peer, port uint16) {
	t.Helper()
	// A congestion control that takes what is dropped for a slow path sends ever slower.
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0o644); err != nil {
		t.Fatal(err)
	}
	c = tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:0")
	go serve(l, false)
	tcptest.Run(t, "nft", "add table inet t; add chain inet t c { type filter hook "+hook+" priority 0; }; "+
		fmt.Sprintf("add rule inet t c tcp dport %d numgen inc mod %d == 0 drop", addr.Port(), oneIn))
	if said := c.Do("connect %v 1", addr); said != "" {
		t.Fatal(said)
	}
	return c, addr.Port()
}

// allSent waits until nothing is sent again any more, and compares what was with the
// kernel's counter: it may be less by those at which the kernel may have skipped our
// programs since before, and never more.
func allSent(t *testing.T, tr *Trace, ns uint32, port uint16, before uint64) {
	t.Helper()
	tcptest.Closed(t, port)
	skipped := tracetest.Skipped(t) - before
	want, failed := tcptest.Counter(t, "RetransSegs"), tcptest.Counter(t, "TCPRetransFail")
	if !tr.tellsFailed {
		want -= failed
	}
	sides := look(t, tr, ns).sides
	client := sides[fmt.Sprintf("to 127.0.0.1:%d", port)].Retransmits
	var got uint64
	for _, side := range sides {
		got += sum(side.Retransmits)
	}
	t.Logf("%d retransmits, of which %d failed; the kernel counted %d, and may have skipped %d: %v", got, failed, want, skipped, client)
	if got > want || got+skipped < want {
		t.Errorf("%d retransmits %v, the kernel counted %d", got, client, want)
	}
	if client["syn"] > 1 || client["data"] == 0 {
		t.Errorf("retransmits %v: want one SYN, and data", client)
	}
}

// TestSynAckRetransmits: an answer to a SYN that is lost is sent again by the listener.
func TestSynAckRetransmits(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr, before := begin(t), tracetest.Skipped(t)
	c := tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:0")
	go serve(l, false)
	tcptest.Run(t, "nft", "add table inet t; add chain inet t c { type filter hook input priority 0; }; "+
		"add rule inet t c tcp sport "+strconv.Itoa(int(addr.Port()))+" tcp flags syn,ack / syn,ack numgen inc mod 2 == 0 drop")
	tracetest.Eventually(t, "a SYN-ACK of the listener's was sent again, and nothing is counted that the kernel did not", func() bool {
		c.Do("connect %v 1", addr) // another each time: the kernel may have skipped our programs at all of one's
		var got uint64
		want, sides := tcptest.Counter(t, "RetransSegs"), look(t, tr, ns).sides
		for _, side := range sides {
			got += sum(side.Retransmits)
		}
		server := sides[fmt.Sprintf(":%d", addr.Port())].Retransmits
		t.Logf("%d retransmits, the kernel counted %d; client %v, server %v", got, want, sides["to "+addr.String()].Retransmits, server)
		return got <= want && got+tracetest.Skipped(t)-before >= want && server["synack"] > 0
	})
}

// TestPortSearch: where more than half of the ports towards a destination are
// taken, connect() works much longer, and without any it fails.
func TestPortSearch(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	const ports = 8000
	files := unix.Rlimit{Cur: 2 * ports, Max: 2 * ports}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte(fmt.Sprint(20000, 20000+ports-1)), 0o644); err != nil {
		t.Fatal(err)
	}
	tr := begin(t)
	c := tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:9000")
	go serve(l, true)
	c.Do("connect %v %d", addr, ports/2-100)
	before := look(t, tr, ns).connects[addr.String()]
	c.Do("connect %v %d", addr, 100)
	half := look(t, tr, ns).connects[addr.String()]
	c.Do("connect %v %d", addr, 101)
	after := look(t, tr, ns).connects[addr.String()]
	low, _ := before.Setups.Quantile(0.5)
	for slot := range after.Setups {
		after.Setups[slot] -= half.Setups[slot]
	}
	high, _ := after.Setups.Quantile(0.5)
	t.Logf("own work: half under %v (%v on average) with ports to spare, half under %v (%v on average) past the middle",
		low, before.Setup/time.Duration(before.Setups.Count()), high, (after.Setup-half.Setup)/101)
	if after.Setups.Count() != 101 || high < 8*low {
		t.Errorf("past the middle %d connects worked %v, before it %v: want 101, and a multiple", after.Setups.Count(), high, low)
	}
}

func TestNoPortLeft(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("20000 20100"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr := begin(t)
	c := tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:9000")
	go serve(l, true)
	if said := c.Do("connect %v %d", addr, 101+7); said != unix.EADDRNOTAVAIL.Error() {
		t.Fatal(said)
	}
	got := look(t, tr, ns).connects[addr.String()]
	failed := got.Failures["EADDRNOTAVAIL"]
	// The kernel was seen to miss the last free port once: its search may lose a race.
	if len(got.Failures) != 1 || failed < 7 || failed > 9 || got.Connected.Count()+failed != 101+7 {
		t.Errorf("%d connects, failures %v: want 101 and 7 times EADDRNOTAVAIL", got.Connected.Count(), got.Failures)
	}
}

// TestAcceptQueue: each connection that arrives finds those before it, while nobody accepts.
func TestAcceptQueue(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	c := tcptest.StartPeer(t)
	_, addr := tcptest.Listen(t, "127.0.0.1:0")
	c.Do("connect %v 11", addr)
	var server Side
	tracetest.Eventually(t, "all have arrived", func() bool { // connect() does not wait for that
		server = look(t, tr, ns).sides[fmt.Sprintf(":%d", addr.Port())]
		return server.Arrivals() >= 11
	})
	if server.Arrivals() != 11 || server.Ahead != 10*11/2 {
		t.Errorf("%d arrived and found %d in all, want 11 and %d", server.Arrivals(), server.Ahead, 10*11/2)
	}
}

// What finds no room is counted, and processes can be left out.
func TestLossAndIgnored(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapEvents].MaxEntries = 1
	spec.Maps[bpfMapRoutes].MaxEntries = 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	c := tcptest.StartPeer(t)
	for range 2 {
		l, addr := tcptest.Listen(t, "127.0.0.1:0")
		go serve(l, false)
		c.Do("connect %v 3", addr)
	}
	lost, err := tr.Lost()
	if err != nil {
		t.Fatal(err)
	}
	if lost["events"] == 0 || lost["connects"] == 0 {
		t.Errorf("lost %v: want events and connects among it", lost)
	}
	if err := tr.Only(1); err != nil {
		t.Fatal(err)
	}
	l, addr := tcptest.Listen(t, "127.0.0.1:0")
	go serve(l, false)
	c.Do("connect %v 3", addr)
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range s.Connects {
		if got.Netns == ns && got.Destination == addr.String() {
			t.Errorf("another process was singled out, and yet there is %+v", got)
		}
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestEndpoints(t *testing.T) {
	v4 := [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 0, 14: 0, 15: 2}
	for want, e := range map[string]Endpoint{
		":80":              MakeEndpoint(1, false, [16]byte{}, 80),
		"to 10.0.0.2:9000": MakeEndpoint(1, true, v4, 9000),
		"to [::1]:443":     MakeEndpoint(1, true, [16]byte{15: 1}, 443),
	} {
		if e.String() != want {
			t.Errorf("%+v is written %q, want %q", e, e.String(), want)
		}
	}
}

func TestNumbersBecomeWords(t *testing.T) {
	tr := &Trace{reasons: map[uint32]string{1: "NO_SOCKET"}}
	got := []string{errorWord(111), errorWord(-1), errorWord(4000), stateName(1), stateName(77), tr.reason(1), tr.reason(99), (&Trace{}).reason(1)}
	want := []string{"ECONNREFUSED", "given_up", "error 4000", "ESTABLISHED", "state 77", "NO_SOCKET", "reason 99", ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

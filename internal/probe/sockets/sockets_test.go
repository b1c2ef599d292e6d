package sockets

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/unixdiag"
)

// recorded returns the messages of a testdata file; TestRealSockets writes
// them when PLIMSOLL_UPDATE=1.
func recorded(t testing.TB, name string) (messages [][]byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if line[0] == '#' {
			continue
		}
		m, err := hex.DecodeString(string(bytes.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func TestParseInetListeners(t *testing.T) {
	var got []string
	for _, m := range recorded(t, "listeners.hex") {
		var s inetSock
		if err := parseInet(m, &s); err != nil {
			t.Fatal(err)
		}
		if s.inode == 0 || s.cookie == 0 || !s.hasDrops {
			t.Errorf("%v: inode %d, cookie %d, drops known %v; want all three", s.src, s.inode, s.cookie, s.hasDrops)
		}
		got = append(got, fmt.Sprintf("%v state %d queue %d of %d, dropped %v", s.src, s.state, s.queue, s.limit, s.drops > 0))
	}
	// Which of the two that share a port gets a connection is up to the kernel.
	got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, ":8003") })
	slices.Sort(got)
	want := []string{
		"127.0.0.1:8001 state 10 queue 3 of 2, dropped true",
		"[::]:8002 state 10 queue 2 of 300, dropped false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

func TestParseInetConnections(t *testing.T) {
	got := map[string]int{}
	for _, m := range recorded(t, "connections.hex") {
		var s inetSock
		if err := parseInet(m, &s); err != nil {
			t.Fatal(err)
		}
		if s.src.port == 8002 || s.dst.port == 8002 {
			side, held := "client", s.inode != 0
			if s.src.port == 8002 {
				side = "server"
			}
			got[fmt.Sprintf("%s %v from %v held %v", side, stateNames[stateOf(s.state)], netip.AddrFrom16(s.src.addr).Unmap(), held)]++
		}
	}
	want := map[string]int{
		"client established from 127.0.0.1 held true":  3,
		"client established from 127.0.0.3 held true":  2,
		"server established from 127.0.0.1 held true":  3, // IPv6 socket, v4-mapped
		"server established from 127.0.0.1 held false": 2, // not accepted yet
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("connections of port 8002 (-want +got):\n%s", diff)
	}
}

func TestParseUnix(t *testing.T) {
	var got []string
	for _, m := range recorded(t, "unix.hex") {
		var s unixdiag.Sock
		if err := s.Parse(m); err != nil {
			t.Fatal(err)
		}
		if len(s.Name) > 0 {
			got = append(got, fmt.Sprintf("kind %d state %d %s queue %d of %d, inode %v", s.Kind, s.State, filepath.Base(unixdiag.Label(s.Name)), s.Queue, s.Limit, s.Inode > 0))
		}
	}
	want := []string{
		"kind 1 state 10 s.sock queue 2 of 7, inode true",
		"kind 1 state 1 s.sock queue 0 of 0, inode true",
		"kind 1 state 1 s.sock queue 0 of 0, inode true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("named Unix sockets (-want +got):\n%s", diff)
	}
}

func TestUnixListen(t *testing.T) {
	for in, want := range map[string]string{
		"/run/php/x.sock":  "unix:/run/php/x.sock",
		"\x00abstract":     "unix:@abstract",
		"\x00a\x00b":       "unix:@a@b",
		"/run/not\xffutf8": "unix:/run/not\ufffdutf8",
	} {
		if got := unixdiag.Label([]byte(in)); got != want {
			t.Errorf("unixdiag.Label(%q) = %q, want %q", in, got, want)
		}
	}
}

func at(s string) endpoint {
	a := netip.MustParseAddrPort(s)
	return endpoint{a.Addr().As16(), a.Port()}
}

// look has the table see the given listeners at one moment.
func (t *table) lookAt(socks ...inetSock) {
	t.begin()
	for i := range socks {
		t.addTCP(&socks[i])
	}
	t.end()
}

func TestTable(t *testing.T) {
	sock := func(cookie uint64, queue, drops uint32) inetSock {
		return inetSock{state: tcpListen, src: at("10.0.0.1:80"), queue: queue, limit: 128, inode: uint32(cookie), cookie: cookie, drops: drops, hasDrops: true}
	}
	for _, tc := range []struct {
		name         string
		looks        [][]inetSock
		peak, limit  uint32
		drops        uint64
		goneInTheEnd bool
	}{
		{name: "drops before the first look are not counted", looks: [][]inetSock{{sock(1, 0, 900)}}, limit: 128},
		{name: "the longest queue of several looks", looks: [][]inetSock{{sock(1, 3, 0)}, {sock(1, 70, 0)}, {sock(1, 5, 0)}}, peak: 70, limit: 128},
		{name: "drops are differences", looks: [][]inetSock{{sock(1, 0, 900)}, {sock(1, 0, 907)}, {sock(1, 0, 920)}}, limit: 128, drops: 20},
		{name: "the kernel's count wraps", looks: [][]inetSock{{sock(1, 0, 0xfffffff0)}, {sock(1, 0, 5)}}, limit: 128, drops: 21},
		{name: "siblings are added up", looks: [][]inetSock{{sock(1, 3, 10), sock(2, 4, 20)}, {sock(1, 30, 11), sock(2, 4, 22)}}, peak: 34, limit: 256, drops: 3},
		{name: "a restarted service counts from its own zero", looks: [][]inetSock{{sock(1, 0, 900)}, {sock(2, 0, 6)}}, limit: 128, drops: 6},
		{name: "a listener that is gone was seen all the same", looks: [][]inetSock{{sock(1, 9, 0)}, {}}, peak: 9, limit: 128, goneInTheEnd: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tab := newTable()
			for _, socks := range tc.looks {
				tab.lookAt(socks...)
			}
			l := tab.order[0]
			if len(tab.order) != 1 || !l.seen || l.here == tc.goneInTheEnd {
				t.Fatalf("%d listeners, seen %v, here %v", len(tab.order), l.seen, l.here)
			}
			if l.peak != tc.peak || l.limitSum != tc.limit || l.dropsSince != tc.drops || l.limitEach != 128 {
				t.Errorf("peak %d, limit %d (each %d), drops %d; want %d, %d (128), %d", l.peak, l.limitSum, l.limitEach, l.dropsSince, tc.peak, tc.limit, tc.drops)
			}
		})
	}
}

func TestTableOf(t *testing.T) {
	tab := newTable()
	tab.lookAt(inetSock{src: at("10.0.0.1:80")}, inetSock{src: at("0.0.0.0:80")}, inetSock{src: at("0.0.0.0:81")}, inetSock{src: at("[::]:82")})
	for local, want := range map[string]string{
		"10.0.0.1:80":    "10.0.0.1:80",
		"10.0.0.2:80":    "0.0.0.0:80",
		"10.0.0.1:81":    "0.0.0.0:81",
		"[fe80::1]:81":   "none",
		"10.0.0.1:82":    "[::]:82",
		"[fe80::1]:82":   "[::]:82",
		"10.0.0.1:40000": "none",
	} {
		got := "none"
		if l := tab.of(at(local)); l != nil {
			got = l.name
		}
		if got != want {
			t.Errorf("a connection at %s belongs to %s, want %s", local, got, want)
		}
	}
}

func TestTableIsBounded(t *testing.T) {
	tab := newTable()
	tab.begin()
	for port := range maxListeners + 1 {
		tab.addTCP(&inetSock{src: endpoint{anyV4, uint16(port)}, cookie: uint64(port)})
	}
	tab.end()
	if len(tab.order) != maxListeners || !tab.cut {
		t.Errorf("%d listeners followed, cut %v; want %d, true", len(tab.order), tab.cut, maxListeners)
	}
}

func TestTableForgets(t *testing.T) {
	stays, old := inetSock{src: at("10.0.0.1:80"), cookie: 1}, inetSock{src: at("10.0.0.1:81"), cookie: 2}
	tab := newTable()
	tab.lookAt(stays, old)
	for range memory {
		tab.lookAt(stays)
	}
	if l := tab.of(old.src); l == nil || l.looks != 1 || l.missed != memory {
		t.Errorf("a listener that has just gone: %+v; want it seen in one look and missed in %d", l, memory)
	}
	tab.lookAt(stays)
	if tab.of(old.src) != nil || tab.of(stays.src) == nil || len(tab.order) != 1 {
		t.Errorf("%d listeners are followed; want the one that is still there", len(tab.order))
	}
	// One that comes and goes makes room for the next before that.
	for port := range 3 * maxListeners {
		tab.lookAt(stays, inetSock{src: endpoint{anyV4, uint16(1000 + port)}, cookie: uint64(10 + port)})
	}
	if tab.cut || len(tab.order) > maxListeners {
		t.Errorf("%d listeners followed, cut %v; they were never more than two at a time", len(tab.order), tab.cut)
	}
}

func TestFlows(t *testing.T) {
	var f flows
	if err := parseUsablePorts([]byte("20000 20009"), nil, &f.usable.portSet); err != nil {
		t.Fatal(err)
	}
	f.reset()
	add := func(src, dst string, state uint8) {
		f.add(&inetSock{src: at(src), dst: at(dst), state: state})
	}
	add("10.0.0.1:20000", "10.0.0.9:80", tcpEstablished)
	add("10.0.0.1:20001", "10.0.0.9:80", tcpTimeWait)
	add("10.0.0.1:20002", "10.0.0.9:80", tcpFinWait2)
	add("10.0.0.2:20000", "10.0.0.9:80", tcpSynSent)
	add("10.0.0.2:20001", "10.0.0.9:80", tcpTimeWait)
	add("10.0.0.1:20000", "10.0.0.9:81", tcpCloseWait)
	add("10.0.0.1:700", "10.0.0.9:81", tcpEstablished) // bound outside of the range
	for port, trip := range map[uint16]uint32{701: 300, 702: 500, 703: noRTT} {
		f.add(&inetSock{src: endpoint{at("10.0.0.1:1").addr, port}, dst: at("10.0.0.9:81"), state: tcpEstablished, inode: 7, info: tcpInfo{shortest: trip}, hasInfo: true})
	}
	want := []destination{
		{dst: at("10.0.0.9:80"), ports: 3, held: 1, states: [stateCount]int{stateEstablished: 1, stateTimeWait: 2, stateSynSent: 1, stateFinWait: 1}},
		{dst: at("10.0.0.9:81"), ports: 1, states: [stateCount]int{stateEstablished: 4, stateCloseWait: 1}, inode: 7, oldest: 7, outgoing: outgoing{trips: 800, measured: 2}},
	}
	if diff := cmp.Diff(want, f.destinations(), cmp.AllowUnexported(outgoing{}, destination{}, endpoint{})); diff != "" {
		t.Errorf("destinations (-want +got):\n%s", diff)
	}
	f.reset()
	if got := f.destinations(); len(got) != 0 {
		t.Errorf("after reset: %v, want none", got)
	}
}

func TestChooseIsBounded(t *testing.T) {
	dests := func(from, n int) (all []destination) {
		for i := range n {
			all = append(all, destination{dst: endpoint{anyV4, uint16(from + i)}, ports: 1})
		}
		return all
	}
	r := reported{}
	chosen, cut := r.choose(dests(0, maxDestinations))
	if len(chosen) != maxDestinations || cut {
		t.Fatalf("%d of %d chosen, cut %v", len(chosen), maxDestinations, cut)
	}
	for from := 0; from < 1000; from += 50 {
		chosen, cut = r.choose(dests(from, 50))
	}
	if len(r) != maxEverReported || len(chosen) != 0 || !cut {
		t.Errorf("a run of ever new destinations: %d names, %d chosen in the end, cut %v; want %d, 0, true", len(r), len(chosen), cut, maxEverReported)
	}
	if chosen, _ = r.choose(dests(0, 5)); len(chosen) != 5 {
		t.Errorf("known destinations: %d chosen, want 5", len(chosen))
	}
}

func TestParseUsablePorts(t *testing.T) {
	for _, tc := range []struct {
		span, reserved string
		size           int
		bad            bool
	}{
		{span: "32768\t60999\n", reserved: "\n", size: 28232},
		{span: "20000\t20050\n", reserved: "", size: 51},
		{span: "1024 65535", reserved: "8080,9000-9010,80\n", size: 64500},
		{span: "65535 65535", reserved: "65535-65535", size: 0},
		{span: "32768\n", bad: true},
		{span: "32768 70000\n", bad: true},
		{span: "1 2", reserved: "x", bad: true},
	} {
		var p portSet
		err := parseUsablePorts([]byte(tc.span), []byte(tc.reserved), &p)
		if (err != nil) != tc.bad || err == nil && p.size != tc.size {
			t.Errorf("range %q, reserved %q: %d ports, %v; want %d, error %v", tc.span, tc.reserved, p.size, err, tc.size, tc.bad)
		}
	}
}

// processTree makes a recorded /proc in which descriptors lead to sockets.
func processTree(t *testing.T, procs map[string][]string) *host.Host {
	t.Helper()
	root := t.TempDir()
	for name, links := range procs {
		pid, comm, _ := strings.Cut(name, " ")
		dir := filepath.Join(root, "proc", pid)
		if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			"comm":    comm + "\n",
			"cmdline": comm + "\x00",
			"stat":    pid + " (" + comm + ") S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0" + strings.Repeat(" 0", 17),
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for i, link := range links {
			if err := os.Symlink(link, filepath.Join(dir, "fd", fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return host.Recorded("srv", root)
}

func TestOwners(t *testing.T) {
	h := processTree(t, map[string][]string{
		"1 systemd":    {"/dev/null", "socket:[10]", "socket:[11]"},
		"20 nginx":     {"/dev/null", "pipe:[12]", "socket:[12]"},
		"21 nginx":     {"socket:[12]", "anon_inode:[eventpoll]"},
		"30 my (s) rv": {"socket:[11]"},
	})
	o := newOwners(h, searchShare, map[int]uint64{})
	start := time.Unix(1000, 0)
	if err := o.find([]uint32{10, 11, 12, 13}, start); err != nil {
		t.Fatal(err)
	}
	got := map[uint32]string{}
	for inode := uint32(10); inode <= 13; inode++ {
		got[inode] = o.comm(inode)
	}
	want := map[uint32]string{10: "systemd", 11: "my (s) rv", 12: "nginx", 13: ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if !o.settled(12) || o.settled(13) || o.settled(99) {
		t.Errorf("settled: 12 %v, 13 %v, 99 %v; want true, false, false", o.settled(12), o.settled(13), o.settled(99))
	}
	if err := o.find([]uint32{13}, start.Add(firstWait)); err != nil {
		t.Fatal(err)
	}
	if !o.settled(13) || o.comm(12) != "" {
		t.Errorf("after the second search in vain: settled %v; forgotten inode 12 is %q", o.settled(13), o.comm(12))
	}
}

type marksOf map[int]uint64

func (m marksOf) Marks() (map[int]uint64, error) { return m, nil }

// A process that held no socket is looked through again only once it has run.
func TestOwnersLeaveOutWhoRests(t *testing.T) {
	idle := exec.Command("sleep", "100") // with three files; the host's list of processes is made later
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = idle.Process.Kill()
		_ = idle.Wait()
	}()
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	self := os.Getpid()
	marks := marksOf{self: 1}
	h.SetMarker(marks)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	o := newOwners(h, searchShare, map[int]uint64{})
	for _, step := range []struct {
		what          string
		without, mark uint64
		found, noted  bool
	}{
		{"never looked through", 0, 1, true, false},
		{"had none, and has not run", 1, 1, false, true},
		{"had none, and has run", 1, 2, true, false},
		{"had none, and runs", 1, 0, true, false},
	} {
		marks[self], o.without = step.mark, map[int]uint64{self: step.without}
		k := &owned{}
		if err := o.search(map[uint32]*owned{uint32(st.Ino): k}); err != nil {
			t.Fatal(err)
		}
		if _, noted := o.without[self]; k.comm != "" != step.found || noted != step.noted {
			t.Errorf("a process with a socket that %s: owner %q, noted as without one %v; want found %v, noted %v", step.what, k.comm, noted, step.found, step.noted)
		}
	}
	h.SetMarker(marksOf{idle.Process.Pid: 5})
	if err := o.search(map[uint32]*owned{1<<32 - 1: {}}); err != nil { // which nobody has
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]uint64{idle.Process.Pid: 5}, o.without); diff != "" {
		t.Errorf("processes without a socket (-want +got):\n%s", diff)
	}
}

func TestClients(t *testing.T) {
	h := processTree(t, map[string][]string{"20 app": {"socket:[11]", "socket:[12]"}, "30 cron": {"socket:[13]"}})
	c := newClients(h, map[int]uint64{})
	start := time.Unix(1000, 0)
	db := destination{dst: at("10.0.0.9:5432")}
	find := func(inode uint32, now time.Time) []string {
		db.inode, db.oldest = inode, min(inode, 11)
		if err := c.find([]destination{db}, now); err != nil {
			t.Fatal(err)
		}
		return c.of(db.dst)
	}
	if got := c.of(db.dst); len(got) != 0 {
		t.Errorf("before any search: %v", got)
	}
	for _, step := range []struct {
		inode uint32
		after time.Duration
		want  []string
	}{
		{0, 0, nil},
		{13, 2 * time.Second, []string{"app"}}, // by the oldest
		{13, 4 * time.Second, []string{"app"}}, // not looked for yet
		{13, 2*time.Second + anotherOwner, []string{"app", "cron"}},
		{0, time.Hour, []string{"app", "cron"}}, // known for the rest of the run
	} {
		if diff := cmp.Diff(step.want, find(step.inode, start.Add(step.after))); diff != "" {
			t.Errorf("inode %d after %v (-want +got):\n%s", step.inode, step.after, diff)
		}
	}
}

func TestAccepted(t *testing.T) {
	var l listener
	small := tcpInfo{mss: 1448, unacked: 1, window: 10, unsent: 100} // it waits for an acknowledgement alone
	whole, first, full := small, small, small
	whole.unsent, first.unacked, full.unacked = 1448, 0, 10
	clamped := tcpInfo{mss: 1448, unacked: 4, window: 4, unsent: 100000}
	lossy, roomy, moving := clamped, clamped, clamped
	short := tcpInfo{mss: 536, unacked: 27, window: 40, unsent: 1000, peerWindow: 15008}
	grown, usual, resent, shut, written := short, short, short, short, short
	grown.unacked, grown.peerWindow, usual.mss, resent.resent, shut.peerWindow, written.unsent = 28, 65535, 537, 1, 15007, 535
	lossy.resent, roomy.unacked, moving.unacked, moving.window = 1, 3, 10, 10
	for _, s := range []inetSock{
		{}, {queue: 7}, {holds: 2304, state: tcpEstablished}, {queue: 7, holds: 2304, state: tcpEstablished}, {holds: 768, state: tcpCloseWait}, {limit: 9, info: tcpInfo{rtt: 300, shortest: 100}}, {queue: 1, limit: 1, info: tcpInfo{rtt: 500, shortest: noRTT}},
		{limit: 1, timer: timerProbe, retries: 5},
		{limit: 1, timer: timerRetransmit, retries: 1},
		{limit: 1447, timer: timerRetransmit, retries: 2, info: tcpInfo{mss: 1448}, hasInfo: true},
		{limit: 1448, timer: timerRetransmit, retries: 3, info: tcpInfo{mss: 1448}, hasInfo: true},
		{limit: 200, info: small, hasInfo: true},
		{limit: 200, info: small, hasInfo: true, timer: timerProbe},
		{limit: 200, info: whole, hasInfo: true},
		{limit: 200, info: first, hasInfo: true},
		{limit: 200, info: full, hasInfo: true},
		{limit: 5792, info: clamped, hasInfo: true},
		{limit: 5792, info: clamped},
		{limit: 5792, info: lossy, hasInfo: true},
		{limit: 4344, info: roomy, hasInfo: true},
		{limit: 14480, info: moving, hasInfo: true},
		{limit: 14472, info: short, hasInfo: true},
		{limit: 14472, info: short},
		{limit: 15008, info: grown, hasInfo: true},
		{limit: 14499, info: usual, hasInfo: true},
		{limit: 14472, info: resent, hasInfo: true},
		{limit: 14472, info: shut, hasInfo: true},
		{limit: 14472, info: written, hasInfo: true, timer: timerProbe},
	} {
		l.accept(&s)
	}
	want := connections{accepted: 28, unread: 3, gaps: 1, unacked: 23, roundTrips: 800, shortestTrips: 600, shut: 3, heldBack: 1, repeated: 2, large: 1, small: 1, smallSegments: 1}
	if l.connections != want {
		t.Errorf("%+v; want %+v", l.connections, want)
	}
}

// A window starts anew where half of it or less is left after a pause, and nothing was lost or marked since.
func TestStartsAnew(t *testing.T) {
	paused := tcpInfo{window: 400, resent: 3, marked: 1}
	held := tcpInfo{window: 200, unacked: 200, unsent: 5000, resent: 3, marked: 1, rtt: 99_999, shortest: 50_000}
	wider, lossy, marked, whole, room, full := held, held, held, held, held, held
	full.rtt++
	wider.window, wider.unacked = 201, 201
	lossy.resent++
	marked.marked++
	whole.unsent, room.unacked = 0, 199
	for name, c := range map[string]struct {
		looks  []tcpInfo
		byLoss bool
		want   bool
	}{
		"half of it":                     {[]tcpInfo{paused, held}, true, true},
		"further looks in the same send": {[]tcpInfo{paused, held, held}, true, true},
		"more than half":                 {[]tcpInfo{paused, wider}, true, false},
		"something was lost":             {[]tcpInfo{paused, lossy}, true, false},
		"and held ever since":            {[]tcpInfo{paused, lossy, lossy}, true, false},
		"a mark":                         {[]tcpInfo{paused, marked}, true, false},
		"all of it is under way":         {[]tcpInfo{paused, whole}, true, false},
		"the window has room":            {[]tcpInfo{paused, room}, true, false},
		"the way is full":                {[]tcpInfo{paused, full}, true, false},
		"no pause was seen":              {[]tcpInfo{held, held}, true, false},
		"another congestion control":     {[]tcpInfo{paused, held}, false, false},
	} {
		p := progress{known: map[uint64]*heldSeen{7: {}}}
		got := false
		for _, info := range c.looks {
			got = p.startsAnew(&inetSock{cookie: 7, byLoss: c.byLoss, info: info})
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (&progress{}).startsAnew(&inetSock{cookie: 7, byLoss: true, info: held}) {
		t.Error("a connection that is not followed starts anew")
	}
}

func TestProgress(t *testing.T) {
	var p progress
	look := func(socks map[uint64]heldFor) (sum heldFor) {
		p.begin(time.Time{})
		for cookie, held := range socks {
			for by, us := range p.since(cookie, held) {
				sum[by] += us
			}
		}
		p.end()
		return sum
	}
	for i, c := range []struct {
		now  map[uint64]heldFor
		want heldFor
	}{
		{map[uint64]heldFor{1: {100, 10, 1}}, heldFor{}},                       // what was before counts nothing
		{map[uint64]heldFor{1: {150, 10, 4}, 2: {7, 0, 0}}, heldFor{57, 0, 3}}, // a new one counts from its beginning
		{map[uint64]heldFor{1: {149, 12, 4}}, heldFor{0, 2, 0}},                // two clocks: never back
		{map[uint64]heldFor{2: {9, 0, 0}, 1: {149, 12, 4}}, heldFor{byWay: 9}}, // 2 was forgotten
	} {
		if got := look(c.now); got != c.want {
			t.Errorf("look %d: %v, want %v", i+1, got, c.want)
		}
	}
	for cookie := range uint64(2 * maxHeld) {
		p.since(cookie+10, heldFor{1})
	}
	if len(p.known) > maxHeld {
		t.Errorf("%d connections are followed, want %d at most", len(p.known), maxHeld)
	}
}

// A window is full where three quarters of it or more came in each round trip, and the process reads at once.
func TestWindowFilled(t *testing.T) {
	way := inetSock{info: tcpInfo{shortest: 20_000, ownWindow: 8000}} // 50 round trips a second
	unread, unknown, closed, far := way, way, way, way
	unread.queue, unknown.info.shortest, closed.info.ownWindow, far.info.shortest = 1, noRTT, 0, 1_000_001
	for _, c := range []struct {
		name string
		sock inetSock
		came uint64
		took time.Duration
		want bool
	}{
		{"three quarters in each of them", way, 300_000, time.Second, true},
		{"a byte less", way, 299_999, time.Second, false},
		{"as much in twice the time", way, 300_000, 2 * time.Second, false},
		{"bytes that wait to be read", unread, 400_000, time.Second, false},
		{"no round trip yet", unknown, 400_000, time.Second, false},
		{"a window that is shut", closed, 400_000, time.Second, false},
		{"less than one round trip", far, 400_000, time.Second, false},
		{"the first look", way, 400_000, 0, false},
		{"half a second", way, 150_000, 500 * time.Millisecond, true},
		{"less", way, 400_000, 499 * time.Millisecond, false},
	} {
		if got := c.sock.windowFilled(c.came, c.took); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// What a connection had received is held against the time since the look before.
func TestFilled(t *testing.T) {
	l, r := &listener{}, &reader{}
	for second, came := range []uint64{1 << 20, 1<<20 + 400_000, 1<<20 + 800_000} {
		l.connections = connections{}
		r.progress.begin(time.Unix(int64(second), 0))
		r.follow(l, &inetSock{cookie: 7, buffer: 16384, info: tcpInfo{shortest: 20_000, ownWindow: 8000, received: came}, hasInfo: true})
		r.follow(l, &inetSock{cookie: 8, buffer: 16384, info: tcpInfo{shortest: 20_000, ownWindow: 8000}, hasInfo: true})
		r.progress.end()
		want := filled{1, 8000, 16384, 20_000}
		if second == 0 {
			want = filled{}
		}
		if l.filled != want {
			t.Errorf("second %d: %+v; want %+v", second, l.filled, want)
		}
	}
}

func TestParseInetInfo(t *testing.T) {
	var s inetSock
	told := 0
	for _, m := range recorded(t, "connections.hex") {
		if err := parseInet(m, &s); err != nil {
			t.Fatal(err)
		}
		if s.state != tcpEstablished {
			continue
		}
		told++
		if !s.hasInfo || s.info.rtt == 0 || s.info.rtt > 1e6 {
			t.Errorf("%v to %v: info %v, round trip %d µs; want one below a second", s.src, s.dst, s.hasInfo, s.info.rtt)
		}
		if s.info.shortest == 0 || s.info.shortest > 1e6 {
			t.Errorf("%v to %v: the shortest round trip is %d µs; want one below a second", s.src, s.dst, s.info.shortest)
		}
	}
	if told == 0 {
		t.Error("no established connection among the recorded ones")
	}
}

func TestCanRunOnRecordedTreeIsAbsent(t *testing.T) {
	h := processTree(t, nil)
	if st := host.StatusOf(canRun(h)); st.State != "absent" {
		t.Errorf("status %v, want absent", st)
	}
}

func FuzzParseInet(f *testing.F) {
	for _, m := range recorded(f, "listeners.hex") {
		f.Add(m)
	}
	for _, m := range recorded(f, "connections.hex")[:2] {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s inetSock
		if err := parseInet(b, &s); err == nil {
			_ = s.src.String()
			newTable().lookAt(s)
		}
	})
}

func FuzzParseUnix(f *testing.F) {
	for _, m := range recorded(f, "unix.hex") {
		f.Add(m)
	}
	f.Add([]byte{unix.AF_UNIX})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s unixdiag.Sock
		if s.Parse(b) == nil {
			_ = unixdiag.Label(s.Name)
		}
	})
}

func FuzzParseUsablePorts(f *testing.F) {
	f.Add([]byte("32768\t60999\n"), []byte("8080,9000-9010\n"))
	f.Fuzz(func(t *testing.T, span, reserved []byte) {
		var p portSet
		if err := parseUsablePorts(span, reserved, &p); err == nil && (p.size < 0 || p.size > 1<<16) {
			t.Errorf("range %q, reserved %q: %d ports", span, reserved, p.size)
		}
	})
}

// A first look that failed half way must not make the second count what
// listeners dropped before we came.
func TestDropsAfterAFirstLookThatFailed(t *testing.T) {
	old := inetSock{state: tcpListen, src: at("10.0.0.1:80"), cookie: 1, drops: 900, hasDrops: true}
	tab := newTable()
	tab.begin() // and no end
	tab.lookAt(old)
	if l := tab.of(old.src); l.dropsSince != 0 {
		t.Errorf("drops %d, want 0", l.dropsSince)
	}
	old.drops = 903
	tab.lookAt(old)
	if l := tab.of(old.src); l.dropsSince != 3 || !l.hasDrops {
		t.Errorf("drops %d (%v), want 3", l.dropsSince, l.hasDrops)
	}
	silent := inetSock{state: tcpListen, src: at("10.0.0.1:81"), cookie: 2} // a kernel that does not tell
	tab.lookAt(silent)
	if tab.of(silent.src).hasDrops {
		t.Error("drops that the kernel did not tell are known")
	}
}

func TestOldestSocketOfADestination(t *testing.T) {
	var f flows
	f.reset()
	for _, s := range []inetSock{
		{src: at("10.0.0.1:1000"), dst: at("10.0.0.9:80"), state: tcpTimeWait},
		{src: at("10.0.0.1:1001"), dst: at("10.0.0.9:80"), state: tcpEstablished, inode: 13},
		{src: at("10.0.0.1:1002"), dst: at("10.0.0.9:80"), state: tcpEstablished, inode: 11},
		{src: at("10.0.0.2:1000"), dst: at("10.0.0.9:80"), state: tcpEstablished, inode: 12},
		{src: at("10.0.0.3:1000"), dst: at("10.0.0.9:80"), state: tcpSynSent, inode: 7},
	} {
		f.add(&s)
	}
	if all := f.destinations(); len(all) != 1 || all[0].oldest != 11 {
		t.Errorf("%+v, want one, whose oldest socket is 11", all)
	}
}

// TestPeers: who lost most lately is told apart, whoever it was an hour ago; who has no room is one of the others.
func TestPeers(t *testing.T) {
	var p peers
	at := &sentTo{}
	address := func(i int) (a [16]byte) { a[15], a[14] = byte(i), byte(i>>8); return a }
	dump := func(sent map[int]segments) {
		p.begin()
		for i := range 1000 {
			if n, ok := sent[i]; ok {
				p.add(at, address(i), n)
			}
		}
		p.end()
	}
	check := func(when string, one, others segments, worst int) {
		t.Helper()
		if at.by != [toCount]segments{one, others} || at.worst == nil || at.worst.addr != address(worst) {
			t.Errorf("%s: %+v; want %+v to the one, %+v to others, peer %d", when, at, one, others, worst)
		}
	}
	dump(map[int]segments{1: {100, 0, 9}, 2: {10, 2, 3}})
	check("one loses", segments{10, 2, 3}, segments{100, 0, 9}, 2)
	dump(map[int]segments{1: {5, 2, 1}, 2: {5, 0, 1}})
	check("another has as many", segments{15, 2, 4}, segments{105, 2, 10}, 2)
	dump(map[int]segments{1: {5, 1, 1}, 2: {5, 0, 1}})
	check("another has more", segments{20, 3, 5}, segments{110, 2, 11}, 1)
	dump(map[int]segments{2: {1000, 1000, 0}})
	for range 12 * halfLife {
		dump(nil)
	}
	dump(map[int]segments{1: {1, 1, 1}})
	check("long after", segments{1021, 1004, 6}, segments{110, 2, 11}, 1)

	many := map[int]segments{}
	for i := range maxPeers + 100 {
		many[i] = segments{1, 1, 1}
	}
	*at, p = sentTo{}, peers{}
	dump(many)
	check("too many", segments{1, 1, 1}, segments{maxPeers + 99, maxPeers + 99, maxPeers + 99}, 0)
	if len(p.known) != maxPeers || len(p.order) != maxPeers {
		t.Errorf("%d and %d peers are kept; want %d", len(p.known), len(p.order), maxPeers)
	}
}

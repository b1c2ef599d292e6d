package sockets

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/pace"
)

// readings is a probe.Recorder that keeps the last value of every series.
type readings struct {
	values map[string]float64
	status map[string]model.Status
	notes  []string
}

func newReadings() *readings {
	return &readings{values: map[string]float64{}, status: map[string]model.Status{}}
}

func (r *readings) Sample(_ string, _ int64, s *model.Signal, v float64, labels ...string) {
	r.values[s.Name+"{"+strings.Join(labels, ",")+"}"] = v
}
func (r *readings) Event(model.Event) {}
func (r *readings) Status(_, signal string, st model.Status) {
	r.status[signal] = st
}
func (r *readings) Note(s string) { r.notes = append(r.notes, s) }

// enterOwnNetNS moves the test to a thread in a new network namespace with
// loopback up. The thread is never given back.
func enterOwnNetNS(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		t.Skip("making a network namespace needs root (CAP_SYS_ADMIN):", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal("loopback up:", err)
	}
}

// service is a process of ours in the test's namespace that does what it is told.
type service struct {
	t     testing.TB
	in    io.WriteCloser
	lines *bufio.Scanner
}

const serviceEnv = "PLIMSOLL_TEST_SOCKETS"

// startService runs this test binary again, as the owner of the sockets.
func startService(t testing.TB) *service {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestService$")
	cmd.Env = append(os.Environ(), serviceEnv+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return &service{t: t, in: in, lines: bufio.NewScanner(out)}
}

// do has the service take a step, and returns what it answers.
func (s *service) do(step string) string {
	s.t.Helper()
	fmt.Fprintln(s.in, step)
	for s.lines.Scan() {
		if answer, ok := strings.CutPrefix(s.lines.Text(), step+": "); ok {
			if msg, failed := strings.CutPrefix(answer, "failed "); failed {
				s.t.Fatalf("service, step %s: %s", step, msg)
			}
			return answer
		}
	}
	s.t.Fatalf("service ended in step %s", step)
	return ""
}

// TestService is no test: it is the service's main function.
func TestService(t *testing.T) {
	dir := os.Getenv(serviceEnv)
	if dir == "" {
		t.Skip("only as the service of another test")
	}
	w := &worker{dir: dir}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer, err := w.step(in.Text())
		if err != nil {
			answer = "failed " + err.Error()
		}
		fmt.Printf("\n%s: %s\n", in.Text(), answer)
	}
}

// worker is the service: sockets stay open until it ends.
type worker struct {
	dir                        string
	full, six, local, one, two int
}

func (w *worker) step(name string) (string, error) {
	switch name {
	case "listen":
		return w.listen()
	case "connect":
		return "done", w.connect()
	case "comm":
		b, err := os.ReadFile("/proc/self/comm")
		return strings.TrimSpace(string(b)), err
	}
	n, err := strconv.Atoi(name) // so many connections to port 8005
	if err != nil {
		return "", err
	}
	return "done", w.many(n)
}

func (w *worker) listen() (path string, err error) {
	v4 := func(port int) *unix.SockaddrInet4 {
		return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}
	}
	path = filepath.Join(w.dir, "s.sock")
	for _, l := range []struct {
		fd      *int
		family  int
		addr    unix.Sockaddr
		backlog int
	}{
		{&w.full, unix.AF_INET, v4(8001), 2},
		{&w.six, unix.AF_INET6, &unix.SockaddrInet6{Port: 8002}, 100_000},
		{&w.one, unix.AF_INET, v4(8003), 5},
		{&w.two, unix.AF_INET, v4(8003), 6},
		{&w.local, unix.AF_UNIX, &unix.SockaddrUnix{Name: path}, 7},
	} {
		fd, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		if l.family != unix.AF_UNIX {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return "", err
			}
		}
		if err := unix.Bind(fd, l.addr); err != nil {
			return "", err
		}
		if err := unix.Listen(fd, l.backlog); err != nil {
			return "", err
		}
		*l.fd = fd
	}
	takes, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // stays open until the process ends
	if err != nil {
		return "", err
	}
	return path, unix.Bind(takes, &unix.SockaddrUnix{Name: path + ".datagrams"})
}

// connect makes: 12 attempts at the full listener; 5 connections to the IPv6
// one from IPv4, two of them from another local address, of which 3 are
// accepted; 6 to the two that share a port; 4 to the Unix one, 2 accepted.
func (w *worker) connect() error {
	for range 12 {
		if err := dial("127.0.0.1", 8001, true); err != nil {
			return err
		}
	}
	for i := range 5 {
		from := "127.0.0.1"
		if i >= 3 {
			from = "127.0.0.3"
		}
		if err := dial(from, 8002, false); err != nil {
			return err
		}
	}
	for range 3 {
		if _, _, err := unix.Accept(w.six); err != nil {
			return err
		}
	}
	for range 6 {
		if err := dial("127.0.0.1", 8003, false); err != nil {
			return err
		}
	}
	for range 4 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(w.dir, "s.sock")}); err != nil {
			return err
		}
	}
	for range 2 {
		if _, _, err := unix.Accept(w.local); err != nil {
			return err
		}
	}
	return nil
}

func dial(from string, port int, nonBlocking bool) error {
	kind := unix.SOCK_STREAM
	if nonBlocking {
		kind |= unix.SOCK_NONBLOCK
	}
	fd, err := unix.Socket(unix.AF_INET, kind, 0)
	if err != nil {
		return err
	}
	var a [4]byte
	if _, err := fmt.Sscanf(from, "%d.%d.%d.%d", &a[0], &a[1], &a[2], &a[3]); err != nil {
		return err
	}
	// Without this bind() would take a port at once, without regard to the destination.
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: a}); err != nil {
		return err
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port})
	if err == unix.EINPROGRESS {
		return nil
	}
	return err
}

// many makes n connections to port 8005, all accepted; half of them are closed
// from the connecting side and remain as TIME_WAIT.
func (w *worker) many(n int) error {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8005}); err != nil {
		return err
	}
	if err := unix.Listen(l, 10); err != nil {
		return err
	}
	for i := range n {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(c, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8005}); err != nil {
			return err
		}
		a, _, err := unix.Accept(l)
		if err != nil {
			return err
		}
		if i%2 == 1 {
			unix.Close(c)
			unix.Close(a)
		}
	}
	return nil
}

// listenDropsNow is TcpExt ListenDrops of the test's namespace.
func listenDropsNow(t *testing.T) float64 {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/netstat")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	for i, n := range names {
		if n == "ListenDrops" {
			v, err := strconv.ParseFloat(values[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatal("no ListenDrops in netstat")
	return 0
}

func setSysctl(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

func openHere(t testing.TB) *reader {
	t.Helper()
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	if err := canRun(h); err != nil {
		t.Skip(err)
	}
	r, err := open(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r.(*reader)
}

// TestRealSockets reads sockets of a real process in a namespace of our own.
func TestRealSockets(t *testing.T) {
	enterOwnNetNS(t)
	setSysctl(t, "core/somaxconn", "300")
	setSysctl(t, "ipv4/ip_local_port_range", "20000 20499")
	setSysctl(t, "ipv4/ip_local_reserved_ports", "20001,20100-20108,30000")
	s := startService(t)
	path := "unix:" + s.do("listen")
	comm := s.do("comm")
	r := openHere(t)

	first := newReadings()
	if err := r.Read(probe.NewOut(first, "here", time.Unix(100, 0), 0)); err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{"127.0.0.1:8001", "[::]:8002", "127.0.0.1:8003"} {
		if got, ok := first.values["plimsoll_tcp_listen_drops_total{"+listen+","+comm+"}"]; !ok || got != 0 {
			t.Errorf("%s: drops before any load %v, %v; want 0", listen, got, ok)
		}
	}
	s.do("connect")
	r.Poll()
	before := listenDropsNow(t)
	rec := newReadings()
	if err := r.Read(probe.NewOut(rec, "here", time.Unix(101, 0), time.Second)); err != nil {
		t.Fatal(err)
	}
	after := listenDropsNow(t)
	drops := "plimsoll_tcp_listen_drops_total{127.0.0.1:8001," + comm + "}"
	if got := rec.values[drops]; got < before || got > after || got == 0 {
		t.Errorf("drops of the full listener %v; TcpExt ListenDrops was %v before and %v after", got, before, after)
	}
	delete(rec.values, drops)
	// How many SYNs of the 12 the kernel keeps half open is its own affair.
	halfOpen := "plimsoll_tcp_listen_syn_recv{127.0.0.1:8001," + comm + "}"
	delete(rec.values, halfOpen)
	est := "plimsoll_tcp_destination_sockets{127.0.0.1:8001,established}"
	syn := "plimsoll_tcp_destination_sockets{127.0.0.1:8001,syn_sent}"
	if got := rec.values[est] + rec.values[syn]; got != 12 || rec.values[est] < 3 {
		t.Errorf("sockets towards the full listener: %v established, %v SYN sent; want 12 in all and 3 established at least", rec.values[est], rec.values[syn])
	}
	sent := "plimsoll_tcp_destination_sent_bytes_total{127.0.0.1:8001}"
	if got := rec.values[sent]; got != rec.values[est] {
		t.Errorf("%v bytes sent to the full listener; want %v, the SYNs that were acknowledged", got, rec.values[est])
	}
	delete(rec.values, sent)
	delete(rec.values, est)
	delete(rec.values, syn)
	for _, dst := range []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"} {
		trip := "plimsoll_tcp_destination_round_trip_seconds{" + dst + "}"
		if got := rec.values[trip]; got <= 0 || got > 1 {
			t.Errorf("%s: the way and back takes %v s; want some of a second", dst, got)
		}
		delete(rec.values, trip)
	}
	if diff := cmp.Diff(wantReal(comm, path), rec.values); diff != "" {
		t.Errorf("readings (-want +got):\n%s", diff)
	}
	if len(rec.notes)+len(rec.status) > 0 {
		t.Errorf("unexpected notes %q, statuses %v", rec.notes, rec.status)
	}
	if os.Getenv("PLIMSOLL_UPDATE") == "1" {
		record(t, r)
	}
}

// TestBytesMoved: what a service sends is counted for its listener, and for those who asked it.
func TestBytesMoved(t *testing.T) {
	enterOwnNetNS(t)
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8007}
	l, c := stream(t), stream(t)
	if err := unix.Bind(l, at); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 5); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(c, at); err != nil {
		t.Fatal(err)
	}
	s, _, err := unix.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s) })
	r := openHere(t)
	r.Poll()
	end := endpoint{netip.AddrFrom4(at.Addr).As16(), uint16(at.Port)}
	for i, want := range []float64{0, 1000, 2000} { // what came before the first dump is not counted
		if _, err := unix.Write(s, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		whole := make([]byte, 1000)
		if n, _, err := unix.Recvfrom(c, whole, unix.MSG_WAITALL); n != 1000 || err != nil {
			t.Fatalf("read %d bytes: %v; want 1000", n, err)
		}
		if _, err := unix.Write(c, []byte("x")); err != nil { // it acknowledges what has come
			t.Fatal(err)
		}
		if err := r.dumpConnections(time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		if got, sent := r.carried[end].received, r.table.of(end).sent; got != want || sent != want {
			t.Errorf("dump %d: %v bytes received and %v sent; want %v", i, got, sent, want)
		}
		if got := r.carried[end].sent; got > want/1000 || got < want/1000-1 { // the last one may not be acknowledged yet
			t.Errorf("dump %d: %v bytes sent to the destination; want %v or one fewer", i, got, want/1000)
		}
	}
}

// TestOnePeerLoses: of two peers the way to one loses everything for a while, so that it alone is sent segments again;
// a program on the same machine has no way to lose any on.
func TestOnePeerLoses(t *testing.T) {
	enterOwnNetNS(t)
	server := [4]byte{192, 0, 2, 1}
	addresses := [][4]byte{server, {192, 0, 2, 2}, {192, 0, 2, 3}}
	for i, a := range addresses {
		addAddress(t, fmt.Sprintf("lo:%d", i), a)
	}
	at := &unix.SockaddrInet4{Addr: server, Port: 8008}
	l := stream(t)
	if err := unix.Bind(l, at); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 5); err != nil {
		t.Fatal(err)
	}
	r := openHere(t)
	r.Poll()
	if err := r.dumpConnections(time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	local, good, bad := pair(t, l, at, server), pair(t, l, at, addresses[1]), pair(t, l, at, addresses[2])
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // what the filter of a socket refuses never reaches TCP
	if err := unix.SetsockoptSockFprog(bad[0], unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]}); err != nil {
		t.Fatal(err)
	}
	for _, p := range [][2]int{local, good, good, bad} {
		if _, err := unix.Write(p[1], []byte("a reply")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := unix.Write(good[0], []byte("a question")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Shutdown(bad[1], unix.SHUT_WR); err != nil { // what is left to be sent goes on being sent again
		t.Fatal(err)
	}
	end := endpoint{netip.AddrFrom4(server).As16(), uint16(at.Port)}
	for r.table.of(end).to.by[toOne].again < 2 {
		if err := r.dumpConnections(time.Unix(101, 0)); err != nil {
			t.Fatal(err)
		}
	}
	got := r.table.of(end).to
	// What the bad one was sent before it was known to lose anything counts as the others'.
	if others := got.by[toOthers]; others.sent < 2 || others.sent > 3 || got.by[toOne].sent == 0 || others.again != 0 || others.came != 1 || got.worst.addr != netip.AddrFrom4(addresses[2]).As16() {
		t.Errorf("%+v; want %v as the one, with a segment or more, two or three to others, none of them again, and the one question", got, addresses[2])
	}
}

// pair connects from an address to a listener, and accepts: the peer's end, and the service's.
func pair(t *testing.T, listener int, at *unix.SockaddrInet4, from [4]byte) [2]int {
	t.Helper()
	c := stream(t)
	if err := unix.Bind(c, &unix.SockaddrInet4{Addr: from}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(c, at); err != nil {
		t.Fatal(err)
	}
	s, _, err := unix.Accept(listener)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s) })
	return [2]int{c, s}
}

// addAddress gives the namespace an address of its own, under an alias of a device.
func addAddress(t *testing.T, alias string, a [4]byte) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(alias)
	if err != nil {
		t.Fatal(err)
	}
	if err := request.SetInet4Addr(a[:]); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request); err != nil {
		t.Fatalf("address %v: %v", a, err)
	}
}

// TestWhoLeftTheQueue: of those that nobody has accepted, only who went without having asked has left.
func TestWhoLeftTheQueue(t *testing.T) {
	enterOwnNetNS(t)
	full := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8006}
	l := stream(t)
	if err := unix.Bind(l, full); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 5); err != nil {
		t.Fatal(err)
	}
	for _, client := range []struct {
		says   string
		leaves bool
	}{{"", false}, {"", true}, {"a", false}, {"a", true}, {"GET /", true}} {
		c := stream(t)
		if err := unix.Connect(c, full); err != nil {
			t.Fatal(err)
		}
		if client.says != "" {
			if _, err := unix.Write(c, []byte(client.says)); err != nil {
				t.Fatal(err)
			}
		}
		if client.leaves {
			if err := unix.Shutdown(c, unix.SHUT_WR); err != nil { // its FIN is what the listener sees of a close
				t.Fatal(err)
			}
		}
	}
	r := openHere(t)
	r.Poll()
	if err := r.dumpConnections(time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	got := r.table.of(endpoint{netip.AddrFrom4(full.Addr).As16(), uint16(full.Port)})
	if got == nil || got.left != 1 || got.accepted != 0 {
		t.Errorf("the listener with five in its queue: %+v; want one that left, and none accepted", got)
	}
}

func stream(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func wantReal(comm, path string) map[string]float64 {
	want := map[string]float64{}
	for _, l := range []struct {
		listen       string
		queue, limit float64
		by           string
		accepted     float64
	}{
		{"127.0.0.1:8001", 3, 2, "backlog", 0},
		{"[::]:8002", 2, 300, "somaxconn", 3},
		{"127.0.0.1:8003", 6, 11, "backlog", 0},
		{path, 2, 7, "backlog", 2},
	} {
		labels := "{" + l.listen + "," + comm + "}"
		want["plimsoll_tcp_listen_queue"+labels] = l.queue
		want["plimsoll_tcp_listen_queue_mean"+labels] = l.queue // they stand still
		want["plimsoll_tcp_listen_queue_limit"+labels] = l.limit
		want["plimsoll_tcp_listen_queue_limit_by{"+l.listen+","+comm+","+l.by+"}"] = 1
		want["plimsoll_tcp_listen_accepted"+labels] = l.accepted
		if !strings.HasPrefix(l.listen, "unix") && l.listen != "127.0.0.1:8001" {
			want["plimsoll_tcp_listen_drops_total"+labels] = 0
			want["plimsoll_tcp_listen_syn_recv"+labels] = 0
		}
		if !strings.HasPrefix(l.listen, "unix") {
			want["plimsoll_tcp_listen_absent_ratio"+labels] = 0
			want["plimsoll_tcp_listen_unread"+labels] = 0
			want["plimsoll_tcp_listen_gaps"+labels] = 0
			want["plimsoll_tcp_listen_queue_left"+labels] = 0
			want["plimsoll_tcp_listen_unacknowledged"+labels] = 0
			want["plimsoll_tcp_listen_window_shut"+labels] = 0
			want["plimsoll_tcp_listen_repeated"+labels] = 0
			want["plimsoll_tcp_listen_repeated_large"+labels] = 0
			want["plimsoll_tcp_listen_held_back"+labels] = 0
			want["plimsoll_tcp_listen_window_small"+labels] = 0
			want["plimsoll_tcp_listen_segments_small"+labels] = 0
			want["plimsoll_tcp_listen_window_restarted"+labels] = 0
			want["plimsoll_tcp_listen_receive_window_filled"+labels] = 0
			want["plimsoll_tcp_listen_sent_bytes_total"+labels] = 0
			want["plimsoll_tcp_listen_defers_seconds{"+l.listen+","+comm+"}"] = 0
			for _, held := range heldNames {
				want["plimsoll_tcp_listen_busy_seconds_total{"+l.listen+","+comm+","+held+"}"] = 0
			}
			for _, to := range toNames {
				want["plimsoll_tcp_listen_segments_total{"+l.listen+","+comm+","+to+"}"] = 0
				want["plimsoll_tcp_listen_resent_segments_total{"+l.listen+","+comm+","+to+"}"] = 0
				want["plimsoll_tcp_listen_received_segments_total{"+l.listen+","+comm+","+to+"}"] = 0
			}
		}
	}
	for _, d := range []struct {
		dst         string
		used        float64
		established float64
	}{
		{"127.0.0.1:8001", 12, -1},
		{"127.0.0.1:8002", 3, 5}, // 3 on one local address, 2 on another
		{"127.0.0.1:8003", 6, 6},
	} {
		want["plimsoll_tcp_destination_ports_used{"+d.dst+"}"] = d.used
		want["plimsoll_tcp_destination_ports_time_wait{"+d.dst+"}"] = 0
		want["plimsoll_tcp_destination_received_bytes_total{"+d.dst+"}"] = 0
		for _, held := range heldNames {
			want["plimsoll_tcp_destination_busy_seconds_total{"+d.dst+","+held+"}"] = 0
		}
		if d.established > 0 { // the kernel counts an acknowledged SYN as a byte
			want["plimsoll_tcp_destination_sent_bytes_total{"+d.dst+"}"] = d.established
		}
		want["plimsoll_tcp_destination_ports_usable{"+d.dst+"}"] = 490
		want["plimsoll_tcp_destination_unacknowledged{"+d.dst+"}"] = 0
		want["plimsoll_tcp_destination_gaps{"+d.dst+"}"] = 0
		want["plimsoll_tcp_destination_window_restarted{"+d.dst+"}"] = 0
		want["plimsoll_tcp_destination_silent{"+d.dst+"}"] = 0
		want["plimsoll_tcp_destination_resending{"+d.dst+"}"] = 0
		want["plimsoll_tcp_destination_owner_info{"+d.dst+","+comm+"}"] = 1
		for _, state := range stateNames {
			want["plimsoll_tcp_destination_sockets{"+d.dst+","+state+"}"] = 0
		}
		want["plimsoll_tcp_destination_sockets{"+d.dst+",established}"] = d.established
		if d.established < 0 {
			delete(want, "plimsoll_tcp_destination_sockets{"+d.dst+",established}")
			delete(want, "plimsoll_tcp_destination_sockets{"+d.dst+",syn_sent}")
		}
	}
	want["plimsoll_unix_datagram_places{"+path+".datagrams,"+comm+"}"] = 10 // the kernel's own, of a new namespace
	return want
}

// record writes the kernel's own answers of this moment to testdata.
func record(t *testing.T, r *reader) {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^\d+\.\d+`).Find(b)
	type request struct {
		typ  uint16
		body []byte
	}
	for name, reqs := range map[string][]request{
		"listeners.hex":   {{tcpDiagGetSock, r.tcpListeners}},
		"connections.hex": {{tcpDiagGetSock, r.tcpConnections}},
		"unix.hex":        {{sockDiagByFamily, r.unixListeners}, {sockDiagByFamily, r.unixEstablished}},
	} {
		var b bytes.Buffer
		fmt.Fprintf(&b, "# sock_diag answers, one message a line; Linux %s\n", version)
		for _, req := range reqs {
			err := r.conn.Dump(req.typ, req.body, readTimeout, func(p []byte) error {
				fmt.Fprintln(&b, hex.EncodeToString(p))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join("testdata", name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkRead says what a reading costs in CPU time of the reading thread:
//
//	go test -run '^$' -bench Read -benchtime 20x ./internal/probe/sockets
//
// Half of the connections are closed and remain as one TIME_WAIT socket, so
// 2,000 connections are 3,000 sockets. The service needs a descriptor for each
// connection (ulimit -n).
func BenchmarkRead(b *testing.B) {
	for _, connections := range []int{60, 2_000, 19_000} {
		b.Run(fmt.Sprintf("sockets=%d", connections*3/2), func(b *testing.B) { benchmark(b, connections) })
	}
}

func benchmark(b *testing.B, connections int) {
	enterOwnNetNS(b)
	s := startService(b)
	s.do("listen")
	r := openHere(b)
	s.do(strconv.Itoa(connections))
	measure := func(name string, step func()) {
		step()
		start := pace.CPUTime()
		for range b.N {
			step()
		}
		b.ReportMetric(float64((pace.CPUTime()-start).Microseconds())/float64(b.N), name+"-cpu-µs/op")
	}
	out := probe.NewOut(newReadings(), "here", time.Unix(100, 0), time.Second)
	measure("poll", func() { r.Poll() })
	measure("connections", func() { r.reportConnections(out) })
	measure("owners", func() {
		r.owners = newOwners(r.host, searchShare, map[int]uint64{})
		if err := r.nameOwners(time.Unix(100, 0)); err != nil {
			b.Fatal(err)
		}
	})
}

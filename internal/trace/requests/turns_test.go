package requests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const several = 23

// within fails unless a time lies between bounds.
func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	t.Logf("%s: %v, between %v and %v", what, got, least, most)
	if got < least || got > most {
		t.Errorf("%s: %v, want between %v and %v", what, got, least, most)
	}
}

// TestRequestsAreCountedAndTimed: over TCP and over a Unix socket, on connections
// that stand.
func TestRequestsAreCountedAndTimed(t *testing.T) { eachWay(t, requestsAreCountedAndTimed) }

func requestsAreCountedAndTimed(t *testing.T, w way) {
	for _, address := range []string{"127.0.0.1:0", filepath.Join(t.TempDir(), "sock")} {
		t.Run(strings.Trim(filepath.Base(address), ":0."), func(t *testing.T) {
			tr, ns := begin(t, w, everything)
			name, at := startServer(t, address)
			network, addr, _ := splitAddress(at)
			c, err := net.Dial(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			for range several {
				ask(t, c, "wait 20")
			}
			took := time.Since(began)
			if network == "unix" {
				at = "unix:" + at
			}
			p := wait(t, tr, ns, at, "all are answered", func(p Place) bool { return p.group(name).InHand.Buckets.Count() == several })
			if p.Begun != several || p.Followed != several || p.group(name).Unread.Buckets.Count() != several {
				t.Errorf("%+v", p)
			}
			within(t, "unread and in hand", p.group(name).InHand.Sum+p.group(name).Unread.Sum, several*20*time.Millisecond, took)
			if p.now(name) != 0 || *p.Unread != 0 || len(p.group(name).Failed) > 0 || len(p.group(name).Excluded) > 0 {
				t.Errorf("nothing is under way, nothing failed: %+v", p.group(name))
			}
			ask(t, c, "parts 3 20") // the last but this is over, and known to be
			p = wait(t, tr, ns, at, "the parts are written", func(p Place) bool { return p.group(name).Reply > 39*time.Millisecond })
			if n := p.group(name).Served.Buckets.Count(); n != several {
				t.Errorf("%d are known to be over, want %d", n, several)
			}
		})
	}
}

// TestReadBeforeItsArrivalIsTold: over a Unix socket a server that still runs may read
// what has come, and answer it, before the tracepoint of its arrival is reached.
func TestReadBeforeItsArrivalIsTold(t *testing.T) { eachWay(t, readBeforeItsArrivalIsTold) }

func readBeforeItsArrivalIsTold(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	name, at := startServer(t, filepath.Join(t.TempDir(), "sock"))
	const clients, each = 3, 3000
	var all sync.WaitGroup
	for range clients {
		c, err := net.Dial("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all.Go(func() {
			replies := bufio.NewReader(c)
			for range each {
				fmt.Fprintln(c, "wait 0")
				if _, err := replies.ReadString('\n'); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	// Where both ends of a socket are at work on two CPUs in one moment, one in some 100,000 is missed.
	const missed = 3
	var answered uint64
	p := wait(t, tr, ns, "unix:"+at, "all are answered", func(p Place) bool {
		answered = p.group(name).InHand.Buckets.Count()
		return answered >= clients*each-missed
	})
	got := p.group(name)
	if answered > clients*each || p.Begun > clients*each || p.Begun < answered || got.Unread.Buckets.Count() < answered || got.Pieces != 0 {
		t.Errorf("%d begun, %+v", p.Begun, got)
	}
}

// TestUnderWay: what lies there unread, what is in hand, and for how long.
func TestUnderWay(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		tr, ns := begin(t, w, everything)
		underWay(t, tr, ns)
	})
}

// TestUnderWayByFile is as on a kernel that lets no program look at all sockets of a map.
func TestUnderWayByFile(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		spec := loadBothWalks(t, w)
		chooseWalk(spec, false)
		tr, ns := beginWith(t, spec, everything)
		listenElsewhere(t)
		underWay(t, tr, ns)
		if p := at(t, tr, ns, "[::]:0"); p.Listen != "" {
			t.Errorf("what is no listener of TCP is one: %+v", p)
		}
	})
}

// listenElsewhere has a socket listen whose state has the same number as that of TCP's, and its memory another meaning: what is read
// of it must not be what a user sets.
func listenElsewhere(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Logf("no vsock here: %v", err)
		return
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: unix.VMADDR_PORT_ANY}), unix.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
}

func underWay(t *testing.T, tr *Trace, ns uint32) {
	name, addr := startServer(t, "127.0.0.1:0")
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 7 {
		to := addr
		if i < 3 {
			to = l.Addr().String()
		}
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintln(c, "never")
	}
	began := time.Now()
	p := wait(t, tr, ns, addr, "four are in hand", func(p Place) bool { return p.now(name) == 4 })
	if p.Begun != 4 || *p.Unread != 0 {
		t.Errorf("%+v", p)
	}
	three := func(p Place) bool { return p.Unread != nil && *p.Unread == 3 }
	p = wait(t, tr, ns, l.Addr().String(), "three lie unread", three)
	// Three each time: a stranger who finds the port and asks would add his age to theirs.
	later := wait(t, tr, ns, l.Addr().String(), "they grow old", func(now Place) bool { return three(now) && *now.Age > *p.Age+30*time.Millisecond })
	within(t, fmt.Sprintf("age of three together, from %v to %v", *p.Age, *later.Age), *later.Age-*p.Age, 30*time.Millisecond, 3*time.Since(began))
	unread := func(what string, n uint64) {
		t.Helper()
		wait(t, tr, ns, l.Addr().String(), what, func(p Place) bool { return p.Unread != nil && *p.Unread == n })
	}
	asks, silent := dial(t, "tcp", l.Addr().String()), dial(t, "tcp", l.Addr().String())
	fmt.Fprintln(asks, "never")
	unread("a fourth lies unread", 4)
	for _, c := range []*client{asks, silent} {
		if err := errors.Join(c.Conn.(*net.TCPConn).SetLinger(0), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	unread("what was reset is in the queue, and under way no more", 3)
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for range 2 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintln(c, "never")
	}
	wait(t, tr, ns, "unix:"+path, "two lie unread over a Unix socket", func(p Place) bool { return p.Unread != nil && *p.Unread == 2 })
}

// TestFailures: each is told by how it ended.
func TestFailures(t *testing.T) { eachWay(t, howTheyFail) }

func howTheyFail(t *testing.T, w way) {
	began := time.Now()
	tr, ns := begin(t, w, everything)
	name, addr := startServer(t, "127.0.0.1:0")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, line := range []string{"close", "abort", "abort"} {
		c := dial()
		fmt.Fprintln(c, line)
		_, _ = io.ReadAll(c) // until it is closed, or reset
	}
	for i, linger := range []int{-1, -1, 0} { // the client leaves at once, later, or resets
		c := dial()
		fmt.Fprintln(c, "never")
		wait(t, tr, ns, addr, "it is in hand", func(p Place) bool { return p.now(name) == 1 })
		time.Sleep([]time.Duration{2, 150, 2}[i] * time.Millisecond) // longer than one that waits for no answer, or than nobody notices
		_ = c.(*net.TCPConn).SetLinger(linger)
		c.Close()
		wait(t, tr, ns, addr, "it is over", func(p Place) bool { return p.now(name) == 0 })
	}
	c := dial() // it leaves before a reply that is written all the same
	fmt.Fprintln(c, "wait 50")
	wait(t, tr, ns, addr, "it is in hand", func(p Place) bool { return p.now(name) == 1 })
	time.Sleep(2 * time.Millisecond)
	c.Close()
	wait(t, tr, ns, addr, "it is told that nobody is there", func(p Place) bool { return p.group(name).Failed["left_early"] == 2 })
	c = dial() // it asks and leaves in one segment
	cork(t, c.(*net.TCPConn))
	fmt.Fprintln(c, "wait 150")
	c.Close()
	wait(t, tr, ns, addr, "it left when it asked", func(p Place) bool { return p.group(name).Failed["left_early"] == 3 })
	dial().Close() // it asks nothing, and leaves; the next resets
	c = dial()
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
	p := wait(t, tr, ns, addr, "silence is counted", func(p Place) bool { return p.LetBe == 2 })
	want := map[string]uint64{"closed": 1, "aborted": 2, "left": 1, "left_early": 3, "reset": 1}
	if got := p.group(name).Failed; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if p.Unanswered != 5 || p.LeftEarly != 1 || p.Silent != 0 || p.Begun != 8 || p.group(name).InHand.Buckets.Count() > 1 {
		t.Errorf("%+v", p)
	}
	within(t, "who left had waited", p.group(name).FailedAfter["left"], 150*time.Millisecond, time.Since(began))
	within(t, "those who left early had waited", p.group(name).FailedAfter["left_early"], 4*time.Millisecond, 300*time.Millisecond)
}

// TestTurnedAway: a service that closes what it accepts, and says nothing.
func TestTurnedAway(t *testing.T) { eachWay(t, turnedAway) }

func turnedAway(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, linger := range []int{-1, 0} { // it closes, or resets
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = accepted.(*net.TCPConn).SetLinger(linger)
		accepted.Close()
		_, _ = io.ReadAll(c)
	}
	p := wait(t, tr, ns, l.Addr().String(), "both are counted", func(p Place) bool { return p.Silent == 2 })
	if p.LetBe != 0 {
		t.Errorf("%+v", p)
	}
}

// TestNoTurns: what does not take turns is recognised, and not counted on.
func TestNoTurns(t *testing.T) { eachWay(t, noTurns) }

func noTurns(t *testing.T, w way) {
	t.Run("asks on", func(t *testing.T) {
		tr, ns := begin(t, w, everything)
		name, addr := startServer(t, "127.0.0.1:0")
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintln(c, "wait 3000")
		wait(t, tr, ns, addr, "the first is in hand", func(p Place) bool { return p.now(name) == 1 })
		for range several - 1 { // before its reply
			fmt.Fprintln(c, "wait 0")
		}
		replies := bufio.NewScanner(c)
		for range several {
			replies.Scan()
		}
		p := wait(t, tr, ns, addr, "it is left alone", func(p Place) bool { return p.group(name).Excluded["overlapped"] == 1 })
		if n := p.group(name).InHand.Buckets.Count(); n > several/2 {
			t.Errorf("%d of %d are taken for turns", n, several)
		}
	})
	t.Run("sends on", func(t *testing.T) {
		tr, ns := begin(t, w, everything)
		name, addr := startServer(t, "127.0.0.1:0")
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p := wait(t, tr, ns, addr, "it is one way, and no longer in hand", func(p Place) bool {
			fmt.Fprintln(c, "never")
			return p.group(name).Excluded["one_way"] == 1 && p.now(name) == 0 // read one after the other, while it happens
		})
		if p.Begun != 1 {
			t.Errorf("one request: %+v", p)
		}
	})
	t.Run("is told now and then", func(t *testing.T) {
		tr, ns := begin(t, w, everything)
		name, addr := startServer(t, "127.0.0.1:0")
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ask(t, c, "parts 2 1100")
		p := wait(t, tr, ns, addr, "it is a stream", func(p Place) bool { return p.group(name).Excluded["streamed"] == 1 })
		if p.Begun != 1 || p.group(name).Reply > time.Second {
			t.Errorf("one request, and its pause is nobody's: %+v", p)
		}
	})
}

// TestReceiving: a request in pieces, whose sender is slow, is in hand from its last.
func TestReceiving(t *testing.T) { eachWay(t, receiving) }

func receiving(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	name, addr := startServer(t, "127.0.0.1:0")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var took time.Duration // since the last piece was sent
	for range 7 {
		fmt.Fprint(c, "wa")
		wait(t, tr, ns, addr, "the first piece is read", func(p Place) bool { return p.now(name) == 1 })
		time.Sleep(30 * time.Millisecond) // how slow the sender is
		sent := time.Now()
		ask(t, c, "it 5")
		took += time.Since(sent)
	}
	p := wait(t, tr, ns, addr, "all are answered", func(p Place) bool { return p.group(name).InHand.Buckets.Count() == 7 })
	got := p.group(name)
	if got.Pieces != 7 || got.Receiving < 7*30*time.Millisecond || got.InHand.Sum < 7*5*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if got.InHand.Sum > took {
		t.Errorf("in hand for %v, and the client waited for %v: the wait for the sender is not the server's", got.InHand.Sum, took)
	}
}

// TestIPv6: its sockets have functions of their own.
func TestIPv6(t *testing.T) { eachWay(t, overIPv6) }

func overIPv6(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	name, addr := startServer(t, "[::1]:0")
	for range several {
		c := dial(t, "tcp", addr)
		ask(t, c, "wait 0")
		c.Close()
	}
	p := wait(t, tr, ns, addr, "all are answered", func(p Place) bool { return p.group(name).InHand.Buckets.Count() == several })
	if n := p.group(name).Unread.Buckets.Count(); n != several || len(p.group(name).Failed) > 0 || len(p.group(name).Excluded) > 0 {
		t.Errorf("%d were read: %+v", n, p.group(name))
	}
}

// cork keeps what is written until the connection is closed.
func cork(t *testing.T, c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
}

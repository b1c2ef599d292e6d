package unread

import (
	"net"
	"os"
	"strconv"
	"testing"
	"time"

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

// of returns what was seen at one end in one namespace.
func of(t *testing.T, tr *Trace, ns uint32, end string) Waits {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost)
	for _, w := range s.Waits {
		if w.Netns == ns && w.String() == end {
			return w
		}
	}
	return Waits{}
}

// lain is between which bounds bytes lay unread, as the test's own clock knows.
type lain struct{ least, most time.Duration }

// send sends bytes, waits, has the peer read, and notes the bounds.
func (l *lain) send(t *testing.T, c net.Conn, wait time.Duration, read func()) {
	t.Helper()
	before := time.Now()
	if _, err := c.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	time.Sleep(wait)
	l.least += time.Since(sent)
	read()
	l.most += time.Since(before)
}

// check fails unless the waits are as many, and their sum within the bounds, but
// for two jiffies each.
func (l *lain) check(t *testing.T, sum time.Duration, n, want uint64) {
	t.Helper()
	t.Logf("%d waits, %v in all; bytes lay there for between %v and %v", n, sum, l.least, l.most)
	if n != want {
		t.Errorf("%d waits, want %d", n, want)
	}
	slack := time.Duration(n) * 2 * jiffy
	if sum < l.least-slack || sum > l.most+slack {
		t.Errorf("waited %v in all, want %v to %v, give or take %v", sum, l.least, l.most, slack)
	}
}

const jiffy = 10 * time.Millisecond // the longest there is

const (
	requests = 11
	pause    = 120 * time.Millisecond // longer than an ACK is put off, which sets the socket's clock anew
)

// TestRequestsWaitForTheServer: on a connection that stands, each lies as long as the server lets it.
func TestRequestsWaitForTheServer(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	server := tcptest.StartPeer(t)
	port := server.Do("listen")
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server.Do("accept 1")
	tr := begin(t)
	var bounds lain
	for range requests {
		bounds.send(t, c, pause, func() { server.Do("read 60") })
		server.Do("read 60") // the rest has not waited anew
		server.Do("send 100")
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	got := of(t, tr, ns, ":"+port)
	bounds.check(t, got.Sum, got.Histogram.Count(), requests)
	if got.Name != server.Name || got.Firsts.Count() != 1 {
		t.Errorf("%+v: want reads of %s, one of them the connection's first", got, server.Name)
	}
}

// TestConnectionsWaitToBeAccepted: a server that is late by 300 ms.
func TestConnectionsWaitToBeAccepted(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	server := tcptest.StartPeer(t)
	port := server.Do("listen")
	var bounds lain
	for range 7 {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		bounds.send(t, c, 300*time.Millisecond, func() {
			server.Do("accept 1")
			server.Do("read 100")
		})
		server.Do("close")
	}
	got := of(t, tr, ns, ":"+port)
	bounds.check(t, got.First, got.Firsts.Count(), 7)
	checkSamples(t, tr, ns, got)
}

// checkSamples looks at the same through Read.
func checkSamples(t *testing.T, tr *Trace, ns uint32, w Waits) {
	t.Helper()
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	at := strconv.Itoa(int(ns)) + "@"
	for series, want := range map[string]float64{
		at + "plimsoll_unread_seconds_count{" + w.Name + ",server," + w.Port + ",}":       7,
		at + "plimsoll_unread_seconds_sum{" + w.Name + ",server," + w.Port + ",}":         w.Sum.Seconds(),
		at + "plimsoll_unread_seconds_bucket{" + w.Name + ",server," + w.Port + ",,+Inf}": 7,
		at + "plimsoll_unread_first_seconds_count{" + w.Name + "," + w.Port + "}":         7,
		at + "plimsoll_unread_first_seconds_sum{" + w.Name + "," + w.Port + "}":           w.First.Seconds(),
		"plimsoll_unread_lost_total{readers}":                                             0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// TestRepliesWaitForTheClient: the same at the end that connected.
func TestRepliesWaitForTheClient(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	client := tcptest.StartPeer(t)
	l, addr := tcptest.Listen(t, "127.0.0.1:0")
	client.Do("connect %v 1", addr)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var bounds lain
	for range requests {
		bounds.send(t, c, 20*time.Millisecond, func() { client.Do("read 100") })
	}
	got := of(t, tr, ns, "to "+addr.String())
	bounds.check(t, got.Sum, got.Histogram.Count(), requests)
	if got.Firsts.Count() != 0 {
		t.Errorf("%d connections accepted by a client", got.Firsts.Count())
	}
}

// What finds no room is counted, and processes can be left out.
func TestLossAndIgnored(t *testing.T) {
	tcptest.OwnNetns(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapReaders].MaxEntries = 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	read := func() {
		server := tcptest.StartPeer(t)
		port := server.Do("listen")
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		server.Do("accept 1")
		server.Do("read 100")
	}
	lost := func() uint64 {
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return lost["readers"]
	}
	read()
	read()
	if lost() == 0 {
		t.Error("two ports were read at, there is room for one, and nothing is lost")
	}
	if err := tr.Only(1); err != nil {
		t.Fatal(err)
	}
	before := lost()
	read()
	if lost() != before {
		t.Error("another process was singled out, and yet a read was counted")
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

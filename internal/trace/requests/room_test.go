package requests

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

// TestSamples looks at what is recorded.
func TestSamples(t *testing.T) { eachWay(t, samples) }

func samples(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	name, addr := startServer(t, "127.0.0.1:0")
	c := dial(t, "tcp", addr)
	for range 7 {
		ask(t, c, "wait 0")
	}
	p := wait(t, tr, ns, addr, "all are answered", func(p Place) bool { return p.group(name).InHand.Buckets.Count() == 7 })
	samples := tracetest.Sink{}
	tr.next = time.Time{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	at := strconv.Itoa(int(ns)) + "@plimsoll_requests_"
	who := "{" + addr + "," + name
	got := p.group(name)
	for series, want := range map[string]float64{
		at + "begun_total{" + addr + "}":                   7,
		at + "followed_total{" + addr + "}":                7,
		at + "unread_seconds_count" + who + "}":            7,
		at + "unread_seconds_sum" + who + "}":              got.Unread.Sum.Seconds(),
		at + "in_hand_seconds_count" + who + "}":           7,
		at + "in_hand_seconds_sum" + who + "}":             got.InHand.Sum.Seconds(),
		at + "in_hand_seconds_bucket" + who + ",+Inf}":     7,
		at + "served_seconds_count" + who + "}":            6,
		at + "in_hand" + who + "}":                         0,
		at + "unread{" + addr + "}":                        0,
		at + "under_way_seconds{" + addr + "}":             0,
		at + "peer_answered_total{" + addr + ",127.0.0.1}": 7,
		"plimsoll_requests_lost_total{places}":             0,
		"plimsoll_requests_lost_total{peers}":              0,
		"plimsoll_requests_lost_total{sockets}":            0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// TestLoss: what finds no room is counted.
func TestLoss(t *testing.T) { eachWay(t, loss) }

func loss(t *testing.T, w way) {
	tcptest.OwnNetns(t, Tracer())
	lost := func(t *testing.T, what string, change func(*ebpf.CollectionSpec)) uint64 {
		tr := beginHere(t, load(t, w), func(spec *ebpf.CollectionSpec) error { change(spec); return nil })
		for range 3 {
			_, addr := startServer(t, "127.0.0.1:0")
			c := dial(t, "tcp", addr)
			ask(t, c, "wait 0")
			c.Close()
		}
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return lost[what]
	}
	for what, shrink := range map[string]string{"places": bpfMapPlaces, "peers": bpfMapPeers} {
		t.Run(what, func(t *testing.T) {
			if n := lost(t, what, func(spec *ebpf.CollectionSpec) { spec.Maps[shrink].MaxEntries = 1 }); n == 0 {
				t.Error("there is room for one, and nothing is lost")
			}
		})
	}
	t.Run("sockets", func(t *testing.T) {
		n := lost(t, "sockets", func(spec *ebpf.CollectionSpec) {
			if err := spec.Variables[bpfVarNoMoreSockets].Set(true); err != nil {
				t.Fatal(err)
			}
		})
		if n == 0 {
			t.Error("there is no room for sockets, and nothing is lost")
		}
	})
}

// TestLeavesOut: of others than those singled out nothing is in hand, and what
// happened in a pause is not counted.
func TestLeavesOut(t *testing.T) { eachWay(t, leavesOut) }

func leavesOut(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	name, addr := startServer(t, "127.0.0.1:0")
	c := dial(t, "tcp", addr)
	ask(t, c, "wait 0")
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	ask(t, c, "wait 0")
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	ask(t, c, "wait 0")
	wait(t, tr, ns, addr, "two were not in the pause", func(p Place) bool { return p.group(name).InHand.Buckets.Count() == 2 })
	if err := tr.Only(1); err != nil {
		t.Fatal(err)
	}
	other, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ask(t, other, "wait 0")
	if n := at(t, tr, ns, addr).group(name).InHand.Buckets.Count(); n != 2 {
		t.Errorf("another process was singled out, and yet %d are counted", n)
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

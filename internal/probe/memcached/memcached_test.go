package memcached

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/probe"
	"plimsoll/internal/probe/asker"
	"plimsoll/internal/probe/livetest"
)

// What a memcached 1.6.18 with 4 MB said that moves no memory (no_slab_reassign): 2,800 items of 1.4 KB had
// filled it before it was asked for pages of 12 KB.
func TestPut(t *testing.T) {
	f, err := os.Open("testdata/stats-1.6.18.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := read(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	rec := livetest.NewRecord()
	put(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "127.0.0.1:11211", a)
	want := map[string]float64{
		"memcached_commands_total{127.0.0.1:11211,get,hit}":         120,
		"memcached_commands_total{127.0.0.1:11211,get,miss}":        200,
		"memcached_commands_total{127.0.0.1:11211,set,hit}":         3000,
		"memcached_items_evicted_total{127.0.0.1:11211}":            125,
		"memcached_current_bytes{127.0.0.1:11211}":                  5017074,
		"memcached_limit_bytes{127.0.0.1:11211}":                    4 << 20,
		"memcached_max_connections{127.0.0.1:11211}":                1024,
		"memcached_connections_rejected_total{127.0.0.1:11211}":     0,
		"memcached_current_connections{127.0.0.1:11211}":            1,
		"plimsoll_memcached_slab_bytes{127.0.0.1:11211,13}":         2832 * 1480,
		"plimsoll_memcached_slab_bytes{127.0.0.1:11211,23}":         75 * 13880,
		"memcached_slab_items_evicted_total{127.0.0.1:11211,13}":    0,
		"memcached_slab_items_evicted_total{127.0.0.1:11211,23}":    125,
		"memcached_slab_commands_total{127.0.0.1:11211,13,get,hit}": 20,
		"memcached_slab_commands_total{127.0.0.1:11211,23,get,hit}": 100,
		"plimsoll_memcached_slab_automove{127.0.0.1:11211}":         0,
	}
	got := map[string]float64{}
	for series := range want {
		got[series] = rec.Values[series]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What expired at once, of a time to live of 60 days: 2000 sets of a memcached 1.6.18. One that does not count it is not taken to have none.
func TestPutExpired(t *testing.T) {
	const lookups, unfetched = "plimsoll_memcached_gets_expired_total{127.0.0.1:11211}", "plimsoll_memcached_items_expired_unfetched_total{127.0.0.1:11211}"
	for text, want := range map[string]map[string]float64{
		"STAT cmd_set 2000\r\nSTAT get_expired 9\r\nSTAT expired_unfetched 1973\r\nEND\r\nERROR\r\nERROR\r\nERROR\r\n": {lookups: 9, unfetched: 1973},
		"STAT cmd_set 2000\r\nEND\r\nERROR\r\nERROR\r\nERROR\r\n":                                                      {},
	} {
		a, err := read(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		rec := livetest.NewRecord()
		put(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "127.0.0.1:11211", a)
		got := map[string]float64{}
		for _, series := range []string{lookups, unfetched} {
			if v, ok := rec.Values[series]; ok {
				got[series] = v
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"ERROR Too many open connections\r\n": asker.ErrFull,
		"CLIENT_ERROR unauthenticated\r\n":    fs.ErrPermission,
		"":                                    nil, "END\r\n": nil, "ERROR\r\n": nil, "STAT get_hits x\r\nEND\r\n": nil, "STAT get_hits 1\r\n": nil,
		"STAT get_hits 1\r\nEND\r\n":                        nil,
		"STAT get_hits 1\r\nEND\r\nSTAT 1:chunk_size x\r\n": nil,
		"STAT get_hits\r\nEND\r\n":                          nil,
		strings.Repeat("STAT other 1\r\n", 2000):            nil,
	} {
		_, err := read(bufio.NewReader(strings.NewReader(text)))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", text, err, want)
		}
	}
}

// A server that knows stats alone is read all the same, and whether it moves memory is not known of it.
func TestReadOfOneThatKnowsStatsAlone(t *testing.T) {
	a, err := read(bufio.NewReader(strings.NewReader("STAT get_hits 3\r\nEND\r\nERROR\r\nERROR\r\nERROR\r\n")))
	if err != nil || a.values["get_hits"] != 3 || len(a.slabs) != 0 || a.settled {
		t.Errorf("%+v, %v", a, err)
	}
}

// Memory moves where somebody moves it and it may be moved.
func TestWhetherMemoryMoves(t *testing.T) {
	for said, want := range map[string]float64{"yes 2": 2, "yes 0": 0, "no 1": 0} {
		a := &answer{}
		may, by, _ := strings.Cut(said, " ")
		a.set("slab_reassign", may)
		a.set("slab_automove", by)
		if !a.settled || a.moves != want {
			t.Errorf("%s: %+v, want %v", said, a, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("STAT get_hits 1\r\nSTAT version 1.6.18\r\nEND\r\nSTAT 1:chunk_size 96\r\nEND\r\nSTAT items:1:evicted 3\r\nEND\r\nSTAT slab_reassign yes\r\nSTAT slab_automove 1\r\nEND\r\n")
	f.Add("STAT get_hits 1\r\nEND\r\nERROR\r\nERROR\r\nERROR\r\n")
	f.Add("ERROR\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := read(bufio.NewReader(strings.NewReader(text)))
		if err == nil && len(a.values)+len(a.slabs) > len(numbers)+maxSlabs+1 {
			t.Errorf("%d values", len(a.values))
		}
	})
}

func TestLive(t *testing.T) {
	s := livetest.Start(t, nil, "memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", "11211", "-m", "3")
	s.Sample(All())
	s.Sees("memcached_limit_bytes{127.0.0.1:11211}", 3<<20)
	s.Sees("memcached_up{127.0.0.1:11211}", 1)
	s.Sees("plimsoll_memcached_slab_automove{127.0.0.1:11211}", 1)
}

// Who is sent away knows why.
func TestLiveFull(t *testing.T) {
	s := livetest.Start(t, nil, "memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", "11211", "-c", "32")
	s.Until("all places are taken", func() bool {
		c, err := s.Dial("tcp", "127.0.0.1:11211")
		if err != nil {
			return false
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte("version\r\n")); err != nil {
			return false
		}
		said, err := bufio.NewReader(c).ReadString('\n')
		return err != nil || !strings.HasPrefix(said, "VERSION") // this one was sent away
	})
	s.Sample(All())
	s.Sees("plimsoll_memcached_full{127.0.0.1:11211}", 1)
}

func TestNone(t *testing.T) { livetest.CheckNone(t, All()) }

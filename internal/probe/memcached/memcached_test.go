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

// What a memcached 1.6.18 with 2 MB said that had been given 8, and was asked for all of it.
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
		"memcached_commands_total{127.0.0.1:11211,get,hit}":     48,
		"memcached_commands_total{127.0.0.1:11211,get,miss}":    152,
		"memcached_commands_total{127.0.0.1:11211,set,hit}":     200,
		"memcached_items_evicted_total{127.0.0.1:11211}":        152,
		"memcached_current_bytes{127.0.0.1:11211}":              1923024,
		"memcached_limit_bytes{127.0.0.1:11211}":                2 << 20,
		"memcached_max_connections{127.0.0.1:11211}":            1024,
		"memcached_connections_rejected_total{127.0.0.1:11211}": 0,
		"memcached_current_connections{127.0.0.1:11211}":        1,
	}
	got := map[string]float64{}
	for series := range want {
		got[series] = rec.Values[series]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"ERROR Too many open connections\r\n": asker.ErrFull,
		"CLIENT_ERROR unauthenticated\r\n":    fs.ErrPermission,
		"":                                    nil, "END\r\n": nil, "ERROR\r\n": nil, "STAT get_hits x\r\nEND\r\n": nil, "STAT get_hits 1\r\n": nil,
		"STAT get_hits\r\nEND\r\n":               nil,
		strings.Repeat("STAT other 1\r\n", 2000): nil,
	} {
		_, err := read(bufio.NewReader(strings.NewReader(text)))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("STAT get_hits 1\r\nSTAT version 1.6.18\r\nEND\r\n")
	f.Add("ERROR\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := read(bufio.NewReader(strings.NewReader(text)))
		if err == nil && len(a) > len(numbers) {
			t.Errorf("%d values", len(a))
		}
	})
}

func TestLive(t *testing.T) {
	s := livetest.Start(t, nil, "memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", "11211", "-m", "3")
	s.Sample(All())
	s.Sees("memcached_limit_bytes{127.0.0.1:11211}", 3<<20)
	s.Sees("memcached_up{127.0.0.1:11211}", 1)
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

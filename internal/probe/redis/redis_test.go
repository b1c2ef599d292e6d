package redis

import (
	"bufio"
	"errors"
	"fmt"
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

// reply is a bulk string.
func reply(text string) *bufio.Reader {
	return bufio.NewReader(strings.NewReader(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)))
}

func recorded(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("testdata/info-7.0.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// What a Redis 7.0 said whose 3 MiB are used up, of which it had refused something twice.
func TestPut(t *testing.T) {
	a, err := read(reply(recorded(t)))
	if err != nil {
		t.Fatal(err)
	}
	rec := livetest.NewRecord()
	newPut()(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "127.0.0.1:6379", a)
	want := map[string]float64{
		"redis_memory_max_bytes{127.0.0.1:6379}":                       3 << 20,
		"redis_config_maxclients{127.0.0.1:6379}":                      10000,
		"redis_connected_clients{127.0.0.1:6379}":                      1,
		"redis_connected_slaves{127.0.0.1:6379}":                       0,
		"redis_instance_info{127.0.0.1:6379,master,7.0.15,noeviction}": 1,
		"redis_errors_total{127.0.0.1:6379,OOM}":                       3,
		"redis_errors_total{127.0.0.1:6379,ERR}":                       1,
		"redis_commands_total{127.0.0.1:6379,set}":                     550,
		"redis_commands_total{127.0.0.1:6379,config|get}":              1,
		"redis_commands_rejected_calls_total{127.0.0.1:6379,set}":      3,
		"redis_commands_duration_seconds_total{127.0.0.1:6379,keys}":   102e-6,
		"redis_keyspace_misses_total{127.0.0.1:6379}":                  1,
		"plimsoll_redis_clock_seconds_total{127.0.0.1:6379}":           1795712522704032e-6,
	}
	got := map[string]float64{}
	for series := range want {
		if v, ok := rec.Values[series]; ok {
			got[series] = v
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A server that counts errors and had none for want of memory says so; one that does not count them says nothing.
func TestNoErrorIsZero(t *testing.T) {
	const head = "redis_version:6.2.1\r\nused_memory:1\r\n"
	for text, want := range map[string]bool{head + "total_error_replies:0\r\n": true, head: false} {
		a, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rec := livetest.NewRecord()
		newPut()(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "x", a)
		if v, ok := rec.Values["redis_errors_total{x,OOM}"]; ok != want || v != 0 {
			t.Errorf("%q: %v, %v", text, v, ok)
		}
	}
}

// Labels come from whoever calls himself redis-server: they are few, and of letters.
func TestLabelsAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("redis_version:\x1b[2J\r\nused_memory:1\r\ncmdstat_a b:calls=1,usec=9\r\nerrorstat_\x1b:count=1\r\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "cmdstat_c%d:calls=1,usec=%d\r\nerrorstat_E%d:count=1\r\n", i, i, i)
	}
	rec, put := livetest.NewRecord(), newPut()
	for range 9 {
		a, err := parse(text.String())
		if err != nil {
			t.Fatal(err)
		}
		put(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "x", a)
	}
	counted := map[string]int{}
	for series := range rec.Values {
		name, labels, _ := strings.Cut(series, "{")
		counted[name]++
		if strings.ContainsAny(labels, "\x1b ") {
			t.Errorf("%q", series)
		}
	}
	if counted["redis_commands_total"] != dearest || counted["redis_errors_total"] != maxErrors {
		t.Errorf("%v, want %d commands and %d errors", counted, dearest, maxErrors)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"-NOAUTH Authentication required.\r\n":                                             fs.ErrPermission,
		"-NOPERM this user has no permissions to run the 'info' command\r\n":               fs.ErrPermission,
		"-DENIED Redis is running in protected mode because protected mode is enabled\r\n": fs.ErrPermission,
		"-ERR unknown command `INFO`, with args beginning with: `all`, \r\n":               fs.ErrPermission,
		"-ERR max number of clients reached\r\n":                                           asker.ErrFull,
		"":                                                                                 nil, "-\r\n": nil, "HTTP/1.1 400 Bad Request\r\n": nil, "$99999999\r\n": nil, "$-1\r\n": nil, "$9\r\nshort": nil, "\r\n": nil,
		"$3\r\na:b\r\n": nil, "$52\r\nredis_version:7\r\nused_memory:1\r\ncmdstat_get:calls=x\r\n\r\n": nil,
	} {
		_, err := read(bufio.NewReader(strings.NewReader(text)))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("$5\r\na:b\r\n")
	f.Add(fmt.Sprintf("$%d\r\n%s\r\n", len(recorded(f)), recorded(f)))
	f.Fuzz(func(t *testing.T, text string) {
		a, err := read(bufio.NewReader(strings.NewReader(text)))
		if err == nil {
			newPut()(probe.NewOut(livetest.NewRecord(), "web", time.Unix(1, 0), time.Second), "x", a)
		}
	})
}

package unread

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tcp"
)

func TestText(t *testing.T) {
	all, first := make(trace.Histogram, 28), make(trace.Histogram, 28)
	all[18], all[19], first[19] = 20, 480, 480
	none := make(trace.Histogram, 28)
	busy := make(trace.Histogram, 28)
	busy[4] = 1000
	s := Seen{Elapsed: 2 * time.Second}
	s.Waits = []Waits{
		{Endpoint: tcp.Endpoint{Role: "server", Port: "9000"}, Name: "php-fpm", Sum: 150 * time.Second, Histogram: all, First: 148 * time.Second, Firsts: first},
		{Endpoint: tcp.Endpoint{Role: "client", Destination: "127.0.0.1:9000"}, Name: "nginx", Sum: 9 * time.Millisecond, Histogram: busy, Firsts: none},
	}
	want := `2 s: 1,500 reads of what had come since the last (750/s), after 100 ms on
average.

process  end                waiting  reads/s  mean    99 % <  first   99 % <
php-fpm  :9000              75       250      300 ms  524 ms  308 ms  524 ms
nginx    to 127.0.0.1:9000  0        500      9 µs    16 µs   -       -

How long bytes waited for php-fpm :9000
   under 262 ms  ██                              20
   under 524 ms  ██████████████████████████████  480
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second}).Text(80); !strings.HasPrefix(text, "1 s: 0 reads") {
		t.Errorf("%q", text)
	}
}

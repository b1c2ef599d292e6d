package runqueue

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestRunqueueText(t *testing.T) {
	histogram := make([]uint64, 26)
	histogram[3], histogram[4], histogram[11] = 900, 90, 10
	s := Seen{Elapsed: 2 * time.Second, CPUs: 1}
	s.Groups = []Group{
		{Name: "nginx", Waits: 1000, Waited: 3 * time.Second, Histogram: histogram, Voluntary: 800, Involuntary: 199},
		{Name: "idle", Voluntary: 1, Histogram: make([]uint64, 26)},
	}
	s.Pairs = []Pair{{Victim: "nginx", By: "wrk", Count: 150}}
	s.Groups[0].Wakeups, s.Groups[0].Migrations = 801, 40
	want := `2 s on 1 CPU: 1,000 waits for a CPU (500/s), 801 of them after a wake-up; on
average 1.5 threads were waiting.

process  waiting  mean  50 % <  99 % <  own/s  forced/s  moved/s
nginx    1.5      3 ms  8 µs    16 µs   400    100       20
idle     0        -     -       -       0.5    0         0

How long nginx waited
     under 8 µs  ██████████████████████████████  900
    under 16 µs  ███                             90
    under 32 µs                                  0
    under 64 µs                                  0
   under 128 µs                                  0
   under 256 µs                                  0
   under 512 µs                                  0
  under 1.02 ms                                  0
  under 2.05 ms  █                               10

Who takes the CPU from whom
   wrk  takes it from  nginx  75/s
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A table of the longest names there are still fits a terminal.
func TestRunqueueTableFits(t *testing.T) {
	s := Seen{Elapsed: time.Second, CPUs: 1}
	h := make([]uint64, 26)
	h[24] = 123_456
	s.Groups = []Group{{Name: "exactly15letter", Waits: 123_456, Waited: 12345 * time.Second, Histogram: h, Voluntary: 123_456, Involuntary: 123_456, Migrations: 123_456}}
	for _, line := range strings.Split(s.Text(80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second, CPUs: 4}).Text(80); !strings.HasPrefix(text, "1 s on 4 CPUs: 0 ") {
		t.Errorf("%q", text)
	}
}

package syscalls

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSyscallsText(t *testing.T) {
	slow, quick := make([]uint64, 26), make([]uint64, 26)
	slow[11], quick[0], quick[1] = 100, 2900, 100
	s := Seen{Elapsed: 2 * time.Second, CPUs: 2}
	s.Groups = []Group{{Netns: 1, Name: "nginx", Count: 3100, Time: 201500 * time.Microsecond, Failed: 53, Calls: []Call{
		{Name: "epoll_wait", Count: 100, Time: 200 * time.Millisecond, Histogram: slow},
		{Name: "accept4", Count: 3000, Time: 1500 * time.Microsecond, Histogram: quick, Failed: 53, Errors: map[string]uint64{"EMFILE": 3, "EAGAIN": 50}},
	}}}
	want := `2 s on 2 CPUs: 3,100 system calls (1,550/s), of which 53 failed. Time is wall
time: what a call slept is in it.

nginx: 1,550 calls/s, 202 ms in them
    %  time    mean    50 % <   99 % <   calls  errors  syscall
 99.3  200 ms  2 ms    2.05 ms  2.05 ms  100    -       epoll_wait
  0.7  1.5 ms  0.5 µs  1 µs     2 µs     3,000  53      accept4
errors: accept4 EAGAIN 50, accept4 EMFILE 3
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A table of the largest numbers and longest names there are still fits a terminal.
func TestSyscallsTableFits(t *testing.T) {
	h := make([]uint64, 26)
	h[24] = 123_456_789
	c := Call{Name: "clock_nanosleep", Count: 123_456_789, Time: 12_345_678 * time.Millisecond, Histogram: h, Failed: 123_456, Errors: map[string]uint64{"ERESTART_RESTARTBLOCK": 123_456}}
	s := Seen{Elapsed: time.Second, CPUs: 128}
	s.Groups = []Group{{Netns: 4026531833, Name: "exactly15letter", Count: c.Count, Time: c.Time, Calls: []Call{c}}, {Netns: 4026531834, Name: "other"}}
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

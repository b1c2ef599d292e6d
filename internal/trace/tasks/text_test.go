package tasks

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func seen() Seen {
	s := Seen{Elapsed: 10 * time.Second, CPUs: 2}
	s.Looks = 40
	s.Groups = []Group{
		{NetNS: 1, Name: "stress", States: map[string]time.Duration{"runnable": 31 * time.Second}, runnable: 31 * time.Second},
		{NetNS: 1, Name: "dd", States: map[string]time.Duration{"uninterruptible": 15 * time.Second, "sleeping": 5 * time.Second}, uninterruptible: 15 * time.Second},
		{NetNS: 2, Name: "sh", States: map[string]time.Duration{"zombie": 20 * time.Second}},
		{NetNS: 1, Name: "sh", States: map[string]time.Duration{"sleeping": 10 * time.Second}},
	}
	s.Waits = []Wait{{NetNS: 1, Name: "dd", Function: "iomap_dio_rw", Syscall: "read", Time: 15 * time.Second, Looks: 60, PID: 42,
		Stack: []string{"__schedule", "io_schedule", "iomap_dio_rw", "ext4_file_read_iter"}}}
	s.Threads = []Thread{
		{NetNS: 1, Name: "sysbench", Thread: "sysbench", Role: "other", Voluntary: 1_009_000, Involuntary: 400_000},
		{NetNS: 1, Name: "sysbench", Thread: "sysbench", Role: "main", Voluntary: 10},
	}
	s.Parents = []Parent{{NetNS: 1, Name: "python3", PID: 77, Zombies: 431, Oldest: 3 * time.Minute}, {NetNS: 1, Name: "a\x1b[2Jb", PID: 78, Zombies: 1, Oldest: time.Second}}
	s.Lost = map[string]uint64{"groups": 0, "waits": 2}
	return s
}

func TestText(t *testing.T) {
	want := `10 s on 2 CPUs, 40 looks: on average 3.1 threads were running or could have run
(stress 3.1), and 1.5 were in uninterruptible sleep (D) (dd 1.5). The load
average counts both.

Threads by state, on average
process       runnable  D    sleeping  stopped  zombie
stress        3.1       0    0         0        0
dd            0         1.5  0.5       0        0
sh (netns 2)  0         0    0         0        2
and 1 more; --json has them all

What uninterruptible sleep waits for
  dd: 1.5 on average, in read, in iomap_dio_rw; pid 42
      __schedule < io_schedule < iomap_dio_rw < ext4_file_read_iter

Threads that switch, of processes with several
process   thread           own/s    forced/s
sysbench  sysbench         100,900  40,000
sysbench  sysbench (main)  1        0

Zombies
  python3 (pid 77) does not reap 431 children, oldest at least 3 min
  a\u001b[2Jb (pid 78) does not reap 1 child, oldest at least 1 s

note: 2 events were lost (waits)
`
	if d := cmp.Diff(want, seen().Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, line := range strings.Split(seen().Text(80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second, CPUs: 1}).Text(80); !strings.HasPrefix(text, "1 s on 1 CPU, 0 looks: ") {
		t.Errorf("%q", text)
	}
}

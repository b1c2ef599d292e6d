package refusals

import (
	"fmt"
	"os"
	osexec "os/exec"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

const workload = "PLIMSOLL_TEST_WORKLOAD"

// The workload's calls. Each is a prime.
const (
	large   = 307 // mmap of more than there can be
	taken   = 211 // bind to a port that is in use
	empties = 101 // read from an empty pipe that does not block: an answer, no refusal
	missing = 103 // faccessat of a file that is not there: the same
	timers  = 53  // timer_create where no signal may be pending: EAGAIN that is a refusal
)

func TestMain(m *testing.M) {
	if os.Getenv(workload) != "" {
		os.Exit(work())
	}
	os.Exit(tracetest.Main(m, Tracer()))
}

func work() int {
	for range large {
		if _, err := unix.Mmap(-1, 0, 1<<62, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != unix.ENOMEM {
			fmt.Fprintln(os.Stderr, "mmap:", err)
			return 1
		}
	}
	if unix.Setrlimit(unix.RLIMIT_SIGPENDING, &unix.Rlimit{}) != nil {
		return 1
	}
	for range timers {
		var id int32
		if _, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&id))); errno != unix.EAGAIN {
			fmt.Fprintln(os.Stderr, "timer_create:", errno)
			return 1
		}
	}
	first, second := socket(), socket()
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if unix.Bind(first, at) != nil {
		return 1
	}
	name, err := unix.Getsockname(first)
	if err != nil {
		return 1
	}
	for range taken {
		if err := unix.Bind(second, name); err != unix.EADDRINUSE {
			fmt.Fprintln(os.Stderr, "bind:", err)
			return 1
		}
	}
	var ends [2]int
	if unix.Pipe2(ends[:], unix.O_NONBLOCK) != nil {
		return 1
	}
	var one [1]byte
	for range empties {
		_, _ = unix.Read(ends[0], one[:]) // that it fails is the point
	}
	for range missing {
		_ = unix.Faccessat(unix.AT_FDCWD, "/does/not/exist", unix.R_OK, 0) // as above
	}
	return 0
}

func socket() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1
	}
	return fd
}

func TestWhatIsRefused(t *testing.T) {
	tracetest.Need(t, Tracer())
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	tracetest.AllAttached(t, Tracer(), tr)
	me := "refused" + strconv.Itoa(os.Getpid())
	c := osexec.Command(tracetest.Copy(t, "/proc/self/exe", me))
	c.Env, c.Stderr = append(os.Environ(), workload+"=1"), os.Stderr
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost, "compat")
	got := map[string]uint64{}
	for _, r := range s.Refusals {
		if r.Name == me {
			got[r.Call+" "+r.Error] = r.Count
		}
	}
	if len(got) != 3 || got["mmap ENOMEM"] != large || got["bind EADDRINUSE"] != taken || got["timer_create EAGAIN"] != timers {
		t.Errorf("refused: %v; want %d mmap ENOMEM, %d bind EADDRINUSE, %d timer_create EAGAIN and nothing else", got, large, taken, timers)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	series := fmt.Sprintf("%d@plimsoll_refusals_total{%s,mmap,ENOMEM}", st.Ino, me)
	if samples[series] != large {
		t.Errorf("%s is %v, want %d", series, samples[series], large)
	}
}

func TestDetaches(t *testing.T) { tracetest.Detaches(t, Tracer()) }

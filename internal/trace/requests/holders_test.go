package requests

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

// TestWhatHoldersDo: what the threads wait for that have a request in hand; not those that
// have answered theirs, and wait for the same.
func TestWhatHoldersDo(t *testing.T) { eachWay(t, whatHoldersDo) }

func whatHoldersDo(t *testing.T, w way) {
	h := startHolders(t, w)
	for _, what := range []string{"lock", "lock", "lock", "pipe", "pipe"} {
		fmt.Fprintln(h.dial(t), what)
	}
	ask(t, h.dial(t), "answer")
	h.want(t, "three wait for the lock, and two for the pipe", map[string]uint64{"lock": 3, "pipe": 2}, 5)
}

// TestHolderInTheKernel: what cannot be interrupted. Not everywhere may a test bring that about.
func TestHolderInTheKernel(t *testing.T) { eachWay(t, holderInTheKernel) }

func holderInTheKernel(t *testing.T, w way) {
	h := startHolders(t, w)
	fmt.Fprintln(h.dial(t), "open "+guarded(t))
	h.want(t, "it waits in the kernel", map[string]uint64{"uninterruptible_other": 1}, 1)
}

// holding is a server whose threads hold requests, as it is watched.
type holding struct {
	tr   *Trace
	ns   uint32
	addr string
}

func startHolders(t *testing.T, w way) holding {
	t.Helper()
	return startHoldersOf(t, w, everything)
}

// startHoldersOf has so many turns a second followed.
func startHoldersOf(t *testing.T, w way, most uint32) holding {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err) // scripts/install-deps tests installs it
	}
	tr, ns := begin(t, w, most)
	if tr.unfound != nil {
		t.Skip(tr.unfound)
	}
	return holding{tr, ns, startProcess(t, python, "", "testdata/threads.py")}
}

func (h holding) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (h holding) want(t *testing.T, what string, doing map[string]uint64, now uint64) {
	t.Helper()
	p := wait(t, h.tr, h.ns, h.addr, what, func(p Place) bool {
		return len(p.Groups) == 1 && maps.Equal(p.Groups[0].Doing, doing)
	})
	if *p.Groups[0].Now != now {
		t.Errorf("%d in hand, want %d", *p.Groups[0].Now, now)
	}
}

// TestWhoAsks: threads of a pool are told by the name that they share, while they have no answer.
func TestWhoAsks(t *testing.T) { eachWay(t, whoAsks) }

func whoAsks(t *testing.T, w way) {
	h := startHolders(t, w)
	python, addr := startAskers(t, "caller-1", "caller-2", "caller-10", "alone")
	fmt.Fprintln(h.dial(t), "ask "+addr)
	wait(t, h.tr, h.ns, addr, "three of a pool ask, one by itself, and one for the request that it has", func(Place) bool {
		h.tr.next = time.Time{}
		return maps.Equal(bySide(t, h.tr, h.ns, addr)[python].Asking, map[string]uint64{"caller": 3, "alone": 1, requestsOwn: 1})
	})
}

// TestServers: whoever had a request lately is one of those that serve, and is forgotten in time.
func TestServers(t *testing.T) {
	var s servers
	s.next()
	s.note(7)
	for range servedLooks {
		s.next()
		s.note(9)
	}
	if !s.lately(7) || !s.lately(9) || s.lately(8) {
		t.Errorf("after %d looks: 7 %v, 9 %v, 8 %v; want 7 and 9", servedLooks, s.lately(7), s.lately(9), s.lately(8))
	}
	s.next()
	if s.lately(7) {
		t.Errorf("7 had no request for %d looks, and is still remembered", servedLooks+1)
	}
}

func TestWithoutNumber(t *testing.T) {
	for name, want := range map[string]string{"pool-2-thread-1": "pool-2-thread", "ForkJoinPool-1-": "ForkJoinPool", "tokio-runtime-w": "tokio-runtime-w",
		"GC Thread#0": "GC Thread", "grpc_1": "grpc", "7": "7", "": "", "java": "java"} {
		if got := withoutNumber(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// TestManyNames: what has names without end is kept to a bound, and added up.
func TestManyNames(t *testing.T) {
	tr, now := &Trace{did: map[[2]string]map[string]bool{}}, map[string]uint64{}
	for i := range maxKinds + 5 {
		now[fmt.Sprint("job", i, "x")] = 1
	}
	got := puts{}
	tr.putThreads(got, asking, "java", now, []string{"java", "10.0.0.1:80"})
	if len(got) != maxKinds+1 || got["other"] != 5 {
		t.Errorf("%d names, %v of them other; want %d and 5", len(got), got["other"], maxKinds+1)
	}
	tr.putThreads(got, asking, "java", map[string]uint64{}, []string{"java", "10.0.0.1:80"})
	if len(got) != maxKinds+1 || got["other"] != 0 {
		t.Errorf("%d names, %v of them other when none asks; want %d and 0", len(got), got["other"], maxKinds+1)
	}
}

// puts keeps what was put last, by the last label.
type puts map[string]float64

func (p puts) Put(_ *model.Signal, v float64, labels ...string) { p[labels[len(labels)-1]] = v }

// TestThreadsThatAreNotLookedAt: those of a group that are looked at stand for its others, and for nobody else's.
func TestThreadsThatAreNotLookedAt(t *testing.T) {
	found := map[bpfHolder]uint64{}
	for tid := range uint32(500) {
		found[bpfHolder{Tid: tid, Group: 7}] = 1
	}
	for tid := range uint32(3) {
		found[bpfHolder{Tid: 1000 + tid, Group: 8}] = 2
	}
	looked := 0
	got, err := look(found, func(tid int) (string, error) {
		if looked++; tid >= 1000 {
			return "pipe", nil
		}
		return "lock", nil
	})
	if err != nil || looked != maxHolders {
		t.Errorf("%d were looked at, want %d; %v", looked, maxHolders, err)
	}
	if d := cmp.Diff(counts{7: {"lock": 500}, 8: {"pipe": 6}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestHoldersAreNotCrowdedOut: however many ask, those are known that have requests in hand.
func TestHoldersAreNotCrowdedOut(t *testing.T) { eachWay(t, holdersAreNotCrowdedOut) }

func holdersAreNotCrowdedOut(t *testing.T, w way) {
	h := startHolders(t, w)
	const holders, crowd = 60, 1500 // more than 1,024
	for range holders {
		fmt.Fprintln(h.dial(t), "lock")
	}
	python, addr := startAskers(t, append([]string{"alone"}, slices.Repeat([]string{"caller-1"}, crowd)...)...)
	h.want(t, "all that wait for the lock are seen beside a crowd that asks", map[string]uint64{"lock": holders}, holders)
	wait(t, h.tr, h.ns, addr, "the crowd is counted, too", func(Place) bool {
		h.tr.next = time.Time{}
		asks := bySide(t, h.tr, h.ns, addr)[python].Asking
		return asks["caller"]+asks["alone"] > crowd-100 && asks["caller"]+asks["alone"] < crowd+100
	})
}

// startAskers starts threads of these names that ask somebody who does not answer, and says what the process is called, and where it asks.
func startAskers(t *testing.T, names ...string) (name, addr string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err) // scripts/install-deps tests installs it
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	addr = silent.Addr().String()
	startProcess(t, python, "", append([]string{"testdata/askers.py", addr}, names...)...)
	return filepath.Base(python), addr
}

// TestThreadsWithoutRoom: those that find none are counted.
func TestThreadsWithoutRoom(t *testing.T) { eachWay(t, threadsWithoutRoom) }

func threadsWithoutRoom(t *testing.T, w way) {
	tcptest.OwnNetns(t, Tracer())
	tr := beginHere(t, load(t, w), func(spec *ebpf.CollectionSpec) error {
		spec.Maps[bpfMapHolders].MaxEntries = 1
		return nil
	})
	if tr.unfound != nil {
		t.Skip(tr.unfound)
	}
	startAskers(t, "caller-1", "caller-2", "caller-3")
	tracetest.Eventually(t, "two of three find no room", func() bool {
		tr.next = time.Time{}
		s, err := tr.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return s.Lost["threads"] > 0
	})
}

// TestWhoAsksIsNotTold: where a thread may have a request in hand that is not followed, it does not count among those that ask for others.
func TestWhoAsksIsNotTold(t *testing.T) { eachWay(t, whoAsksIsNotTold) }

func whoAsksIsNotTold(t *testing.T, w way) {
	for how, busy := range map[string]func(*testing.T, holding){
		"sampled": func(t *testing.T, h holding) {
			for range 20 { // one a second is followed
				ask(t, h.dial(t), "answer")
			}
		},
		"bursts": func(t *testing.T, h holding) {
			if err := errors.Join(h.tr.Pause(), h.tr.Resume()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			h := startHoldersOf(t, w, map[string]uint32{"sampled": 1, "bursts": everything}[how])
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			addr := silent.Addr().String()
			busy(t, h)
			for range 20 {
				fmt.Fprintln(h.dial(t), "ask "+addr)
			}
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Fatal(err) // scripts/install-deps tests installs it
			}
			var asks Group
			wait(t, h.tr, h.ns, addr, "they ask", func(Place) bool {
				h.tr.next = time.Time{}
				asks = bySide(t, h.tr, h.ns, addr)[filepath.Base(python)]
				return asks.Now != nil && *asks.Now > 0
			})
			if asks.Asking != nil {
				t.Errorf("%v ask, though not all of their requests are followed", asks.Asking)
			}
			if st := h.tr.Status()[asking.Name]; st.State != model.Failed || st.Why == "" {
				t.Errorf("%s: %+v, want failed with why", asking.Name, st)
			}
		})
	}
}

// guarded is a file that nobody may open before a scanner has looked at it, and this one never does.
func guarded(t *testing.T) string {
	t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		t.Skip("fanotify: ", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	path := filepath.Join(t.TempDir(), "guarded")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM, unix.AT_FDCWD, path)
	if errors.Is(err, unix.EINVAL) {
		t.Skip("this kernel asks no scanner (FANOTIFY_ACCESS_PERMISSIONS): ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}

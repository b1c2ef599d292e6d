package tasks

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace/symbol"
	"plimsoll/internal/trace/tracetest"
)

// row is a thread of a process; with 1 as tid it is the main one of 1.
func row(tid, tgid uint32, group string, state uint32) *bpfRow {
	r := &bpfRow{Tid: tid, Tgid: tgid, Netns: 7, State: state, Threads: 1, Syscall: -1, Start: uint64(10 * time.Second)}
	copy(r.Group[:], group)
	copy(r.Comm[:], group)
	return r
}

// numbers names an address by its number, or by what it is said to be.
type numbers map[uint64]string

func (n numbers) KernelStack(addrs []uint64) []symbol.Frame {
	var frames []symbol.Frame
	for _, a := range addrs {
		name := n[a]
		if name == "" {
			name = "f" + strconv.Itoa(int(a))
		}
		frames = append(frames, symbol.Frame{Function: name, Address: a, Kernel: true})
	}
	return frames
}

func TestStateOf(t *testing.T) {
	for name, c := range map[string]struct {
		state, exit, threads, want uint32
	}{
		"on a CPU or in its queue":    {0, 0, 1, runnable},
		"asleep":                      {1, 0, 1, sleeping},
		"asleep, may be frozen":       {0x2001, 0, 1, sleeping},
		"D":                           {2, 0, 1, uninterruptible},
		"D, but may be killed":        {0x102, 0, 1, uninterruptible},
		"kernel thread without work":  {0x402, 0, 1, idle},
		"parked":                      {0x40, 0, 1, idle},
		"stopped":                     {4, 0, 1, stopped},
		"in a debugger":               {8, 0, 1, stopped},
		"frozen":                      {0x8000, 0, 1, stopped},
		"not reaped":                  {0x80, 0x20, 1, zombie},
		"ended before its threads":    {0x80, 0x20, 3, ending},
		"reaped":                      {0x80, 0x10, 1, ending},
		"on its last way to the door": {0x80, 0, 1, ending},
	} {
		r := row(1, 1, "x", c.state)
		r.ExitState, r.Threads = c.exit, c.threads
		if got := stateOf(r); got != int(c.want) {
			t.Errorf("%s is state %d, want %d", name, got, c.want)
		}
	}
}

// Two looks a second apart: what is seen counts for the time before it.
func TestSums(t *testing.T) {
	s := newSums(20 * time.Second)
	look := func(at time.Duration, rows ...*bpfRow) {
		span := at - s.last
		s.begin()
		for _, r := range rows {
			var stack []uint64
			if r.State == 2 {
				stack = []uint64{1, 2, 3}
			}
			s.add(r, stack, span)
		}
		s.end(at, span)
	}
	blocked := row(4, 4, "dd", 2)
	blocked.Syscall = 1 // of whatever name on this architecture
	main, other, young := row(5, 5, "db", 1), row(6, 5, "db", 0), row(8, 5, "db", 0)
	for _, r := range []*bpfRow{main, other, young} {
		r.Threads = 3
		r.Voluntary, r.Forced = 100, 50
	}
	young.Start = uint64(21500 * time.Millisecond)
	zombie := row(9, 9, "sh", 0x80)
	zombie.ExitState, zombie.Parent, zombie.Netns = 0x20, 5, 0
	look(21*time.Second, blocked, zombie, main, other)
	other.Voluntary, other.Forced = 117, 53
	look(22*time.Second, blocked, zombie, main, other, young)
	shot := s.snapshot(numbers{1: "__schedule", 2: "io_schedule", 3: "iomap_dio_rw"})

	samples := tracetest.Sink{}
	shot.put(samples)
	call := shot.Waits[0].Syscall
	want := tracetest.Sink{
		"7@plimsoll_tasks_state_seconds_total{dd,uninterruptible}":             2,
		"7@plimsoll_tasks_state_seconds_total{db,runnable}":                    3,
		"7@plimsoll_tasks_blocked_seconds_total{dd,iomap_dio_rw," + call + "}": 2,
		"7@plimsoll_tasks_switches_total{db,db,other,voluntary}":               117, // 17 and all of the young one's
		"7@plimsoll_tasks_switches_total{db,db,other,involuntary}":             53,
		"7@plimsoll_tasks_zombies{db,5}":                                       1,
		"7@plimsoll_tasks_oldest_zombie_seconds{db,5}":                         1,
		"plimsoll_tasks_samples_total{}":                                       2,
		"plimsoll_tasks_lost_total{groups}":                                    0,
		"plimsoll_tasks_lost_total{waits}":                                     0,
		"plimsoll_tasks_lost_total{parents}":                                   0,
	}
	if d := cmp.Diff(want, samples); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	look(23 * time.Second)
	if len(s.threads) != 0 || len(s.snapshot(numbers{}).Parents) != 0 {
		t.Error("what has gone is remembered")
	}
}

func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	s := newSums(0)
	s.begin()
	for i := range uint32(maxGroups + 3) {
		s.add(row(i+1, i+1, "g"+strconv.Itoa(int(i)), 0), nil, time.Second)
	}
	for i := range uint64(maxWaits + 5) {
		s.add(row(1, 1, "g0", 2), []uint64{i}, time.Second)
	}
	for i := range uint32(maxParents + 2) {
		z := row(10_000+i, 10_000+i, "g0", 0x80)
		z.ExitState, z.Parent = 0x20, i+1
		s.add(z, nil, time.Second)
	}
	s.end(time.Second, time.Second)
	if d := cmp.Diff(map[string]uint64{"groups": 3, "waits": 5, "parents": 2}, s.lost); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	g := s.group(groupKey{7, "g0"})
	for i := range maxThreadNames + 10 {
		g.switched(threadKey{"t" + strconv.Itoa(i), false}).voluntary++
	}
	if other := g.switched(threadKey{otherName, false}).voluntary; other != 10 {
		t.Errorf("%d switches of threads without a name of their own, want 10", other)
	}
}

// A mark changes with anything that its process does, and one that runs has none.
func TestMarks(t *testing.T) {
	mark := func(rows ...*bpfRow) uint64 {
		s := newSums(0)
		s.begin()
		s.marks = map[int]uint64{}
		for _, r := range rows {
			s.add(r, nil, 0)
		}
		return s.marks[1]
	}
	a, b := row(1, 1, "x", 1), row(2, 1, "x", 1)
	a.Ran, b.Ran = 1000, 1000
	before := mark(a, b)
	if before == running || mark(b, a) != before {
		t.Error("the same threads in another order have another mark, or none")
	}
	for name, change := range map[string]func(*bpfRow){
		"it ran":           func(r *bpfRow) { r.Ran++ },
		"another thread":   func(r *bpfRow) { r.Start++ },
		"it was stopped":   func(r *bpfRow) { r.State = 4 },
		"its parent ended": func(r *bpfRow) { r.Parent = 1 },
		"it ended":         func(r *bpfRow) { r.ExitState = 0x20 },
	} {
		changed := *a
		change(&changed)
		if mark(&changed, b) == before {
			t.Errorf("%s, and the mark is the same", name)
		}
	}
	if mark(a) == before {
		t.Error("a thread ended, and the mark is the same")
	}
	runs := *b
	runs.State = 0
	if mark(a, &runs) != running || mark(&runs, a) != running {
		t.Error("a process that runs has a mark")
	}
}

func TestWaitsIn(t *testing.T) {
	for want, stack := range map[string][]string{
		"iomap_dio_rw":  {"__schedule", "schedule", "blk_io_schedule", "iomap_dio_rw", "ext4_file_read_iter"},
		"ext4_sync":     {"io_schedule", "folio_wait_bit_common", "ext4_sync"},
		"kernel_clone":  {"kernel_clone"},
		"unknown":       {},
		"do_page_fault": {"__schedule", "rwsem_down_read_slowpath", "down_read", "do_page_fault"},
	} {
		if got := waitsIn(stack); got != want {
			t.Errorf("%v waits in %s, want %s", stack, got, want)
		}
	}
}

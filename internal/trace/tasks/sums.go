package tasks

import (
	"time"

	"plimsoll/internal/trace"
)

// Bounds of what is kept apart; the first that come. What is beyond them is
// counted as lost, or, of thread names, under otherName.
const (
	maxGroups      = 512
	maxThreadNames = 32 // of a group
	maxWaits       = 1024
	maxParents     = 256
)

const otherName = "(other)"

// The states of threads.
const (
	runnable = iota
	uninterruptible
	sleeping
	stopped // by a signal, a debugger or the freezer
	idle    // a kernel thread that has no work
	zombie
	stateCount
	ending // no state: on its way out
)

var stateNames = [stateCount]string{"runnable", "uninterruptible", "sleeping", "stopped", "idle", "zombie"}

// Bits of task_struct.__state and exit_state, include/linux/sched.h.
const (
	bitInterruptible   = 0x1
	bitUninterruptible = 0x2
	bitStopped         = 0x4
	bitTraced          = 0x8
	bitParked          = 0x40
	bitDead            = 0x80
	bitNoLoad          = 0x400
	bitFrozen          = 0x8000
	bitExitZombie      = 0x20
)

// stateOf reads a thread's state. An ended process is a zombie once its last
// thread has gone; its first thread may have ended long before.
func stateOf(r *bpfRow) int {
	switch {
	case r.ExitState != 0:
		if r.ExitState&bitExitZombie != 0 && r.Tid == r.Tgid && r.Threads <= 1 {
			return zombie
		}
		return ending
	case r.State&bitDead != 0:
		return ending
	case r.State&bitUninterruptible != 0 && r.State&bitNoLoad == 0:
		return uninterruptible
	case r.State&(bitUninterruptible|bitParked) != 0:
		return idle
	case r.State&bitInterruptible != 0:
		return sleeping
	case r.State&(bitStopped|bitTraced|bitFrozen) != 0:
		return stopped
	}
	return runnable
}

type groupKey struct {
	netns uint32
	name  string
}

// group is all threads of one command's processes in a network namespace.
type group struct {
	groupKey
	time    [stateCount]time.Duration
	now     [stateCount]int // at the last look
	threads map[threadKey]*switched
}

// threadKey is a name that threads of a group bear.
type threadKey struct {
	name string
	main bool
}

type switched struct{ voluntary, forced uint64 }

// thread is one thread from look to look.
type thread struct {
	start             uint64
	look              uint64 // that saw it last
	comm, groupComm   [16]byte
	netns             uint32
	voluntary, forced uint64
	group             *group    // nil: no room
	switched          *switched // nil: its process has no other threads, or no room
	ended             time.Duration
}

// wait is one way in which threads of a group sleep uninterruptibly.
type wait struct {
	group   *group
	syscall int32
	frames  int
	stack   [maxFrames]uint64
}

type waited struct {
	time    time.Duration
	samples uint64
	pid     uint32   // of the last one seen
	stack   []string // its functions; nil until they were asked for
}

// parent is a process that does not reap its children.
type parent struct {
	groupKey
	pid    uint32
	count  int
	oldest time.Duration // when it was first seen to have ended
}

// sums is what all looks together saw. Times are those of CLOCK_MONOTONIC.
type sums struct {
	began   time.Duration
	last    time.Duration // time of the last look
	looks   uint64
	threads map[uint32]*thread
	groups  map[groupKey]*group
	waits   map[wait]*waited
	zombies []bpfRow // of the look under way
	parents map[uint32]*parent
	lost    map[string]uint64
	marks   map[int]uint64 // of the look under way, nil when nobody wants them; see Marks
}

func newSums(now time.Duration) *sums {
	return &sums{began: now, last: now, threads: map[uint32]*thread{}, groups: map[groupKey]*group{}, waits: map[wait]*waited{},
		parents: map[uint32]*parent{}, lost: map[string]uint64{"groups": 0, "waits": 0, "parents": 0}}
}

// begin starts a look.
func (s *sums) begin() {
	s.looks++
	s.zombies = s.zombies[:0]
	for _, g := range s.groups {
		g.now = [stateCount]int{}
	}
}

// add takes one thread into the look, which stands for the time since the last one.
func (s *sums) add(r *bpfRow, stack []uint64, span time.Duration) {
	state := stateOf(r)
	if s.marks != nil {
		s.mark(r, state)
	}
	if state == zombie {
		s.zombies = append(s.zombies, *r) // until its parent is known, too
		return
	}
	t := s.thread(r)
	if t.switched != nil {
		t.switched.voluntary += r.Voluntary - t.voluntary
		t.switched.forced += r.Forced - t.forced
	}
	t.voluntary, t.forced = r.Voluntary, r.Forced
	if state == ending {
		return
	}
	if t.group == nil {
		s.lost["groups"]++
		return
	}
	t.group.now[state]++
	t.group.time[state] += span
	if state == uninterruptible {
		s.blocked(t.group, r, stack, span)
	}
}

// thread brings what is known of a thread up to date with its row.
func (s *sums) thread(r *bpfRow) *thread {
	t := s.threads[r.Tid]
	if t == nil || t.start != r.Start {
		t = &thread{start: r.Start}
		if time.Duration(r.Start) < s.began { // what it did before is not ours to count
			t.voluntary, t.forced = r.Voluntary, r.Forced
		}
		s.threads[r.Tid] = t
	}
	t.look = s.looks
	if r.Netns == 0 {
		r.Netns = t.netns // it has given it up, since it ends
	}
	moved := t.group == nil || t.netns != r.Netns || t.groupComm != r.Group
	if moved {
		t.netns, t.groupComm = r.Netns, r.Group
		t.group = s.group(groupKey{r.Netns, trace.Comm(r.Group[:])})
	}
	if t.group != nil && r.Threads > 1 && (moved || t.switched == nil || t.comm != r.Comm) {
		t.comm = r.Comm
		t.switched = t.group.switched(threadKey{threadName(r), r.Tid == r.Tgid})
	}
	return t
}

// threadName is a thread's own name; a kernel thread's as that of its group.
func threadName(r *bpfRow) string {
	if r.Kernel != 0 {
		return trace.Comm(r.Group[:])
	}
	return trace.Comm(r.Comm[:])
}

func (s *sums) group(key groupKey) *group {
	g := s.groups[key]
	if g == nil && len(s.groups) < maxGroups {
		g = &group{groupKey: key, threads: map[threadKey]*switched{}}
		s.groups[key] = g
	}
	return g
}

func (g *group) switched(key threadKey) *switched {
	if g.threads[key] == nil && len(g.threads) >= maxThreadNames {
		key.name = otherName
	}
	sw := g.threads[key]
	if sw == nil {
		sw = &switched{}
		g.threads[key] = sw
	}
	return sw
}

func (s *sums) blocked(g *group, r *bpfRow, stack []uint64, span time.Duration) {
	key := wait{group: g, syscall: r.Syscall, frames: len(stack)}
	copy(key.stack[:], stack)
	w := s.waits[key]
	if w == nil {
		if len(s.waits) >= maxWaits {
			s.lost["waits"]++
			return
		}
		w = &waited{}
		s.waits[key] = w
	}
	w.time += span
	w.samples++
	w.pid = r.Tgid
}

// end closes the look made at now.
func (s *sums) end(now, span time.Duration) {
	clear(s.parents)
	for i := range s.zombies {
		s.addZombie(&s.zombies[i], now, span)
	}
	for tid, t := range s.threads {
		if t.look != s.looks {
			delete(s.threads, tid)
		}
	}
	s.last = now
}

// addZombie counts a process that has ended under its own name and under its
// parent's. It has no network namespace any more: it had its parent's, mostly.
func (s *sums) addZombie(r *bpfRow, now, span time.Duration) {
	above := s.threads[r.Parent]
	if above != nil && r.Netns == 0 {
		r.Netns = above.netns
	}
	t := s.thread(r)
	if t.ended == 0 {
		t.ended = now
	}
	if t.group != nil {
		t.group.now[zombie]++
		t.group.time[zombie] += span
	}
	if above == nil || above.group == nil { // a parent outside of our PID namespace, or without room
		s.lost["parents"]++
		return
	}
	p := s.parents[r.Parent]
	if p == nil {
		if len(s.parents) >= maxParents {
			s.lost["parents"]++
			return
		}
		p = &parent{groupKey: above.group.groupKey, pid: r.Parent, oldest: t.ended}
		s.parents[r.Parent] = p
	}
	p.count++
	p.oldest = min(p.oldest, t.ended)
}

// running is the mark of a process that has a thread that runs or could run.
const running = 0

// mark adds a thread to the mark of its process.
func (s *sums) mark(r *bpfRow, state int) {
	pid := int(r.Tgid)
	before, there := s.marks[pid]
	if state == runnable || there && before == running {
		s.marks[pid] = running
		return
	}
	m := mix(mix(r.Start+uint64(r.Tid)) ^ r.Ran ^ uint64(r.State)<<32 ^ uint64(r.ExitState)<<56)
	if r.Tid == r.Tgid {
		m += mix(uint64(r.Parent))
	}
	if m += before; m == running {
		m++
	}
	s.marks[pid] = m
}

// mix spreads a number over all bits (splitmix64), so that sums of such numbers
// are equal only by a chance that need not be reckoned with.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

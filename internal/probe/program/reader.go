package program

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/pace"
)

const (
	// oftenest and rarest are the least and the longest time between two looks, on average.
	oftenest, rarest = 20 * time.Millisecond, 500 * time.Millisecond
	// worth is how many times what looks take passes between them in the long run: with what it takes to be woken they use a hundredth of a core. credit is
	// how much CPU time they may save up for when a program does much that is new.
	worth, credit = 150, 30 * time.Millisecond
)

// reader looks at a program all the time, and tells in each round what it did.
type reader struct {
	host *host.Host
	stop *os.File // hangs up when end is closed
	end  *os.File
	done chan struct{}

	mu     sync.Mutex
	set    *set
	links  *links
	ledger *ledger
	looked time.Time // when it was last looked
	before usage     // as of the last round
	total  usage
	kept   map[string]time.Duration // by each control group, as of the last round
	err    error
}

func open(h *host.Host) (*reader, error) {
	c, err := choose(h, h.Program)
	if err != nil {
		return nil, err
	}
	s, err := newSet(c)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	stop, end, err := os.Pipe()
	if err != nil {
		s.close()
		return nil, err
	}
	r := &reader{host: h, stop: stop, end: end, done: make(chan struct{}), set: s, ledger: newLedger(), looked: time.Now()}
	r.links = newLinks(s.pids)
	go r.watch()
	return r, nil
}

// watch looks until Close. The times between looks are drawn by chance, lest they keep step with the program.
func (r *reader) watch() {
	defer close(r.done)
	runtime.LockOSThread() // for the thread's CPU time
	left, before := credit, time.Now()
	for {
		every := min(max(oftenest, -worth*left), rarest)
		if r.stops(time.Duration((0.5 + rand.Float64()) * float64(every))) {
			return
		}
		begun, now := pace.CPUTime(), time.Now()
		r.mu.Lock()
		r.look(now)
		r.mu.Unlock()
		left = min(left+now.Sub(before)/worth, credit) - (pace.CPUTime() - begun)
		before = now
	}
}

// stops waits for a while, and says whether Close was called meanwhile. The thread itself waits: to be woken by the runtime's
// timers costs more than a look does.
func (r *reader) stops(d time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(r.stop.Fd()), Events: unix.POLLIN}}
	timeout := unix.NsecToTimespec(int64(d))
	n, err := unix.Ppoll(fds, &timeout, nil)
	return n > 0 || err != nil && err != unix.EINTR
}

// look adds what the program did since the look before.
func (r *reader) look(now time.Time) {
	room := now.Sub(r.looked)
	r.looked = now
	if room <= 0 {
		return
	}
	var list []amount
	for _, m := range r.set.members {
		for tid, t := range m.threads {
			did, ran, err := t.look(now, room, r.links)
			if err != nil {
				r.set.note(err)
				r.set.drop(m, tid)
				continue
			}
			list = append(list, did...)
			r.ledger.ran[t.name] += ran
		}
	}
	if len(list) > 0 {
		r.ledger.add(list, room)
	}
	r.err = r.set.refresh(now)
}

// usage is what processes used, as the kernel counts for each of them and for its children that it waited for.
type usage struct{ user, system, minor, major uint64 } // clock ticks, and faults

func (u usage) plus(v usage) usage {
	return usage{u.user + v.user, u.system + v.system, u.minor + v.minor, u.major + v.major}
}

// since is how much it grew; what lost a part, with a process that nobody waited for, did not.
func (u usage) since(v usage) usage {
	grew := func(now, before uint64) uint64 { return now - min(now, before) }
	return usage{grew(u.user, v.user), grew(u.system, v.system), grew(u.minor, v.minor), grew(u.major, v.major)}
}

// tick is the unit of a process's CPU time, see sysconf(_SC_CLK_TCK): 100 a second wherever Linux runs.
const tick = 10 * time.Millisecond

// used is what the program used since this was last called.
func (r *reader) used() usage {
	var now usage
	for pid, m := range r.set.members {
		st, err := host.StatOf(pid)
		if err != nil {
			continue
		}
		m.name = string(st.Comm)
		u := usage{st.User + st.ChildrenUser, st.System + st.ChildrenSystem, st.MinFaults, st.MajFaults}
		if now = now.plus(u); !m.counted {
			m.counted = true
			if !m.child { // what it did before it was found is not counted
				r.before = r.before.plus(u)
			}
		}
	}
	grown := now.since(r.before)
	r.before = now
	return grown
}

// patience is how long a round waits for a look that is under way: one at a program that does not want to be seen may never end.
const patience = time.Second

// locked takes the lock, unless that takes too long.
func (r *reader) locked() bool {
	for until := time.Now().Add(patience); !r.mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// throttled is for how long control groups kept the program from the CPUs since the last round; of a group that is new that is not known.
func (r *reader) throttled() (sum time.Duration) {
	now := map[string]time.Duration{}
	for pid := range r.set.members {
		throttledBy(pid, now)
	}
	for group, kept := range now {
		if before, known := r.kept[group]; known {
			sum += max(0, kept-before)
		}
	}
	r.kept = now
	return sum
}

func (r *reader) Read(out *probe.Out) error {
	if !r.locked() {
		return fmt.Errorf("look at %s: a look at it has lasted for more than %v; what it does meanwhile is not seen", r.host.Program, patience)
	}
	defer r.mu.Unlock()
	r.look(time.Now())
	used := r.used()
	r.total = r.total.plus(used)
	r.ledger.enter(time.Duration(used.user+used.system)*tick, r.throttled())
	if r.set.cut {
		out.Note(fmt.Sprintf("host %s: the program has more than %d threads or %d processes; the others are not looked at", r.host.Name, maxThreads, maxProcesses))
	}
	if r.set.denied != nil && r.ledger.looks > 0 {
		out.Note(fmt.Sprintf("host %s: some threads of %s may not be looked at: %v; its time is told without them", r.host.Name, r.host.Program, r.set.denied))
	}
	r.put(out)
	if r.err != nil {
		return r.err
	}
	if r.set.denied != nil && r.ledger.looks == 0 {
		return fmt.Errorf("look at the threads of %s, which takes CAP_SYS_PTRACE: %w", r.host.Program, r.set.denied)
	}
	return nil
}

func (r *reader) put(out *probe.Out) {
	for k, d := range r.ledger.wall {
		out.Put(seconds, d.Seconds(), k.doing, k.towards, k.call, k.thread)
	}
	for what, d := range r.ledger.threads {
		out.Put(threadSeconds, d.Seconds(), what)
	}
	out.Put(cpuSeconds, float64(r.total.user)*tick.Seconds(), "user")
	out.Put(cpuSeconds, float64(r.total.system)*tick.Seconds(), "system")
	out.Put(faults, float64(r.total.minor), "minor")
	out.Put(faults, float64(r.total.major), "major")
	for name, n := range r.set.names() {
		out.Put(processes, float64(n), name)
	}
	out.Put(threads, float64(r.set.threads))
	out.Put(looks, float64(r.ledger.looks))
	if len(r.ledger.wall) >= maxKinds {
		out.Full()
	}
}

// Close ends looking. It waits for a look that is under way, but not for one that the kernel keeps.
func (r *reader) Close() error {
	err := r.end.Close()
	select {
	case <-r.done:
	case <-time.After(time.Second):
		return err
	}
	r.set.close()
	return errors.Join(err, r.stop.Close())
}

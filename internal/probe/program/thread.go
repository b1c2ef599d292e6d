package program

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe/doing"
)

const (
	ready   = "ready" // it has a CPU or waits for one; which of these the kernel's sums tell, see ledger
	running = "running"
	queued  = "queued"
	unseen  = "unseen" // nobody looked for long: we were held up ourselves
	heldUp  = 2 * time.Second
	// held is when a wait has become one for news that may never come.
	held = time.Second
	// renamed is the time between two looks at a thread's name.
	renamed = time.Second
)

// thread is one of the program's, with what the kernel last said of it.
type thread struct {
	pid      int
	dir      string
	times    *host.File // schedstat
	name     string
	named    time.Time
	run      time.Duration // on a CPU, since it began
	wait     time.Duration // runnable without one, as far as such waits have ended
	slices   uint64        // how often it got one
	switches uint64        // how often it went to sleep, when that was last asked; 0 before
	last     kind          // what it slept for last, and how that ranks
	rank     int
	asleep   bool      // since the look before it has not run
	since    time.Time // when it was first seen in this sleep
	rate     float64   // of its turns on a CPU, of late, a second
}

// newThread begins to look at a thread.
func newThread(pid, tid int) (*thread, error) {
	t := &thread{pid: pid, dir: fmt.Sprintf("/proc/%d/task/%d", pid, tid)}
	var err error
	if t.times, err = host.OpenFile(t.dir + "/schedstat"); err != nil {
		return nil, err
	}
	if t.run, t.wait, t.slices, err = t.read(); err != nil { // what it did before is not counted
		_ = t.times.Close() // a file that was only read
		return nil, err
	}
	return t, nil
}

// read asks for the thread's sums: how long it ran, how long it waited for a CPU, and how often it got one.
//
// https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat
func (t *thread) read() (run, wait time.Duration, slices uint64, err error) {
	b, err := t.times.Bytes()
	if err != nil {
		return 0, 0, 0, err
	}
	f := host.FieldsOf(b)
	return time.Duration(f.Next(1)), time.Duration(f.Next(2)), f.Next(3), nil
}

// look says what the thread did since the look before, by how much of which kind; ran is its time on a CPU. An error is
// that it has ended, or may not be looked at.
func (t *thread) look(now time.Time, room time.Duration, at *links) (list []amount, ran time.Duration, err error) {
	run, wait, slices, err := t.read()
	if err != nil {
		return nil, 0, err
	}
	ran, waited, turns := run-t.run, wait-t.wait, slices-t.slices
	begun := run < t.run || wait < t.wait || slices < t.slices
	t.run, t.wait, t.slices = run, wait, slices
	if begun { // another thread that executed a program has taken the number
		return nil, 0, nil
	}
	t.rate += (float64(turns)/room.Seconds() - t.rate) * min(1, room.Seconds()/held.Seconds())
	if turns > 0 || ran > 0 || !t.asleep {
		if err := t.see(now, at); err != nil {
			return nil, 0, err
		}
	}
	busy := min(ran+waited, room)
	if room <= heldUp && !t.asleep && (turns == 0 || t.neverSlept()) {
		busy = room
	}
	list = append(list, amount{kind{doing: ready, thread: t.name}, active, 1, busy})
	switch rest := room - busy; {
	case room > heldUp:
		list = append(list, amount{kind{doing: unseen, thread: t.name}, active, 1, rest})
	case rest > 0:
		list = append(list, t.sleeps(now, rest))
	}
	return list, ran, nil
}

// see asks what the thread is about.
func (t *thread) see(now time.Time, at *links) error {
	d, err := doing.See(t.dir)
	if err != nil {
		return err
	}
	if now.Sub(t.named) >= renamed {
		t.named = now
		if comm, err := host.ReadFile(t.dir + "/comm"); err == nil {
			t.name = poolName(string(bytes.TrimSpace(comm)))
		}
	}
	t.asleep = d.What != doing.Running
	if !t.asleep {
		return nil
	}
	t.since = now
	t.last, t.rank = t.reason(d, at)
	return nil
}

// neverSlept says whether it has not gone to sleep since that was last asked: then all that it did not run it waited for a CPU.
func (t *thread) neverSlept() bool {
	b, err := host.ReadHead(t.dir+"/status", 4096)
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(b, []byte("\nvoluntary_ctxt_switches:"))
	if !found {
		return false
	}
	f := host.FieldsOf(rest)
	n := f.Next(1) + 1 // 0 is for never asked
	same := n == t.switches
	t.switches = n
	return same
}

// sleeps is the amount of a sleep, with how it ranks by now.
func (t *thread) sleeps(now time.Time, d time.Duration) amount {
	a := amount{t.last, t.rank, 1, d}
	a.kind.thread = t.name
	if t.last.doing == "" { // it has not been seen asleep yet
		a.kind.doing, a.rank = "other", maybeIdle
	}
	switch {
	case a.rank == active && t.asleep && now.Sub(t.since) > held && !neverIdle[a.kind.doing]:
		a.rank = longWait
	case a.rank == maybeIdle:
		a.weight = t.rate + 0.01 // who hardly ever runs has hardly anything to do
	}
	return a
}

// neverIdle are the waits that nobody is in who has nothing to do, however long they last.
var neverIdle = map[string]bool{
	"disk": true, "file_lock": true, "file_system": true, "page_fault": true, "uninterruptible_other": true, "reclaim": true, "stopped": true, "connect": true,
}

// reason is what a thread that sleeps waits for, and how that ranks.
func (t *thread) reason(d doing.Doing, at *links) (kind, int) {
	k := kind{doing: d.What, call: d.Call}
	if within := t.inKernel(d); within != "" {
		k.doing = within
	}
	to := far{}
	switch {
	case d.FD >= 0:
		to = at.of(t.pid, d.FD, d.File)
	case d.What == "poll":
		if list := at.polled(t.pid, d); list != nil || waitsForNone(d) {
			k.doing, to.name = at.ofMany(t.pid, list)
		}
	}
	k.towards = to.name
	switch {
	case to.what == "inside", k.doing == "child", k.doing == "pipe" && to.name == "":
		return k, forOwn
	case d.What == "device_write":
		k.doing = "terminal"
		return k, active
	case to.what == "terminal":
		k.doing = "terminal"
		return k, maybeIdle
	case to.what == "clients" && k.doing == "socket_write": // who takes his reply slowly
		return k, active
	case to.what == "clients" && neverIdle[k.doing]: // it sends a file, and has to read that first
		k.towards = ""
		return k, active
	case to.what == "clients", to.what == "listener", to.what == "unconnected", k.doing == "accept":
		k.doing, k.towards = "poll", ""
		return k, maybeIdle
	case neverIdle[k.doing] || strings.HasPrefix(k.doing, "socket_") || strings.HasPrefix(k.doing, "pipe"):
		return k, active
	}
	return k, maybeIdle
}

// kernelWaits are the functions of the kernel in which a thread sleeps, by how they begin, and what that is a wait for where the
// system call says no more than that it is about a disk, or nothing. The first counts.
var kernelWaits = []struct{ begins, what string }{
	{"request_wait_answer", "file_system"}, {"rpc_wait", "file_system"}, {"nfs_wait", "file_system"},
	{"ptrace_stop", "stopped"}, {"do_signal_stop", "stopped"}, {"do_freezer", "stopped"}, {"__refrigerator", "stopped"},
	{"reclaim_throttle", "reclaim"}, {"throttle_direct_reclaim", "reclaim"}, {"mem_cgroup_handle_over_high", "reclaim"}, {"__mem_cgroup_handle_over_high", "reclaim"},
	{"swap_read", "page_fault"}, {"handle_userfault", "page_fault"},
	{"balance_dirty_pages", "disk"}, {"io_schedule", "disk"}, {"folio_wait", "disk"}, {"wait_on_page", "disk"},
	{"blk_", "disk"}, {"bit_wait_io", "disk"}, {"__wait_on_buffer", "disk"}, {"jbd2_", "disk"}, {"wait_transaction_locked", "disk"},
	{"xlog_", "disk"}, {"xfs_", "disk"}, {"submit_bio_wait", "disk"}, {"rq_qos_wait", "disk"}, {"wbt_wait", "disk"},
	{"rwsem_down", "uninterruptible_other"}, {"__mutex", "uninterruptible_other"}, {"mutex_lock", "uninterruptible_other"},
}

// inKernel is what a thread waits for by the function of the kernel in which it sleeps, "" where that says nothing more
// than its call does.
func (t *thread) inKernel(d doing.Doing) string {
	if d.What != "other" && d.What != "disk" && d.Call != "sendfile" && d.Call != "splice" {
		return ""
	}
	b, err := host.ReadFile(t.dir + "/wchan")
	if err != nil {
		return ""
	}
	for _, w := range kernelWaits {
		if !strings.HasPrefix(string(b), w.begins) {
			continue
		}
		if w.what == "disk" && d.NoCall {
			return "page_fault" // it has touched memory that is on a disk
		}
		return w.what
	}
	return ""
}

// poolName is a thread's name without its number, so that those of a pool are one.
func poolName(name string) string {
	return strings.TrimRight(strings.TrimRight(name, "0123456789"), "-_#/: ")
}

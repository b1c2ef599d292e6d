// Package procs reads a host's processes, grouped by name as process-exporter
// does: CPU time, switches, states, faults, I/O, descriptors, starts and ends;
// and the process tree of a watched command.
package procs

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/pace"
)

const (
	// share is the part of one core that looking at processes may use.
	share = 0.015
	// maxKept bounds the stat files that are kept open.
	maxKept = 4096
)

// All returns the probe of processes.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "processes",
		Scope:   probe.PerHost,
		Signals: signals,
		Cost: "2 CPUs, Linux 6.18: 0.5 ms a reading with 100 processes, 1.4 ms with 300, 5.7 ms with 1,100, nearly all asleep, and 10 µs for each one examined in detail " +
			"(about 90 µs the first time); beyond 15 ms a second they are read less often, which is noted. Where the tracer tasks tells who has run, the others are not " +
			"read: with 1,100 processes 11 ms instead of 20 a second, their list and the asking included (both on a busy machine); 0.7 µs for each mapping that is counted",
		Blind: []string{
			"a process that begins and ends between two readings is not seen (node_forks_total counts it), nor what one used in its last interval",
			"a thread that ended since the last reading takes its switches and its waiting with it",
			"a process that uses less than 10 ms of CPU time is looked at in detail every 5 s only: its switches and descriptors may be that old",
			"where the tracer tasks tells who has run, the resident memory of a process that does not run is up to 30 s old",
			"of a user's processes those on this host alone are held against RLIMIT_NPROC, as the kernel counts them on the whole machine",
			"mappings are counted of one process at a time, each every 10 s at most, and for a thousandth of the time in all; a process that is new is counted after those before it",
			"a process that goes into the idle class or out of it has all of that interval's CPU time counted as in the class in which it ended; and a thread that ended has none counted as in the idle class",
			"time in the idle class is not counted where the control groups of the CPU controller or the sessions cannot be read, and all of it is where the busiest program is a load tool in the same one and the service stands in another",
			"what a runtime was told about CPUs or its compiler later than by its environment and arguments (a call, a file) is not seen, nor what stands beyond the first 128 KiB of these",
			"time runnable without a CPU includes time throttled by a cgroup's CPU limit",
		},
		Open: func(h *host.Host) (probe.Reader, error) { return open(h, h.Procs) },
	}}
}

// open prepares reading; list lists the processes of h.
func open(h *host.Host, list func() ([]host.Proc, error)) (*reader, error) {
	ticks, err := ticksSinceBoot(h)
	if err != nil {
		return nil, err
	}
	t, err := openTree(h.Path("proc"))
	if err != nil {
		return nil, fmt.Errorf("open /proc: %w", err)
	}
	return &reader{
		host: h, list: list, tree: t, startTicks: ticks, mayKeep: mayKeep(), now: time.Now,
		procs: map[int]*process{}, groups: groups{byName: map[string]*group{}}, pace: pace.Pace{Share: share},
		threadsPerRound: manyThreads, mappings: mappings{of: map[int]mapped{}},
	}, nil
}

// ticksSinceBoot is the present in the unit of a process's start time.
func ticksSinceBoot(h *host.Host) (uint64, error) {
	b, err := os.ReadFile(h.Path("proc/uptime"))
	if err != nil {
		return 0, fmt.Errorf("read the time since boot: %w", err)
	}
	word, _, _ := strings.Cut(string(b), " ")
	seconds, err := strconv.ParseFloat(word, 64)
	if err != nil || seconds < 0 {
		return 0, fmt.Errorf("parse uptime: want seconds, got %q", word)
	}
	return uint64(seconds*100 + 0.5), nil
}

// mayKeep is how many files may be kept open: a quarter of what we may open.
func mayKeep() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur/4, maxKept))
}

type reader struct {
	host *host.Host
	list func() ([]host.Proc, error)
	tree *tree
	// startTicks is when we began; a process that began later is counted from zero.
	startTicks uint64
	now        func() time.Time

	marks         map[int]uint64 // of this round, nil when nobody tells them
	round         uint64
	before        time.Time // of the round before; zero in the first
	procs         map[int]*process
	groups        groups
	command       command
	mappings      mappings
	pace          pace.Pace
	kept, mayKeep int // descriptors of stat files
	tids          []int

	threadsPerRound, threadsLeft int // that may be read in this round
	putOff                       int // the first process that had to wait for the next round, 0: none
}

func (r *reader) Read(out *probe.Out) error {
	if !r.pace.Due(out.Now(), out.Forced()) {
		out.Keep(signals...)
		return nil
	}
	list, err := r.list() // which is shared with other probes, and paces itself
	if err != nil {
		r.pace.Took(0, out.Rhythm())
		return err
	}
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	start := pace.CPUTime()
	r.marks = r.host.Marks()
	r.scan(list)
	cost := pace.CPUTime() - start
	if int(r.round) <= 1+len(list)/r.threadsPerRound {
		cost = 0 // the first looks are detailed ones at everything
	}
	if every := r.pace.Took(cost, out.Rhythm()); every > 0 {
		out.Note(fmt.Sprintf("host %s: looking at %d processes takes %d ms of CPU time, so they are read every %v",
			r.host.Name, len(r.procs), cost.Milliseconds(), every))
	}
	r.report(out)
	return nil
}

func (r *reader) Close() error {
	for _, p := range r.procs {
		r.closeStat(p)
	}
	return r.tree.close()
}

// scan brings everything up to date with the host's list of processes.
func (r *reader) scan(list []host.Proc) {
	r.round++
	r.threadsLeft = r.threadsPerRound
	began := r.now()
	// Who had to wait comes first, so that nobody waits for ever.
	first := max(slices.IndexFunc(list, func(p host.Proc) bool { return p.PID == r.putOff }), 0)
	r.putOff = 0
	for i := range list {
		p := &list[(first+i)%len(list)]
		r.visit(p.PID, p.Kernel, false)
	}
	if pid := r.host.Command(); pid > 0 {
		r.followCommand(pid, list)
	}
	for _, p := range r.procs {
		if p.round != r.round {
			r.end(p)
		}
	}
	r.countIdleClass()
	r.countNiced()
	r.command.reckon()
	r.before = began
}

func (r *reader) report(out *probe.Out) {
	for _, g := range r.groups.order {
		g.now = level{}
	}
	var refusedIO, refusedFiles, programs int
	for _, p := range r.procs {
		if p.foreign {
			continue
		}
		p.group.now.add(p)
		if p.kernel {
			continue
		}
		programs++
		if denied(p.ioErr) {
			refusedIO++
		}
		if denied(p.filesErr) {
			refusedFiles++
		}
	}
	r.addTasks()
	r.mappings.look(r)
	r.mappings.put(out, r.procs)
	for _, g := range r.groups.order {
		r.putLevel(out, g)
		r.putCounters(out, g)
	}
	r.putCommand(out)
	r.markRefused(out, refusedIO, programs, "I/O", readBytes, writeBytes, passedBytes, passCalls)
	r.markRefused(out, refusedFiles, programs, "descriptors", openFiles, worstFiles)
	if !r.tree.delays {
		for _, s := range []*model.Signal{runDelay, nicedDelay} {
			out.Mark(s, host.Absent("no /proc/PID/schedstat; the kernel needs CONFIG_SCHED_INFO"))
		}
	}
	if r.putOff != 0 {
		out.Note(fmt.Sprintf("host %s: more than %d threads were due in one reading; some processes are examined less often", r.host.Name, r.threadsPerRound))
	}
	if r.groups.cut {
		out.Full()
		out.Note(fmt.Sprintf("host %s has processes of more than %d names; the others are counted as %s", r.host.Name, maxGroups, otherName))
	}
}

// addTasks counts the threads of each user, and holds them against the limits
// of that user's processes.
func (r *reader) addTasks() {
	ofUser := map[uint32]int{}
	for _, p := range r.procs {
		if p.ownerKnown && !p.kernel {
			ofUser[p.owner] += p.threads
		}
	}
	for _, p := range r.procs {
		if !p.foreign && !p.kernel {
			p.group.now.addTasks(p, ofUser)
		}
	}
}

// markRefused says that some processes may not be looked into; their groups are
// left out. A few are so even for root (they have more rights than we have);
// when it is most of them, the signals as a whole are denied.
func (r *reader) markRefused(out *probe.Out, refused, programs int, what string, signals ...*model.Signal) {
	if refused == 0 {
		return
	}
	if 2*refused <= programs {
		out.Note(fmt.Sprintf("host %s: the %s of some processes could not be read, for want of rights; what is said of them lacks it", r.host.Name, what))
		return
	}
	err := fmt.Errorf("the %s of %d of %d processes may not be read; run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", what, refused, programs, fs.ErrPermission)
	for _, s := range signals {
		out.Mark(s, err)
	}
}

func (r *reader) putLevel(out *probe.Out, g *group) {
	l := &g.now
	out.Put(numProcs, float64(l.procs), g.name)
	for i, n := range l.states {
		out.Put(states, float64(n), g.name, stateNames[i])
	}
	if r.round > 1 && !l.busiestMissing {
		out.Put(busiestThread, l.busiest, g.name)
	}
	if g.kernel {
		return
	}
	out.Put(numThreads, float64(l.threads), g.name)
	if l.procs == 0 {
		return
	}
	out.Put(memoryBytes, float64(l.residentPages)*float64(os.Getpagesize()), g.name, "resident")
	out.Put(memoryBytes, float64(l.virtual), g.name, "virtual")
	if l.allowed > 0 {
		out.Put(allowedCPUs, float64(l.allowed), g.name)
	}
	for setting, cpus := range l.told {
		out.Put(toldCPUs, float64(cpus), g.name, setting)
	}
	for setting, n := range l.interprets {
		out.Put(interprets, float64(n), g.name, setting)
	}
	if !l.filesMissing {
		out.Put(openFiles, float64(l.files), g.name)
	}
	if l.limits {
		out.Put(worstFiles, l.worstFiles, g.name)
	}
	if l.tasksKnown {
		out.Put(worstTasks, l.worstTasks, g.name)
	}
	if l.worstSpace > 0 {
		out.Put(worstAddressSpace, l.worstSpace, g.name)
	}
}

func (r *reader) putCounters(out *probe.Out, g *group) {
	put := func(s *model.Signal, v float64, labels ...string) {
		if v > 0 || !g.kernel {
			out.Put(s, v, append([]string{g.name}, labels...)...)
		}
	}
	put(cpuSeconds, time.Duration(g.user).Seconds(), "user")
	put(cpuSeconds, time.Duration(g.system).Seconds(), "system")
	if g.idleClass > 0 {
		put(idleClassSeconds, time.Duration(g.idleClass).Seconds())
	}
	put(contextSwitches, float64(g.voluntary), "voluntary")
	put(contextSwitches, float64(g.nonvoluntary), "nonvoluntary")
	put(minorFaults, float64(g.minFaults))
	put(majorFaults, float64(g.majFaults))
	if r.tree.delays {
		put(runDelay, float64(g.delay)/float64(time.Second))
		for nice, waited := range g.niced {
			if waited > 0 {
				put(nicedDelay, float64(waited)/float64(time.Second), strconv.Itoa(nice))
			}
		}
	}
	put(starts, float64(g.starts))
	put(ends, float64(g.ends))
	if g.kernel {
		return
	}
	if !g.now.ioMissing {
		put(readBytes, float64(g.read))
		put(writeBytes, float64(g.write))
		put(passedBytes, float64(g.passed))
		put(passCalls, float64(g.calls))
	}
	for name, ticks := range g.threadTicks {
		put(threadCPU, seconds(ticks[0]), name, "user")
		put(threadCPU, seconds(ticks[1]), name, "system")
	}
}

func (r *reader) putCommand(out *probe.Out) {
	pid := r.host.Command()
	if pid == 0 {
		return // that there is no command is a fact: read, and none of it
	}
	if !r.command.begun {
		err := host.Absent(fmt.Sprintf("the watched command, process %d, was not found", pid))
		for _, s := range []*model.Signal{commandCPU, commandBusiest, commandGroup} {
			out.Mark(s, err)
		}
		return
	}
	out.Put(commandCPU, seconds(r.command.total[0]), "user")
	out.Put(commandCPU, seconds(r.command.total[1]), "system")
	if share, ok := r.command.busiest(); ok && r.round > 1 {
		out.Put(commandBusiest, share)
	}
	for comm := range r.command.comms {
		out.Put(commandGroup, 1, comm)
	}
}

// seconds is a number of clock ticks in seconds.
func seconds(ticks uint64) float64 { return float64(ticks*tickNanos) / float64(time.Second) }

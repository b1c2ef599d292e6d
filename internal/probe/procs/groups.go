package procs

import (
	"bytes"
	"strings"
)

const (
	// maxGroups and maxThreadNames bound the names of a run; later ones are
	// counted under otherName.
	maxGroups      = 256
	maxThreadNames = 32
	// lowestNice is the nice value of those who come last; see sched(7).
	lowestNice = 19
	otherName  = "(other)"
)

// The states of process-exporter.
const (
	running = iota
	sleeping
	waiting
	zombie
	otherState
	stateCount
)

var stateNames = [stateCount]string{"Running", "Sleeping", "Waiting", "Zombie", "Other"}

func stateOf(letter byte) int {
	switch letter {
	case 'R':
		return running
	case 'S':
		return sleeping
	case 'D':
		return waiting
	case 'Z':
		return zombie
	}
	return otherState
}

// group is all processes of one name. The counters are sums of differences,
// so they outlive the processes.
type group struct {
	name   string
	kernel bool

	user, system            uint64 // nanoseconds
	idleClass               uint64 // nanoseconds of them that nobody else wanted
	minFaults, majFaults    uint64
	voluntary, nonvoluntary uint64
	delay                   uint64                 // nanoseconds
	niced                   [lowestNice + 1]uint64 // of these, what threads waited that have such a nice value
	read, write, passed     uint64                 // bytes
	calls                   uint64                 // of read and write
	starts, ends            uint64
	threadTicks             map[string]*[2]uint64 // user and system, by thread name

	now level
}

// level is what a group is at the moment.
type level struct {
	procs, threads         int
	states                 [stateCount]int
	virtual, residentPages uint64
	files                  uint64
	filesMissing           bool // of some process they are not known
	ioMissing              bool
	worstFiles             float64 // ratio of open descriptors to the limit
	limits                 bool    // worstFiles is known
	worstTasks             float64 // ratio of the user's threads to the limit
	tasksKnown             bool    // worstTasks is known
	worstSpace             float64 // ratio of the address space to the limit; 0 where none has one
	busiest                float64
	busiestMissing         bool           // of some process it is not known
	allowed                int            // the fewest CPUs that one of its threads may run on; 0: not known
	told                   map[string]int // CPUs that its processes were told to use, all together, by setting
	interprets             map[string]int // processes that were told to compile nothing, by setting
}

// addThread adds what one thread used between two looks.
func (g *group) addThread(before, now *thread, multi bool) {
	g.delay += since(now.sched.wait, before.sched.wait)
	g.voluntary += since(now.sw.voluntary, before.sw.voluntary)
	g.nonvoluntary += since(now.sw.nonvoluntary, before.sw.nonvoluntary)
	user, system := since(now.user, before.user), since(now.system, before.system)
	if !multi || user+system == 0 {
		return
	}
	name := label(now.comm)
	ticks := g.threadTicks[name]
	if ticks == nil && len(g.threadTicks) >= maxThreadNames {
		name = otherName
		ticks = g.threadTicks[name]
	}
	if ticks == nil {
		if g.threadTicks == nil {
			g.threadTicks = map[string]*[2]uint64{}
		}
		ticks = new([2]uint64)
		g.threadTicks[name] = ticks
	}
	ticks[0] += user
	ticks[1] += system
}

// add counts a process into the level of its group.
func (l *level) add(p *process) {
	l.procs++
	l.threads += p.threads
	l.states[stateOf(p.state)]++
	l.virtual += p.virtual
	l.residentPages += p.residentPages
	l.busiest = max(l.busiest, p.busiest)
	l.busiestMissing = l.busiestMissing || p.unexamined
	if p.kernel {
		return
	}
	for _, t := range p.tasks {
		if t.cpus > 0 && (l.allowed == 0 || t.cpus < l.allowed) {
			l.allowed = t.cpus
		}
	}
	if p.told.cpus > 0 {
		if l.told == nil {
			l.told = map[string]int{}
		}
		l.told[p.told.setting] += p.told.cpus
	}
	if p.told.interprets != "" {
		if l.interprets == nil {
			l.interprets = map[string]int{}
		}
		l.interprets[p.told.interprets]++
	}
	l.files += p.files
	l.filesMissing = l.filesMissing || !p.detailed || denied(p.filesErr)
	l.ioMissing = l.ioMissing || denied(p.ioErr)
	if p.limitsKnown && p.soft.space > 0 {
		l.worstSpace = max(l.worstSpace, float64(p.virtual)/float64(p.soft.space))
	}
	if p.limitsKnown && p.filesErr == nil {
		l.limits = true
		if p.soft.files > 0 {
			l.worstFiles = max(l.worstFiles, float64(p.files)/float64(p.soft.files))
		}
	}
}

// addTasks holds what the process's user has against the process's limit. Root
// is not held to it.
func (l *level) addTasks(p *process, ofUser map[uint32]int) {
	if !p.tasksKnown || !p.ownerKnown {
		return
	}
	l.tasksKnown = true
	if p.soft.tasks > 0 && p.owner != 0 {
		l.worstTasks = max(l.worstTasks, float64(ofUser[p.owner])/float64(p.soft.tasks))
	}
}

// groups is all groups of a host, in order of first sight.
type groups struct {
	byName map[string]*group
	order  []*group
	cut    bool
}

// of is the group of a process name.
func (gs *groups) of(comm []byte, kernel bool) *group {
	if kernel {
		comm = kernelName(comm)
	}
	g := gs.byName[string(comm)]
	if g == nil {
		g = gs.add(label(string(comm)), kernel)
	}
	g.kernel = g.kernel && kernel // a program may bear a kernel thread's name
	return g
}

func (gs *groups) add(name string, kernel bool) *group {
	if len(gs.order) >= maxGroups && gs.byName[name] == nil {
		gs.cut = true
		name, kernel = otherName, false
	}
	g := gs.byName[name]
	if g == nil {
		g = &group{name: name, kernel: kernel}
		gs.byName[name] = g
		gs.order = append(gs.order, g)
	}
	return g
}

// kernelName takes off what numbers a kernel thread or says what it does at the
// moment: "ksoftirqd/1", "kworker/0:1-events".
func kernelName(comm []byte) []byte {
	name, _, _ := bytes.Cut(comm, []byte("/"))
	return name
}

// label makes a process name fit to be a label's value.
func label(comm string) string {
	if comm == "" {
		return "(none)"
	}
	return strings.ToValidUTF8(comm, "\uFFFD")
}

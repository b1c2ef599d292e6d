package procs

import (
	"errors"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

const (
	// detailEvery is how often a process that used no CPU time is looked at in
	// detail all the same: stat shows no less than 10 ms.
	detailEvery = 5 * time.Second
	// restEvery is how often a process that has not run at all is read all the same:
	// its resident memory may be taken from it meanwhile.
	restEvery = 30 * time.Second
	// limitsEvery is how often the descriptor limit is read: prlimit(1) may change it.
	limitsEvery = 10 * time.Second
	// manyThreads is how many are read in one round before processes must wait
	// for the next; a process is never read in part.
	manyThreads = 4096
	// tickNanos is a clock tick of stat: USER_HZ is 100 on every Linux we run on.
	tickNanos = uint64(time.Second) / 100
)

// process is one process from round to round.
type process struct {
	pid    int
	name   string // pid as a string
	statFD int    // PID/stat, kept open; -1 when it is not
	kernel bool
	// foreign processes are read for the command only: they belong to another host.
	foreign bool
	// fromZero: it began after we did, so all it has used belongs to this run.
	fromZero bool
	round    uint64 // that saw it last
	mark     uint64 // as of when it was read last, 0: it had none; see host.Marker
	readAt   time.Time
	pending  bool // it may have run since the last detailed look
	group    *group
	comm     string

	// As stat last had it.
	at                           time.Time
	state                        byte
	ppid, threads                int
	start                        uint64
	user, system                 uint64 // clock ticks
	childrenUser, childrenSystem uint64
	minFaults, majFaults         uint64
	virtual, residentPages       uint64
	// ahead is the CPU time in nanoseconds that its group was given before stat
	// shows it; see settle.
	ahead  uint64
	policy int
	nice   int
	// What it used in this round, in nanoseconds: in the idle class, and in
	// another one, there with the time that it waited for a CPU.
	inIdle, inOther uint64
	niced           map[int]uint64 // of the waiting, what threads did that have such a nice value
	schedGroup      string         // "" while it is not known
	schedGroupAt    time.Time

	// Of the detailed look.
	detailed    bool
	detailAt    time.Time
	accounted   time.Time // until when its threads' time is accounted for
	busiest     float64   // share of one CPU of its busiest thread, 0…1
	unexamined  bool      // it ran, and its threads were not read: busiest is not known
	tasks       map[int]*thread
	io          processIO
	ioKnown     bool // io was read, once
	ioErr       error
	files       uint64
	filesErr    error
	soft        softLimits
	limitsAt    time.Time
	limitsKnown bool
	tasksKnown  bool
	told        told
	toldAs      string // the name under which told was read; a program that executes another has a new environment
	owner       uint32 // real user
	ownerKnown  bool
}

// softLimits are those that a process is held to; 0: unlimited.
type softLimits struct {
	files, tasks uint64
	space        uint64 // bytes
}

// thread is one thread from look to look.
type thread struct {
	round        uint64
	comm         string
	sched        schedstat
	sw           switches
	user, system uint64 // clock ticks
	policy, nice int
	ticked       bool // user and system were read
	cpus         int  // it may run on so many CPUs; 0: not known
	owner        uint32
	ownerKnown   bool
}

// visit reads the process's stat, once a round, adds what it used since the
// last round to its group and takes the detailed look; nil when it is gone.
func (r *reader) visit(pid int, kernel, foreign bool) *process {
	p := r.procs[pid]
	if p != nil && p.round == r.round {
		return p
	}
	mark := r.marks[pid]
	if p != nil && p.foreign == foreign && r.rests(p, mark) {
		return p
	}
	var s host.Stat
	if p != nil && r.readStat(p, &s) != nil {
		r.end(p) // gone; its number may have a new owner
		p = nil
	}
	if p == nil {
		p = &process{pid: pid, name: strconv.Itoa(pid), statFD: -1, kernel: kernel, foreign: foreign}
		if r.readStat(p, &s) != nil {
			r.closeStat(p)
			return nil
		}
		r.procs[pid] = p
		r.begin(p, &s)
	}
	p.beginRound()
	rested := mark != 0 && mark == p.mark && !p.pending && p.foreign == foreign
	if p.foreign && !foreign {
		p.adopt()
	}
	p.round, p.foreign, p.mark, p.pending = r.round, foreign, mark, !rested
	active := r.update(p, &s)
	p.wasRead()
	if rested {
		p.busiest, p.unexamined, p.accounted = 0, false, p.at
		r.readDueLimits(p)
	} else {
		r.examine(p, active)
	}
	return p
}

// rests says whether the process has done nothing since it was read, so that
// what is known of it holds now, too.
func (r *reader) rests(p *process, mark uint64) bool {
	now := r.now()
	if mark == 0 || mark != p.mark || now.Sub(p.readAt) >= restEvery || p.pending && now.Sub(p.detailAt) >= detailEvery {
		return false
	}
	p.round, p.at, p.accounted = r.round, now, now
	p.busiest, p.unexamined = 0, false
	p.beginRound()
	return true
}

// wasRead notes when the process was read.
func (p *process) wasRead() {
	first := p.readAt.IsZero()
	p.readAt = p.at
	if first { // those first seen together are not all due together ever after
		p.readAt = p.at.Add(-time.Duration(p.pid) * time.Second % restEvery)
	}
}

// readStat reads stat from the kept descriptor, and keeps one while there are
// not too many. The error matches fs.ErrNotExist when it is another process.
func (r *reader) readStat(p *process, s *host.Stat) error {
	fd, name := p.statFD, p.name+"/stat"
	if fd < 0 {
		var err error
		if fd, err = r.tree.open(name); err != nil {
			return err
		}
		if r.kept < r.mayKeep {
			r.kept++
			p.statFD = fd
		} else {
			defer unix.Close(fd)
		}
	}
	b, err := r.tree.pread(fd, name)
	if err != nil {
		return err
	}
	if err := s.Parse(b); err != nil {
		return err
	}
	if p.round > 0 && s.Start != p.start {
		return fs.ErrNotExist
	}
	return nil
}

func (r *reader) closeStat(p *process) {
	if p.statFD >= 0 {
		_ = unix.Close(p.statFD)
		p.statFD = -1
		r.kept--
	}
}

// begin sets the state from which a new process is counted: its own zero when
// it is younger than we are, else what it has used so far.
func (r *reader) begin(p *process, s *host.Stat) {
	p.start = s.Start
	p.fromZero = s.Start >= r.startTicks
	p.accounted = r.before
	if p.fromZero {
		if !p.foreign {
			r.groups.of(s.Comm, p.kernel).starts++
		}
		return
	}
	p.user, p.system = s.User, s.System
	p.childrenUser, p.childrenSystem = s.ChildrenUser, s.ChildrenSystem
	p.minFaults, p.majFaults = s.MinFaults, s.MajFaults
}

// adopt counts what a process used while it was followed for the command only,
// because it is younger than the host's list of processes was.
func (p *process) adopt() {
	if !p.fromZero {
		return
	}
	g := p.group
	g.starts++
	p.giveTicks(p.user, p.system)
	g.minFaults += p.minFaults
	g.majFaults += p.majFaults
}

// end forgets a process.
func (r *reader) end(p *process) {
	r.closeStat(p)
	delete(r.procs, p.pid)
	r.command.ended(p)
	if !p.foreign && p.group != nil {
		p.group.ends++
	}
}

// update takes over a new stat and says whether the process used CPU time.
func (r *reader) update(p *process, s *host.Stat) (active bool) {
	if p.group == nil || string(s.Comm) != p.comm {
		p.comm = string(s.Comm)
		p.group = r.groups.of(s.Comm, p.kernel)
	}
	user, system := since(s.User, p.user), since(s.System, p.system)
	p.policy, p.nice, p.threads = s.Policy, s.Nice, s.Threads
	if !p.foreign {
		p.giveTicks(user, system)
		p.group.minFaults += since(s.MinFaults, p.minFaults)
		p.group.majFaults += since(s.MajFaults, p.majFaults)
	}
	r.command.used(p, user, system)
	p.at = r.now()
	p.state, p.ppid = s.State, s.PPID
	p.user, p.system = s.User, s.System
	p.childrenUser, p.childrenSystem = s.ChildrenUser, s.ChildrenSystem
	p.minFaults, p.majFaults = s.MinFaults, s.MajFaults
	p.virtual, p.residentPages = s.Virtual, s.ResidentPages
	return user+system > 0
}

// giveTicks gives the process's group what stat grew by, but for what settle gave
// it in advance.
func (p *process) giveTicks(user, system uint64) {
	user, system = user*tickNanos, system*tickNanos
	given := min(p.ahead, user+system)
	p.ahead -= given
	fromUser := max(min(given/2, user), since(given, system))
	p.give(user-fromUser, system-(given-fromUser))
}

// settle gives the group the CPU time that stat does not show yet: it counts user
// and system time in whole ticks of 10 ms, so that of hundreds of processes that
// work for a millisecond now and then it shows next to nothing. run is what
// schedstat says of the process's only thread, in nanoseconds. That tells no modes
// apart: each gets half, but for the kernel's own threads.
func (p *process) settle(run uint64) {
	hidden := min(since(run, (p.user+p.system)*tickNanos), 2*tickNanos)
	more := since(hidden, p.ahead)
	p.ahead += more
	if !p.detailed && !p.fromZero {
		return // it is older than our watching
	}
	user := more / 2
	if p.kernel {
		user = 0
	}
	p.give(user, more-user)
}

// give adds CPU time, in nanoseconds, to the process's group. Of several threads
// each has a policy of its own; see examineThread.
func (p *process) give(user, system uint64) {
	p.group.user += user
	p.group.system += system
	if p.threads <= 1 {
		p.note(p.policy, user+system)
	}
}

// note counts time that was used under a policy in this round.
func (p *process) note(policy int, nanos uint64) {
	if policy == policyIdle {
		p.inIdle += nanos
	} else {
		p.inOther += nanos
	}
}

// noteNiced counts what a thread of a lower priority than is usual waited for a CPU in this round.
func (p *process) noteNiced(t *thread, waited uint64) {
	if waited == 0 || t.nice <= 0 || t.nice > lowestNice || t.policy == policyIdle {
		return
	}
	if p.niced == nil {
		p.niced = map[int]uint64{}
	}
	p.niced[t.nice] += waited
}

// beginRound forgets what was used in the last round.
func (p *process) beginRound() {
	p.inIdle, p.inOther = 0, 0
	clear(p.niced)
}

// since is the growth of a counter; one that fell (the kernel corrects them
// now and then) has not grown.
func since(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

// examine takes the detailed look where it is due.
func (r *reader) examine(p *process, active bool) {
	due := active || !p.detailed || p.at.Sub(p.detailAt) >= detailEvery
	p.busiest, p.unexamined = 0, false
	if !due {
		p.accounted = p.at
		return
	}
	moved, ok := r.examineThreads(p)
	if !ok {
		p.unexamined = active
		return
	}
	if !p.kernel && !p.foreign && (moved || !p.detailed) {
		r.readIO(p)
		p.files, p.filesErr = r.tree.openFiles(p.name)
	}
	r.readDueLimits(p)
	if p.threads > 1 && !p.foreign && p.toldAs != p.comm {
		p.told, p.toldAs = r.readTold(p), p.comm
	}
	p.detailAt, p.accounted, p.pending = p.at, p.at, false
	if !p.detailed {
		p.detailed = true
		// Those first seen together are not all due together ever after.
		p.detailAt = p.at.Add(-time.Duration(p.pid) * time.Second % detailEvery)
	}
}

// readDueLimits reads what others may change of a process that does nothing, if
// that is due.
func (r *reader) readDueLimits(p *process) {
	if !p.kernel && !p.foreign && (!p.limitsKnown || p.at.Sub(p.limitsAt) >= limitsEvery) {
		r.readLimits(p)
	}
}

// examineThreads reads every thread of the process. moved says that one of
// them ran; ok is false when it was put off or the process is gone.
func (r *reader) examineThreads(p *process) (moved, ok bool) {
	if r.threadsLeft <= 0 {
		if r.putOff == 0 {
			r.putOff = p.pid
		}
		return false, false
	}
	r.tids = r.tids[:0]
	multi := p.threads > 1
	if multi {
		var err error
		if r.tids, err = r.tree.threads(p.name, r.tids); err != nil {
			return false, false
		}
	} else {
		r.tids = append(r.tids, p.pid)
	}
	r.threadsLeft -= len(r.tids)
	if p.tasks == nil {
		p.tasks = make(map[int]*thread, len(r.tids))
	}
	for _, tid := range r.tids {
		if r.examineThread(p, tid, multi) {
			moved = true
		}
	}
	for tid, t := range p.tasks {
		if t.round != r.round {
			delete(p.tasks, tid)
		}
	}
	return moved, true
}

// examineThread adds what one thread used since it was last looked at to the
// process's group, and says whether it ran at all.
func (r *reader) examineThread(p *process, tid int, multi bool) (moved bool) {
	dir := p.name
	if multi {
		dir += "/task/" + strconv.Itoa(tid)
	}
	known := p.tasks[tid]
	now, ran, err := r.readThread(dir, multi, known)
	if err != nil {
		return false // gone, or not yet there
	}
	now.round = r.round
	if !now.ticked { // its stat is the process's
		now.policy, now.nice = p.policy, p.nice
	}
	if !ran {
		known.round = r.round
		return false
	}
	before := known
	switch {
	case known == nil && (p.fromZero || p.detailed):
		before = &thread{}
	case known == nil:
		before = now
	case now.ticked && !known.ticked:
		// It was the only thread until now: what it used then is no thread's.
		from := *known
		from.user, from.system = now.user, now.system
		before = &from
	}
	p.tasks[tid] = now
	p.owner, p.ownerKnown = now.owner, now.ownerKnown
	cpu := since(now.cpuNanos(r.tree.delays), before.cpuNanos(r.tree.delays))
	if span := p.at.Sub(p.accounted); span > 0 && !p.accounted.IsZero() {
		p.busiest = max(p.busiest, min(1, float64(cpu)/float64(span)))
	}
	if !p.foreign {
		p.group.addThread(before, now, multi)
		p.noteNiced(now, since(now.sched.wait, before.sched.wait))
		if multi {
			p.note(now.policy, (since(now.user, before.user)+since(now.system, before.system))*tickNanos)
		}
		if p.policy != policyIdle {
			p.inOther += since(now.sched.wait, before.sched.wait)
		}
		if !multi {
			p.settle(now.sched.run)
		}
	}
	return true
}

// cpuNanos is the CPU time of a thread; from its ticks where the kernel has no schedstat.
func (t *thread) cpuNanos(delays bool) uint64 {
	if delays {
		return t.sched.run
	}
	return (t.user + t.system) * tickNanos
}

// readThread reads a thread's files, only the first of them when it did not run
// since it was known as known.
func (r *reader) readThread(dir string, multi bool, known *thread) (t *thread, ran bool, err error) {
	t = &thread{}
	if r.tree.delays {
		b, err := r.tree.read(dir + "/schedstat")
		if err != nil {
			return nil, false, err
		}
		if t.sched, err = parseSchedstat(b); err != nil {
			return nil, false, err
		}
		if known != nil && known.sched.run == t.sched.run {
			return t, false, nil
		}
	}
	b, err := r.tree.read(dir + "/status")
	if err != nil {
		return nil, false, err
	}
	if t.sw, err = parseStatus(b); err != nil {
		return nil, false, err
	}
	t.cpus = parseAllowedCPUs(b)
	t.owner, err = parseUser(b)
	t.ownerKnown = err == nil
	if !multi && r.tree.delays {
		return t, true, nil
	}
	if b, err = r.tree.read(dir + "/stat"); err != nil {
		return nil, false, err
	}
	var s host.Stat
	if err := s.Parse(b); err != nil {
		return nil, false, err
	}
	t.user, t.system, t.comm, t.policy, t.nice, t.ticked = s.User, s.System, string(s.Comm), s.Policy, s.Nice, true
	return t, true, nil
}

func (r *reader) readIO(p *process) {
	b, err := r.tree.read(p.name + "/io")
	var now processIO
	if err == nil {
		now, err = parseIO(b)
	}
	p.ioErr = err
	if err != nil {
		return
	}
	before := p.io
	if !p.ioKnown && !p.fromZero {
		before = now
	}
	p.ioKnown = true
	p.group.read += since(now.read, before.read)
	p.group.write += since(now.write, before.write)
	p.group.passed += since(now.passed, before.passed)
	p.group.calls += since(now.calls, before.calls)
	p.io = now
}

func (r *reader) readLimits(p *process) {
	p.limitsAt = p.at
	if l, ok := r.tree.limits(p.pid); ok {
		p.soft, p.limitsKnown, p.tasksKnown = l, true, true
		return
	}
	b, err := r.tree.read(p.name + "/limits")
	if err == nil {
		p.soft.files, err = parseLimit(b, limitFiles)
	}
	p.limitsKnown = err == nil
	if err == nil {
		p.soft.tasks, err = parseLimit(b, limitTasks)
	}
	if err == nil {
		p.soft.space, err = parseLimit(b, limitSpace)
	}
	p.tasksKnown = err == nil
}

// denied says that err is a refusal; a process that is gone is none.
func denied(err error) bool { return errors.Is(err, fs.ErrPermission) }

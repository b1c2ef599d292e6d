package program

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

const (
	// maxThreads bounds the threads that are looked at, maxProcesses the processes that are listed: a program may fork without end.
	maxThreads, maxProcesses = 256, 1024
	// rooted is the time between two searches for the program.
	rooted = time.Second
)

// member is a process of the program's.
type member struct {
	pid     int
	threads map[int]*thread
	name    string // as of the last round
	child   bool   // it was started by one of the program's, or is the command: all that it did is the program's
	over    bool   // a zombie
	counted bool   // what it used until a round is known
}

// set are the program's processes: those that a word stands for, with all that they start.
type set struct {
	choose  *chooser
	members map[int]*member
	newest  *host.File  // loadavg, whose last number is that of the newest thread of all
	known   int         // that number when it was last read
	young   map[int]int // how often those that have just begun are still to be looked at
	listed  time.Time
	threads int
	were    map[string]bool // the names of its processes, until now
	cut     bool            // there are more threads than are looked at
	denied  error           // why one may not be looked at
}

func newSet(c *chooser) (*set, error) {
	f, err := host.OpenFile("/proc/loadavg")
	return &set{choose: c, members: map[int]*member{}, newest: f, were: map[string]bool{}, young: map[int]int{}}, err
}

// refresh lists processes and threads anew where there may be others than before.
func (s *set) refresh(now time.Time) error {
	if !s.changed() && now.Sub(s.listed) < rooted {
		return nil
	}
	pids := s.fresh()
	if now.Sub(s.listed) >= rooted || s.choose.one() {
		roots, err := s.choose.roots()
		if err != nil {
			return err
		}
		for _, pid := range roots {
			if !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
		s.listed = now
	}
	for pid := range s.members { // what it started stays the program's when its parent ends
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	found := len(pids)
	for i := 0; i < len(pids); i++ {
		for _, child := range s.list(pids[i], i >= found || s.choose.word == model.ProgramCommand) {
			if len(pids) >= maxProcesses {
				s.cut = true
				return nil
			}
			if !slices.Contains(pids, child) {
				pids = append(pids, child)
			}
		}
	}
	return nil
}

// changed says whether a process or a thread was begun on this machine since it was last asked.
func (s *set) changed() bool {
	b, err := s.newest.Bytes()
	if err != nil {
		return true
	}
	b = bytes.TrimSpace(b)
	last, err := strconv.Atoi(string(b[bytes.LastIndexByte(b, ' ')+1:]))
	if err != nil || last == s.known {
		return err != nil || len(s.young) > 0
	}
	if from := max(s.known, last-maxYoung); s.known > 0 {
		for pid := from + 1; pid <= last; pid++ {
			s.young[pid] = tries
		}
	}
	s.known = last
	return true
}

const (
	// maxYoung bounds the processes that are looked at as soon as they are begun, tries how often each is, since a process
	// has its parent's name until it executes its program.
	maxYoung, tries = 64, 4
)

// fresh are processes of the program's name among those that have just begun: many live for less than the time between two searches.
func (s *set) fresh() (pids []int) {
	for pid, left := range s.young {
		if left--; left == 0 {
			delete(s.young, pid)
		} else {
			s.young[pid] = left
		}
		if s.choose.is(pid) {
			delete(s.young, pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// list brings what is known of one process's threads up to date, and returns its children. child is of a new one.
func (s *set) list(pid int, child bool) (children []int) {
	dir := "/proc/" + strconv.Itoa(pid)
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		s.end(pid)
		return nil
	}
	m := s.members[pid]
	if m == nil {
		m = &member{pid: pid, threads: map[int]*thread{}, child: child}
		s.members[pid] = m
	}
	if m.over = len(tasks) == 1 && isZombie(pid); m.over { // what it used counts until whoever started it has waited for it
		s.dropAll(m)
		return nil
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		s.begin(m, tid)
		if b, err := host.ReadFile(dir + "/task/" + task.Name() + "/children"); err == nil {
			for word := range bytes.FieldsSeq(b) {
				if pid, err := strconv.Atoi(string(word)); err == nil {
					children = append(children, pid)
				}
			}
		}
	}
	return children
}

func isZombie(pid int) bool {
	st, err := host.StatOf(pid)
	return err != nil || st.State == 'Z'
}

// begin begins to look at a thread, if it is a new one and there is room.
func (s *set) begin(m *member, tid int) {
	if m.threads[tid] != nil {
		return
	}
	if s.threads >= maxThreads {
		s.cut = true
		return
	}
	t, err := newThread(m.pid, tid)
	if err != nil {
		s.note(err)
		return
	}
	m.threads[tid] = t
	s.threads++
}

// maxNames bounds the names of processes that are told apart.
const maxNames = 64

// names is how many processes there are of each name; none of one that is gone.
func (s *set) names() map[string]int {
	now := map[string]int{}
	for name := range s.were {
		now[name] = 0
	}
	for _, m := range s.members {
		name := m.name
		if name == "" || m.over {
			continue // it ended before it was asked
		}
		if !s.were[name] && len(s.were) >= maxNames {
			name = "other"
		}
		s.were[name] = true
		now[name]++
	}
	return now
}

// pids are its processes.
func (s *set) pids() []int { return slices.Collect(maps.Keys(s.members)) }

// note keeps why a thread cannot be looked at, unless it is that it has ended.
func (s *set) note(err error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		s.denied = err
	}
}

// drop looks at a thread no more.
func (s *set) drop(m *member, tid int) {
	if t := m.threads[tid]; t != nil {
		_ = t.times.Close() // a file that was only read
		delete(m.threads, tid)
		s.threads--
	}
}

// end looks at a process no more.
func (s *set) end(pid int) {
	m := s.members[pid]
	if m == nil {
		return
	}
	s.dropAll(m)
	delete(s.members, pid)
}

func (s *set) dropAll(m *member) {
	for tid := range m.threads {
		s.drop(m, tid)
	}
}

func (s *set) close() {
	for pid := range s.members {
		s.end(pid)
	}
	_ = s.newest.Close() // likewise
	_ = s.choose.close()
}

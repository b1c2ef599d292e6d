package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Proc is a process as Procs last saw it.
type Proc struct {
	PID, PPID int
	// Start is when it began, in clock ticks after boot; with PID it names a
	// process for good.
	Start uint64
	// Comm is the kernel's name for it (15 bytes at most), Args its command
	// line; a kernel thread has none.
	Comm string
	Args []string
	// Kernel marks kernel threads.
	Kernel bool
	// NetNS is the inode of its network namespace, 0 when we may not see it.
	NetNS uint64
	// Stray marks a process in a namespace that no host of the run is, counted
	// here because its CPU time has to be counted somewhere. It is no service of this host.
	Stray bool

	pidns uint64
	group string // its control group, where one of the hosts is one
}

// Procs lists the processes that belong to h: those in its network namespace
// and, when h is the machine itself, those that no other host of the run
// claims, kernel threads among them. The list is at most a second old. PPID is
// as first seen: a child that outlives its parent keeps it. Comm, Args and
// NetNS are read at first sight and again after 1, 4, 16 … seconds, because
// exec changes them; not of a process that has not run since (see Marker). The slice is the caller's, the Args are shared.
func (h *Host) Procs() ([]Proc, error) {
	h.mu.Lock()
	table, others, mine := h.procs, h.others, make([]Proc, 0, h.owned)
	h.mu.Unlock()
	all, err := table.list(time.Now(), h.Marks)
	if err != nil {
		return nil, fmt.Errorf("list the processes of %s: %w", h.Name, err)
	}
	for i := range all {
		if h.owns(&all[i], others) {
			p := all[i]
			p.Stray = h.strays && !h.claims(&p) && !p.hidden()
			mine = append(mine, p)
		}
	}
	h.mu.Lock()
	h.owned = len(mine)
	h.mu.Unlock()
	return mine, nil
}

// Services is Procs without the strays: what may be a service of this host.
func (h *Host) Services() ([]Proc, error) {
	procs, err := h.Procs()
	return slices.DeleteFunc(procs, func(p Proc) bool { return p.Stray }), err
}

func (h *Host) owns(p *Proc, others []*Host) bool {
	if h.root != "" {
		return true
	}
	if !h.machine && !h.strays {
		return h.claims(p)
	}
	return !slices.ContainsFunc(others, func(o *Host) bool { return !o.machine && o.claims(p) })
}

func (h *Host) claims(p *Proc) bool {
	if p.Kernel || p.NetNS != h.netns {
		return false
	}
	return (h.pidns == 0 || h.pidns == p.pidns) && (h.group == "" || within(p.group, h.group))
}

// hidden says that we may not see in which namespaces a program is: it may be
// anybody's, this host's too. Of a zombie, which has no arguments, there is nothing to see.
func (p *Proc) hidden() bool { return p.NetNS == 0 && len(p.Args) > 0 }

const (
	// A list of processes is used again while it is younger than so many times
	// what it took to make: one per cent of a core, at most, goes into lists …
	listWorth = 100
	// … but within these bounds: the hosts of one round share one list, and a
	// round a second must not find that of the round before.
	listYoungest = 50 * time.Millisecond
	listOldest   = 900 * time.Millisecond
	// listEvery is how often /proc is listed where processes are told by their marks.
	listEvery = 10 * time.Second
)

// procTable is one scan of a /proc, shared by the hosts of a machine.
type procTable struct {
	dir string
	// grouped says that the processes' control groups are asked for; set before it is used.
	grouped bool

	mu      sync.Mutex
	scanned time.Time
	listed  time.Time     // when the directory was listed
	good    time.Duration // for how long the scan is good
	known   map[int]*knownProc
	last    []Proc
}

// knownProc is a process that was read before. ino is the inode of its /proc
// directory: the kernel gives a new one to every process, so an unchanged ino
// means an unchanged process and nothing need be read.
type knownProc struct {
	Proc
	ino   uint64
	seen  time.Time     // first sight
	again time.Duration // age at which it is read again
	mark  uint64        // as of when it was read, see Marker; 0: it had none
	scan  time.Time     // the scan that saw it last
}

func newProcTable(dir string) *procTable {
	return &procTable{dir: dir, known: map[int]*knownProc{}}
}

// list returns all processes, scanned anew when the last scan is too old: an
// old one lacks those that have begun and names those that have ended, so a
// group of short-lived processes would look empty. marks is asked in a new scan
// only. The slice must not be changed.
func (t *procTable) list(now time.Time, marks func() map[int]uint64) ([]Proc, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.scanned.IsZero() && now.Sub(t.scanned) < t.good {
		return t.last, nil
	}
	begun := time.Now()
	marked := marks()
	entries, err := t.entries(marked, now)
	if err != nil {
		return nil, err
	}
	list := make([]Proc, 0, len(entries)+8)
	for _, e := range entries {
		if k := t.visit(e, marked[e.number], now); k != nil {
			list = append(list, k.Proc)
		}
	}
	for pid, k := range t.known {
		if k.scan != now {
			delete(t.known, pid)
		}
	}
	t.last, t.scanned = list, now
	t.good = min(max(listWorth*time.Since(begun), listYoungest), listOldest)
	return list, nil
}

// entries are the processes to visit. Who tells their marks has just looked at all
// that it may see, so /proc, which is dear to list, is only asked about those that
// have run and those that have no mark, and listed now and then.
func (t *procTable) entries(marked map[int]uint64, now time.Time) ([]entry, error) {
	if len(marked) == 0 || t.listed.IsZero() || now.Sub(t.listed) >= listEvery {
		t.listed = now
		return numbered(t.dir)
	}
	pids := slices.Collect(maps.Keys(marked))
	for pid := range t.known {
		if _, there := marked[pid]; !there {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	entries := make([]entry, 0, len(pids))
	for _, pid := range pids {
		if k := t.known[pid]; k != nil && k.mark != 0 && k.mark == marked[pid] {
			entries = append(entries, entry{pid, k.ino})
		} else if ino, err := Inode(filepath.Join(t.dir, strconv.Itoa(pid))); err == nil { // else it has ended
			entries = append(entries, entry{pid, ino})
		}
	}
	return entries, nil
}

// visit brings what is known of one process up to date; nil when it is gone.
func (t *procTable) visit(e entry, mark uint64, now time.Time) *knownProc {
	k := t.known[e.number]
	fresh := k == nil || k.ino != e.ino
	if fresh {
		k = &knownProc{ino: e.ino, seen: now, again: time.Second}
	} else if now.Sub(k.seen) < k.again || mark != 0 && mark == k.mark { // one that has not run has executed nothing
		k.scan = now
		return k
	} else {
		k.again *= 4
	}
	p, err := readProc(t.dir, e.number)
	if err != nil {
		return nil // it ended between the listing and the reading
	}
	if !fresh {
		p.PPID = k.PPID
	}
	if t.grouped {
		if p.group, err = groupOf(filepath.Join(t.dir, strconv.Itoa(e.number))); err != nil {
			return nil
		}
	}
	k.Proc, k.scan, k.mark = p, now, mark
	t.known[e.number] = k
	return k
}

// MaxCommandLine is how many bytes of a process's command line are read.
const MaxCommandLine = 32 << 10

// readProc reads what is to be known of one process. Its namespaces stay 0
// when we may not see them.
func readProc(dir string, pid int) (Proc, error) {
	dir = filepath.Join(dir, strconv.Itoa(pid))
	stat, err := ReadStat(dir + "/stat")
	if err != nil {
		return Proc{}, err
	}
	p := Proc{PID: pid, PPID: stat.PPID, Start: stat.Start, Comm: string(stat.Comm), Kernel: stat.Kernel}
	if !p.Kernel {
		cmdline, err := ReadHead(dir+"/cmdline", MaxCommandLine)
		if err != nil {
			return Proc{}, err
		}
		p.Args = splitArgs(cmdline)
	}
	p.NetNS = nsLink(dir, "net")
	p.pidns = nsLink(dir, "pid")
	return p, nil
}

// splitArgs takes /proc/PID/cmdline apart. Programs that rewrite their title
// (nginx, php-fpm) leave one argument with blanks in it, and NULs behind it.
func splitArgs(b []byte) []string {
	s := strings.TrimRight(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// nsLink reads a namespace's inode from a link like "net:[4026531833]"; 0 when
// it cannot be read.
func nsLink(dir, kind string) uint64 {
	var link [64]byte // the kernel's names for them have no more than 20
	n, err := unix.Readlink(dir+"/ns/"+kind, link[:])
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(link[:n]), ":[")
	ino, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 64)
	if err != nil {
		return 0
	}
	return ino
}

// entry is one of a directory whose names are numbers: processes, descriptors.
type entry struct {
	number int
	ino    uint64
}

// numbered lists the numeric entries of a directory with their inodes,
// which os.ReadDir does not give.
func numbered(dir string) ([]entry, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var entries []entry
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "getdents", Path: dir, Err: err}
		}
		if n == 0 {
			return entries, nil
		}
		if entries, err = parseDirents(buf[:n], entries); err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
	}
}

// parseDirents appends the numeric names of a buffer of struct linux_dirent64.
func parseDirents(b []byte, entries []entry) ([]entry, error) {
	const ino, reclen, name = 0, 16, 19 // offsets
	for len(b) > 0 {
		if len(b) < name {
			return nil, io.ErrUnexpectedEOF
		}
		size := int(binary.NativeEndian.Uint16(b[reclen:]))
		if size <= name || size > len(b) {
			return nil, io.ErrUnexpectedEOF
		}
		s, _, _ := bytes.Cut(b[name:size], []byte{0})
		if len(s) > 0 && s[0] >= '0' && s[0] <= '9' {
			if pid, err := strconv.Atoi(string(s)); err == nil {
				entries = append(entries, entry{pid, binary.NativeEndian.Uint64(b[ino:])})
			}
		}
		b = b[size:]
	}
	return entries, nil
}

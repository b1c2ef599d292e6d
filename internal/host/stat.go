package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Stat is what is used of /proc/PID/stat or /proc/PID/task/TID/stat, see
// proc_pid_stat(5). Times are in clock ticks.
type Stat struct {
	Comm                         []byte // part of what was parsed
	State                        byte   // 'R', 'S', 'D', 'T', 'Z' …
	PPID                         int
	Group                        int  // of processes
	Kernel                       bool // a thread of the kernel
	MinFaults, MajFaults         uint64
	User, System                 uint64
	ChildrenUser, ChildrenSystem uint64 // of children that were waited for
	Nice                         int    // -20 … 19
	Threads                      int
	Start                        uint64 // after boot; with the number it names a process for good
	Virtual                      uint64 // bytes
	ResidentPages                uint64
	Policy                       int // see sched(7)
}

// kernelThread is PF_KTHREAD among a thread's flags.
const kernelThread = 0x00200000

// Parse reads a stat file. The name may hold blanks and brackets, so the last
// bracket ends it.
func (s *Stat) Parse(b []byte) error {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return errors.New("parse stat: want a name in brackets")
	}
	comm := b[open+1 : end]
	b = bytes.TrimLeft(b[end+1:], " ")
	if len(b) < 2 {
		return fmt.Errorf("parse stat: %w", errShort)
	}
	*s = Stat{Comm: comm, State: b[0]}
	f := Fields{b: b[1:]}
	s.PPID, s.Group = int(f.Next(4)), int(f.Next(5))
	f.Skip(3) // session tty_nr tpgid
	s.Kernel = f.Next(9)&kernelThread != 0
	s.MinFaults = f.Next(10)
	f.Skip(1)
	s.MajFaults = f.Next(12)
	f.Skip(1)
	s.User, s.System = f.Next(14), f.Next(15)
	s.ChildrenUser, s.ChildrenSystem = f.Next(16), f.Next(17)
	f.Skip(1) // priority
	s.Nice = f.NextSigned(19)
	s.Threads = int(f.Next(20))
	f.Skip(1)
	s.Start, s.Virtual, s.ResidentPages = f.Next(22), f.Next(23), f.Next(24)
	f.Skip(16) // rsslim … rt_priority
	s.Policy = int(f.Next(41))
	if f.err != nil {
		*s = Stat{}
		return fmt.Errorf("parse stat: %w", f.err)
	}
	return nil
}

// ReadStat reads a stat file. Where the process has ended the error matches
// fs.ErrNotExist or, if it ended just now, unix.ESRCH.
func ReadStat(path string) (Stat, error) {
	b, err := ReadHead(path, maxStat)
	if err != nil {
		return Stat{}, err
	}
	var s Stat
	if err := s.Parse(b); err != nil {
		return Stat{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// maxStat is more than 52 numbers and a name take, in bytes.
const maxStat = 4096

// StatOf reads /proc/PID/stat of this machine, see ReadStat.
func StatOf(pid int) (Stat, error) { return ReadStat("/proc/" + strconv.Itoa(pid) + "/stat") }

// PIDs lists the processes of this machine, as far as /proc shows them; none where
// it cannot be listed.
func PIDs() (pids []int) {
	entries, err := numbered("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pids = append(pids, e.number)
	}
	return pids
}

// errShort is the answer to a line that ends too early.
var errShort = errors.New("the file ends too early")

// Fields takes a line of numbers apart, without allocating.
type Fields struct {
	b   []byte
	err error
}

// FieldsOf begins with a line.
func FieldsOf(line []byte) Fields { return Fields{b: line} }

// Cut takes the next word.
func (f *Fields) Cut() (word []byte) {
	b := bytes.TrimLeft(f.b, " \t\n")
	n := bytes.IndexAny(b, " \t\n")
	if n < 0 {
		n = len(b)
	}
	if n == 0 && f.err == nil {
		f.err = errShort
	}
	f.b = b[n:]
	return b[:n]
}

// Skip passes over n words.
func (f *Fields) Skip(n int) {
	for range n {
		f.Cut()
	}
}

// Next reads an unsigned number; nth is its place in the file, for the error. After
// an error it returns 0.
func (f *Fields) Next(nth int) uint64 {
	word := f.Cut()
	if f.err != nil {
		return 0
	}
	n, ok := Number(word)
	if !ok {
		f.err = fmt.Errorf("field %d: want a number, got %q", nth, word)
	}
	return n
}

// NextSigned is Next for a number that may have a minus.
func (f *Fields) NextSigned(nth int) int {
	word := f.Cut()
	if f.err != nil {
		return 0
	}
	digits, negative := bytes.CutPrefix(word, []byte("-"))
	n, ok := Number(digits)
	if !ok || n > math.MaxInt32 {
		f.err = fmt.Errorf("field %d: want a number, got %q", nth, word)
		return 0
	}
	if negative {
		return -int(n)
	}
	return int(n)
}

// Err is the first thing that was wrong with the line.
func (f *Fields) Err() error { return f.err }

// Number reads an unsigned number; ok is false for whatever else.
func Number(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, len(b) > 0
}

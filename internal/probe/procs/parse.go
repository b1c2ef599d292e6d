package procs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode"
)

// stat is what is used of /proc/PID/stat or /proc/PID/task/TID/stat, see
// proc_pid_stat(5). Times are in clock ticks.
type stat struct {
	comm                         []byte // valid until the buffer is used again
	state                        byte
	ppid                         int
	minFaults, majFaults         uint64
	user, system                 uint64
	childrenUser, childrenSystem uint64 // of children that were waited for
	threads                      int
	start                        uint64 // after boot
	virtual                      uint64 // bytes
	residentPages                uint64
	policy                       int // see sched(7)
}

// errShort is the answer to a file that ends too early.
var errShort = errors.New("the file ends too early")

// parseStat reads a stat file. The name may hold blanks and brackets, so the
// last bracket ends it.
func parseStat(b []byte, s *stat) error {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return errors.New("parse stat: want a name in brackets")
	}
	s.comm = b[open+1 : end]
	b = bytes.TrimLeft(b[end+1:], " ")
	if len(b) < 2 {
		return fmt.Errorf("parse stat: %w", errShort)
	}
	s.state = b[0]
	f := fields{b: b[1:]}
	s.ppid = int(f.next(4))
	f.skip(5) // pgrp session tty_nr tpgid flags
	s.minFaults = f.next(10)
	f.skip(1)
	s.majFaults = f.next(12)
	f.skip(1)
	s.user, s.system = f.next(14), f.next(15)
	s.childrenUser, s.childrenSystem = f.next(16), f.next(17)
	f.skip(2) // priority nice
	s.threads = int(f.next(20))
	f.skip(1)
	s.start, s.virtual, s.residentPages = f.next(22), f.next(23), f.next(24)
	f.skip(16) // rsslim … rt_priority
	s.policy = int(f.next(41))
	if f.err != nil {
		return fmt.Errorf("parse stat: %w", f.err)
	}
	return nil
}

// policyIdle is SCHED_IDLE, the class of those who get what nobody else wants.
const policyIdle = 5

// fields takes a line of numbers apart, without allocating.
type fields struct {
	b   []byte
	err error
}

func (f *fields) cut() (word []byte) {
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

func (f *fields) skip(n int) {
	for range n {
		f.cut()
	}
}

// next reads an unsigned number; nth is its place in the file, for the error.
func (f *fields) next(nth int) uint64 {
	word := f.cut()
	if f.err != nil {
		return 0
	}
	n, ok := number(word)
	if !ok {
		f.err = fmt.Errorf("field %d: want a number, got %q", nth, word)
	}
	return n
}

func number(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, len(b) > 0
}

// schedstat is /proc/PID/task/TID/schedstat, in nanoseconds: the time on a CPU
// and the time runnable but waiting for one. /proc/PID/schedstat is that of
// the main thread alone.
type schedstat struct{ run, wait uint64 }

func parseSchedstat(b []byte) (schedstat, error) {
	f := fields{b: b}
	s := schedstat{run: f.next(1), wait: f.next(2)}
	if f.err != nil {
		return schedstat{}, fmt.Errorf("parse schedstat: %w", f.err)
	}
	return s, nil
}

// switches are a thread's context switches, the last two lines of
// /proc/PID/task/TID/status.
type switches struct{ voluntary, nonvoluntary uint64 }

func parseStatus(b []byte) (switches, error) {
	v, err := lineNumber(b, "voluntary_ctxt_switches:")
	if err != nil {
		return switches{}, fmt.Errorf("parse status: %w", err)
	}
	n, err := lineNumber(b, "nonvoluntary_ctxt_switches:")
	if err != nil {
		return switches{}, fmt.Errorf("parse status: %w", err)
	}
	return switches{v, n}, nil
}

// parseAllowedCPUs counts the CPUs that a thread may run on, from the mask in
// /proc/PID/task/TID/status; it has a comma between 32 of them. 0 means that
// the file does not say.
func parseAllowedCPUs(b []byte) (cpus int) {
	for line := range bytes.Lines(b) {
		mask, ok := bytes.CutPrefix(line, []byte("Cpus_allowed:"))
		if !ok {
			continue
		}
		for _, word := range bytes.FieldsFunc(mask, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			n, err := strconv.ParseUint(string(word), 16, 32)
			if err != nil {
				return 0
			}
			cpus += bits.OnesCount64(n)
		}
		return cpus
	}
	return 0
}

// parseUser is the real user in /proc/PID/status, whose processes RLIMIT_NPROC counts.
func parseUser(b []byte) (uint32, error) {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		f := fields{b: bytes.TrimSpace(rest)}
		word := f.cut()
		n, err := strconv.ParseUint(string(word), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("parse status: Uid: want a number, got %q", word)
		}
		return uint32(n), nil
	}
	return 0, errors.New("parse status: no line Uid:")
}

// diskIO is what a process had read from and written to block devices, in
// bytes: /proc/PID/io, over all of its threads.
type diskIO struct{ read, write uint64 }

func parseIO(b []byte) (diskIO, error) {
	r, err := lineNumber(b, "read_bytes:")
	if err != nil {
		return diskIO{}, fmt.Errorf("parse io: %w", err)
	}
	w, err := lineNumber(b, "write_bytes:")
	if err != nil {
		return diskIO{}, fmt.Errorf("parse io: %w", err)
	}
	return diskIO{r, w}, nil
}

// lineNumber is the number behind the key at the start of a line.
func lineNumber(b []byte, key string) (uint64, error) {
	for line := range bytes.Lines(b) {
		if !bytes.HasPrefix(line, []byte(key)) {
			continue
		}
		word := bytes.TrimSpace(line[len(key):])
		n, ok := number(word)
		if !ok {
			return 0, fmt.Errorf("%s want a number, got %q", key, word)
		}
		return n, nil
	}
	return 0, fmt.Errorf("no line %s", key)
}

// The soft limits that are read of /proc/PID/limits.
const (
	limitFiles = "Max open files"
	limitTasks = "Max processes"
)

// parseLimit is a soft limit in /proc/PID/limits; 0 means unlimited.
func parseLimit(b []byte, key string) (uint64, error) {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte(key))
		if !ok {
			continue
		}
		f := fields{b: rest}
		word := f.cut()
		if string(word) == "unlimited" {
			return 0, nil
		}
		n, ok := number(word)
		if !ok {
			return 0, fmt.Errorf("parse limits: %s: want a number, got %q", key, word)
		}
		return n, nil
	}
	return 0, fmt.Errorf("parse limits: no line %q", key)
}

// parsePIDs appends the numbers of a list such as /proc/PID/task/TID/children.
func parsePIDs(b []byte, pids []int) []int {
	for word := range bytes.FieldsSeq(b) {
		if pid, err := strconv.Atoi(string(word)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

package procs

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"unicode"

	"plimsoll/internal/host"
)

// policyIdle is SCHED_IDLE, the class of those who get what nobody else wants.
const policyIdle = 5

// schedstat is /proc/PID/task/TID/schedstat, in nanoseconds: the time on a CPU
// and the time runnable but waiting for one. /proc/PID/schedstat is that of
// the main thread alone.
type schedstat struct{ run, wait uint64 }

func parseSchedstat(b []byte) (schedstat, error) {
	f := host.FieldsOf(b)
	s := schedstat{run: f.Next(1), wait: f.Next(2)}
	if err := f.Err(); err != nil {
		return schedstat{}, fmt.Errorf("parse schedstat: %w", err)
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
		f := host.FieldsOf(bytes.TrimSpace(rest))
		word := f.Cut()
		n, err := strconv.ParseUint(string(word), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("parse status: Uid: want a number, got %q", word)
		}
		return uint32(n), nil
	}
	return 0, errors.New("parse status: no line Uid:")
}

// processIO is what a process had read and written over all of its threads, as
// /proc/PID/io says: bytes at block devices, and at all that can be read and
// written bytes and calls.
type processIO struct{ read, write, passed, calls uint64 }

func parseIO(b []byte) (processIO, error) {
	var n [6]uint64
	for i, key := range []string{"read_bytes:", "write_bytes:", "rchar:", "wchar:", "syscr:", "syscw:"} {
		var err error
		if n[i], err = lineNumber(b, key); err != nil {
			return processIO{}, fmt.Errorf("parse io: %w", err)
		}
	}
	return processIO{read: n[0], write: n[1], passed: n[2] + n[3], calls: n[4] + n[5]}, nil
}

// lineNumber is the number behind the key at the start of a line.
func lineNumber(b []byte, key string) (uint64, error) {
	for line := range bytes.Lines(b) {
		if !bytes.HasPrefix(line, []byte(key)) {
			continue
		}
		word := bytes.TrimSpace(line[len(key):])
		n, ok := host.Number(word)
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
	limitSpace = "Max address space"
)

// parseLimit is a soft limit in /proc/PID/limits; 0 means unlimited.
func parseLimit(b []byte, key string) (uint64, error) {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte(key))
		if !ok {
			continue
		}
		f := host.FieldsOf(rest)
		word := f.Cut()
		if string(word) == "unlimited" {
			return 0, nil
		}
		n, ok := host.Number(word)
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

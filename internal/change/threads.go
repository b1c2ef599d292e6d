package change

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// threads is a setting that each thread of a process has for itself: its CPUs,
// its nice value or its scheduling policy. Its text is what most threads have, with the others behind
// it: "0-1;4711=0". So a thread that was begun since makes no difference.
type threads struct {
	process
	what string // "CPUs", "nice value" …
	read func(tid int) (string, error)
	// write sets one thread.
	write func(tid int, v string) error
}

func (t threads) get() (string, error) {
	each, err := t.each()
	if err != nil {
		return "", err
	}
	votes := map[string]int{}
	for _, v := range each {
		votes[v]++
	}
	most := ""
	for _, v := range slices.Sorted(maps.Keys(votes)) {
		if votes[v] > votes[most] {
			most = v
		}
	}
	text := most
	for _, tid := range slices.Sorted(maps.Keys(each)) {
		if each[tid] != most {
			text += fmt.Sprintf(";%d=%s", tid, each[tid])
		}
	}
	return text, nil
}

func (t threads) each() (map[int]string, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(proc(t.PID, "task"))
	if err != nil {
		return nil, fmt.Errorf("list the threads of process %d: %w", t.PID, gone(err))
	}
	all := map[int]string{}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		v, err := t.read(tid)
		if errors.Is(err, unix.ESRCH) {
			continue // it ended just now
		}
		if err != nil {
			return nil, fmt.Errorf("read the %s of thread %d: %w", t.what, tid, err)
		}
		all[tid] = v
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("process %d: %w", t.PID, errGone)
	}
	return all, nil
}

func (t threads) set(v string) error {
	each, err := t.each()
	if err != nil {
		return err
	}
	most, rest, _ := strings.Cut(v, ";")
	own := map[string]string{}
	for _, kv := range strings.Split(rest, ";") {
		tid, value, _ := strings.Cut(kv, "=")
		own[tid] = value
	}
	for tid := range each {
		value, ok := own[strconv.Itoa(tid)]
		if !ok {
			value = most
		}
		if err := t.write(tid, value); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("set the %s of thread %d of process %d to %s: %w", t.what, tid, t.PID, value, err)
		}
	}
	return nil
}

func affinity(p process) threads {
	return threads{p, "CPUs", func(tid int) (string, error) {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &set); err != nil {
			return "", err
		}
		return cpuList(&set), nil
	}, func(tid int, v string) error {
		set, err := parseCPUs(v)
		if err != nil {
			return err
		}
		return unix.SchedSetaffinity(tid, set)
	}}
}

func nice(p process) threads {
	return threads{p, "nice value", func(tid int) (string, error) {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		return strconv.Itoa(20 - n), err // the system call returns 20 - nice
	}, func(tid int, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return err
		}
		return unix.Setpriority(unix.PRIO_PROCESS, tid, n)
	}}
}

// threadValues are the values in a text as threads.get writes it.
func threadValues(s string) (list []string) {
	for kv := range strings.SplitSeq(s, ";") {
		list = append(list, kv[strings.IndexByte(kv, '=')+1:])
	}
	return list
}

package change

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

func proc(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// process is one process, and no later one of the same number.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

func processOf(pid int) (process, error) {
	st, err := host.StatOf(pid)
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return process{pid, st.Start}, nil
}

func (p process) alive() bool {
	st, err := host.StatOf(p.PID)
	return err == nil && st.Start == p.Start && st.State != 'Z'
}

func (p process) check() error {
	if !p.alive() {
		return fmt.Errorf("process %d: %w", p.PID, errGone)
	}
	return nil
}

// gone says of an error of a system call on a process whether that had ended.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// named finds the processes that a change is about.
func named(h *host.Host, c Change) ([]process, error) {
	if (c.PID == 0) == (c.Process == "") {
		return nil, fmt.Errorf("%s: want a process number or a name, and not both", c.Kind)
	}
	if c.PID != 0 {
		p, err := processOf(c.PID)
		return []process{p}, err
	}
	all, err := h.Services()
	if err != nil {
		return nil, err
	}
	var list []process
	for _, p := range all {
		if p.Comm == c.Process && !p.Kernel {
			if p.NetNS == 0 && len(p.Args) > 0 { // not ours to change on a guess
				return nil, fmt.Errorf("process %d (%s) may be another host's, its namespaces cannot be seen; that needs root: %w", p.PID, p.Comm, fs.ErrPermission)
			}
			list = append(list, process{p.PID, p.Start})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no process %q on %s: %w", c.Process, h.Name, fs.ErrNotExist)
	}
	return list, nil
}

// limits are the numbers of prlimit(2) by prlimit(1)'s names.
var limits = map[string]int{
	"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "memlock": unix.RLIMIT_MEMLOCK, "core": unix.RLIMIT_CORE,
	"stack": unix.RLIMIT_STACK, "as": unix.RLIMIT_AS, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE, "cpu": unix.RLIMIT_CPU,
	"sigpending": unix.RLIMIT_SIGPENDING, "msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE, "rtprio": unix.RLIMIT_RTPRIO,
}

// limit is a resource limit of a process, as "soft:hard".
type limit struct {
	process
	name string
}

func (l limit) get() (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	var r unix.Rlimit
	if err := unix.Prlimit(l.PID, limits[l.name], nil, &r); err != nil {
		return "", fmt.Errorf("read the limit %s of process %d: %w", l.name, l.PID, gone(err))
	}
	return limitText(r.Cur) + ":" + limitText(r.Max), nil
}

func (l limit) set(v string) error {
	if err := l.check(); err != nil {
		return err
	}
	soft, hard, _ := strings.Cut(v, ":")
	var r unix.Rlimit
	var err, err2 error
	r.Cur, err = limitNumber(soft)
	r.Max, err2 = limitNumber(hard)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if err := unix.Prlimit(l.PID, limits[l.name], &r, nil); err != nil {
		return fmt.Errorf("set the limit %s of process %d to %s: %w", l.name, l.PID, v, gone(err))
	}
	return nil
}

func limitText(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

func limitNumber(s string) (uint64, error) {
	if s == "unlimited" {
		return unix.RLIM_INFINITY, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q: want a whole number or unlimited", s)
	}
	return n, nil
}

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

// notRealTime refuses processes that are scheduled in real time: these go before
// all others whatever their nice value is (sched(7)), and on purpose.
func notRealTime(h *host.Host, c Change) error {
	list, err := named(h, c)
	if err != nil {
		return err
	}
	for _, p := range list {
		attr, err := unix.SchedGetAttr(p.PID, 0)
		if err != nil {
			return fmt.Errorf("read the scheduling policy of process %d: %w", p.PID, gone(err))
		}
		switch attr.Policy {
		case unix.SCHED_FIFO, unix.SCHED_RR, unix.SCHED_DEADLINE:
			return fmt.Errorf("process %d is scheduled in real time, before all others; chrt -o -p 0 %d makes it one like others: %w", p.PID, p.PID, ErrNotPossible)
		}
	}
	return nil
}

const maxCPU = 1024 // of a unix.CPUSet

// wantedCPUs reads what a change asks for: a list of CPUs, or all that are online.
func wantedCPUs(to string) (*unix.CPUSet, error) {
	if to != "all" {
		return parseCPUs(to)
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("which CPUs are online: %w", err)
	}
	return parseCPUs(strings.TrimSpace(string(online)))
}

// parseCPUs reads a list of CPUs: "0,2-3".
func parseCPUs(s string) (*unix.CPUSet, error) {
	set := &unix.CPUSet{}
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil || last < first || last >= maxCPU {
			return nil, fmt.Errorf("%q: want a list of CPUs such as 0,2-3", s)
		}
		for n := first; n <= last; n++ {
			set.Set(int(n))
		}
	}
	return set, nil
}

// cpuList writes a set of CPUs as parseCPUs reads it.
func cpuList(set *unix.CPUSet) string {
	var parts []string
	for n := 0; n < maxCPU; n++ {
		if !set.IsSet(n) {
			continue
		}
		last := n
		for last+1 < maxCPU && set.IsSet(last+1) {
			last++
		}
		if last > n {
			parts = append(parts, fmt.Sprintf("%d-%d", n, last))
		} else {
			parts = append(parts, strconv.Itoa(n))
		}
		n = last
	}
	return strings.Join(parts, ",")
}

// few lists some of many, in order.
func few(list []int) string {
	const most = 5
	slices.Sort(list)
	var words []string
	for _, n := range list[:min(most, len(list))] {
		words = append(words, strconv.Itoa(n))
	}
	if len(list) > most {
		words = append(words, fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(words, ", ")
}

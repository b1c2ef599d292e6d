package change

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

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

// eachProcess notes a value for each process that the change is about.
func (s *Step) eachProcess(h *host.Host, at target, next func(old string) (string, error)) error {
	list, err := named(h, s.Change)
	if err != nil {
		return err
	}
	s.Scope = Process
	if s.masters, err = masters(h, list); err != nil {
		return err
	}
	for _, p := range list {
		at.Process = &p
		old, err := at.get()
		if err != nil {
			return err
		}
		to, err := next(old)
		if err == nil {
			err = s.add(at, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func prepareLimit(h *host.Host, c Change, s *Step) error {
	if _, ok := limits[c.Name]; !ok {
		return fmt.Errorf("limit %q: want one of %s", c.Name, strings.Join(slices.Sorted(maps.Keys(limits)), " "))
	}
	want, err := limitNumber(c.To)
	if err != nil {
		return fmt.Errorf("limit %s: %w", c.Name, err)
	}
	return s.eachProcess(h, target{Kind: inLimit, Name: c.Name}, func(old string) (string, error) {
		_, hard, _ := strings.Cut(old, ":")
		most, err := limitNumber(hard)
		return limitText(want) + ":" + limitText(max(want, most)), err
	})
}

func prepareAffinity(h *host.Host, c Change, s *Step) error {
	set, err := wantedCPUs(c.To)
	if err != nil {
		return fmt.Errorf("affinity: %w", err)
	}
	s.New = cpuList(set)
	return s.eachProcess(h, target{Kind: inCPUs}, func(string) (string, error) { return cpuList(set), nil })
}

func prepareNice(h *host.Host, c Change, s *Step) error {
	n := atoi(c.To)
	if fmt.Sprint(n) != c.To || n < -20 || n > 19 {
		return fmt.Errorf("nice: want a whole number from -20 to 19, got %q", c.To)
	}
	if err := notRealTime(h, c); err != nil {
		return err
	}
	s.Notes = append(s.Notes, "where kernel.sched_autogroup_enabled is 1, a nice value counts among the processes of one session alone")
	return s.eachProcess(h, target{Kind: inNice}, func(string) (string, error) { return c.To, nil })
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

func preparePolicy(h *host.Host, c Change, s *Step) error {
	n := atoi(c.To)
	if fmt.Sprint(n) != c.To || n != unix.SCHED_NORMAL && n != unix.SCHED_IDLE {
		return fmt.Errorf("policy: want 5 (the idle class) or 0 (the normal one), got %q", c.To)
	}
	if err := schedulable(h, c); err != nil {
		return err
	}
	s.New = policies[n]
	if n == unix.SCHED_IDLE {
		s.Notes = append(s.Notes,
			"children that these processes start from now on are in the idle class, too; undo finds those that descend from one that still runs",
			"a process of the idle class that holds a lock which the service needs can keep it for long: it runs only when nobody else wants the CPU",
			"the idle class counts only among the processes of one control group with a CPU controller and, where kernel.sched_autogroup_enabled is 1, of one session; cpu.idle of a control group (cgroup v2) puts a whole group there")
	}
	return s.eachProcess(h, target{Kind: inPolicy}, func(old string) (string, error) { return withPolicy(old, s.New) })
}

// withPolicy is a text of threads.get with another policy for all; each thread
// keeps whether its children inherit it.
func withPolicy(old, name string) (string, error) {
	var words []string
	for word := range strings.SplitSeq(old, ";") {
		tid, value, of := strings.Cut(word, "=")
		if !of {
			tid, value = "", word
		}
		is, reset := strings.CutSuffix(value, resetOnForkText)
		if slices.Contains(realTime, is) {
			return "", fmt.Errorf("a thread is scheduled in real time (%s), whose priority would be lost: %w", is, ErrNotPossible)
		}
		to := name
		if reset {
			to += resetOnForkText
		}
		if of && to != words[0] {
			words = append(words, tid+"="+to)
		} else if !of {
			words = append(words, to)
		}
	}
	return strings.Join(words, ";"), nil
}

// schedulable refuses processes that are not to be given another policy: those
// in real time have been given theirs on purpose, and the machine needs the kernel's.
func schedulable(h *host.Host, c Change) error {
	list, err := named(h, c)
	if err != nil {
		return err
	}
	for _, p := range list {
		st, err := host.StatOf(p.PID)
		if err != nil {
			return fmt.Errorf("process %d: %w", p.PID, gone(err))
		}
		if st.Kernel {
			return fmt.Errorf("process %d is a thread of the kernel, whose work others wait for: %w", p.PID, ErrNotPossible)
		}
	}
	return notRealTime(h, c)
}

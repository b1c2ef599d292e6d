package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// policies are the scheduling policies by number, see sched(7).
var policies = map[int]string{
	unix.SCHED_NORMAL: "other", unix.SCHED_FIFO: "fifo", unix.SCHED_RR: "rr", unix.SCHED_BATCH: "batch",
	unix.SCHED_IDLE: "idle", unix.SCHED_DEADLINE: "deadline", unix.SCHED_EXT: "ext",
}

// realTime are those with parameters of their own, which we would lose.
var realTime = []string{"fifo", "rr", "deadline"}

const (
	resetOnFork     = 0x40000000 // SCHED_RESET_ON_FORK
	resetOnForkText = "+reset-on-fork"
)

// policyText writes a policy as policyNumber reads it: "other", "idle+reset-on-fork".
func policyText(n int) string {
	text, ok := policies[n&^resetOnFork]
	if !ok {
		text = fmt.Sprint("policy ", n&^resetOnFork)
	}
	if n&resetOnFork != 0 {
		text += resetOnForkText
	}
	return text
}

func policyNumber(text string) (int, error) {
	name, reset := strings.CutSuffix(text, resetOnForkText)
	for n, known := range policies {
		if known == name && reset {
			return n | resetOnFork, nil
		}
		if known == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q: want a scheduling policy, one of %s", text, strings.Join(slices.Sorted(maps.Values(policies)), " "))
}

// policy is the scheduling policy of each thread of a process.
func policy(p process) threads {
	return threads{p, "scheduling policy", func(tid int) (string, error) {
		n, _, e := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
		if e != 0 {
			return "", e
		}
		return policyText(int(n)), nil
	}, func(tid int, v string) error {
		n, err := policyNumber(v)
		if err != nil {
			return err
		}
		// Not sched_setattr(2): this one leaves the nice value and the slice alone.
		var priority int32
		if _, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(n), uintptr(unsafe.Pointer(&priority))); e != 0 {
			return e
		}
		return nil
	}}
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

package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
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

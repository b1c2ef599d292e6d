package program

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
)

// maxStat bounds a control group's cpu.stat, and a process's list of groups, in bytes.
const maxStat = 16 << 10

// throttledBy is for how long the control groups of a process, of either version, kept them from the CPUs, added up over these.
func throttledBy(pid int) (sum time.Duration) {
	b, err := host.ReadHead("/proc/"+strconv.Itoa(pid)+"/cgroup", maxStat)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) < 3:
		case f[1] == "":
			sum += throttledIn("/sys/fs/cgroup", f[2])
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			sum += throttledIn("/sys/fs/cgroup/cpu", f[2]) // where several controllers share one, a link of this name leads there
		}
	}
	return sum
}

// throttledIn adds up a group and all that it is in.
//
// https://docs.kernel.org/scheduler/sched-bwc.html#statistics
func throttledIn(mount, group string) (sum time.Duration) {
	for at := filepath.Clean("/" + group); at != "/"; at = filepath.Dir(at) {
		b, err := host.ReadHead(filepath.Join(mount, at, "cpu.stat"), maxStat)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
			case name == "throttled_usec":
				sum += time.Duration(n) * time.Microsecond
			case name == "throttled_time":
				sum += time.Duration(n)
			}
		}
	}
	return sum
}

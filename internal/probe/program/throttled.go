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

// throttledBy tells for how long each of a process's control groups, of either version, kept those in it from the CPUs, added up over these.
func throttledBy(pid int, kept map[string]time.Duration) {
	b, err := host.ReadHead("/proc/"+strconv.Itoa(pid)+"/cgroup", maxStat)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) < 3:
		case f[1] == "":
			throttledIn("/sys/fs/cgroup", f[2], kept)
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			throttledIn("/sys/fs/cgroup/cpu", f[2], kept) // where several controllers share one, a link of this name leads there
		}
	}
}

// throttledIn tells it of a group and of all that it is in.
//
// https://docs.kernel.org/scheduler/sched-bwc.html#statistics
func throttledIn(mount, group string, kept map[string]time.Duration) {
	for at := filepath.Clean("/" + group); at != "/"; at = filepath.Dir(at) {
		path := filepath.Join(mount, at)
		if _, known := kept[path]; known {
			return // and so is all that it is in
		}
		b, err := host.ReadHead(filepath.Join(path, "cpu.stat"), maxStat)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
			case name == "throttled_usec":
				kept[path] = time.Duration(n) * time.Microsecond
			case name == "throttled_time":
				kept[path] = time.Duration(n)
			}
		}
	}
}

package change

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/host"
)

// withGroups runs a function where control groups are mounted: "ip netns exec"
// and the like hide them under a /sys of their own; then a process above us has them.
func withGroups(fn func() error) error {
	pid := os.Getpid()
	for above := pid; above > 0; {
		mounts, err := os.ReadFile(proc(above, "mounts"))
		if v1, v2 := cpuMounts(string(mounts)); err == nil && v1+v2 != "" {
			pid = above
			break
		}
		st, err := host.StatOf(above)
		if err != nil {
			break // nobody further up can be seen; what is missing shows where it is used
		}
		above = st.PPID
	}
	if pid == os.Getpid() {
		return fn()
	}
	return host.Apart(func() error {
		if err := ownMounts(pid); err != nil {
			return err
		}
		return fn()
	})
}

// cpuMounts finds where the v1 hierarchy with the cpu controller and the v2
// hierarchy are mounted, in /proc/mounts.
func cpuMounts(mounts string) (v1, v2 string) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		switch {
		case len(f) < 4:
		case f[2] == "cgroup" && slices.Contains(strings.Split(f[3], ","), "cpu") && v1 == "":
			v1 = f[1]
		case f[2] == "cgroup2" && v2 == "":
			v2 = f[1]
		}
	}
	return v1, v2
}

// groupsOf finds a process's control groups in its /proc/PID/cgroup.
func groupsOf(text string) (v1, v2 string) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) < 3:
		case f[0] == "0" && f[1] == "":
			v2 = f[2]
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			v1 = f[2]
		}
	}
	return v1, v2
}

// cpuGroup finds the control group that limits CPU time, v1 or v2: its directory, and its
// path in its hierarchy.
func cpuGroup(c Change) (dir, path string, v1 bool, err error) {
	mounts, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return "", "", false, err
	}
	old, unified := cpuMounts(string(mounts))
	group := map[bool]string{true: c.Cgroup, false: c.Cgroup}
	if c.PID != 0 {
		b, err := os.ReadFile(proc(c.PID, "cgroup"))
		if err != nil {
			return "", "", false, fmt.Errorf("the control group of process %d: %w", c.PID, err)
		}
		group[true], group[false] = groupsOf(string(b))
	}
	switch {
	case old != "" && group[true] != "":
		path = filepath.Join("/", group[true])
		return filepath.Join(old, path), path, true, nil
	case unified != "" && group[false] != "":
		path = filepath.Join("/", group[false])
		return filepath.Join(unified, path), path, false, nil
	}
	return "", "", false, fmt.Errorf("no control group that limits CPU time is mounted: %w", ErrNotPossible)
}

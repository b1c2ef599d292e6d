package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What a container's root has executed by us is held in by the container as well,
// not by what it is allowed alone: by its control groups (which devices it may
// open, how much it may use), by a filter of system calls, and by a security
// module. The first can be entered; with one of the others it is left alone.

// confinement looks whether a service with such rights is in a container, and
// whether we could put what we execute for it there as well.
func (p process) confinement(may rights) (contained bool, err error) {
	theirs, err := namespaceAndRoot(p.PID)
	ours, err2 := namespaceAndRoot(os.Getpid())
	if err := errors.Join(gone(err), err2); err != nil {
		return false, err
	}
	if theirs == ours {
		return false, nil
	}
	if may.Filtered {
		return true, fmt.Errorf("it is in a container with a filter of system calls (seccomp), into which nothing can be put from outside; run plimsoll in that container: %w", ErrNotPossible)
	}
	label, err := securityLabel(proc(p.PID, "attr/current"))
	own, err2 := securityLabel("/proc/self/attr/current")
	if err := errors.Join(gone(err), err2); err != nil {
		return true, err
	}
	if label != own {
		return true, fmt.Errorf("it is in a container under the security label %q, and we are not; run plimsoll in that container: %w", label, ErrNotPossible)
	}
	return true, nil
}

// whereabouts is what tells a process in a container from one that is in none: its
// PID namespace, and which directory is its root.
type whereabouts struct{ pids, root fileID }

func namespaceAndRoot(pid int) (w whereabouts, err error) {
	for name, to := range map[string]*fileID{"ns/pid": &w.pids, "root/.": &w.root} {
		var st unix.Stat_t
		if err := unix.Stat(proc(pid, name), &st); err != nil {
			return w, &fs.PathError{Op: "stat", Path: proc(pid, name), Err: err}
		}
		*to = fileID{st.Dev, st.Ino}
	}
	return w, nil
}

// securityLabel is a process's label of AppArmor's or SELinux's; "" without such a module.
func securityLabel(name string) (string, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(bytes.TrimRight(b, "\x00\n")), err
}

// join puts a process of ours into the service's control groups.
func (p process) join(pid int) error {
	theirs, err := os.ReadFile(proc(p.PID, "cgroup"))
	ours, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(gone(err), err2); err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(theirs)), "\n"), func(line string) bool {
		return slices.Contains(strings.Split(string(ours), "\n"), line)
	})
	if len(lines) == 0 {
		return nil
	}
	return withGroups(func() error {
		mounts, err := os.ReadFile("/proc/thread-self/mounts")
		if err != nil {
			return err
		}
		for _, line := range lines {
			dir, err := groupDir(string(mounts), line)
			if err == nil {
				err = os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0)
			}
			if err != nil {
				return fmt.Errorf("enter the service's control group %s: %w", line, err)
			}
		}
		return nil
	})
}

// groupDir finds the directory of a control group as a line of /proc/PID/cgroup
// names it: "4:memory:/x", or "0::/x" of version 2.
func groupDir(mounts, line string) (string, error) {
	f := strings.SplitN(line, ":", 3)
	if len(f) < 3 || !filepath.IsAbs(f[2]) || slices.Contains(strings.Split(f[2], "/"), "..") {
		return "", fmt.Errorf("%q is none that we could reach: %w", line, ErrNotPossible)
	}
	for mount := range strings.Lines(mounts) {
		m := strings.Fields(mount)
		if len(m) < 4 {
			continue
		}
		options := strings.Split(m[3], ",")
		lacks := func(controller string) bool { return !slices.Contains(options, controller) }
		if f[1] == "" && m[2] == "cgroup2" || f[1] != "" && m[2] == "cgroup" && !slices.ContainsFunc(strings.Split(f[1], ","), lacks) {
			return filepath.Join(m[1], f[2]), nil
		}
	}
	return "", fmt.Errorf("its hierarchy is not mounted here: %w", ErrNotPossible)
}

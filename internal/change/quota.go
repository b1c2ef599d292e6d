package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/lazy"
)

// A quota may be there on purpose, to hold a user down. So it is lifted of a group in which
// nobody but we and root can have a say, and which runs a service of ours.

// maxGrouped is the most processes of a control group that are looked at.
const maxGrouped = 20_000

// sessions is the part of a group's path in which systemd keeps all that a user runs, also
// what root does for him there.
var sessions = lazy.Regexp(`^user-([0-9]+)\.slice$`)

// mayLift says why the quota of a control group is left alone. dir is its directory in the
// hierarchy with the cpu controller, group its path there. The note is for who reads the plan.
func mayLift(dir, group string) (note string, err error) {
	for part := range strings.SplitSeq(group, "/") {
		if m := sessions().FindStringSubmatch(part); m != nil && m[1] != strconv.Itoa(os.Geteuid()) {
			return "", fmt.Errorf("%s is what holds user %s; a person has to say whether he may have more: %w", group, m[1], ErrNotPossible)
		}
	}
	if err := host.TrustedGroup(group); err != nil {
		return "", fmt.Errorf("%s: %w: %w", group, err, ErrNotPossible)
	}
	members, err := grouped(dir)
	if err != nil {
		return "", err
	}
	others := 0 // processes that are not of this run
	for _, pid := range members {
		if err := ofAService(pid, members); err != nil {
			return "", fmt.Errorf("%s: process %d in it: %w", group, pid, err)
		}
		if !kin(pid, os.Getpid()) && !kin(os.Getpid(), pid) {
			others++
		}
	}
	switch {
	case !slices.Contains(members, os.Getpid()):
		return "", nil
	case others == 0:
		return "", fmt.Errorf("%s holds plimsoll itself and no service; run plimsoll from elsewhere: %w", group, ErrNotPossible)
	}
	return "plimsoll itself runs in it, too, and what it starts has more then as well", nil
}

// grouped lists the processes in a control group and beneath it.
func grouped(dir string) (pids []int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil // it was removed just now
		}
		if err != nil || !d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the processes of a control group: %w", err)
		}
		list, err := numbers(strings.Fields(string(b)))
		if pids = append(pids, list...); len(pids) > maxGrouped {
			return fmt.Errorf("%s holds more than %d processes: %w", dir, maxGrouped, ErrNotPossible)
		}
		return err
	})
	return pids, err
}

// ofAService says why a process is none of a service of ours: it, or who in the group has
// begun it, has to run as our user. Workers may be anybody's.
func ofAService(pid int, members []int) error {
	for {
		st, err := host.StatOf(pid)
		if err != nil {
			return notPossible(gone(err))
		}
		if !slices.Contains(members, st.PPID) {
			break
		}
		pid = st.PPID
	}
	r, err := rightsOf(pid)
	if err != nil {
		return notPossible(gone(err))
	}
	if err := ourUser(r); err != nil {
		return err
	}
	ours, err := host.SharesNamespace(pid, "user")
	if err == nil && !ours {
		err = fmt.Errorf("it is in a user namespace of its own: %w", ErrNotPossible)
	}
	return err
}

// kin says whether a process is another one, or has begun it, or has begun who did.
func kin(above, pid int) bool {
	for pid > 1 {
		if pid == above {
			return true
		}
		st, err := host.StatOf(pid)
		if err != nil {
			return false
		}
		pid = st.PPID
	}
	return pid == above
}

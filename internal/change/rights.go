package change

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rights are what a process may do, as /proc/PID/status tells it.
type rights struct {
	// UIDs and GIDs are the real, effective, saved and file system's one.
	UIDs, GIDs [4]int
	Groups     []int
	// Permitted are the capabilities that it can make use of.
	Permitted uint64
	// Filtered: a filter says which system calls it may make (seccomp).
	Filtered bool
}

func rightsOf(pid int) (rights, error) {
	b, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return rights{}, err
	}
	r, err := parseRights(b)
	if err != nil {
		return r, fmt.Errorf("parse /proc/%d/status: %w", pid, err)
	}
	return r, nil
}

func parseRights(b []byte) (r rights, err error) {
	seen := 0
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		f := strings.Fields(value)
		switch key {
		case "Uid":
			err = fourNumbers(f, &r.UIDs)
		case "Gid":
			err = fourNumbers(f, &r.GIDs)
		case "Groups":
			r.Groups, err = numbers(f)
		case "CapPrm":
			r.Permitted, err = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		case "Seccomp":
			r.Filtered = strings.TrimSpace(value) != "0"
			continue // a kernel without it has no such line
		default:
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", key, err)
		}
		seen++
	}
	if seen != 4 {
		return r, errors.New("want the lines Uid, Gid, Groups and CapPrm")
	}
	return r, nil
}

func numbers(fields []string) (list []int, err error) {
	for _, f := range fields {
		n, err := strconv.ParseUint(f, 10, 32)
		if err != nil {
			return nil, err
		}
		list = append(list, int(n))
	}
	return list, nil
}

func fourNumbers(fields []string, to *[4]int) error {
	list, err := numbers(fields)
	if err != nil || len(list) != len(to) {
		return errors.Join(err, fmt.Errorf("want four numbers, got %q", fields))
	}
	copy(to[:], list)
	return nil
}

// one says whether all four are the same, as they are unless a program that is
// set to another user's rights (setuid) was started by somebody else.
func one(ids [4]int) bool {
	return !slices.ContainsFunc(ids[:], func(id int) bool { return id != ids[0] })
}

// take gives the calling thread these rights, as far as it has them, and no way
// to get more by what it executes. The process must be one that does nothing else;
// root says that it may change its groups.
func (r rights) take(root bool) error {
	if root {
		err := errors.Join(unix.Setgroups(r.Groups), unix.Setresgid(r.GIDs[0], r.GIDs[0], r.GIDs[0]), unix.Setresuid(r.UIDs[0], r.UIDs[0], r.UIDs[0]))
		if err != nil {
			return fmt.Errorf("take the service's user and groups: %w", err)
		}
	}
	for c := range uintptr(64) {
		if r.Permitted>>c&1 == 1 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // there are no more
		} else if err != nil {
			return fmt.Errorf("give up capability %d for good: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear the ambient capabilities: %w", err)
	}
	if err := keepCapabilities(r.Permitted); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// keepCapabilities keeps, of the calling thread's capabilities, those of a set.
// None is left for others to inherit.
func keepCapabilities(set uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	for i := range now {
		keep := now[i].Permitted & uint32(set>>(32*i))
		now[i] = unix.CapUserData{Permitted: keep, Effective: keep}
	}
	return unix.Capset(&header, &now[0])
}

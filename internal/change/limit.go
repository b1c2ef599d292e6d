package change

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limits are the numbers of prlimit(2) by prlimit(1)'s names. That of CPU time is left out: where it is
// set back, the kernel kills whoever has used more meanwhile, so that it cannot be undone.
var limits = map[string]int{
	"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "memlock": unix.RLIMIT_MEMLOCK, "core": unix.RLIMIT_CORE,
	"stack": unix.RLIMIT_STACK, "as": unix.RLIMIT_AS, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
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

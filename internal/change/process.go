package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

func proc(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// process is one process, and no later one of the same number.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

func processOf(pid int) (process, error) {
	st, err := host.StatOf(pid)
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return process{pid, st.Start}, nil
}

func (p process) alive() bool {
	st, err := host.StatOf(p.PID)
	return err == nil && st.Start == p.Start && st.State != 'Z'
}

func (p process) check() error {
	if !p.alive() {
		return fmt.Errorf("process %d: %w", p.PID, errGone)
	}
	return nil
}

// gone says of an error of a system call on a process whether that had ended.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// executable is a process's; that of a replaced one counts as the same.
func executable(pid int) (string, error) {
	exe, err := os.Readlink(proc(pid, "exe"))
	return strings.TrimSuffix(exe, " (deleted)"), gone(err)
}

func rootOf(pid int) string {
	var st unix.Stat_t
	if unix.Stat(proc(pid, "root/."), &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Dev, ":", st.Ino)
}

// tick is one of those in which the start of processes is told: USER_HZ.
const tick = 10 * time.Millisecond

// ticks is now, in clock ticks after boot.
func ticks() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return uint64(time.Duration(t.Nano()) / tick)
}

func title(pid int) string {
	b, _ := os.ReadFile(proc(pid, "cmdline"))
	return strings.TrimRight(string(b), "\x00 ")
}

// hidden says that a process is there, and that we may not look at it.
func (p process) hidden() bool {
	_, err := os.Stat(proc(p.PID, "stat"))
	return err != nil && errors.Is(unix.Kill(p.PID, 0), unix.EPERM)
}

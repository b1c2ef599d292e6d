package probe

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// SelfCost is what this process has used so far: user and system CPU seconds
// of all its threads, and its resident memory in bytes.
func SelfCost() (cpuSeconds float64, rss int64, err error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, 0, fmt.Errorf("read our own CPU time: %w", err)
	}
	cpu := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, fmt.Errorf("read our own memory: %w", err)
	}
	f := strings.Fields(string(statm))
	if len(f) < 2 {
		return 0, 0, fmt.Errorf("read our own memory: /proc/self/statm: want 7 fields, got %q: %w", statm, fs.ErrInvalid)
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read our own memory: /proc/self/statm: %w", err)
	}
	return cpu.Seconds(), pages * int64(os.Getpagesize()), nil
}

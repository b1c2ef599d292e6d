// Package orphans has a process be the one to whom everything beneath it belongs whose
// own parent is gone, so that it can end it all.
package orphans

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of whatever beneath it loses its own, from now on.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the one to whom orphans belong: %w", err)
	}
	return nil
}

// End kills this process's children, and theirs, which become its own, until whoever
// waits for them says that there is none.
func End(none <-chan struct{}) {
	for {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-none:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// children lists this process's. Each thread has those that it forked.
func children() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is sound
	for _, path := range lists {
		text, _ := os.ReadFile(path) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

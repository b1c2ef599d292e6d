package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lowerOthers has all threads of this process but the caller's run only where nobody else wants to, and with them those that
// they start: whoever wakes up takes their place at once, as the least priority alone would not have it.
func lowerOthers() error {
	lowered := map[string]bool{strconv.Itoa(unix.Gettid()): true}
	for more := true; more; { // one that is started meanwhile may be of one that is not lowered yet
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		more = false
		for _, thread := range list {
			if lowered[thread.Name()] {
				continue
			}
			lowered[thread.Name()], more = true, true
			tid, err := strconv.Atoi(thread.Name())
			if err == nil {
				err = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("put thread %s of our own into the idle class: %w", thread.Name(), err)
			}
		}
	}
	return nil
}

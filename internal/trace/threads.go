package trace

import (
	"fmt"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// initialPIDs is the inode of the kernel's first PID namespace (PROC_PID_INIT_INO).
const initialPIDs = 0xEFFFFFFC

// MayFindThreads returns nil if the numbers that the kernel's side tells of threads are those in our /proc.
func MayFindThreads() error {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return fmt.Errorf("look at our PID namespace: %w", err)
	}
	if st.Ino != initialPIDs {
		return host.Absent("in a PID namespace of our own threads have other numbers than the kernel's side tells; watch from the machine")
	}
	return nil
}

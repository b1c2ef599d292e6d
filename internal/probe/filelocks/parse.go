package filelocks

import (
	"bytes"
	"fmt"
	"strconv"
)

// wait is a process that waits for a lock, and who holds that; 0 or less: it is not told.
type wait struct {
	waiter, holder int
	file           string // DEVICE:INODE, as the kernel writes it
}

// parse reads /proc/locks: a line for each lock that is held, and beneath it one with an arrow for each that waits
// for it, or for who waits for it:
//
//	1: FLOCK  ADVISORY  WRITE 23553 fe:00:862525 0 EOF
//	1: -> FLOCK  ADVISORY  WRITE 31001 fe:00:862525 0 EOF
func parse(b []byte) ([]wait, error) {
	var waits []wait
	holder := 0
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		arrow := len(f) > 1 && string(f[1]) == "->"
		if arrow {
			f = f[1:]
		}
		if len(f) < 6 {
			return nil, fmt.Errorf("parse /proc/locks: want NUMBER: KIND HOW ACCESS PID DEVICE:INODE, got %.80q", line)
		}
		pid, err := strconv.Atoi(string(f[4]))
		if err != nil {
			return nil, fmt.Errorf("parse /proc/locks: want a process number, got %.80q", f[4])
		}
		if !arrow {
			holder = pid
			continue
		}
		file := string(f[5])
		if _, _, err := place(file); err != nil {
			continue // <none>: the file is gone
		}
		if len(waits) < maxWaiters && pid > 0 {
			waits = append(waits, wait{waiter: pid, holder: holder, file: file})
		}
	}
	return waits, nil
}

// place takes fe:00:862525 apart: the device as mountinfo writes it (254:0), and the inode.
func place(file string) (device string, inode uint64, err error) {
	var major, minor uint32
	if n, err := fmt.Sscanf(file, "%x:%x:%d", &major, &minor, &inode); n != 3 {
		return "", 0, fmt.Errorf("parse /proc/locks: want DEVICE:INODE like fe:00:862525, got %.80q: %w", file, err)
	}
	return fmt.Sprintf("%d:%d", major, minor), inode, nil
}

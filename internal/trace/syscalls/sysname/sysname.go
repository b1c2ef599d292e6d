// Package sysname names system calls and their errors, by the numbers that this
// machine's kernel gives them.
package sysname

import (
	"strconv"

	"golang.org/x/sys/unix"
)

//go:generate go run generate.go

// Call returns the name of a 64-bit program's system call ("openat"); a number
// that is newer than our table is "syscall 999".
func Call(nr uint32) string {
	if nr < uint32(len(names)) && names[nr] != "" {
		return names[nr]
	}
	return "syscall " + strconv.FormatUint(uint64(nr), 10)
}

// The kernel's own words. ERESTART… is a call that a signal interrupted; no program
// gets to see it: the call is begun again, or fails with EINTR.
var kernels = map[uint32]string{
	512: "ERESTARTSYS", 513: "ERESTARTNOINTR", 514: "ERESTARTNOHAND", 516: "ERESTART_RESTARTBLOCK", 524: "ENOTSUPP",
}

// Error returns the name of an errno ("EAGAIN"); one without a name is "errno 999".
func Error(errno uint32) string {
	if name := unix.ErrnoName(unix.Errno(errno)); name != "" {
		return name
	}
	if name := kernels[errno]; name != "" {
		return name
	}
	return "errno " + strconv.FormatUint(uint64(errno), 10)
}

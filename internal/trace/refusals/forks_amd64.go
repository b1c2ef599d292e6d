package refusals

import "golang.org/x/sys/unix"

// forks are the calls that make a process besides clone.
var forks = []uint32{unix.SYS_FORK, unix.SYS_VFORK}

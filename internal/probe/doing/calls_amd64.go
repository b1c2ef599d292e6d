package doing

import "golang.org/x/sys/unix"

// oldCalls are those that newer architectures do not have.
var oldCalls = map[uint64]call{
	unix.SYS_POLL: {"poll", "poll"}, unix.SYS_SELECT: {"poll", "select"}, unix.SYS_EPOLL_WAIT: {"poll", "epoll_wait"},
	unix.SYS_VFORK: {"child", "vfork"},
	unix.SYS_OPEN:  {"other", "open"}, unix.SYS_STAT: {"other", "stat"}, unix.SYS_LSTAT: {"other", "stat"},
	unix.SYS_UNLINK: {"other", "unlink"}, unix.SYS_RENAME: {"other", "rename"},
}

package doing

import "golang.org/x/sys/unix"

// oldCalls are those that newer architectures do not have.
var oldCalls = map[uint64]string{unix.SYS_POLL: "poll", unix.SYS_SELECT: "poll", unix.SYS_EPOLL_WAIT: "poll"}

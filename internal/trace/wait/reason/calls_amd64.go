package reason

import "golang.org/x/sys/unix"

// nativeCalls are those that younger architectures do without.
var nativeCalls = map[uint8][]int{
	callPoll:   {unix.SYS_POLL},
	callSelect: {unix.SYS_SELECT},
	callEvents: {unix.SYS_EPOLL_WAIT},
	callChild:  {unix.SYS_VFORK},
}

package reason

import "golang.org/x/sys/unix"

// nativeCalls are those that younger architectures do without.
var nativeCalls = map[uint8][]int{
	callPoll:   {unix.SYS_POLL},
	callSelect: {unix.SYS_SELECT},
	callEvents: {unix.SYS_EPOLL_WAIT},
	callChild:  {unix.SYS_VFORK},
	callPath: {
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME,
		unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN,
	},
	callFile: {unix.SYS_GETDENTS},
	callStat: {unix.SYS_STAT, unix.SYS_LSTAT},
}

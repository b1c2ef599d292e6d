package deepcpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
)

// allowMemlock makes the library's raising of RLIMIT_MEMLOCK succeed. It raises
// that limit for each program it loads and gives up if it may not, though Linux
// since 5.11 does not count BPF memory by it. Where that is so and the limit
// cannot be raised, a filter of this process's own system calls answers those
// calls, and the limit stays as it is.
func allowMemlock() error {
	if raiseMemlock() == nil {
		return nil
	}
	kernel, err := trace.RunningKernel()
	if err != nil {
		return err
	}
	if kernel.Less(trace.NoMemlock) {
		return fmt.Errorf("Linux %s counts BPF memory as locked memory, and its limit cannot be raised: CAP_SYS_RESOURCE is missing", kernel)
	}
	return answerMemlock()
}

// raiseMemlock tries whether the limit can be raised, and puts it back.
func raiseMemlock() error {
	var old unix.Rlimit
	endless := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &endless, &old); err != nil {
		return err
	}
	return unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &old, nil)
}

// answerMemlock installs a filter in all threads of this process, for good:
// prlimit64 that sets RLIMIT_MEMLOCK does nothing and succeeds.
func answerMemlock() error {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("the limit of locked memory cannot be raised (CAP_SYS_RESOURCE is missing), and on %s it cannot be done without", runtime.GOARCH)
	}
	filter := memlockFilter(arch)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // both calls are the thread's; the second spreads them to all
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up the right to gain privileges, as a filter of system calls needs: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("install a filter of system calls for the limit of locked memory: %w", errno)
	}
	return nil
}

// Where struct seccomp_data holds what the filter looks at.
const (
	atNumber   = 0
	atArch     = 4
	atResource = 24 // the second argument
	atNew      = 32 // the third: where the new limit is; 0 if it is only read
)

func memlockFilter(arch uint32) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	return []unix.SockFilter{
		load(atArch), equal(arch, 0, 8),
		load(atNumber), equal(unix.SYS_PRLIMIT64, 0, 6),
		load(atResource), equal(unix.RLIMIT_MEMLOCK, 0, 4),
		load(atNew), equal(0, 0, 3),
		load(atNew + 4), equal(0, 0, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(unix.SECCOMP_RET_ERRNO), // with errno 0: success
	}
}

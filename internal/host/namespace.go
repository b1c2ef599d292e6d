package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inode is the number of the file that path leads to; of /proc/PID/ns/* that is
// the namespace's. An error is an *fs.PathError.
func Inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// SharesNamespace says whether a process is in our namespace of a kind, as /proc
// calls it ("mnt", "user", "pid").
func SharesNamespace(pid int, kind string) (bool, error) {
	theirs, err := Inode("/proc/" + strconv.Itoa(pid) + "/ns/" + kind)
	ours, err2 := Inode("/proc/self/ns/" + kind)
	return theirs == ours, errors.Join(err, err2)
}

// InFirstPIDs says whether we are in the PID namespace in which the machine was
// started: only there are the kernel's numbers of processes ours.
func InFirstPIDs() (bool, error) {
	const first = 4026531836 // the kernel's PROC_PID_INIT_INO
	ino, err := Inode("/proc/self/ns/pid")
	return ino == first, err
}

// apart runs fn on a new goroutine, locked for good to an OS thread that ends with
// it. The main thread is never used: /proc/self, by which others see us, is the
// main thread.
func apart(fn func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn()
			return
		}
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			fn()
		}()
		<-taken
		runtime.UnlockOSThread()
	}()
}

// Apart runs fn on an OS thread of its own, where it may enter what it likes, and
// throws that thread away afterwards. fn must do its work on its own goroutine.
func Apart(fn func() error) error {
	done := make(chan error, 1)
	apart(func() { done <- fn() })
	return <-done
}

// OnMachine is Apart in the network namespace of the machine itself. Where that one
// cannot be seen it stays in ours, which may be it.
func OnMachine(fn func() error) error {
	path, ok := machineNetNS()
	if !ok {
		return Apart(fn)
	}
	ns, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the machine's own network namespace: %w", err)
	}
	defer ns.Close()
	return Apart(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the machine's own network namespace; that needs root: %w", err)
		}
		return fn()
	})
}

// machineNetNS leads to the network namespace of the machine itself: that of its
// first process or, where a sandbox hides that one even from root, of its
// kernel threads. ok is false where neither can be seen.
func machineNetNS() (path string, ok bool) {
	const first, kernel = "/proc/1/ns/net", "/proc/2/ns/net"
	if _, err := Inode(first); err == nil {
		return first, true
	}
	comm, err := os.ReadFile("/proc/2/comm")
	if err != nil || string(comm) != "kthreadd\n" {
		return "", false
	}
	_, err = Inode(kernel)
	return kernel, err == nil
}

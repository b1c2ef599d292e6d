// Package heldtest runs a package's tests so that what they start ends with them, however
// they end: killed, out of time or in a panic, too.
package heldtest

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/orphans"
)

// holders are the processes above the tests. Any one of the three may be killed, and
// the others see to it that nothing is left: the first holder where it is the second one.
const holders = 2

// variable tells a process which of them it is, and what the tests are called.
const variable = "PLIMSOLL_TESTS_HELD"

// Main is for TestMain: it runs the tests, held, and ends the process.
func Main(m *testing.M) {
	Tests()
	os.Exit(m.Run())
}

// Tests returns in the process that is to run the tests. In the one that go test
// started, and in another beneath it, it waits until that has ended, and ends what it
// left behind: orphans, and network namespaces that have its number in their name.
func Tests() {
	number, name, _ := strings.Cut(os.Getenv(variable), " ")
	above, _ := strconv.Atoi(number) // 0 where nobody said anything
	if above == 0 {
		name = os.Args[0]
	}
	if above >= holders {
		if err := os.Unsetenv(variable); err != nil { // what the tests start is no holder
			panic(err)
		}
		return
	}
	code, err := hold(above+1, name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hold tests:", err)
	}
	os.Exit(code)
}

// hold runs this program with so many holders above it, and returns its exit code.
func hold(above int, name string) (int, error) {
	if err := orphans.Adopt(); err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	runtime.LockOSThread() // the child ends with its parent, and that is this thread
	argv := append([]string{"hold-tests"}, os.Args[1:]...)
	if above == holders {
		argv[0] = name
	}
	if err := os.Setenv(variable, fmt.Sprintf("%d %s", above, name)); err != nil {
		return 1, err
	}
	death := syscall.SIGTERM // a holder has to see to what it holds
	if above == holders {
		death = syscall.SIGKILL
	}
	pid, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: death}})
	if err != nil {
		return 1, err
	}
	go pass(signals, pid, death)
	ended, none := make(chan syscall.WaitStatus, 1), make(chan struct{})
	go reap(pid, ended, none)
	status := <-ended
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM) // the number may soon be another's; and there is still something to do
	orphans.End(none)
	if above == holders {
		removeNetworks(pid)
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), fmt.Errorf("signal: %v", status.Signal())
	}
	return status.ExitStatus(), nil
}

// pass tells the child what we are told; that we are to end, as when the holder above
// us is gone, by the signal that it would get when we are gone.
func pass(signals <-chan os.Signal, pid int, death syscall.Signal) {
	for s := range signals {
		if s == syscall.SIGTERM {
			s = death
		}
		_ = syscall.Kill(pid, s.(syscall.Signal)) // it may just have ended
	}
}

// reap waits for all children, ours and those that become ours.
func reap(pid int, ended chan<- syscall.WaitStatus, none chan<- struct{}) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			close(none)
			return
		case got == pid:
			ended <- status
		}
	}
}

// removeNetworks removes the network namespaces that tests of that process named and
// left over: plimsoll-…-PID, or plimsoll-…-PID-… where there are several.
func removeNetworks(pid int) {
	for _, tail := range []string{"", "-*"} {
		left, _ := filepath.Glob(fmt.Sprintf("/run/netns/plimsoll-*[a-z]-%d%s", pid, tail)) // the pattern is sound
		for _, path := range left {
			_ = unix.Unmount(path, unix.MNT_DETACH)
			_ = os.Remove(path)
		}
	}
}

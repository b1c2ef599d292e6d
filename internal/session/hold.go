package session

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/orphans"
)

// lifeline is the descriptor on which a holder hears that the one it works for is
// gone, and tells the command's pid, or why it could not be started.
const lifeline = 3

// termGrace is how long a command that nobody watches any more may take to end by
// itself, before it and all that it started are killed.
const termGrace = 2 * time.Second

// Hold starts a program and returns its exit code (128 + signal when a signal ended
// it) once it has ended. When the process that watches is gone, however it ended, so
// is the program: it is asked to end (SIGTERM), and then it and whatever it started
// are killed, also what made itself independent of it. It is the main function of
// a process of its own, between the one that watches and the program: all three
// are in one process group, so the terminal is the program's as it would be
// without us.
func Hold(path string, argv, env []string) int {
	unix.CloseOnExec(lifeline)
	life := os.NewFile(lifeline, "lifeline")
	if err := orphans.Adopt(); err != nil {
		fmt.Fprintln(life, err)
		return 1
	}
	h := &holder{ended: make(chan int, 1), none: make(chan struct{})}
	h.passSignals()
	// Without us the program would have nobody; and that "us" is this thread.
	runtime.LockOSThread()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		fmt.Fprintln(life, err)
		return 1
	}
	h.pid.Store(int64(pid))
	fmt.Fprintln(life, pid)
	go h.reap()
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, life) // nothing is said there: it ends
		close(gone)
	}()
	select {
	case code := <-h.ended:
		return code
	case <-gone:
		return h.endAll()
	}
}

type holder struct {
	pid   atomic.Int64 // the program's; 0 before it was started and after it has ended
	ended chan int
	none  chan struct{} // closed when there is no child left
}

// passSignals hands on what is said to the process alone. What the terminal says it
// says to the whole group, so that the program has heard it.
func (h *holder) passSignals() {
	heard := []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // which the program inherits
		heard = append(heard, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, heard...)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				h.ask()
			}
		}
	}()
}

// ask asks the program to end.
func (h *holder) ask() {
	if pid := int(h.pid.Load()); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may just have ended
	}
}

// reap waits for the program, and for the orphans of what it started.
func (h *holder) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			close(h.none)
			return
		}
		if pid != int(h.pid.Load()) {
			continue
		}
		h.pid.Store(0)
		if status.Signaled() {
			h.ended <- 128 + int(status.Signal())
		} else {
			h.ended <- status.ExitStatus()
		}
	}
}

// endAll ends the program and everything beneath it.
func (h *holder) endAll() int {
	h.ask()
	code := 128 + int(syscall.SIGKILL)
	select {
	case code = <-h.ended:
	case <-time.After(termGrace):
	}
	orphans.End(h.none)
	return code
}

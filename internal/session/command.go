package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killAfter is when a command that was asked to end, and did not, is asked by its
// holder, who does not take no for an answer.
const killAfter = 3 * time.Second

// command is the user's, while it runs: the child of a holder, which ends it when
// we are gone.
type command struct {
	holder *exec.Cmd
	pid    int
	life   *os.File      // that it closes is how the holder learns that we are gone
	ended  chan struct{} // closed when exit is valid
	exit   error
}

// startCommand starts it at path. Cancelling ctx asks it to end (SIGTERM).
func startCommand(ctx context.Context, holder []string, path string, argv []string, std WatchIO) (*command, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	c := &command{life: os.NewFile(uintptr(pair[0]), "lifeline"), ended: make(chan struct{})}
	theirs := os.NewFile(uintptr(pair[1]), "lifeline")
	c.holder = exec.CommandContext(ctx, holder[0], append(append(holder[1:len(holder):len(holder)], path), argv...)...)
	c.holder.Cancel = func() error {
		time.AfterFunc(killAfter, func() { c.life.Close() })
		return c.holder.Process.Signal(syscall.SIGTERM)
	}
	c.holder.WaitDelay = killAfter + 2*termGrace // its end, should even the holder hang
	c.holder.Stdin, c.holder.Stdout, c.holder.Stderr = std.Stdin, std.Stdout, std.Stderr
	c.holder.ExtraFiles = []*os.File{theirs}
	err = c.holder.Start()
	theirs.Close()
	if err != nil {
		c.life.Close()
		return nil, err
	}
	c.pid, err = c.told()
	go func() {
		c.exit = c.holder.Wait()
		c.life.Close()
		close(c.ended)
	}()
	if err != nil && ctx.Err() == nil { // else it was asked to end before it could say anything
		<-c.ended
		return nil, err
	}
	return c, nil
}

// told is what the holder says first: the command's pid, or why there is none.
func (c *command) told() (pid int, err error) {
	line, err := bufio.NewReader(c.life).ReadString('\n')
	line = strings.TrimSpace(line)
	if err != nil {
		return 0, fmt.Errorf("its holder ended: %w", err)
	}
	if pid, err = strconv.Atoi(line); err != nil {
		return 0, errors.New(line)
	}
	return pid, nil
}

// code is the exit code of a command that has ended (128 + signal if one ended it),
// or the error of waiting for it.
func (c *command) code() (int, error) {
	var exit *exec.ExitError
	if c.exit != nil && !errors.As(c.exit, &exit) && !errors.Is(c.exit, context.Canceled) {
		return 0, c.exit
	}
	if status, ok := c.holder.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return c.holder.ProcessState.ExitCode(), nil
}

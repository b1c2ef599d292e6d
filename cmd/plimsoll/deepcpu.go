package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/all"
	"plimsoll/internal/trace/deepcpu"
)

// allTracers lists every tracer, that among them which needs a process of its own.
func allTracers(w *world) []trace.Tracer {
	return append(all.All(), deepcpu.Tracer(spawnStackReader(w)))
}

const stackReaderName = "stack-reader"

// stackReader is the process that reads whole stacks: apart from the one that
// watches, for its memory and its CPU time. It ends when its input is closed.
func stackReader(w *world) *cobra.Command {
	return &cobra.Command{Use: stackReaderName, Short: "read whole stacks (Plimsoll's own child)", Hidden: true, Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			// So that it has a name of its own in ps, top and our own process table.
			_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-stacks"), 0)
			return deepcpu.Serve(w.stdin, w.commandOut)
		}}
}

// spawnStackReader starts that process: deepcpu.Tracer(spawnStackReader(w)).
func spawnStackReader(w *world) deepcpu.Spawn {
	return func() (io.ReadWriteCloser, error) {
		cmd := exec.Command(w.executable, stackReaderName)
		// A ^C at the terminal is for us: the stacks are asked for after it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("start the reader of stacks: %w", err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, fmt.Errorf("start the reader of stacks: %w", err)
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start the reader of stacks: %w", err)
		}
		return &child{Reader: out, WriteCloser: in, cmd: cmd}, nil
	}
}

// child is a process at the other end of two pipes.
type child struct {
	io.Reader
	io.WriteCloser
	cmd  *exec.Cmd
	once sync.Once
	err  error
}

// Close closes its input, which it is to end at, and kills it if it does not.
func (c *child) Close() error {
	c.once.Do(func() {
		c.err = c.WriteCloser.Close()
		kill := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
		defer kill.Stop()
		if err := c.cmd.Wait(); c.err == nil {
			c.err = err
		}
	})
	return c.err
}

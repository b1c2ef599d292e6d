package main

import (
	"bytes"
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
	return func() (io.ReadWriteCloser, error) { return spawn(w, stackReaderName) }
}

// spawn starts a process of ours, a hidden command of this binary, which is to end when
// its input does: that is what closing it closes.
func spawn(w *world, command string, words ...string) (io.ReadWriteCloser, error) {
	c := &child{cmd: exec.Command(w.executable, append([]string{command}, words...)...)}
	// A ^C at the terminal is for us: what it has to say is asked for after it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stderr = &c.said
	c.cmd.WaitDelay = time.Second
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command, err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command, err)
	}
	c.Reader, c.WriteCloser = out, in
	return c, nil
}

// child is a process at the other end of two pipes.
type child struct {
	io.Reader
	io.WriteCloser
	cmd  *exec.Cmd
	said firstWords // on its standard error
	once sync.Once
	err  error
}

// Close closes its input, which it is to end at, and kills it if it does not.
func (c *child) Close() error {
	c.once.Do(func() {
		c.err = c.WriteCloser.Close()
		kill := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
		defer kill.Stop()
		err := c.cmd.Wait()
		if said := bytes.TrimSpace(c.said.Bytes()); err != nil && len(said) > 0 {
			err = fmt.Errorf("%w: %s", err, said)
		}
		if c.err == nil {
			c.err = err
		}
	})
	return c.err
}

// firstWords keeps the beginning of what is written.
type firstWords struct{ bytes.Buffer }

const maxFirstWords = 1024

func (f *firstWords) Write(b []byte) (int, error) {
	f.Buffer.Write(b[:min(len(b), maxFirstWords-f.Len())])
	return len(b), nil
}

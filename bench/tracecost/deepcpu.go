package main

import (
	"errors"
	"io"
	"os"
	"os/exec"

	"plimsoll/internal/trace/deepcpu"
)

// stackReader is what this program is told to be in the process that reads whole stacks.
const stackReader = "stack-reader"

// child is that process, at the other end of two pipes; it ends with its input.
type child struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

func spawn() (io.ReadWriteCloser, error) {
	cmd := exec.Command("/proc/self/exe", stackReader)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		return nil, err
	}
	return &child{out, in, cmd}, nil
}

func (c *child) Close() error { return errors.Join(c.WriteCloser.Close(), c.cmd.Wait()) }

func serveStacks() error { return deepcpu.Serve(os.Stdin, os.Stdout) }

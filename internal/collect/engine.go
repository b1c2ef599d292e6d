package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// engine is the load engine's process.
type engine struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	// records is closed after the last one; err then says how it ended.
	records chan load.Record
	err     error
}

// startEngine starts the process and hands it the plan. Cancelling ctx asks it
// (SIGINT) to send nothing more, wait for what is in flight and make its final record.
func startEngine(ctx context.Context, argv []string, plan model.LoadPlan) (*engine, error) {
	e := &engine{records: make(chan load.Record, 16)}
	e.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	e.cmd.Cancel = func() error { return e.cmd.Process.Signal(syscall.SIGINT) }
	e.cmd.WaitDelay = time.Duration(plan.TimeoutMS)*time.Millisecond + 5*time.Second
	e.cmd.Stderr = &e.stderr
	// A ^C at the terminal must reach the engine through us alone, once.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if e.stdin, err = e.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the load engine: %w", err)
	}
	stdout, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the load engine: %w", err)
	}
	if err := e.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the load engine: %w", err)
	}
	if err := json.NewEncoder(e.stdin).Encode(plan); err != nil {
		e.cmd.Process.Kill()
		if died := e.wait(); died != nil {
			err = died // it says why it took no plan
		}
		return nil, fmt.Errorf("hand the plan to the load engine: %w", err)
	}
	go e.read(stdout)
	return e, nil
}

// read passes the records on until the process ends. Its stdin stays open as
// long as we live: that it closes is how the engine learns that we are gone.
func (e *engine) read(stdout io.Reader) {
	defer close(e.records)
	bad := load.ReadRecords(stdout, func(r load.Record) { e.records <- r })
	cut := errors.Is(bad, io.ErrUnexpectedEOF) // it died, and says why itself
	if bad != nil && !cut {
		e.cmd.Process.Kill()
	}
	e.err = e.wait()
	if bad != nil && (e.err == nil || !cut) {
		e.err = fmt.Errorf("read what the load engine says: %w", bad)
	}
}

// wait waits for the process and says why it gave up, nil when it did not. To
// stop because we asked it to is no giving up.
func (e *engine) wait() error {
	err := e.cmd.Wait()
	e.stdin.Close()
	said := bytes.TrimSpace(e.stderr.Bytes())
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return nil
	case len(said) > 0:
		return EngineError{Code: e.cmd.ProcessState.ExitCode(), Said: string(said)}
	}
	return fmt.Errorf("the load engine's process died; dmesg tells whether memory ran out: %w", err)
}

// EngineError is what the load engine's process said when it gave up.
type EngineError struct {
	// Code is its exit code, one of those that the command line documents.
	Code int
	// Said is its last words, a sentence for the user.
	Said string
}

func (e EngineError) Error() string { return e.Said }

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
	"plimsoll/internal/load/workers"
	"plimsoll/internal/model"
)

// Engine plays a load.
type Engine interface {
	// Records are closed after the last one; Err then says why it gave up, nil when it did not.
	Records() <-chan load.Record
	Err() error
	// Processes are those that play it.
	Processes() []workers.Process
	// Kill ends it, if it has not ended.
	Kill()
}

// Engines makes an engine ready to play a plan, and returns what begins it. Cancelling begin's ctx asks it to send nothing more
// and to end; what is ready and never begins ends with ctx.
type Engines func(ctx context.Context, plan model.LoadPlan) (begin func(ctx context.Context) (Engine, error), err error)

// OneProcess is an engine of one process. argv is its command line: it reads the plan from stdin, prints load.Records as JSON
// lines, and ends when its stdin is closed.
func OneProcess(argv []string) Engines {
	return func(_ context.Context, plan model.LoadPlan) (func(context.Context) (Engine, error), error) {
		return func(ctx context.Context) (Engine, error) {
			e, err := startEngine(ctx, argv, plan)
			if err != nil {
				return nil, err // and no Engine that holds a nil
			}
			return e, nil
		}, nil
	}
}

// Fleet is an engine of several workers.
func Fleet(f *workers.Fleet) Engines {
	return func(ctx context.Context, plan model.LoadPlan) (func(context.Context) (Engine, error), error) {
		return func(ctx context.Context) (Engine, error) {
			p, err := f.Start(ctx, plan)
			if err != nil {
				return nil, err
			}
			return p, nil
		}, f.Ready(ctx, plan)
	}
}

// engine is the load engine's process.
type engine struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	said   chan load.Record // what it said and nobody has taken yet
	// records is closed after the last one; err then says how it ended.
	records chan load.Record
	err     error
}

// startEngine starts the process and hands it the plan. Cancelling ctx asks it
// (SIGINT) to send nothing more, wait for what is in flight and make its final record.
func startEngine(ctx context.Context, argv []string, plan model.LoadPlan) (*engine, error) {
	e := &engine{said: make(chan load.Record, 16), records: make(chan load.Record)}
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
	go e.hand()
	return e, nil
}

// Records, Err, Processes and Kill are Engine's.
func (e *engine) Records() <-chan load.Record { return e.records }

func (e *engine) Err() error { return e.err }

func (e *engine) Processes() []workers.Process { return []workers.Process{{PID: e.cmd.Process.Pid}} }

func (e *engine) Kill() {
	_ = e.cmd.Process.Kill() // it may have ended
	for range e.records {    // until it is gone
	}
}

// hand hands the records over. Whoever has taken the last one has seen the end of what is observed: until then the process stays, or what
// it used at last would be read of nobody. That its stdin closes is how it learns that it may end, or that we are gone.
func (e *engine) hand() {
	defer close(e.records)
	for r := range e.said {
		e.records <- r
		if r.Final {
			e.stdin.Close()
		}
	}
}

// read reads the records until the process ends.
func (e *engine) read(stdout io.Reader) {
	defer close(e.said)
	bad := load.ReadRecords(stdout, func(r load.Record) { e.said <- r })
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
		return load.EngineError{Code: e.cmd.ProcessState.ExitCode(), Said: string(said)}
	}
	return fmt.Errorf("the load engine's process died; dmesg tells whether memory ran out: %w", err)
}

package session

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/session/printed"
)

// WatchIO is what the watched command is connected to.
type WatchIO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// baselineBeforeCommand is how long watch looks at the host before it starts
// the user's command, so that what the load moved can be told from what was so before.
const baselineBeforeCommand = time.Second

// Watch observes without a load of ours: for d, or while command runs (d then
// is the longest time; 0 means no limit). It fills opt.Dir and returns the
// command's exit code (128 + signal when a signal ended it), 0 without one.
// Cancelling ctx ends watching early and asks the command to end (SIGTERM); the
// run is whole all the same. If we are killed, the command and what it started are,
// too. Before the command was started it is an error that
// matches context.Canceled.
func Watch(ctx context.Context, opt Options, d time.Duration, command []string, std WatchIO) (code int, err error) {
	plan := model.Plan{Mode: "watch", CommandLine: opt.CommandLine, Command: command, Program: opt.Program, Interval: opt.Interval.Milliseconds()}
	path := ""
	if len(command) > 0 {
		if path, err = exec.LookPath(command[0]); err != nil {
			return 0, fmt.Errorf("start %s: no such program in PATH: %w", command[0], err)
		}
	}
	s, err := open(ctx, opt, plan)
	if err != nil {
		return 0, err
	}
	// What was seen until ^C is worth a verdict: closing must not be cancelled.
	rest := context.WithoutCancel(ctx)
	defer func() {
		if e := s.close(rest); err == nil {
			err = e
		}
	}()
	if len(command) == 0 {
		if err := s.window(rest, model.Hold); err != nil {
			return 0, err
		}
		return 0, s.sample(ctx, d, nil, Progress{Window: model.Hold, Planned: d})
	}
	return s.watchCommand(ctx, rest, d, path, command, std)
}

func (s *session) watchCommand(ctx, rest context.Context, d time.Duration, path string, command []string, std WatchIO) (int, error) {
	if err := s.window(rest, model.Baseline); err != nil {
		return 0, err
	}
	if err := s.sample(ctx, baselineBeforeCommand, nil, Progress{Window: model.Baseline, Planned: baselineBeforeCommand}); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("interrupted before %s was started, so there is nothing to judge: %w", command[0], err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	said, stdout, stderr, err := printed.Listen(command, std.Stdout, std.Stderr)
	if err != nil {
		s.out.Note(fmt.Sprintf("what %s says of its run is not read: %v", command[0], err))
	}
	defer s.keep(said) // before the run is closed
	run, err := startCommand(ctx, s.opt.Holder, path, command, WatchIO{Stdin: std.Stdin, Stdout: stdout, Stderr: stderr})
	said.Started()
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", command[0], err)
	}
	if err := s.all.command(run.pid); err != nil {
		s.out.Note(fmt.Sprintf("what the command does is not told from the rest: %v", err))
	}
	if err := s.all.ignore(run.holder.Process.Pid); err != nil {
		s.out.Note(fmt.Sprintf("the process that holds the command is traced with all others: %v", err))
	}
	if err := s.holdUntil(ctx, rest, run.ended, d); err != nil {
		stop() // it would run on with nobody watching
		<-run.ended
		return 0, err
	}
	<-run.ended
	code, err := run.code()
	if err != nil {
		return 0, fmt.Errorf("wait for %s: %w", command[0], err)
	}
	return code, nil
}

// keep records what load tools said of their runs in what a command printed.
func (s *session) keep(said *printed.Output) {
	list, dropped, unread := said.Ended()
	if dropped > 0 {
		s.out.Note(fmt.Sprintf("load tools said more of their runs than is kept: %d summaries are left out", dropped))
	}
	if unread {
		s.out.Note("the command printed faster than could be read: what load tools said in between is not known")
	}
	if len(list) == 0 {
		return
	}
	if err := s.out.Update(func(r *model.Run) { r.ToolSummaries = list }); err != nil {
		s.out.Note(fmt.Sprintf("what load tools said of their runs was not recorded: %v", err))
	}
}

// holdUntil is the window in which the user's command runs: until it ended, or d is over.
func (s *session) holdUntil(ctx, rest context.Context, ended <-chan struct{}, d time.Duration) error {
	if err := s.window(rest, model.Hold); err != nil {
		return err
	}
	if err := s.sample(ctx, d, ended, Progress{Window: model.Hold, Planned: d}); err != nil {
		return err
	}
	return s.window(rest, "")
}

// sample lets rounds be taken for d (0: until ended), until ended is
// closed or ctx is cancelled, whichever comes first; without a command that ends also
// when nothing is observed any more.
func (s *session) sample(ctx context.Context, d time.Duration, ended <-chan struct{}, p Progress) error {
	tick := time.NewTicker(s.opt.Interval)
	defer tick.Stop()
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case <-ended:
			return nil
		case <-tick.C:
			if err := s.failed(); err != nil {
				return err
			}
			if ended == nil && s.all.blind() {
				return nil
			}
			s.progress(p)
		}
	}
}

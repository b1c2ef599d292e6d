package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/model"
)

// Run brings a case up, runs the binary against it, takes it down and compares
// the verdict with the truth. A wrong verdict is a Result that does not pass;
// an error means that there is no verdict. Everything is undone either way.
func (l *Lab) Run(ctx context.Context, id string, opt Options) (*Result, error) {
	c, err := l.Case(id)
	if err != nil {
		return nil, err
	}
	unlock, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return l.runCase(ctx, c, opt)
}

// runCase is Run with the lock held.
func (l *Lab) runCase(ctx context.Context, c *Case, opt Options) (res *Result, err error) {
	began := time.Now()
	defer func() {
		if undone := l.undo(); undone != nil {
			err = errors.Join(err, undone)
		}
		if res != nil {
			res.Seconds = time.Since(began).Seconds()
		}
	}()
	v, err := l.up(ctx, c, opt.Mends)
	if err != nil {
		return nil, err
	}
	p, err := c.plan(opt.Mode, v, "netns:"+l.netns("server"))
	if err != nil {
		return nil, err
	}
	if err := l.arm(ctx, c, v); err != nil {
		return nil, err
	}
	dismiss, err := l.heir()
	if err != nil {
		return nil, err
	}
	err = l.drive(ctx, c, p, v)
	var rep *model.Report
	if err == nil {
		rep, err = l.observe(ctx, opt, p)
	}
	judged := time.Now()
	err = errors.Join(err, l.disarm())
	dismiss()
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	res = judge(c, opt.Mends, rep)
	res.VerdictSeconds = sinceLast(rep.Windows, judged)
	return res, nil
}

// sinceLast is the time since the last window ended, nil when none did.
func sinceLast(list []model.Window, now time.Time) *float64 {
	var end int64
	for _, w := range list {
		end = max(end, w.End)
	}
	if end == 0 {
		return nil
	}
	s := float64(now.UnixMilli()-end) / 1000
	return &s
}

// observe runs the binary on the client, or outside of the case, and returns the report it printed. Its
// exit code says what the verdict is, so any is fine as long as there is one.
func (l *Lab) observe(ctx context.Context, opt Options, p plan) (*model.Report, error) {
	argv, args := []string{"ip", "netns", "exec", l.netns("client"), opt.Binary}, p.args
	if p.outside {
		argv = argv[4:]
	}
	if i := indexOf(args, "--"); i >= 0 {
		argv = append(append(append(argv, args[:i]...), opt.Args...), args[i:]...)
	} else {
		argv = append(append(argv, args...), opt.Args...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	// A killed lab must not leave its load running. The signal comes when the
	// thread that started the child ends, so this goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var stdout, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &said
	if opt.Talk != nil {
		cmd.Stderr = io.MultiWriter(&said, opt.Talk)
	}
	ran := cmd.Run()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("interrupted: %w", err)
	}
	rep, err := parseReport(stdout.Bytes())
	if err == nil {
		return rep, nil
	}
	if ran != nil {
		return nil, fmt.Errorf("%s gave no verdict (%v); it said: %s: %w", opt.Binary, ran, lastLines(said.String(), 5), err)
	}
	return nil, fmt.Errorf("%s: %w", opt.Binary, err)
}

func indexOf(list []string, what string) int {
	for i, s := range list {
		if s == what {
			return i
		}
	}
	return -1
}

// parseReport reads the one JSON document of `plimsoll run --json`.
func parseReport(data []byte) (*model.Report, error) {
	var rep model.Report
	if err := json.Unmarshal(data, &rep); err != nil {
		return nil, fmt.Errorf("its output is not the one JSON document that --json promises: %w", err)
	}
	if rep.Verdict.Answer == "" {
		return nil, errors.New(`its JSON document has no "verdict"."answer"`)
	}
	return &rep, nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// Options say how a case is to be run.
type Options struct {
	// Binary is the path of the plimsoll to drive.
	Binary string
	// Args are added to its command line.
	Args []string
	// Hold is how long tune holds the load of a case, in place of what the case says;
	// 0 keeps that. A load tool of a case's own takes as long as it takes.
	Hold time.Duration
	// Mode is how the case is driven and watched; not for tune.
	Mode Mode
	// Mends are the ids of the case's mends to apply before it is brought up.
	Mends []string
	// SSH has tune see and change the server as a machine of its own, over ssh.
	SSH bool
	// Talk receives what the binary says on stderr; nil discards it.
	Talk io.Writer
}

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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/model"
)

// Result is what came of one run of a case.
type Result struct {
	Case  string   `json:"case"`
	Truth Truth    `json:"truth"`
	Mends []string `json:"mends,omitempty"` // applied before the run
	// Answer and Named are what the verdict said: its word, and the rules at its root.
	Answer model.Answer `json:"answer"`
	Named  []string     `json:"named"`
	Pass   bool         `json:"pass"`
	// Wrong are the sentences that say why Pass is false.
	Wrong   []string `json:"wrong,omitempty"`
	GoodRPS float64  `json:"good_rps"` // replies below 400 per second; 0 under watch
	// VerdictSeconds is from the last reading, taken a second after the last
	// request ended, to the end of the program that gave the verdict.
	VerdictSeconds *float64     `json:"verdict_seconds,omitempty"`
	Seconds        float64      `json:"seconds"` // from bringing up to taking down
	Dir            string       `json:"dir"`     // the run directory
	Report         model.Report `json:"report"`
}

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
	p, err := c.plan(opt.Mode, v, l.netns("server"))
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

// alone says whether the server alone is watched, as by somebody who does not
// know where its load comes from.
func (ld Load) alone() bool { return ld.URL == "" && len(ld.Command) == 0 }

// args is plimsoll's command line for the load.
func (ld Load) args(v values, server string) ([]string, error) {
	rest := append(ld.hosts(server), "--json")
	switch {
	case ld.alone():
		return append([]string{"watch", "-d", time.Duration(ld.Duration).String()}, rest...), nil
	case ld.URL != "":
		return slices.Concat([]string{"run"}, ld.ours(), rest), nil
	}
	command, err := v.renderAll("load", ld.Command)
	return slices.Concat([]string{"watch"}, rest, []string{"--"}, command), err
}

// tuneArgs is plimsoll's command line to tune under the load, which is not alone.
func (ld Load) tuneArgs(v values, server string, flags ...string) ([]string, error) {
	args := slices.Concat([]string{"tune"}, ld.hosts(server), flags)
	if ld.URL != "" {
		return append(args, ld.ours()...), nil
	}
	command, err := v.renderAll("load", ld.Command)
	return slices.Concat(args, []string{"--"}, command), err
}

// hosts are the flags that say what is watched.
func (ld Load) hosts(server string) []string {
	hosts := []string{"--host", "client=local", "--host", "server=netns:" + server}
	if ld.alone() {
		return hosts[2:]
	}
	return hosts
}

// ours are the arguments that say what load Plimsoll drives.
func (ld Load) ours() []string {
	args := []string{ld.URL, "-c", strconv.Itoa(ld.Connections), "-d", time.Duration(ld.Duration).String()}
	if ld.Rate > 0 {
		args = append(args, "-R", strconv.FormatFloat(ld.Rate, 'f', -1, 64))
	}
	if ld.NoKeepAlive {
		args = append(args, "--no-keepalive")
	}
	return args
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

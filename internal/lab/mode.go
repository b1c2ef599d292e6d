package lab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// Mode is who asks a case's service, and what Plimsoll is told of it. A case's
// truth is the same in all of them.
type Mode string

const (
	// ModeOwn is whatever the case's load says.
	ModeOwn Mode = ""
	// ModeRun is plimsoll run: the load is Plimsoll's own.
	ModeRun Mode = "run"
	// ModeWatchCommand is plimsoll watch -- TOOL: the load is an ordinary tool's.
	ModeWatchCommand Mode = "watch-command"
	// ModeWatch is plimsoll watch --host: the users are a tool in a control group and
	// a network namespace of their own, of which Plimsoll is told nothing.
	ModeWatch Mode = "watch"
)

// Modes are all that a case may be tried in.
var Modes = []Mode{ModeRun, ModeWatchCommand, ModeWatch}

// Refuses says why a case cannot be tried in a mode; "" when it can.
func (c *Case) Refuses(m Mode) string {
	switch {
	case m == ModeRun && len(c.Load.Command) > 0:
		return "its load is a tool of its own, which plimsoll run does not drive"
	case m == ModeRun && c.Load.alone():
		return "no URL asks for what it is about, and plimsoll run drives a URL"
	case m == ModeWatchCommand && c.Load.alone():
		return "a step of its own is what keeps the host busy; there is no command to give to plimsoll watch"
	case m == ModeWatch && c.Truth.Subject["host"] == "client":
		return "its cause is on the users' side, and the server alone is watched"
	}
	return ""
}

// plan is how a case is tried in a mode.
type plan struct {
	// args is Plimsoll's command line.
	args []string
	// users is the command of users that Plimsoll is not told of; nil when there are none.
	users []string
	// outside: Plimsoll runs in the machine's own network namespace, not beside the users.
	outside bool
}

// plan says how the case is tried in a mode that it does not refuse. server is
// the namespace of the server.
func (c *Case) plan(m Mode, v values, server string) (plan, error) {
	if m == ModeOwn || m == ModeRun {
		args, err := c.Load.args(v, server)
		return plan{args: args}, err
	}
	command, err := c.Load.tool(v)
	if err != nil {
		return plan{}, err
	}
	if m == ModeWatchCommand {
		return plan{args: slices.Concat([]string{"watch"}, c.Load.hosts(server), []string{"--json", "--"}, command)}, nil
	}
	alone := Load{Duration: cmp.Or(c.Load.Duration, Duration(watchFor))}
	args, err := alone.args(v, server)
	p := plan{args: args, outside: true}
	if !c.Load.alone() {
		// Users do not end when a tool of theirs does.
		p.users = append([]string{"/bin/sh", "-c", `while "$@"; do :; done`, "sh"}, command...)
	}
	return p, err
}

// watchFor is how long the users of a case whose load has no duration are watched.
const watchFor = 8 * time.Second

// paceFile is the script that makes wrk keep a rate; it is written for every case with a load.
const paceFile = "pace.lua"

// tool is the command line of the case's load tool: its own, or wrk with the
// load's connections, duration and rate. wrk sends the next request when the reply is
// there and its pause is over, so it keeps a rate only as long as replies are quicker.
func (ld Load) tool(v values) ([]string, error) {
	if ld.URL == "" {
		return v.renderAll("load", ld.Command)
	}
	seconds := int(math.Ceil(time.Duration(ld.Duration).Seconds()))
	argv := []string{"wrk", "-t1", "-c", strconv.Itoa(ld.Connections), "-d", strconv.Itoa(seconds), "--timeout", "5s"}
	if ld.NoKeepAlive {
		argv = append(argv, "-H", "Connection: close")
	}
	if ld.Rate > 0 {
		argv = append(argv, "-s", v["dir"]+"/"+paceFile)
	}
	return append(argv, ld.URL), nil
}

// pace is the script for wrk: each connection pauses for as long as its share of
// the rate asks for, a half more or less.
func (ld Load) pace() string {
	return fmt.Sprintf("local pause = %.3f -- ms\nfunction delay() return pause * (0.5 + math.random()) end\n",
		1000*float64(ld.Connections)/ld.Rate)
}

// drive brings up whatever a plan needs beside Plimsoll.
func (l *Lab) drive(ctx context.Context, c *Case, p plan, v values) error {
	if c.Load.Rate > 0 {
		if err := writeFile(l.Cases, &File{Path: paceFile, Content: c.Load.pace()}, v); err != nil {
			return err
		}
	}
	if len(p.users) == 0 {
		return nil
	}
	if err := l.makeCgroup(&Cgroup{Name: "users", Processes: "max"}, v); err != nil {
		return err
	}
	users, err := l.start(l.netns("client"), "users", v["dir"], 0, l.enterCgroup("users", p.users))
	if err != nil {
		return err
	}
	return users.waitSocket(ctx)
}

// Outcome is how a verdict stands to the truth.
type Outcome string

const (
	// Right: the root that is the truth, no other, and all that belongs to it.
	Right Outcome = "right"
	// Vague: true, but not the whole truth.
	Vague Outcome = "vague"
	// Unclear: Plimsoll said that it does not know.
	Unclear Outcome = "unclear"
	// Wrong: something that is not so.
	Wrong Outcome = "wrong"
	// Failed: there was no verdict.
	Failed Outcome = "failed"
	// NotDriven: the case cannot be tried in this mode.
	NotDriven Outcome = "not driven"
)

// Outcomes are all of them, best first.
var Outcomes = []Outcome{Right, Vague, Unclear, Wrong, Failed, NotDriven}

// outcome sorts a verdict; wrong is what compare said of it.
func (t Truth) outcome(v model.Verdict, wrong []string) Outcome {
	switch {
	case len(wrong) == 0:
		return Right
	case v.Answer == model.AnswerUnclear:
		return Unclear
	case v.Answer != t.Answer || t.Answer != model.AnswerCause || len(v.Root) == 0:
		return Wrong
	}
	near := append(t.roots(), t.Vague...)
	for i, f := range v.Root {
		if (i == 0 || f.Answer == model.Confirmed) && !slices.Contains(near, f.Rule) {
			return Wrong
		}
	}
	for _, f := range slices.Concat(v.Root, v.Findings) {
		if f.Answer == model.Confirmed && slices.Contains(t.Quiet, f.Rule) {
			return Wrong
		}
	}
	return Vague
}

// Outcome is how the case as it is was judged.
func (t *Trial) Outcome() Outcome {
	switch {
	case t.Refused != "":
		return NotDriven
	case t.Faulty == nil:
		return Failed
	}
	return t.Faulty.Outcome
}

// ModeScore counts the outcomes of the trials in a mode.
type ModeScore struct {
	Mode   Mode            `json:"mode"`
	Counts map[Outcome]int `json:"counts"`
	// Cases holds, for each case, the same.
	Cases map[string]map[Outcome]int `json:"cases"`
}

// CountModes sorts trials by mode, in the order of Modes; those in the cases' own way are left out.
func CountModes(trials []*Trial) []ModeScore {
	list := []ModeScore{}
	for _, m := range Modes {
		s := ModeScore{Mode: m, Counts: map[Outcome]int{}, Cases: map[string]map[Outcome]int{}}
		for _, t := range trials {
			if t.Mode != m {
				continue
			}
			if s.Cases[t.Case] == nil {
				s.Cases[t.Case] = map[Outcome]int{}
			}
			s.Counts[t.Outcome()]++
			s.Cases[t.Case][t.Outcome()]++
		}
		if len(s.Cases) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// Words are counts of outcomes in words: "right", or "2 right, 1 unclear".
func Words(counts map[Outcome]int) string {
	var parts []string
	all := 0
	for _, o := range Outcomes {
		if n := counts[o]; n > 0 {
			all += n
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if all == 1 {
		return strings.TrimPrefix(parts[0], "1 ")
	}
	return strings.Join(parts, ", ")
}

package lab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
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
		// Users do not end when a tool of theirs does; and wrk ends when its first connect is refused, as every third may be.
		p.users = append([]string{"/bin/sh", "-c", `while :; do "$@" || sleep 0.1; done`, "sh"}, command...)
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

const ()

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
	hosts := []string{"--host", "client=local", "--host", "server=" + server}
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

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/session"
	"plimsoll/internal/ssh"
)

var hostName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// parseWatched reads --host values with the way to the host's collector.
func parseWatched(values []string) ([]session.HostSpec, error) {
	list, err := parseAnywhere(values)
	near := ""
	for i, h := range list {
		if isFar(h) {
			continue
		}
		if near == "" {
			near = values[i]
		}
		if first := list[slices.Index(values, near)]; h.Via != first.Via {
			return nil, fmt.Errorf("--host %q and %q: this machine is observed by one process; put %s/ before both or none", near, values[i], session.OwnProcess)
		}
	}
	return list, err
}

// isFar says whether a host is on another machine.
func isFar(h session.HostSpec) bool { return strings.HasPrefix(h.Via, overSSH) }

// parseAnywhere reads --host values, on any machine.
func parseAnywhere(values []string) ([]session.HostSpec, error) {
	plain, ways := slices.Clone(values), make([]string, len(values))
	for i, v := range values {
		name, spec, _ := strings.Cut(v, "=")
		if there, ok := strings.CutPrefix(spec, session.OwnProcess+"/"); ok {
			plain[i], ways[i] = name+"="+there, session.OwnProcess
		}
		if strings.HasPrefix(spec, overSSH) {
			via, there, part := strings.Cut(spec, "/")
			if !part {
				there = "local"
			}
			if _, err := ssh.ParseDestination(strings.TrimPrefix(via, overSSH)); err != nil {
				return nil, fmt.Errorf("--host %q: %w", v, err)
			}
			plain[i], ways[i] = name+"="+there, via
		}
	}
	list, err := parseHosts(plain)
	for i := range list {
		list[i].Via = ways[i]
	}
	return list, err
}

// kindsOfHosts are those with a name behind them; host.Open knows what they mean.
var kindsOfHosts = []string{"netns", "pid", "unit", "container"}

// parseHosts reads --host values of this machine.
func parseHosts(values []string) ([]session.HostSpec, error) {
	var list []session.HostSpec
	for _, v := range values {
		name, spec, found := strings.Cut(v, "=")
		kind, arg, _ := strings.Cut(spec, ":")
		switch {
		case !found || !hostName().MatchString(name):
			return nil, fmt.Errorf("--host %q: want NAME=SPEC, like server=netns:srv", v)
		case kind == "ssh":
			return nil, fmt.Errorf("--host %q: this command looks at this machine alone; run it on that one, or plimsoll watch --host %[1]s", v)
		case spec != "local" && (!slices.Contains(kindsOfHosts, kind) || arg == ""):
			return nil, fmt.Errorf("--host %q: %q is none of local, netns:NAME, pid:N, unit:NAME, container:NAME, ssh:HOST", v, spec)
		case strings.ContainsAny(spec, " \t\r\n"):
			return nil, fmt.Errorf("--host %q: a blank in %q", v, spec)
		case slices.ContainsFunc(list, func(h session.HostSpec) bool { return h.Name == name }):
			return nil, fmt.Errorf("--host %q: the name %s is taken; give each host its own", v, name)
		}
		list = append(list, session.HostSpec{Name: name, Spec: spec})
	}
	return list, nil
}

// oneFar is the machine that commands about one machine are to run on: that of all hosts,
// "" for this one; and the hosts as they are named there.
func oneFar(values []string) (via string, there []string, err error) {
	list, err := parseAnywhere(values)
	if err != nil {
		return "", nil, err
	}
	for i, h := range list {
		if i > 0 && h.Via != via {
			return "", nil, fmt.Errorf("--host %q and %q: this command looks at one machine at a time", values[0], values[i])
		}
		via, there = h.Via, append(there, h.Name+"="+h.Spec)
	}
	if via != "" && !strings.HasPrefix(via, overSSH) {
		return "", nil, fmt.Errorf("--host %q: %s/ is for run and watch", values[0], via)
	}
	return via, there, nil
}

// wholeMachine is oneFar for a command that is about a whole machine; this one is not named.
func wholeMachine(values []string) (via string, err error) {
	via, there, err := oneFar(values)
	switch {
	case err != nil:
		return "", err
	case len(values) > 1 || len(values) == 1 && (via == "" || !strings.HasSuffix(there[0], "=local")):
		return "", fmt.Errorf("--host %q: want one NAME=ssh:HOST, a whole machine that is not this one", values)
	}
	return via, nil
}

// machineName is by what a fleet knows this machine, so far as it can name a host.
func machineName() string {
	name, err := os.Hostname()
	if err != nil || !hostName().MatchString(name) || strings.HasPrefix(name, "localhost") {
		return "local"
	}
	return cmp.Or(name, "local")
}

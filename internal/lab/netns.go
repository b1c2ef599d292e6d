package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/host"
)

// netnsPath is where `ip netns` keeps a named namespace.
func netnsPath(name string) string { return filepath.Join("/run/netns", name) }

func sysctlPath(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// netns is the namespace of one of the case's hosts.
func (l *Lab) netns(host string) string { return l.prefix() + "-" + host }

// makeHosts creates the two hosts and the wire between them; with a path, a
// switch stands in its middle.
func (l *Lab) makeHosts(ctx context.Context, path bool) error {
	all := hostNames
	if path {
		all = append(slices.Clone(hostNames), pathHost)
	}
	for _, h := range all {
		if err := l.note(entry{Do: "netns", Name: l.netns(h)}); err != nil {
			return err
		}
		if err := command(ctx, "ip", "netns", "add", l.netns(h)); err != nil {
			return err
		}
	}
	lines := l.wire()
	if path {
		lines = l.pathWires()
	}
	for _, h := range hostNames {
		lines = append(lines,
			[]string{"-n", l.netns(h), "address", "add", addresses[h], "dev", "eth0"},
			[]string{"-n", l.netns(h), "link", "set", "lo", "up"},
			[]string{"-n", l.netns(h), "link", "set", "eth0", "up"})
	}
	for _, args := range lines {
		if err := command(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// wire is what ip has to do to join the hosts directly.
func (l *Lab) wire() [][]string {
	return [][]string{
		{"-n", l.netns("client"), "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", l.netns("server")},
	}
}

// pathWires is what ip has to do to join both to a switch, whose devices are
// named after the host at their other end.
func (l *Lab) pathWires() [][]string {
	path := l.netns(pathHost)
	lines := [][]string{
		{"-n", path, "link", "add", "switch", "type", "bridge"},
		{"-n", path, "link", "set", "switch", "up"},
	}
	for _, h := range hostNames {
		lines = append(lines,
			[]string{"-n", l.netns(h), "link", "add", "eth0", "type", "veth", "peer", "name", h, "netns", path},
			[]string{"-n", path, "link", "set", h, "master", "switch"},
			[]string{"-n", path, "link", "set", h, "up"})
	}
	return lines
}

// command runs a command to its end; what it printed is in the error.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %s: %w", name, strings.Join(args, " "), bytes.TrimSpace(out), err)
	}
	return nil
}

// inNetNS calls f on a thread that is in the named namespace: what it opens,
// writes below /proc/sys/net and starts belongs to that namespace.
func inNetNS(name string, f func() error) error {
	h, err := host.Open(name, "netns:"+name)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Do(f)
}

// setSysctl writes a setting inside a namespace; it dies with the namespace.
func setSysctl(netns, name, value string) error {
	return inNetNS(netns, func() error {
		if err := os.WriteFile(sysctlPath(name), []byte(value), 0); err != nil {
			return fmt.Errorf("set %s to %q in %s: %w", name, value, netns, err)
		}
		return nil
	})
}

package cgroup

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The controllers whose limits are read, as version 2 names them.
var controllers = []string{"cpu", "memory", "pids", "io"}

// controllerOf is version 2's name of a controller of version 1.
func controllerOf(v1 string) string {
	if v1 == "blkio" {
		return "io"
	}
	return v1
}

// mount is where a hierarchy of control groups is mounted.
type mount struct {
	dir, root   string // the directory, and the group that it shows
	controllers []string
	unified     bool // version 2
}

// parseMounts finds the hierarchies in a mountinfo, see proc_pid_mountinfo(5):
//
//	36 35 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:1 - cgroup cgroup rw,cpu
func parseMounts(b []byte) []mount {
	var mounts []mount
	for line := range strings.Lines(string(b)) {
		head, tail, ok := strings.Cut(line, " - ")
		at, fs := strings.Fields(head), strings.Fields(tail)
		if !ok || len(at) < 5 || len(fs) < 3 {
			continue
		}
		m := mount{root: at[3], dir: at[4]}
		switch fs[0] {
		case "cgroup2":
			m.unified, m.controllers = true, controllers
		case "cgroup":
			for option := range strings.SplitSeq(fs[2], ",") {
				if c := controllerOf(option); slices.Contains(controllers, c) {
					m.controllers = append(m.controllers, c)
				}
			}
		}
		if len(m.controllers) > 0 {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// member is a group that a process is in, for some controllers.
type member struct {
	controllers []string
	unified     bool
	path        string
}

// parseMembership reads /proc/PID/cgroup: "4:memory:/a/b" a line, "0::/a" for version 2.
func parseMembership(b []byte) ([]member, error) {
	var list []member
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return nil, fmt.Errorf("want NUMBER:CONTROLLERS:/PATH, got %q", line)
		}
		m := member{path: path.Clean(f[2]), unified: f[1] == ""}
		if m.unified {
			m.controllers = controllers
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c = controllerOf(c); slices.Contains(controllers, c) {
				m.controllers = append(m.controllers, c)
			}
		}
		if m.path != "/" && len(m.controllers) > 0 {
			list = append(list, m)
		}
	}
	return list, nil
}

// parseNumber reads a file of one number; ok is false for "max" and for the
// numbers that version 1 writes in its place.
func parseNumber(b []byte) (n uint64, ok bool, err error) {
	const huge = 1 << 60
	s := strings.TrimSpace(string(b))
	if s == "max" || s == "-1" {
		return 0, false, nil
	}
	n, err = strconv.ParseUint(s, 10, 64)
	return n, err == nil && n < huge, err
}

// parseFields reads lines of "name number", those of names alone.
func parseFields(b []byte, names ...string) (map[string]uint64, error) {
	found := map[string]uint64{}
	for line := range bytes.Lines(b) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if !slices.Contains(names, name) {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found[name] = n
	}
	return found, nil
}

// parseQuota reads cpu.max: "20000 100000", or "max 100000" for none.
func parseQuota(b []byte) (cores float64, ok bool, err error) {
	quota, period, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if quota == "max" || quota == "-1" {
		return 0, false, nil
	}
	q, err := strconv.ParseUint(quota, 10, 53)
	if err != nil {
		return 0, false, err
	}
	p, err := strconv.ParseUint(period, 10, 53)
	if err != nil || p == 0 {
		return 0, false, fmt.Errorf("want QUOTA PERIOD, got %q", b)
	}
	return float64(q) / float64(p), true, nil
}

// deviceValue is one number about a device: what is rbps, wbps, riops or wiops.
type deviceValue struct {
	device, what string
	value        uint64
}

// parseNested reads version 2's "254:0 rbps=1048576 wbps=max", renaming what it
// finds by names; what is not among them, and "max", is left out.
func parseNested(b []byte, names map[string]string) ([]deviceValue, error) {
	var list []deviceValue
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		for i, pair := range f {
			name, value, ok := strings.Cut(pair, "=")
			what := names[name]
			if i == 0 || !ok || what == "" || value == "max" {
				continue
			}
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			list = append(list, deviceValue{f[0], what, n})
		}
	}
	return list, nil
}

// parseDevices reads version 1's "254:0 1048576" or "254:0 Read 1048576"; names
// tells what "Read" and "Write" are about, or what "" is.
func parseDevices(b []byte, names map[string]string) ([]deviceValue, error) {
	var list []deviceValue
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 || !strings.Contains(f[0], ":") {
			continue // the total
		}
		key := ""
		if len(f) == 3 {
			key = f[1]
		} else if len(f) != 2 {
			return nil, fmt.Errorf("want DEVICE [KIND] NUMBER, got %q", line)
		}
		if what := names[key]; what != "" {
			n, err := strconv.ParseUint(f[len(f)-1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f[0], err)
			}
			list = append(list, deviceValue{f[0], what, n})
		}
	}
	return list, nil
}

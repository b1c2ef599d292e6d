// Package cgroup reads the limits that control groups (version 1 and 2) set to
// the processes of a host, and what the kernel counts when they bind: CPU
// quota, memory, number of processes, disk rate.
package cgroup

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	// lookEvery is how often processes and limits are looked at anew,
	// memberEvery how often one process's groups are read again: it may be moved.
	lookEvery   = 5 * time.Second
	memberEvery = 30 * time.Second
	// maxGroups bounds the groups of a run that are read, by controller.
	maxGroups = 256
)

// All returns the probe of control groups.
func All() []probe.Probe {
	var all []*model.Signal
	for _, list := range [][]*model.Signal{{processes}, cpuSignals, memorySignals, pidsSignals, ioSignals} {
		all = append(all, list...)
	}
	return []probe.Probe{{
		Name: "cgroup", Scope: probe.PerHost, Signals: all,
		Cost: "6 µs for each process first seen and every 30 s; 15 µs a reading for each group with a limit (Linux 6.18)",
		Blind: []string{
			"groups without a limit are not read, nor the root group",
			"a process that is moved to another group is seen there up to 30 s later",
			"no kernel counts how often a disk limit (io.max) made somebody wait: what was used is held against the limit",
		},
		CanRun: func(h *host.Host) error { _, err := mounts(h); return err },
		Open: func(h *host.Host) (probe.Reader, error) {
			m, err := mounts(h)
			if err != nil {
				return nil, err
			}
			return &reader{host: h, mounts: m, list: h.Services, members: map[int]*membership{}}, nil
		},
	}}
}

// mounts finds where control groups are mounted. "ip netns exec" and the like
// hide them under a /sys of their own; then a process above us shows them.
func mounts(h *host.Host) ([]mount, error) {
	const generations = 16
	pid := "self"
	var first error
	for range generations {
		b, err := host.ReadFile(h.Path("proc", pid, "mountinfo"))
		if err == nil {
			if m := parseMounts(b); len(m) > 0 {
				return seenBy(m, pid), nil
			}
		} else if first == nil {
			first = fmt.Errorf("look for control groups: %w", err)
		}
		if pid = parent(h, pid); pid == "" {
			break
		}
	}
	if first != nil {
		return nil, first
	}
	return nil, host.Absent("no control groups are mounted (mount -t cgroup2 none /sys/fs/cgroup)")
}

// seenBy puts the root directory of the process that sees the mounts before their directories.
func seenBy(mounts []mount, pid string) []mount {
	if pid != "self" {
		for i := range mounts {
			mounts[i].dir = filepath.Join("/proc", pid, "root", mounts[i].dir)
		}
	}
	return mounts
}

// parent is the number of a process's parent, "" when there is none that we may see.
func parent(h *host.Host, pid string) string {
	st, err := host.ReadStat(h.Path("proc", pid, "stat"))
	if err != nil || st.PPID == 0 {
		return ""
	}
	return strconv.Itoa(st.PPID)
}

type reader struct {
	host    *host.Host
	mounts  []mount
	list    func() ([]host.Proc, error)
	members map[int]*membership
	round   uint64
	looked  time.Time
	groups  []*group
	noted   bool
}

// membership is the groups of one process.
type membership struct {
	start uint64
	read  time.Time
	round uint64
	in    []member
}

// group is a limited group of one controller.
type group struct {
	controller, path, dir string
	unified               bool
	processes             map[string]int  // by name
	members               map[string]bool // the groups that its processes are in, itself or below
	limited               bool
	cores                 float64       // limit of cpu
	max                   uint64        // limit of memory and pids
	devices               []deviceValue // limits of io
}

func (r *reader) Read(out *probe.Out) error {
	if out.Forced() || r.looked.IsZero() || out.Now().Sub(r.looked) >= lookEvery {
		if err := r.look(out); err != nil {
			return err
		}
		r.looked = out.Now()
	}
	for _, g := range r.groups {
		for name, n := range g.processes {
			out.Put(processes, float64(n), g.controller, g.path, name)
		}
		if err := g.put(out); err != nil {
			return fmt.Errorf("read control group %s: %w", g.dir, err)
		}
	}
	return nil
}

func (r *reader) Close() error { return nil }

type groupKey struct {
	controller, path string
	unified          bool
}

// look finds the groups with a limit that hold a process of the host.
func (r *reader) look(out *probe.Out) error {
	procs, err := r.list()
	if err != nil {
		return err
	}
	r.round++
	found := map[groupKey]*group{}
	r.groups = r.groups[:0]
	for i := range procs {
		p := &procs[i]
		if p.Kernel {
			continue
		}
		for _, m := range r.membershipOf(p, out.Now()) {
			for _, c := range m.controllers {
				r.count(found, c, m, p.Comm)
			}
		}
	}
	for pid, m := range r.members {
		if m.round != r.round {
			delete(r.members, pid)
		}
	}
	if len(r.groups) == maxGroups && !r.noted {
		r.noted = true
		out.Note(fmt.Sprintf("host %s has more than %d control groups with limits; the others are not read", r.host.Name, maxGroups))
	}
	return nil
}

// membershipOf reads which groups a process is in; none when it is gone.
func (r *reader) membershipOf(p *host.Proc, now time.Time) []member {
	m := r.members[p.PID]
	if m == nil || m.start != p.Start || now.Sub(m.read) >= memberEvery {
		b, err := host.ReadFile(filepath.Join(r.host.Path("proc"), strconv.Itoa(p.PID), "cgroup"))
		if err != nil {
			return nil
		}
		in, err := parseMembership(b)
		if err != nil {
			return nil
		}
		m = &membership{start: p.Start, read: now, in: in}
		r.members[p.PID] = m
	}
	m.round = r.round
	return m.in
}

// count counts a process into its group of a controller and the groups above
// it, as far as they have limits. found holds nil for those that have none.
func (r *reader) count(found map[groupKey]*group, controller string, m member, name string) {
	for p := m.path; p != "/" && p != "."; p = path.Dir(p) {
		key := groupKey{controller, p, m.unified}
		g, known := found[key]
		if !known {
			if len(r.groups) < maxGroups {
				g = r.limited(controller, m.unified, p)
			}
			if found[key] = g; g != nil {
				r.groups = append(r.groups, g)
			}
		}
		if g != nil {
			g.processes[label(name)]++
			g.members[m.path] = true
		}
	}
}

// limited is the group at p, nil when it has no limit of that controller.
func (r *reader) limited(controller string, unified bool, p string) *group {
	for _, m := range r.mounts {
		if m.unified != unified || !slices.Contains(m.controllers, controller) {
			continue
		}
		below, ok := strings.CutPrefix(p, strings.TrimSuffix(m.root, "/"))
		if !ok {
			continue
		}
		g := &group{controller: controller, path: p, unified: unified, processes: map[string]int{}, members: map[string]bool{},
			dir: filepath.Join(r.host.Path(strings.TrimPrefix(m.dir, "/")), below)}
		if g.readLimit() {
			return g
		}
	}
	return nil
}

// label makes a process name fit to be a label's value.
func label(comm string) string {
	if comm == "" {
		return "(none)"
	}
	return strings.ToValidUTF8(comm, "\uFFFD")
}

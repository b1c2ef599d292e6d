package procs

import (
	"os"
	"path"
	"slices"
	"strings"
)

// countIdleClass gives the groups the time that their processes used in the idle
// class in this round and that nobody else wanted. The scheduler weighs the
// class only within a group of its own making, so those elsewhere do take
// CPU time from the busiest program.
func (r *reader) countIdleClass() {
	var idle []*process
	var busiest *process
	for _, p := range r.procs {
		if p.foreign || p.kernel || p.round != r.round {
			continue
		}
		if p.inIdle > 0 {
			idle = append(idle, p)
		}
		if p.inOther > 0 && !strings.HasPrefix(p.comm, "plimsoll") && (busiest == nil || p.inOther > busiest.inOther) {
			busiest = p
		}
	}
	if len(idle) == 0 || busiest == nil {
		return
	}
	in := r.schedGroup(busiest)
	for _, p := range idle {
		if in != "" && r.schedGroup(p) == in {
			p.group.idleClass += p.inIdle
		}
	}
}

// countNiced gives the groups what their threads of a lower priority waited in this round, where the busiest program of the
// usual priority, or a higher one, is weighed against them: against who is in another group of the scheduler's making, a nice
// value does not count.
func (r *reader) countNiced() {
	var niced []*process
	var busiest *process
	for _, p := range r.procs {
		if p.foreign || p.kernel || p.round != r.round {
			continue
		}
		if len(p.niced) > 0 {
			niced = append(niced, p)
		}
		if p.nice <= 0 && p.inOther > 0 && !strings.HasPrefix(p.comm, "plimsoll") && (busiest == nil || p.inOther > busiest.inOther) {
			busiest = p
		}
	}
	if len(niced) == 0 || busiest == nil {
		return
	}
	in := r.schedGroup(busiest)
	for _, p := range niced {
		if in == "" || r.schedGroup(p) != in {
			continue
		}
		for nice, waited := range p.niced {
			p.group.niced[nice] += waited
		}
	}
}

// schedGroup names the group within which the scheduler weighs a process against
// others: a control group with a CPU controller, or else a session; "" when that
// cannot be read.
func (r *reader) schedGroup(p *process) string {
	if p.schedGroup != "" && r.now().Sub(p.schedGroupAt) < limitsEvery {
		return p.schedGroup
	}
	p.schedGroup, p.schedGroupAt = r.cpuGroup(p), r.now()
	if p.schedGroup == "/" { // only there are autogroups
		p.schedGroup = r.autogroup(p)
	}
	return p.schedGroup
}

// cpuGroup is a process's control group with a CPU controller, "/" for the root.
func (r *reader) cpuGroup(p *process) string {
	b, err := r.tree.read(p.name + "/cgroup")
	if err != nil {
		return ""
	}
	group := ""
	for line := range strings.Lines(string(b)) { // "2:cpu,cpuacct:/x", "0::/x"
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) < 3 || strings.HasPrefix(f[2], "/.."): // outside of what we see
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			return f[2]
		case f[0] == "0":
			group = f[2]
		}
	}
	for ; len(group) > 1; group = path.Dir(group) {
		if _, err := os.Stat(r.host.Path("sys/fs/cgroup" + group + "/cpu.weight")); err == nil {
			return group
		}
	}
	return group
}

// autogroup is the group of a process's session, "/" where sessions have none.
func (r *reader) autogroup(p *process) string {
	if b, err := r.tree.read("sys/kernel/sched_autogroup_enabled"); err != nil || strings.TrimSpace(string(b)) != "1" {
		return "/"
	}
	b, err := r.tree.read(p.name + "/autogroup")
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(b), " ") // "/autogroup-994 nice 0"
	return name
}

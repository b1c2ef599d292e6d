package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll/internal/model"
)

// What load averages are made of. The tasks tracer counts all threads by looking
// at them now and then; CPU time and waits for a CPU give the runnable ones
// exactly, but only of processes that were read. So where both are there, who
// shows more is right. Without the tracer the kernel tells how many threads wait
// for a disk, and not whose they are.
var (
	loadOne      = mustExpression(`node_load1`)
	loadStates   = mustExpression(`sum by (host, groupname, state) (rate(plimsoll_tasks_state_seconds_total{state=~"runnable|uninterruptible"}[$window]))`)
	loadRunnable = mustExpression(`
		sum by (host, groupname) (rate(namedprocess_namegroup_cpu_seconds_total[$window]))
		+ sum by (host, groupname) (rate(plimsoll_process_run_delay_seconds_total[$window]))`)
	loadBlocked = mustExpression(`avg_over_time(node_procs_blocked[$window])`)
)

// leastShare is below which a process group is not named.
const leastShare = 0.05

// loadAverages splits the load average of each machine.
func (r *run) loadAverages() []model.LoadAverage {
	out := []model.LoadAverage{}
	for _, m := range r.machines() {
		l := model.LoadAverage{Hosts: m}
		for _, s := range r.ask(loadOne).samples {
			if slices.Contains(m, s.labels["host"]) {
				l.Load1 = &s.value
			}
		}
		l.Runnable = larger(r.loadPart(m, loadRunnable, ""), r.loadPart(m, loadStates, "runnable"))
		l.Uninterruptible = r.loadPart(m, loadStates, "uninterruptible")
		if l.Uninterruptible.Threads == nil {
			for _, s := range r.ask(loadBlocked).samples {
				if slices.Contains(m, s.labels["host"]) {
					l.Uninterruptible.Threads = &s.value
				}
			}
		}
		if l.Runnable.Threads != nil || l.Uninterruptible.Threads != nil {
			out = append(out, l)
		}
	}
	return out
}

func larger(a, b model.LoadPart) model.LoadPart {
	if a.Threads == nil || b.Threads != nil && *b.Threads > *a.Threads {
		return b
	}
	return a
}

// machines are the hosts that share a machine, each list sorted.
func (r *run) machines() [][]string {
	hosts := map[string][]string{}
	for _, h := range r.meta.Hosts {
		hosts[machineOf(h)] = append(hosts[machineOf(h)], h.Name)
	}
	var out [][]string
	for _, m := range slices.Sorted(maps.Keys(hosts)) {
		slices.Sort(hosts[m])
		out = append(out, hosts[m])
	}
	slices.SortFunc(out, slices.Compare) // in the order of hosts, not of boot ids
	return out
}

// loadPart adds up the threads of a machine's hosts that are in a state, by
// process group. Where threads were counted, a state that nobody was in is zero.
func (r *run) loadPart(hosts []string, e *expression, state string) model.LoadPart {
	part := model.LoadPart{Groups: []model.LoadGroup{}}
	sums := map[string]float64{}
	total, seen := 0.0, false
	for _, s := range r.ask(e).samples {
		if !slices.Contains(hosts, s.labels["host"]) {
			continue
		}
		seen = true
		if s.labels["state"] == state {
			sums[s.labels["groupname"]] += s.value
			total += s.value
		}
	}
	if !seen {
		return part
	}
	part.Threads = &total
	for name, n := range sums {
		if share := n / total; total > 0 && share >= leastShare {
			part.Groups = append(part.Groups, model.LoadGroup{Name: name, Share: share})
		}
	}
	slices.SortFunc(part.Groups, func(a, b model.LoadGroup) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name))
	})
	return part
}

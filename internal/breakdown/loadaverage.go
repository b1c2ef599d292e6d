package breakdown

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

// What load averages are made of. The tasks tracer counts all threads by looking
// at them now and then; CPU time and waits for a CPU give the runnable ones
// exactly, but only of processes that were read. So where both are there, who
// shows more is right. Without the tracer the kernel tells how many threads wait
// for a disk, and not whose they are.
var (
	loadOne      = query.Fixed(`node_load1`)
	loadStates   = query.Fixed(`sum by (host, groupname, state) (rate(plimsoll_tasks_state_seconds_total{state=~"runnable|uninterruptible"}[$window]))`)
	loadRunnable = query.Fixed(`
		sum by (host, groupname) (rate(namedprocess_namegroup_cpu_seconds_total[$window]))
		+ sum by (host, groupname) (rate(plimsoll_process_run_delay_seconds_total[$window]))`)
	loadBlocked = query.Fixed(`avg_over_time(node_procs_blocked[$window])`)
)

// leastShare is below which a process group is not named.
const leastShare = 0.05

// LoadAverages splits the load average of each machine.
func LoadAverages(q *query.Run) []model.LoadAverage {
	out := []model.LoadAverage{}
	for _, m := range machines(q.Meta().Hosts) {
		l := model.LoadAverage{Hosts: m}
		for _, s := range q.Ask(loadOne()).Samples {
			if slices.Contains(m, s.Labels["host"]) {
				l.Load1 = &s.Value
			}
		}
		l.Runnable = larger(loadPart(q, m, loadRunnable(), ""), loadPart(q, m, loadStates(), "runnable"))
		l.Uninterruptible = loadPart(q, m, loadStates(), "uninterruptible")
		if l.Uninterruptible.Threads == nil {
			for _, s := range q.Ask(loadBlocked()).Samples {
				if slices.Contains(m, s.Labels["host"]) {
					l.Uninterruptible.Threads = &s.Value
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
func machines(list []model.Host) [][]string {
	hosts := map[string][]string{}
	for _, h := range list {
		hosts[query.MachineOf(h)] = append(hosts[query.MachineOf(h)], h.Name)
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
func loadPart(q *query.Run, hosts []string, e *query.Expression, state string) model.LoadPart {
	part := model.LoadPart{Groups: []model.LoadGroup{}}
	sums := map[string]float64{}
	total, seen := 0.0, false
	for _, s := range q.Ask(e).Samples {
		if !slices.Contains(hosts, s.Labels["host"]) {
			continue
		}
		seen = true
		if s.Labels["state"] == state {
			sums[s.Labels["groupname"]] += s.Value
			total += s.Value
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

package remote

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// found are the series of a server, with our labels.
type found struct {
	series []ownSeries
	notes  []string
}

type ownSeries struct {
	host, instance string
	labels         labels.Labels
	points         []record.Point
}

// sorted gives the series our labels: the host, and what the signal declares.
// Everything else that a server adds (job, instance, cluster …) is dropped, so
// that series of one host fit together. What came twice is kept once.
func relabelled(list []series, signals []*model.Signal) *found {
	declared := map[string][]string{}
	for _, s := range signals {
		declared[s.Name] = s.Labels
	}
	apart := sharedAddresses(list, declared)
	byKey := map[string]ownSeries{}
	twice := 0
	for _, s := range list {
		name := s.Metric["__name__"]
		if _, known := declared[name]; !known || len(s.Values) == 0 {
			continue
		}
		host := hostOf(s.Metric, apart)
		own := ownSeries{host: host, instance: s.Metric["instance"], labels: ownLabels(s.Metric, host, declared[name]), points: inOrder(s.Values)}
		key := own.labels.String()
		other, taken := byKey[key]
		if taken {
			twice++
		}
		if !taken || len(own.points) > len(other.points) || len(own.points) == len(other.points) && own.instance < other.instance {
			byKey[key] = own
		}
	}
	f := new(found)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		f.series = append(f.series, byKey[key])
	}
	if twice > 0 {
		f.notes = append(f.notes, fmt.Sprintf("%d series came more than once, as two jobs scrape the same; the one with most readings was taken", twice))
	}
	return f
}

// hostOf names the host of a series: its label host, else its instance without
// the port, unless several instances at that address have the same series.
func hostOf(metric map[string]string, apart map[string]bool) string {
	if h := metric["host"]; h != "" {
		return h
	}
	instance := metric["instance"]
	if h := hostPart(instance); h != "" && !apart[h] {
		return h
	}
	return cmp.Or(instance, "unnamed")
}

// sharedAddresses are those at which two instances have the same series, so
// that they are hosts of their own and told by their ports.
func sharedAddresses(list []series, declared map[string][]string) map[string]bool {
	first := map[string]string{}
	apart := map[string]bool{}
	for _, s := range list {
		instance := s.Metric["instance"]
		host := hostPart(instance)
		key := ownLabels(s.Metric, host, declared[s.Metric["__name__"]]).String()
		if other, ok := first[key]; ok && other != instance {
			apart[host] = true
		}
		first[key] = instance
	}
	return apart
}

func ownLabels(metric map[string]string, host string, declared []string) labels.Labels {
	b := labels.NewScratchBuilder(len(declared) + 2)
	b.Add("__name__", metric["__name__"])
	b.Add("host", host)
	for _, name := range declared {
		if v := metric[name]; v != "" && name != "host" {
			b.Add(name, v)
		}
	}
	b.Sort()
	return b.Labels()
}

// inOrder returns the readings by time, each moment once.
func inOrder(values []point) []record.Point {
	points := make([]record.Point, len(values))
	for i, v := range values {
		points[i] = record.Point(v)
	}
	slices.SortStableFunc(points, func(a, b record.Point) int { return cmp.Compare(a.Time, b.Time) })
	return slices.CompactFunc(points, func(a, b record.Point) bool { return a.Time == b.Time })
}

// interval is the time between two readings in milliseconds, the median over
// the series, of each its median: some are scraped more often than others.
func (f *found) interval() int64 {
	var all []int64
	for _, s := range f.series {
		var gaps []int64
		for i := 1; i < len(s.points); i++ {
			gaps = append(gaps, s.points[i].Time-s.points[i-1].Time)
		}
		if len(gaps) > 0 {
			slices.Sort(gaps)
			all = append(all, gaps[len(gaps)/2])
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// names lists the hosts that were found.
func (f *found) names() []string {
	all := map[string]bool{}
	for _, s := range f.series {
		all[s.host] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// only is what was found of one host.
func (f *found) only(host string) *found {
	own := &found{notes: f.notes}
	for _, s := range f.series {
		if s.host == host {
			own.series = append(own.series, s)
		}
	}
	return own
}

func (f *found) memory() *record.Memory {
	m := new(record.Memory)
	for _, s := range f.series {
		m.Add(s.labels, s.points)
	}
	m.Sort()
	return m
}

// hosts lists the hosts, by name, with what the series tell of them, and of their machines what
// exporters of ours say in infos.
func (f *found) hosts(infos []series) []model.Host {
	machines := map[string]map[string]string{}
	for _, s := range infos {
		machines[s.Metric["host"]] = s.Metric
	}
	instances := map[string][]string{}
	cpus := map[string]map[string]bool{}
	for _, s := range f.series {
		if !slices.Contains(instances[s.host], s.instance) {
			instances[s.host] = append(instances[s.host], s.instance)
		}
		if s.labels.Get("__name__") == "node_cpu_seconds_total" {
			if cpus[s.host] == nil {
				cpus[s.host] = map[string]bool{}
			}
			cpus[s.host][s.labels.Get("cpu")] = true
		}
	}
	var list []model.Host
	for _, name := range slices.Sorted(maps.Keys(instances)) {
		slices.Sort(instances[name])
		list = append(list, model.Host{Name: name, Spec: strings.Join(instances[name], " "), CPUs: len(cpus[name]),
			Machine: machines[name]["machine"], Kernel: machines[name]["kernel"]})
	}
	return list
}

// status says of each host which signals the server has in the windows, which
// begin at start. The others are absent, never zero: nobody collected them, unless an exporter of
// ours says that it read them and there was none. Of an answer that was not whole nobody knows what
// is missing, whatever an exporter says.
func (f *found) status(signals []*model.Signal, start int64, all *taken) map[string]map[string]model.Status {
	status := map[string]map[string]model.Status{}
	for _, s := range f.series {
		if status[s.host] == nil {
			status[s.host] = map[string]model.Status{}
			for _, sig := range signals {
				status[s.host][sig.Name] = model.Status{State: model.Absent, Why: absence(sig.Name)}
			}
		}
		if n := len(s.points); n > 0 && s.points[n-1].Time >= start {
			status[s.host][s.labels.Get("__name__")] = model.Status{State: model.Read}
		}
	}
	for _, s := range all.states {
		of, name := status[s.Metric["host"]], s.Metric["signal"]
		if _, asked := of[name]; !asked {
			continue
		}
		switch state := model.State(s.Metric["state"]); state {
		case model.Read:
			of[name] = model.Status{State: state}
		case model.Absent, model.Denied, model.Failed:
			of[name] = model.Status{State: state, Why: "its exporter says so; plimsoll doctor there says why"}
		}
	}
	for name, why := range all.partial {
		for _, of := range status {
			of[name] = model.Status{State: model.Failed, Why: "the server's answer was not whole: " + why}
		}
	}
	return status
}

package page

import (
	"slices"

	"plimsoll/internal/page/svg"
)

// view is a chart of a host: what it is of, and how it is drawn. Grafana is told the same.
type view struct {
	plot
	signal  string // whose status tells why there is none of it
	machine bool   // it is the kernel's, not the namespace's
	lines   []source
	// limit is what the lines are held against, of several the smallest; nil for nothing.
	limit *source
	cpus  bool // the number of CPUs is their limit
	// read has what lines do not say, and expr what it does, in PromQL for $host.
	read func(r *reader, host string) []course
	expr string
}

// source is what lines are of: a signal's series, added up but for one label.
type source struct {
	name   string // of the line, where it is not the label's value
	signal string
	form   form
	per    string // a signal by whose growth that of signal is divided
	by     string // a line for each value of this label, the highest
	match  []string
}

// mostLines is how many lines a chart shows, the highest.
const mostLines = 5

// top is a line for each value of a label, of which the highest are shown.
func top(signal string, f form, by string, match ...string) []source {
	return []source{{signal: signal, form: f, by: by, match: match}}
}

// together is a line for each of several signals, which come in pairs of a name and a signal.
func together(f form, pairs ...string) []source {
	var list []source
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, source{name: pairs[i], signal: pairs[i+1], form: f})
	}
	return list
}

func limitedBy(name, signal string) *source { return &source{name: name, signal: signal} }

// views are the charts of a host, from the requests over the processors to the processes.
func views() []view {
	return []view{
		{plot: plot{title: "Requests that began, by listener", unit: aSecond}, signal: "plimsoll_requests_begun_total", lines: top("plimsoll_requests_begun_total", rate, "listen")},
		{plot: plot{title: "How long a service had them, mean", unit: seconds}, signal: "plimsoll_requests_served_seconds_sum",
			lines: []source{{signal: "plimsoll_requests_served_seconds_sum", form: rate, per: "plimsoll_requests_served_seconds_count", by: "groupname"}}},
		{plot: plot{title: "CPU, by mode", unit: ratios, stacked: true, top: 1}, signal: "node_cpu_seconds_total", machine: true, read: cpuByMode,
			expr: `sum by (mode) (rate(node_cpu_seconds_total{host="$host",mode!="idle"}[$__rate_interval])) / scalar(count(node_cpu_seconds_total{host="$host",mode="idle"}))`},
		{plot: plot{title: "Threads that run or want to", unit: numberOf("threads")}, signal: "node_procs_running", machine: true, cpus: true,
			lines: together(level, "running or ready", "node_procs_running", "in uninterruptible sleep", "node_procs_blocked")},
		{plot: plot{title: "Pressure: share of time in which somebody waited", unit: ratios}, signal: "node_pressure_cpu_waiting_seconds_total", machine: true,
			lines: together(rate, "CPU", "node_pressure_cpu_waiting_seconds_total", "I/O", "node_pressure_io_waiting_seconds_total", "memory", "node_pressure_memory_waiting_seconds_total")},
		{plot: plot{title: "Memory", unit: bytesHeld}, signal: "node_memory_MemAvailable_bytes", machine: true, limit: limitedBy("total", "node_memory_MemTotal_bytes"),
			lines: together(level, "available", "node_memory_MemAvailable_bytes", "cached", "node_memory_Cached_bytes")},
		{plot: plot{title: "Disks: busy", unit: ratios}, signal: "node_disk_io_time_seconds_total", machine: true, lines: top("node_disk_io_time_seconds_total", rate, "device")},
		{plot: plot{title: "Disks: bytes", unit: bytesASecond}, signal: "node_disk_written_bytes_total", machine: true,
			lines: together(rate, "read", "node_disk_read_bytes_total", "written", "node_disk_written_bytes_total")},
		{plot: plot{title: "Links: received", unit: bytesASecond}, signal: "node_network_receive_bytes_total", lines: top("node_network_receive_bytes_total", rate, "device")},
		{plot: plot{title: "Links: sent", unit: bytesASecond}, signal: "node_network_transmit_bytes_total", lines: top("node_network_transmit_bytes_total", rate, "device")},
		{plot: plot{title: "TCP sockets", unit: numberOf("sockets")}, signal: "node_sockstat_TCP_inuse",
			lines: together(level, "in use", "node_sockstat_TCP_inuse", "TIME_WAIT", "node_sockstat_TCP_tw")},
		{plot: plot{title: "Sockets, by destination", unit: numberOf("sockets")}, signal: "plimsoll_tcp_destination_sockets", lines: top("plimsoll_tcp_destination_sockets", level, "dst")},
		{plot: plot{title: "Local ports used, by destination", unit: numberOf("ports")}, signal: "plimsoll_tcp_destination_ports_used", limit: limitedBy("usable", "plimsoll_tcp_destination_ports_usable"),
			lines: top("plimsoll_tcp_destination_ports_used", level, "dst")},
		{plot: plot{title: "Listen queues", unit: numberOf("waiting")}, signal: "plimsoll_tcp_listen_queue", lines: top("plimsoll_tcp_listen_queue", level, "listen")},
		{plot: plot{title: "Dropped at a listener", unit: aSecond}, signal: "plimsoll_tcp_listen_drops_total", lines: top("plimsoll_tcp_listen_drops_total", rate, "listen")},
		{plot: plot{title: "Segments sent again", unit: aSecond}, signal: "node_netstat_Tcp_RetransSegs", lines: together(rate, "sent again", "node_netstat_Tcp_RetransSegs")},
		{plot: plot{title: "Tracked connections", unit: numberOf("entries")}, signal: "node_nf_conntrack_entries", limit: limitedBy("limit", "node_nf_conntrack_entries_limit"),
			lines: together(level, "entries", "node_nf_conntrack_entries")},
		{plot: plot{title: "PHP-FPM workers", unit: numberOf("workers")}, signal: "phpfpm_active_processes", limit: limitedBy("pm.max_children", "plimsoll_phpfpm_config_max_children"),
			lines: together(level, "active", "phpfpm_active_processes", "idle", "phpfpm_idle_processes")},
		{plot: plot{title: "nginx connections", unit: numberOf("connections")}, signal: "nginx_connections_active",
			lines: together(level, "active", "nginx_connections_active", "waiting", "nginx_connections_waiting")},
		{plot: plot{title: "CPU of processes", unit: numberOf("CPUs")}, signal: "namedprocess_namegroup_cpu_seconds_total", lines: top("namedprocess_namegroup_cpu_seconds_total", rate, "groupname")},
		{plot: plot{title: "Ready, but not on a CPU", unit: numberOf("threads")}, signal: "plimsoll_process_run_delay_seconds_total", lines: top("plimsoll_process_run_delay_seconds_total", rate, "groupname")},
		{plot: plot{title: "Memory of processes", unit: bytesHeld}, signal: "namedprocess_namegroup_memory_bytes", lines: top("namedprocess_namegroup_memory_bytes", level, "groupname", "memtype", "resident")},
	}
}

// courses reads what a view shows of a host; nothing where all is zero throughout.
func (v view) courses(r *reader, host string) []course {
	if v.read != nil {
		return v.read(r, host)
	}
	var list []course
	for _, q := range v.lines {
		found := q.courses(r, host)
		if q.by != "" {
			found = largest(found, mostLines)
		}
		list = append(list, found...)
	}
	if !slices.ContainsFunc(list, course.moves) {
		return nil
	}
	return list
}

func (q source) courses(r *reader, host string) []course {
	match := append([]string{"host", host}, q.match...)
	list := r.courses(q.signal, q.form, q.by, match...)
	if q.per != "" {
		list = divided(list, r.courses(q.per, q.form, q.by, match...))
	}
	if q.by == "" {
		for i := range list {
			list[i].name = q.name
		}
	}
	return list
}

// divided has courses over those of the same names, at the times at which the latter are not zero.
func divided(list, by []course) []course {
	var out []course
	for _, c := range list {
		i := slices.IndexFunc(by, func(d course) bool { return d.name == c.name })
		if i < 0 {
			continue
		}
		under := map[int64]float64{}
		for _, p := range by[i].points {
			under[p.Time] = p.Value
		}
		of := course{name: c.name}
		for _, p := range c.points {
			if n := under[p.Time]; n > 0 {
				of.points = append(of.points, svg.Point{Time: p.Time, Value: p.Value / n})
			}
		}
		if len(of.points) > 0 {
			out = append(out, of)
		}
	}
	return out
}

// modes are the processor's, in the order in which they are stacked.
var modes = []string{"user", "nice", "system", "softirq", "irq", "steal", "iowait"}

// cpuByMode is the share of all CPUs that each mode took.
func cpuByMode(r *reader, host string) []course {
	byMode := r.courses("node_cpu_seconds_total", rate, "mode", "host", host)
	cpus := len(r.courses("node_cpu_seconds_total", level, "cpu", "host", host, "mode", "idle"))
	var list []course
	for _, mode := range modes {
		i := slices.IndexFunc(byMode, func(c course) bool { return c.name == mode })
		if i >= 0 && byMode[i].moves() && (len(list) == 0 || sameTimes(list[0], byMode[i])) {
			list = append(list, byMode[i])
		}
	}
	return scaled(list, 1/float64(max(cpus, 1)))
}

// sameTimes says whether two courses can be stacked.
func sameTimes(a, b course) bool {
	return slices.EqualFunc(a.points, b.points, func(p, q svg.Point) bool { return p.Time == q.Time })
}

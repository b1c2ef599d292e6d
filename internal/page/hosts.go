package page

import (
	"slices"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
)

// Host is what is shown of one host: small charts on one axis of time.
type Host struct {
	model.Host
	ID      int // its place on the page
	Figures []Figure
	// Quiet are what was read and is zero throughout, or is not there.
	Quiet []string
	// Unseen are what was not read, and why.
	Unseen []string
	// SharesWith is the host under which the machine's own charts are, "" for here.
	SharesWith string
}

// view is a chart of a host: whence it comes and how it is drawn.
type view struct {
	plot
	signal  string // whose status tells why there is none of it
	machine bool   // it is the kernel's, not the namespace's
	read    func(r *reader, host string) []course
	more    func(r *reader, h model.Host, p *plot)
}

// mostLines is how many lines a chart shows, the highest.
const mostLines = 5

// top reads the highest of a signal's courses, by a label.
func top(signal string, f form, by string, match ...string) func(*reader, string) []course {
	return func(r *reader, host string) []course {
		return largest(r.courses(signal, f, by, append([]string{"host", host}, match...)...), mostLines)
	}
}

// together reads several signals as a line each.
func together(f form, pairs ...string) func(*reader, string) []course {
	return func(r *reader, host string) []course {
		var list []course
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, r.one(pairs[i], pairs[i+1], f, "host", host)...)
		}
		if !slices.ContainsFunc(list, course.moves) {
			return nil
		}
		return list
	}
}

// views are the charts of a host, from the processors to the processes.
func views() []view {
	return []view{
		{plot: plot{title: "CPU, by mode", format: share, stacked: true, top: 1}, signal: "node_cpu_seconds_total", machine: true, read: cpuByMode},
		{plot: plot{title: "Threads that run or want to", format: brief, unit: "threads"}, signal: "node_procs_running", machine: true,
			read: together(level, "running or ready", "node_procs_running", "in uninterruptible sleep", "node_procs_blocked"), more: cpuLimit},
		{plot: plot{title: "Pressure: share of time in which somebody waited", format: share}, signal: "node_pressure_cpu_waiting_seconds_total", machine: true,
			read: together(rate, "CPU", "node_pressure_cpu_waiting_seconds_total", "I/O", "node_pressure_io_waiting_seconds_total", "memory", "node_pressure_memory_waiting_seconds_total")},
		{plot: plot{title: "Memory", format: size, binary: true}, signal: "node_memory_MemAvailable_bytes", machine: true,
			read: together(level, "available", "node_memory_MemAvailable_bytes", "cached", "node_memory_Cached_bytes"), more: levelLimit("total", "node_memory_MemTotal_bytes")},
		{plot: plot{title: "Disks: busy", format: share}, signal: "node_disk_io_time_seconds_total", machine: true, read: top("node_disk_io_time_seconds_total", rate, "device")},
		{plot: plot{title: "Disks: bytes", format: sizePerSecond, binary: true}, signal: "node_disk_written_bytes_total", machine: true,
			read: together(rate, "read", "node_disk_read_bytes_total", "written", "node_disk_written_bytes_total")},
		{plot: plot{title: "Links: received", format: sizePerSecond, binary: true}, signal: "node_network_receive_bytes_total", read: top("node_network_receive_bytes_total", rate, "device")},
		{plot: plot{title: "Links: sent", format: sizePerSecond, binary: true}, signal: "node_network_transmit_bytes_total", read: top("node_network_transmit_bytes_total", rate, "device")},
		{plot: plot{title: "TCP sockets", format: brief, unit: "sockets"}, signal: "node_sockstat_TCP_inuse",
			read: together(level, "in use", "node_sockstat_TCP_inuse", "TIME_WAIT", "node_sockstat_TCP_tw")},
		{plot: plot{title: "Sockets, by destination", format: brief, unit: "sockets"}, signal: "plimsoll_tcp_destination_sockets", read: top("plimsoll_tcp_destination_sockets", level, "dst")},
		{plot: plot{title: "Local ports used, by destination", format: brief, unit: "ports"}, signal: "plimsoll_tcp_destination_ports_used", read: top("plimsoll_tcp_destination_ports_used", level, "dst"),
			more: levelLimit("usable", "plimsoll_tcp_destination_ports_usable")},
		{plot: plot{title: "Listen queues", format: brief, unit: "waiting"}, signal: "plimsoll_tcp_listen_queue", read: top("plimsoll_tcp_listen_queue", level, "listen")},
		{plot: plot{title: "Dropped at a listener", format: perSecond}, signal: "plimsoll_tcp_listen_drops_total", read: top("plimsoll_tcp_listen_drops_total", rate, "listen")},
		{plot: plot{title: "Segments sent again", format: perSecond}, signal: "node_netstat_Tcp_RetransSegs", read: together(rate, "sent again", "node_netstat_Tcp_RetransSegs")},
		{plot: plot{title: "Tracked connections", format: brief, unit: "entries"}, signal: "node_nf_conntrack_entries", read: together(level, "entries", "node_nf_conntrack_entries"),
			more: levelLimit("limit", "node_nf_conntrack_entries_limit")},
		{plot: plot{title: "PHP-FPM workers", format: brief, unit: "workers"}, signal: "phpfpm_active_processes",
			read: together(level, "active", "phpfpm_active_processes", "idle", "phpfpm_idle_processes"), more: levelLimit("pm.max_children", "plimsoll_phpfpm_config_max_children")},
		{plot: plot{title: "nginx connections", format: brief, unit: "connections"}, signal: "nginx_connections_active",
			read: together(level, "active", "nginx_connections_active", "waiting", "nginx_connections_waiting")},
		{plot: plot{title: "CPU of processes", format: brief, unit: "CPUs"}, signal: "namedprocess_namegroup_cpu_seconds_total", read: top("namedprocess_namegroup_cpu_seconds_total", rate, "groupname")},
		{plot: plot{title: "Ready, but not on a CPU", format: brief, unit: "threads"}, signal: "plimsoll_process_run_delay_seconds_total", read: top("plimsoll_process_run_delay_seconds_total", rate, "groupname")},
		{plot: plot{title: "Memory of processes", format: size, binary: true}, signal: "namedprocess_namegroup_memory_bytes", read: top("namedprocess_namegroup_memory_bytes", level, "groupname", "memtype", "resident")},
	}
}

// host draws all views of one host. seen are the machines whose own charts are drawn.
func (r *reader) host(h model.Host, seen map[string]string) Host {
	out := Host{Host: h, SharesWith: seen[h.Machine]}
	if h.Machine != "" && out.SharesWith == "" {
		seen[h.Machine] = h.Name
	}
	for _, v := range views() {
		if v.machine && out.SharesWith != "" {
			continue
		}
		list := v.read(r, h.Name)
		if v.more != nil && len(list) > 0 {
			v.more(r, h, &v.plot)
		}
		if f := r.figure(v.plot, list); f != nil {
			out.Figures = append(out.Figures, *f)
			continue
		}
		if s := r.meta.Status[h.Name][v.signal]; s.State == model.Read {
			out.Quiet = append(out.Quiet, v.title)
		} else if s.Why != "" {
			out.Unseen = append(out.Unseen, v.title+" ("+string(s.State)+": "+s.Why+")")
		} else {
			out.Unseen = append(out.Unseen, v.title+" (was not looked for)")
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

func cpuLimit(_ *reader, h model.Host, p *plot) {
	if h.CPUs > 0 {
		p.limits = []svg.Limit{{Value: float64(h.CPUs), Text: brief(float64(h.CPUs)) + " CPUs"}}
	}
}

// levelLimit draws a signal's last value as a limit; of several the smallest.
func levelLimit(name, signal string) func(*reader, model.Host, *plot) {
	return func(r *reader, h model.Host, p *plot) {
		least, known := 0.0, false
		for s, err := range r.rec.Series(r.first, r.last, matchHost(signal, h.Name)...) {
			if err == nil && (!known || s.Last() < least) {
				least, known = s.Last(), true
			}
		}
		if known {
			p.limits = []svg.Limit{{Value: least, Text: strings.TrimSpace(name + " " + p.format(least))}}
		}
	}
}

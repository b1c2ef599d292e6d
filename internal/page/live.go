package page

import (
	"bytes"
	"html/template"
	"slices"

	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/record"
)

// mostLive is how many charts are shown of a run that lasts.
const mostLive = 5

// Live draws a run that lasts: rec holds its last minutes, seconds are the load's so far. Each
// chart is HTML by itself.
func Live(rec *record.Run, seconds []model.Second) ([]template.HTML, error) {
	r, err := newReader(rec)
	if err != nil {
		return nil, nil // nothing was read yet
	}
	replies, _ := r.outcomes()
	list := []*Figure{
		r.figure(plot{title: "Requests, by what became of them", unit: aSecond, wide: true, height: 150}, replies),
		r.figure(plot{title: "Latency of replies", note: "by second; logarithmic", unit: waits, wide: true, log: true, height: 150, noPeak: true}, r.quantiles(seconds)),
		r.figure(plot{title: "CPU in use", unit: ratios, top: 1, wide: true, height: 110}, r.busyHosts()),
		r.figure(plot{title: "Threads that run or want to", unit: numberOf("threads"), wide: true, height: 110}, r.byHost("node_procs_running", level)),
		r.figure(plot{title: "TCP sockets in use", unit: numberOf("sockets"), wide: true, height: 110}, r.byHost("node_sockstat_TCP_inuse", level)),
		r.figure(plot{title: "Pressure: share of time in which somebody waited for a CPU", unit: ratios, top: 1, wide: true, height: 110}, r.byHost("node_pressure_cpu_waiting_seconds_total", rate)),
		r.figure(plot{title: "Pressure: share of time in which somebody waited for a disk", unit: ratios, top: 1, wide: true, height: 110}, r.byHost("node_pressure_io_waiting_seconds_total", rate)),
	}
	if r.err != nil {
		return nil, r.err
	}
	var out []template.HTML
	for _, f := range list {
		if f == nil || len(out) == mostLive {
			continue
		}
		f.Data = "" // what the page's script reads, which is not there
		var doc bytes.Buffer
		if err := page().ExecuteTemplate(&doc, "figure", f); err != nil {
			return nil, err
		}
		out = append(out, template.HTML(doc.String()))
	}
	return out, nil
}

// WaySignals are what Way reads of a run besides what was judged.
var WaySignals = []string{
	"node_cpu_seconds_total", "node_disk_io_time_seconds_total", "node_nf_conntrack_entries", "node_nf_conntrack_entries_limit",
	"plimsoll_load_connections", "plimsoll_nginx_config_worker_connections", "plimsoll_nginx_worker_connections_used",
	"plimsoll_phpfpm_config_max_children", "plimsoll_phpfpm_pool_info", "plimsoll_tcp_destination_ports_usable", "plimsoll_tcp_destination_ports_used",
	"plimsoll_tcp_listen_accepted", "plimsoll_tcp_listen_queue", "plimsoll_tcp_listen_queue_limit",
}

// Way is the way of a request as far as it is known of a run that lasts, by the verdict so far; nothing before
// anything was read.
func Way(rec *record.Run, v model.Verdict) ([]Stage, error) {
	r, err := newReader(rec)
	if err != nil {
		return nil, nil // nothing was read yet
	}
	list := r.line(model.Report{Plan: r.meta.Plan, Hosts: r.meta.Hosts, Verdict: v})
	return list, r.err
}

// DrawWay draws the way of a request; "" where nothing of it is known.
func DrawWay(list []Stage) (template.HTML, error) {
	if len(list) == 0 {
		return "", nil
	}
	var doc bytes.Buffer
	err := page().ExecuteTemplate(&doc, "stages", list)
	return template.HTML(doc.String()), err
}

// quantiles are the p99 and the p50 of each second in which a reply came.
func (r *reader) quantiles(seconds []model.Second) []course {
	high, mid := course{name: "p99"}, course{name: "p50"}
	for _, s := range seconds {
		if s.P99 > 0 && s.Time >= r.first {
			high.points = append(high.points, svg.Point{Time: s.Time, Value: s.P99})
			mid.points = append(mid.points, svg.Point{Time: s.Time, Value: max(s.P50, 1)})
		}
	}
	if len(high.points) == 0 {
		return nil
	}
	return []course{high, mid}
}

// byHost is a line for each host, the highest.
func (r *reader) byHost(signal string, f form) []course {
	list := asOne(r.courses(signal, f, "host"))
	return list[:min(len(list), mostLines)]
}

// asOne has hosts share a line whose readings are the same throughout: those of one machine.
func asOne(list []course) []course {
	var out []course
	for _, c := range list {
		i := slices.IndexFunc(out, func(o course) bool { return slices.Equal(o.points, c.points) })
		if i < 0 {
			out = append(out, c)
		} else {
			out[i].name += ", " + c.name
		}
	}
	return out
}

// busyHosts is how much of each host's processors is in use. What is held of a run that
// lasts is added up over them.
func (r *reader) busyHosts() []course {
	var all []course
	for _, host := range r.courses("node_cpu_seconds_total", level, "host") {
		byMode := r.courses("node_cpu_seconds_total", rate, "mode", "host", host.name)
		whole := map[int64]float64{}
		for _, p := range summed("", byMode).points {
			whole[p.Time] = p.Value
		}
		busy := summed(host.name, slices.DeleteFunc(byMode, func(c course) bool { return c.name == "idle" || c.name == "iowait" }))
		busy.points = slices.DeleteFunc(busy.points, func(p svg.Point) bool { return whole[p.Time] <= 0 })
		for i, p := range busy.points {
			busy.points[i].Value = p.Value / whole[p.Time]
		}
		all = append(all, busy)
	}
	all = asOne(all)
	return all[:min(len(all), mostLines)]
}

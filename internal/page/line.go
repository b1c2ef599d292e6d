package page

import (
	"html/template"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
)

// Stage is a place on a request's way from the client to what it waits for last.
type Stage struct {
	Name  string
	Where string // host and process
	State string // "binds", "followed", "clear", "unseen", another answer than these, or "" where nothing was judged
	// Load against its limit, as words and as a bar; "" where neither is known.
	Load string
	Bar  template.HTML
	// Full is the share of its limit that it carried at most, nil where one of them is not known.
	Full *float64
	// Queue is how many waited there.
	Queue string
	// Share is its part of the mean request's time.
	Share    string
	ShareBar template.HTML
	// Says is the sentence that decided; Rule whose it is.
	Says, Rule string
	// More is how many other rules about this stage were ruled out.
	More int

	host, process string
	noun          string   // what is counted there
	listens       []string // where its process listens
	rules         []string // prefixes of the rules about it
	parts         []string // names of parts of the mean request's time
	findings      []model.Finding
}

// Rules belong to the stage whose prefix is the longest that fits.
var (
	generatorRules = []string{"load."}
	portRules      = []string{"net.ports.", "net.time_wait.", "load.no_ports"}
	networkRules   = []string{"net."}
	queueRules     = []string{"net.listen.", "net.syn_flood", "load.connect_refused"}
	workerRules    = []string{"nginx.", "phpfpm.", "haproxy.", "varnish.", "memcached.", "redis.", "postgres.", "mysql.", "app.", "process.descriptors", "process.nproc", "process.stopped", "process.ended", "net.keepalive_mismatch", "net.udp"}
	upstreamRules  = []string{"app.upstream", "app.slow_upstream", "app.resolver", "nginx.upstream", "nginx.gateway_timeout", "nginx.bad_gateway"}
	cpuRules       = []string{"cpu.", "sched.", "cgroup.cpu", "app.slow_compute", "app.costly_requests", "app.tls_handshakes", "process.cpu_function", "process.small_calls", "process.short_lived", "process.zombies"}
	memoryRules    = []string{"memory.", "cgroup.memory", "cgroup.pids", "net.tcp.out_of_memory", "kernel."}
	diskRules      = []string{"disk.", "fs.", "cgroup.io"}
	waitRules      = []string{"net.unix", "process.blocked", "process.held_up", "process.stands_still", "process.pipe_unread", "app.loop"}
)

// programs are how the titles of the programs begin that rules of this name are about.
var programs = map[string][]string{
	"nginx": {"nginx"}, "phpfpm": {"php-fpm"}, "haproxy": {"haproxy"}, "memcached": {"memcached"}, "varnish": {"varnishd", "cache-main"},
	"redis": {"redis", "valkey"}, "postgres": {"postgres"}, "mysql": {"mysqld", "mariadbd"},
}

// programsOf are the programs that a rule is about, none for one about any program.
func programsOf(rule string) []string {
	kind, _, _ := strings.Cut(rule, ".")
	return programs[kind]
}

// line is the way of a request: the stages with what each carried, what it can carry,
// and what was judged of it.
func (r *reader) line(rep model.Report) []Stage {
	list := r.stages(rep)
	told := slices.Concat(rep.Verdict.Root, rep.Verdict.Grounds)
	for i, f := range slices.Concat(told, rep.Verdict.Findings, rep.Verdict.RuledOut, rep.Verdict.Unknown) {
		if f.Kind == "symptom" || f.Kind == "healthy" || i >= len(told) && report.Told(rep.Verdict, f) {
			continue
		}
		fit := stagesOf(list, f)
		if fit == nil && judged(f) && programsOf(f.Rule) != nil {
			list = withProgram(list, f)
			fit = stagesOf(list, f)
		}
		if fit == nil && report.Told(rep.Verdict, f) { // of a site's own rule, or of what is on no request's way
			fit, list = []int{len(list)}, append(list, Stage{Name: "Elsewhere", Where: report.Subject(f.Subject)})
		}
		for _, i := range fit {
			list[i].findings = append(list[i].findings, f)
		}
	}
	for i := range list {
		list[i].judge(rep.Verdict)
	}
	if rep.Breakdown != nil && rep.Breakdown.MeanSeconds > 0 {
		shares(list, rep.Breakdown)
	}
	return slices.DeleteFunc(list, func(s Stage) bool { return s.State == "" && s.Load == "" && s.Share == "" })
}

// judged says whether a rule had something to judge by, and did.
func judged(f model.Finding) bool { return f.Answer != model.UnknownState && !report.NothingToJudge(f) }

// withProgram adds the place of a program that a finding is about and that the mean request's time does not name,
// before what its host waits for elsewhere.
func withProgram(list []Stage, f model.Finding) []Stage {
	host, process := f.Subject["host"], programsOf(f.Rule)[0]
	s := Stage{Name: "Workers", Where: host + " " + process, host: host, process: process, rules: workerRules}
	at := slices.IndexFunc(list, func(o Stage) bool { return o.host == host && o.Name == "Upstream" })
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(list, at, s)
}

// stages lists the places on the way, as far as this run has them.
func (r *reader) stages(rep model.Report) []Stage {
	var list []Stage
	for _, gen := range rep.Plan.From() {
		list = append(list,
			r.gauged(Stage{Name: "Load generator", Where: gen, host: gen, noun: " connections", rules: generatorRules, parts: []string{"late", "queue", "connect_lag", "reply_unread"}}, "plimsoll_load_connections", "", "state", "open"),
			r.gauged(Stage{Name: "Local ports", Where: gen, host: gen, noun: " ports", rules: portRules}, "plimsoll_tcp_destination_ports_used", "plimsoll_tcp_destination_ports_usable"))
	}
	network := Stage{Name: "Network, packet filter", noun: " tracked connections", rules: networkRules, parts: []string{"connect", "connect_call", "syn_wait"}}
	list = append(list, r.gauged(network, "node_nf_conntrack_entries", "node_nf_conntrack_entries_limit"))
	for _, p := range r.servers(rep) {
		q := Stage{Name: "Listen queue", Where: p.host + " " + p.process, host: p.host, process: p.process, listens: p.listens, noun: " places", rules: queueRules, parts: []string{"accept_queue"}}
		list = append(list, r.gauged(q, "plimsoll_tcp_listen_queue", "plimsoll_tcp_listen_queue_limit", "owner", p.process))
		list = append(list, r.workers(p))
	}
	for _, h := range rep.Hosts {
		if slices.Contains(rep.Plan.From(), h.Name) && len(rep.Hosts) > 1 {
			continue
		}
		list = append(list,
			Stage{Name: "Upstream", Where: h.Name, host: h.Name, rules: upstreamRules, parts: []string{"upstream"}},
			r.busy(Stage{Name: "CPUs", Where: h.Name, host: h.Name, rules: cpuRules, parts: []string{"cpu_user", "cpu_system", "cpu_wait"}}, cpuBusy(r, h.Name)),
			Stage{Name: "Memory, kernel tables", Where: h.Name, host: h.Name, rules: memoryRules},
			r.busy(Stage{Name: "Disks", Where: h.Name, host: h.Name, rules: diskRules, parts: []string{"disk"}}, largest(r.courses("node_disk_io_time_seconds_total", rate, "device", "host", h.Name), 1)),
			Stage{Name: "Locks and other waits", Where: h.Name, host: h.Name, rules: waitRules, parts: []string{"blocked"}})
	}
	return list
}

// server is a process on the way.
type server struct {
	host, process string
	listens       []string
}

// servers are the processes that the mean request's time names, in the order in which a
// request meets them; else those who accepted most.
func (r *reader) servers(rep model.Report) []server {
	var list []server
	var walk func([]model.BreakdownPart)
	walk = func(parts []model.BreakdownPart) {
		for _, p := range parts {
			known := slices.ContainsFunc(list, func(s server) bool { return s.host == p.Host && s.process == p.Process })
			if p.Name == "accept_queue" && p.Process != "" && !known {
				list = append(list, server{p.Host, p.Process, r.listens(p.Host, p.Process)})
			}
			walk(p.Parts)
		}
	}
	if rep.Breakdown != nil {
		walk(rep.Breakdown.Parts)
		return list
	}
	for _, h := range rep.Hosts {
		for _, c := range largest(r.courses("plimsoll_tcp_listen_accepted", rate, "owner", "host", h.Name), 2) {
			list = append(list, server{h.Name, c.name, r.listens(h.Name, c.name)})
		}
	}
	return list
}

// listens are the addresses at which a process accepts connections.
func (r *reader) listens(host, process string) []string {
	var list []string
	for _, c := range r.courses("plimsoll_tcp_listen_queue_limit", level, "listen", "host", host, "owner", process) {
		list = append(list, c.name)
	}
	return list
}

// workers is the stage of those who serve: PHP-FPM's pool and nginx's connections have a limit.
func (r *reader) workers(p server) Stage {
	s := Stage{Name: "Workers", Where: p.host + " " + p.process, host: p.host, process: p.process, listens: p.listens, rules: workerRules, parts: []string{"unread"}}
	switch {
	case strings.HasPrefix(p.process, "php-fpm"):
		s.noun = " workers with a connection"
		return r.gaugedBy(s, "plimsoll_tcp_listen_accepted", r.poolSizes(p.host), "host", p.host, "owner", p.process)
	case p.process == "nginx":
		s.noun = " connections"
		return r.gauged(s, "plimsoll_nginx_worker_connections_used", "plimsoll_nginx_config_worker_connections")
	}
	return s
}

// gauged fills in what a stage carried at most, against its limit. Of several (ports by
// destination, queues by listener) it is the one that came closest.
func (r *reader) gauged(s Stage, load, limit string, match ...string) Stage {
	if s.host != "" {
		match = append([]string{"host", s.host}, match...)
	}
	limits := map[string]float64{}
	if limit != "" {
		for l, err := range r.rec.Series(r.first, r.last, record.Match(limit, match...)...) {
			if err == nil {
				limits[key(l.Labels.Map())] = l.Last()
			}
		}
	}
	return r.gaugedBy(s, load, limits, match...)
}

// poolSizes are the limits of PHP-FPM's pools, by the listener of each: what its workers carry is told by the kernel's count
// of connections, since under load FPM's own count of active workers can be above pm.max_children.
func (r *reader) poolSizes(host string) map[string]float64 {
	sizes, limits := map[string]float64{}, map[string]float64{}
	for _, c := range r.courses("plimsoll_phpfpm_config_max_children", level, "pool", "host", host) {
		sizes[c.name] = c.points[len(c.points)-1].Value
	}
	for l, err := range r.rec.Series(r.first, r.last, record.Match("plimsoll_phpfpm_pool_info", "host", host)...) {
		if labels := l.Labels.Map(); err == nil {
			at := map[string]string{"host": host, "listen": labels["listen"], "owner": labels["owner"]}
			limits[key(at)] = sizes[labels["pool"]]
		}
	}
	return limits
}

// gaugedBy is gauged where the limits are known, by the labels of what is carried.
func (r *reader) gaugedBy(s Stage, load string, limits map[string]float64, match ...string) Stage {
	w := r.window()
	best, most, mean, bound := -1.0, 0.0, 0.0, 0.0
	for l, err := range r.rec.Series(r.first, r.last, record.Match(load, match...)...) {
		if err != nil {
			continue
		}
		c := course{points: points(l.Points)}
		m, peak, ok := c.stats(w)
		if !ok {
			continue
		}
		of := limitFor(limits, l.Labels.Map())
		if of == 0 && len(limits) > 0 {
			continue // a status page's own listener has no limit that it could come close to
		}
		closeness := peak
		if of > 0 {
			closeness = peak / of
		}
		if closeness > best {
			best, most, mean, bound = closeness, peak, m, of
		}
	}
	if best < 0 {
		return s
	}
	if s.Name == "Listen queue" {
		s.Queue = brief(mean)
	}
	s.Load = "at most " + brief(most) + s.noun
	if bound > 0 {
		s.Load = "at most " + brief(most) + " of " + brief(bound) + s.noun
		full := most / bound
		s.Full = &full
		s.Bar = drawn(svg.Bar(s.Name+": "+s.Load, most/max(bound, most), bound/max(bound, most), most >= bound))
	}
	return s
}

// limitFor finds the limit of a series: that of the same labels, else the only one.
func limitFor(limits map[string]float64, labels map[string]string) float64 {
	if v, ok := limits[key(labels)]; ok {
		return v
	}
	if len(limits) == 1 {
		for _, v := range limits {
			return v
		}
	}
	return 0
}

// key tells series apart but for their names.
func key(labels map[string]string) string {
	delete(labels, "__name__")
	return report.Subject(labels)
}

// busy fills in the share of time in which a stage was busy.
func (r *reader) busy(s Stage, list []course) Stage {
	if len(list) == 0 {
		return s
	}
	mean, _, ok := list[0].stats(r.window())
	if !ok {
		return s
	}
	s.Load = layout.Share(min(mean, 1)) + " busy"
	s.Full = &mean
	s.Bar = drawn(svg.Bar(s.Name+": "+s.Load, mean, 1, mean > 0.95))
	return s
}

func cpuBusy(r *reader, host string) []course {
	list := cpuByMode(r, host)
	if len(list) == 0 {
		return nil
	}
	return []course{summed("busy", slices.DeleteFunc(list, func(c course) bool { return c.name == "iowait" }))}
}

// stagesOf finds the stages that a finding is about: the longest prefix decides, then its
// process. Several are where the finding speaks of a host, and tells them not apart.
func stagesOf(list []Stage, f model.Finding) []int {
	var best []int
	rank := 0
	for i, s := range list {
		n := s.fits(f)
		if n > rank {
			best, rank = nil, n
		}
		if n > 0 && n == rank {
			best = append(best, i)
		}
	}
	return best
}

// fits is how well a finding fits a stage, 0 for not at all.
func (s *Stage) fits(f model.Finding) int {
	n := 0
	for _, prefix := range s.rules {
		if strings.HasPrefix(f.Rule, prefix) {
			n = max(n, 4*len(prefix))
		}
	}
	if n == 0 || s.host != "" && s.host != f.Subject["host"] {
		return 0
	}
	of := programsOf(f.Rule)
	switch {
	case s.process == "":
	case slices.ContainsFunc(of, func(program string) bool { return strings.HasPrefix(s.process, program) }):
		n++
	case of != nil: // it is about another program
		return 0
	case f.Subject["owner"] == s.process, f.Subject["groupname"] == s.process, slices.Contains(s.listens, f.Subject["listen"]):
		n++
	}
	return n
}

// judge words what the findings say of a stage, the gravest.
func (s *Stage) judge(v model.Verdict) {
	rank := 0
	for _, f := range s.findings {
		state, n, truth := "", 0, model.True
		switch {
		case report.Told(v, f):
			state, n = "binds", 6
		case f.ExplainedBy != "" && (f.Answer == model.Confirmed || f.Answer == model.Suspected):
			state, n = "followed", 4
		case f.Answer == model.Confirmed || f.Answer == model.Suspected || f.Answer == model.Near:
			state, n = string(f.Answer), 5
		case f.Answer == model.RuledOut && !report.NothingToJudge(f):
			state, n, truth = "clear", 3, model.False
			s.More++
		case f.Answer == model.UnknownState:
			state, n = "unseen", 2
		default:
			continue
		}
		c := report.Decider(f, truth)
		if n <= rank || c == nil && state != "unseen" {
			continue
		}
		rank, s.State, s.Rule, s.Says = n, state, f.Rule, f.Title
		if c != nil {
			s.Says = c.Say
		}
	}
	if s.State == "clear" {
		s.More--
	}
}

// shares gives each stage its part of the mean request's time.
func shares(list []Stage, b *model.Breakdown) {
	seconds, known := make([]float64, len(list)), make([]bool, len(list))
	var walk func([]model.BreakdownPart)
	walk = func(parts []model.BreakdownPart) {
		for _, p := range parts {
			name := p.Name
			if name == "blocked" && p.Detail == "disk" {
				name = "disk"
			}
			observed := name == "upstream" && slices.ContainsFunc(p.Parts, func(in model.BreakdownPart) bool { return in.Seconds != nil })
			if i := stageOfPart(list, name, p); i >= 0 && p.Seconds != nil && !observed {
				seconds[i] += *p.Seconds
				known[i] = true
			}
			if observed {
				walk(p.Parts)
			}
		}
	}
	walk(b.Parts)
	for i := range list {
		if part := seconds[i] / b.MeanSeconds; known[i] {
			list[i].Share = "0 %"
			if part > 0 {
				list[i].Share = report.Percent(part)
			}
			list[i].ShareBar = drawn(svg.Bar(list[i].Name+": "+list[i].Share+" of the mean request's time", part, 0, false))
		}
	}
}

// stageOfPart finds the stage in which a part of the time passed: on its process, else on
// its host, else anywhere.
func stageOfPart(list []Stage, name string, p model.BreakdownPart) int {
	best, rank := -1, 0
	for i, s := range list {
		if !slices.Contains(s.parts, name) {
			continue
		}
		n := 1
		if s.host == p.Host {
			n++
		}
		if s.process != "" && s.process == p.Process {
			n += 2
		}
		if n > rank {
			best, rank = i, n
		}
	}
	return best
}

package breakdown

import (
	"fmt"
	"slices"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

const (
	cpuSignal      = "namedprocess_namegroup_cpu_seconds_total"
	runqueueSignal = "plimsoll_runqueue_wait_seconds_sum"
	runqueueCount  = "plimsoll_runqueue_wait_seconds_count"
	runDelaySignal = "plimsoll_process_run_delay_seconds_total"
	blockedSignal  = "plimsoll_wait_blocked_seconds_total"
	blocksSignal   = "plimsoll_wait_blocks_total"
	unreadSignal   = "plimsoll_unread_seconds_sum"
	connectSetup   = "plimsoll_tcp_connect_setup_seconds_sum"

	turnsUnreadSum    = "plimsoll_requests_unread_seconds_sum"
	turnsUnreadCount  = "plimsoll_requests_unread_seconds_count"
	upstreamUnreadSum = "plimsoll_requests_upstream_unread_seconds_sum"
)

// server puts together what passed on the observed hosts, within the time that
// the generator gives it; of b the mean times are filled in.
func (r *reader) server(served measured, b *model.Breakdown) (parts []part, warnings []string) {
	if !served.known() {
		return []part{{Name: "server", Text: "the server", Why: served.why, Signals: []string{partsSignal}}}, nil
	}
	n := r.ended(anyOutcome)
	if n == 0 {
		return []part{{Name: "server", Text: "the server", Why: "no request ended in the hold window", Signals: []string{outcomesSignal}}}, nil
	}
	front, ok := r.front()
	if !ok {
		why := sentence(r.unseenAnywhere(listenSignal), "no process of an observed host was seen to listen where the load goes")
		return []part{{Name: "server", Text: "the server", Why: why, Signals: []string{listenSignal}}}, nil
	}
	s := &serving{reader: r, n: n, whole: b.MeanSeconds, longest: b.MeanSeconds, hold: float64(r.to-r.from) / 1000}
	for _, m := range []*model.MeanTime{b.Good, b.Bad} {
		if m != nil {
			s.longest = max(s.longest, m.Seconds)
		}
	}
	s.placed = []process{front}
	parts = s.parts(front, 0, served.value)
	if w := checkRoom("the server", parts, served.value, s.whole); w != "" {
		s.warnings = append(s.warnings, w)
	}
	return parts, s.warnings
}

// unseenAnywhere says why no host tells a signal, "" when one does.
func (r *reader) unseenAnywhere(signal string) string {
	why := ""
	for _, h := range r.meta.Hosts {
		s := r.unseen(h.Name, signal)
		if s == "" {
			return ""
		}
		why = sentence(why, s)
	}
	return why
}

// serving divides what hosts did in the window by the requests that ended in it.
type serving struct {
	*reader
	n        float64   // requests that ended in the window
	whole    float64   // seconds that the mean request took
	longest  float64   // the same of good or of bad ones, whichever took longer
	hold     float64   // seconds
	placed   []process // which are in the tree
	warnings []string
}

// each is what a counter says of a process, for each request.
func (s *serving) each(p process, signal string, pairs ...string) measured {
	return s.increase(p.host, signal, append([]string{"groupname", p.group}, pairs...)...).over(s.n, "requests")
}

// parts are those of one process, in the order in which a request meets them;
// depth is how many are before it, room the time that all of this lies within.
func (s *serving) parts(p process, depth int, room float64) []part {
	a := s.activity(p)
	parts := s.arrival(p, a)
	parts = append(parts, s.cpu(p, a)...)
	if a.wait.known() {
		own := max(a.wait.value-a.overlap, 0)
		parts = append(parts, known("cpu_wait", "waits for a CPU", own, a.waitHow(), a.waitSignal))
	} else {
		parts = append(parts, part{Name: "cpu_wait", Text: "waits for a CPU", Why: a.wait.why, Signals: []string{runqueueSignal, runDelaySignal}})
	}
	parts = append(parts, s.blocked(a, room)...)
	parts = append(parts, s.passedOn(p, a, depth, room)...)
	return at(p.host, p.group, parts...)
}

// activity is how a process spent the window, for each request.
type activity struct {
	user, system measured
	wait         measured // for a CPU
	waitSignal   string
	blocked      []block
	blockedWhy   string   // why nothing is known of blocks
	pool         bool     // its processes take one connection at a time
	unread       measured // until it read what had come
	unreadHow    model.How
	unreadSignal string
	// overlap is the part of wait in which it was woken for a request: that
	// request was unread meanwhile.
	overlap float64
}

func (a *activity) waitHow() model.How {
	if a.overlap > 0 {
		return model.Estimate
	}
	return model.Exact
}

func (s *serving) activity(p process) *activity {
	a := new(activity)
	a.user = s.each(p, cpuSignal, "mode", "user")
	a.system = s.each(p, cpuSignal, "mode", "system")
	a.wait, a.waitSignal = s.each(p, runqueueSignal), runqueueSignal
	if !a.wait.known() {
		a.wait, a.waitSignal = s.each(p, runDelaySignal), runDelaySignal
	}
	a.blocked, a.blockedWhy = s.blocks(p)
	a.pool = s.isPool(p)
	s.readUnread(p, a)
	a.overlap = s.wokenForRequests(p, a)
	return a
}

// isPool says whether a process takes one connection at a time: it is PHP-FPM's,
// or was seen blocked in accept(), be it before the load, since a busy pool never is.
func (s *serving) isPool(p process) bool {
	if len(s.series(poolSignal, "host", p.host, "owner", p.group)) > 0 {
		return true
	}
	return slices.ContainsFunc(s.series(blockedSignal, "host", p.host, "groupname", p.group, "reason", "accept"), func(l record.Series) bool { return l.Last() > 0 })
}

// fullLooks is what to do where the tracer of unread bytes was not tried: it
// runs only when asked for.
func (s *serving) fullLooks(host string) string {
	if _, tried := s.meta.Status[host][unreadSignal]; tried {
		return ""
	}
	return "; --trace full looks for it"
}

// readUnread is how long requests lay unread at p: the mean number of sockets
// with unread bytes, by Little's law, where the tracer of these ran; else what the
// tracer of requests timed. The former may have been on in bursts, and slowed requests
// down while it was; its number stands all the same.
func (s *serving) readUnread(p process, a *activity) {
	a.unreadSignal, a.unreadHow = unreadSignal, model.Little
	ports := p.ports()
	if len(ports) == 0 {
		a.unread.why = "nothing tells how long requests lie unread in Unix sockets"
		return
	}
	var sum measured
	for _, port := range ports {
		sum = plus(sum, s.increase(p.host, unreadSignal, "role", "server", "port", port))
	}
	a.unread = sum.over(s.n, "requests")
	if sum.known() {
		return
	}
	a.unread.why += s.fullLooks(p.host)
	if turns := s.timedUnread(p); turns.known() {
		a.unread, a.unreadSignal, a.unreadHow = turns, turnsUnreadSum, s.turnsHow()
	}
}

// timedUnread is the mean of the turns that the tracer of requests timed at p. At the front
// each request is one; elsewhere they stand for as many of them as there were.
func (s *serving) timedUnread(p process) measured {
	var sum, count measured
	for _, l := range p.listens {
		sum = plus(sum, s.increase(p.host, turnsUnreadSum, "groupname", p.group, "listen", l))
		count = plus(count, s.increase(p.host, turnsUnreadCount, "groupname", p.group, "listen", l))
	}
	if front := s.placed[0]; p.host == front.host && p.group == front.group && count.known() {
		return sum.over(count.value, "requests whose arrival was seen")
	}
	if count.known() && count.value == 0 {
		return measured{why: "no request was seen to arrive at " + p.group}
	}
	return sum.over(s.n, "requests")
}

// turnsHow is how far numbers of the tracer of requests are to be trusted: where it began
// new ones in bursts only, those stand for the others.
func (s *serving) turnsHow() model.How {
	if t := s.meta.Tracing; t == nil || t.Duty["requests"] == 0 {
		return model.Exact
	}
	return model.Estimate
}

// wokenForRequests is the part of p's wait for a CPU in which it was woken
// because something came in. Without a count of its idle waits it is taken to
// be all, so that nothing is counted twice.
func (s *serving) wokenForRequests(p process, a *activity) float64 {
	if a.pool || !a.unread.known() || !a.wait.known() {
		return 0
	}
	idle, waits := s.each(p, blocksSignal, "reason", "poll"), s.each(p, runqueueCount)
	if !idle.known() || !waits.known() || waits.value == 0 {
		return min(a.wait.value, a.unread.value)
	}
	return min(a.wait.value*min(idle.value/waits.value, 1), a.unread.value)
}

func plus(a, b measured) measured {
	return measured{value: a.value + b.value, why: sentence(a.why, b.why)}
}

// arrival is the time until the process reads a request: in its accept queue,
// and, once the connection stands, in its receive buffer.
func (s *serving) arrival(p process, a *activity) []part {
	queue := s.acceptQueue(p)
	queued := fromMeasured("accept_queue", "in the accept queue", queue, model.Little, listenSignal)
	if a.pool {
		return []part{queued} // who accepts there reads at once
	}
	if !a.unread.known() {
		why := a.unread.why
		if idle, ok := s.idleShare(p, a); ok && idle < 0.1 {
			why += fmt.Sprintf("; %s was idle for %.2g %% of the time, so much of what is not attributed may be this", p.group, idle*100)
		}
		return []part{queued, {Name: "unread", Text: "waits to be read", Why: why, Signals: []string{unreadSignal, turnsUnreadSum}}}
	}
	all := known("unread", "waits to be read", a.unread.value, a.unreadHow, a.unreadSignal)
	left := a.unread.value
	if queue.known() {
		q := min(queue.value, left)
		all.Parts = append(all.Parts, known("accept_queue", "in the accept queue", q, model.Little, listenSignal))
		left -= q
	}
	all.Parts = append(all.Parts, reasons(a, left)...)
	return []part{all}
}

// idleShare is the share of the window in which the threads of an event loop
// that do its work had none.
func (s *serving) idleShare(p process, a *activity) (share float64, known bool) {
	idle := s.each(p, blockedSignal, "reason", "poll")
	busy := a.user.value + a.system.value + a.wait.value
	if !idle.known() || !a.user.known() || !a.wait.known() || idle.value+busy == 0 {
		return 0, false
	}
	return idle.value / (idle.value + busy), true
}

// reasons shares the time in which requests lay unread out among what the
// process did meanwhile, when it was not idle.
func reasons(a *activity, left float64) []part {
	held := 0.0
	for _, b := range a.blocked {
		if b.holdsUp() {
			held += b.seconds
		}
	}
	busy, wait := a.user.value+a.system.value, a.wait.value
	all := busy + wait + held
	if all <= 0 || left <= 0 || !a.user.known() || !a.wait.known() {
		return []part{known("unread_rest", "in its receive buffer", max(left, 0), a.unreadHow, a.unreadSignal)}
	}
	const why = "shared out by how it spent the window"
	list := []part{
		known("busy", "it handles others", left*busy/all, model.Estimate, cpuSignal),
		known("busy_cpu_wait", "it waits for a CPU", left*wait/all, model.Estimate, a.waitSignal),
	}
	if held > 0 {
		list = append(list, known("busy_blocked", "it is blocked", left*held/all, model.Estimate, blockedSignal))
	}
	for i := range list {
		list[i].Why = why
	}
	return list
}

// acceptQueue is the time in the process's accept queues, by Little's law.
func (s *serving) acceptQueue(p process) measured {
	var sum measured
	for _, l := range p.listens {
		sum = plus(sum, s.mean(p.host, listenSignal, "listen", l, "owner", p.group))
	}
	return measured{value: sum.value * s.hold, why: sum.why}.over(s.n, "requests")
}

// cpu is the processor time of the process. What it burnt in connect() is told
// apart: nobody expects it there.
func (s *serving) cpu(p process, a *activity) []part {
	user := fromMeasured("cpu_user", "on a CPU, user", a.user, model.Exact, cpuSignal)
	system := fromMeasured("cpu_system", "on a CPU, system", a.system, model.Exact, cpuSignal)
	setup := s.each(p, connectSetup)
	const worthTelling = 0.1
	if a.system.known() && setup.known() && setup.value >= worthTelling*a.system.value && setup.value > 0 {
		in := min(setup.value, a.system.value)
		system.Parts = []part{
			known("connect_setup", "in connect()", in, model.Exact, connectSetup),
			known("cpu_system_rest", "elsewhere", a.system.value-in, model.Exact, cpuSignal, connectSetup),
		}
	}
	return []part{user, system}
}

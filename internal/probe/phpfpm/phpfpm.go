// Package phpfpm reads PHP-FPM: its pools' status pages over FastCGI, what they
// are set to, how many workers they have and what its log says. It finds all
// that by looking at the processes of a host, their open files and configuration.
package phpfpm

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/logtail"
	"plimsoll/internal/service/phpfpm"
)

const (
	// findEvery is the least time between two looks for masters and their configuration.
	findEvery = 2 * time.Second
	// roundLimit bounds what is read of a log in one round.
	roundLimit = 16 << 20
	// eventsASecond bounds the events of one pool and kind.
	eventsASecond = 2
)

// All lists the package's probes.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "phpfpm",
		Scope:   probe.PerHost,
		Signals: allSignals(),
		Cost:    "up to 5 ms of CPU a second with the scan of processes; one request a second to each pool with pm.status_path (2 vCPU, PHP-FPM 8.2, 3 pools)",
		Blind: []string{
			"the status page takes a worker for a moment (unless pm.status_listen is set), and these requests are in FPM's own counts",
			"a pool whose workers are all busy cannot answer; it is asked every 5 s then, and its status signals are failed",
			"configuration is read from the files, every 2 s: an edit that FPM has not loaded yet shows, and listen.backlog takes effect only when FPM is restarted",
			"FPM says that it reached pm.max_children once until the pool has shrunk again, and never with pm = static",
			"OPcache's table of files is known as PHP 7.0 to 8.4 have it, on machines of 64 bits; a file cache without memory (opcache.file_cache_only) counts as off",
			"OPcache is read of a master that is root's or whose binary is named php-fpm…, in memory of the kernel's own: not in huge pages, nor in files (opcache.preferred_memory_model = posix)",
			"the queue of a Unix socket is not on the status page: see plimsoll_tcp_listen_queue",
		},
		Open: open,
	}}
}

// reader reads all PHP-FPM services of one host.
type reader struct {
	host     *host.Host
	ipv6     bool // whether the kernel has IPv6
	looked   time.Time
	findErr  error // looking itself failed
	services []*service
	logs     *logtail.Set[*service]
	logErrs  []error // why there are logs that are not followed
	counts   map[message]uint64
	events   map[message]*events
}

// message is what log lines are counted by.
type message struct{ pool, kind string }

// events is the log lines of one kind that become events in this second.
type events struct {
	second int64
	n      int
	fresh  []string
}

func open(h *host.Host) (probe.Reader, error) {
	_, err := os.Stat(h.Path("proc/net/if_inet6"))
	r := &reader{host: h, ipv6: err == nil, logs: logtail.NewSet[*service](), counts: map[message]uint64{}, events: map[message]*events{}}
	r.find(time.Now())
	return r, nil
}

// Read reports everything that was found since the last Read.
func (r *reader) Read(out *probe.Out) error {
	if err := r.list(out.Now()); err != nil {
		return err
	}
	r.askAll(out.Now())
	r.logs.Round(roundLimit, func(l *logtail.Log[*service], line []byte) { r.line(l.About, line, out.Now()) })
	r.putLog(out)
	if r.findErr != nil || len(r.services) == 0 {
		return r.findErr // none here is a fact: read, and nothing of it
	}
	r.markLog(out)
	r.putPools(out)
	r.putOPcache(out)
	r.putPages(out)
	return nil
}

// Close ends following the logs. A question still on its way ends by itself.
func (r *reader) Close() error { return r.logs.Close() }

// list counts workers, and looks for services when it is time to.
func (r *reader) list(now time.Time) error {
	if len(r.services) == 0 || now.Sub(r.looked) >= findEvery {
		r.find(now)
		return nil
	}
	procs, err := r.host.Services()
	if err != nil {
		return err
	}
	_, count := phpfpm.Split(procs)
	for _, s := range r.services {
		s.count = count[s.master.PID]
	}
	return nil
}

// find looks for services, their configuration and their logs.
func (r *reader) find(now time.Time) {
	r.looked = now
	procs, err := r.host.Services()
	if err != nil {
		r.findErr = err
		return
	}
	masters, count := phpfpm.Split(procs)
	known := r.services
	r.services, r.logErrs, r.findErr = nil, nil, nil
	for _, m := range masters {
		i := slices.IndexFunc(known, func(s *service) bool { return s.master.PID == m.PID && s.master.Start == m.Start })
		var s *service
		if i >= 0 {
			s = known[i]
		} else {
			s = newService(r.host, m)
		}
		s.count = count[m.PID]
		s.readConf()
		r.follow(s, now)
		r.services = append(r.services, s)
	}
	nameApart(r.services)
	r.logs.Forget(now)
}

// follow follows the log of a service.
func (r *reader) follow(s *service, now time.Time) {
	w := logtail.NewWriter("PHP-FPM", s.procPath("."), s.root)
	name := ""
	if s.conf != nil {
		name = s.conf.ErrorLog
	}
	if name == "syslog" {
		r.logErrs = append(r.logErrs, host.Absent("PHP-FPM logs to syslog, which cannot be followed; set error_log to a file"))
		return
	}
	if !path.IsAbs(name) { // relative to the compiled prefix, or its default
		name = opened(w, path.Base(name))
	}
	if err := r.logs.Follow(w, name, s, now); err != nil {
		r.logErrs = append(r.logErrs, err)
	}
}

// opened is the log that a master has open: the one with the base name wanted,
// else its only one, else what its standard error output is.
func opened(w *logtail.Writer, base string) string {
	names := w.Opened()
	for _, n := range names {
		if path.Base(n) == base {
			return n
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		return names[0]
	}
	return "stderr"
}

// line counts one line of a service's log.
func (r *reader) line(s *service, line []byte, now time.Time) {
	l, ok := parseLogLine(line)
	if !ok || l.kind == "" {
		return
	}
	m := message{l.pool, l.kind}
	if l.pool != "" {
		m.pool = s.label(l.pool)
	}
	r.counts[m]++
	e := r.events[m]
	if e == nil {
		e = &events{}
		r.events[m] = e
	}
	if sec := now.Unix(); sec != e.second {
		e.second, e.n = sec, 0
	}
	if e.n++; e.n <= eventsASecond {
		e.fresh = append(e.fresh, string(line))
	}
}

func (r *reader) putLog(out *probe.Out) {
	for m, n := range r.counts {
		out.Put(messages, float64(n), m.pool, m.kind)
	}
	for m, e := range r.events {
		for _, text := range e.fresh {
			out.Event("phpfpm.log", text, map[string]string{"pool": m.pool, "kind": m.kind})
		}
		e.fresh = e.fresh[:0]
	}
	for name, n := range r.logs.Skipped() {
		if n > 0 {
			out.Put(skipped, float64(n), name)
			note(out, "lines of PHP-FPM's log %s were skipped: more was written than could be read; counts from it are too low", name)
		}
	}
}

// note notes a sentence about this host.
func note(out *probe.Out, format string, args ...any) {
	out.Note("host " + strings.Join(out.Hosts(), ", ") + ": " + fmt.Sprintf(format, args...))
}

func (r *reader) markLog(out *probe.Out) {
	errs := r.logErrs
	followed := 0
	for l := range r.logs.All() {
		if l.Err != nil {
			errs = append(errs[:len(errs):len(errs)], l.Err)
			continue
		}
		followed++
	}
	switch {
	case followed == 0 && len(errs) > 0:
		out.Mark(messages, errs[0])
	case followed == 0:
		out.Mark(messages, host.Absent("no log of PHP-FPM was found"))
	default:
		for _, err := range errs {
			note(out, "not counted: %v", err)
		}
	}
}

// putPools records the settings and workers of every pool.
func (r *reader) putPools(out *probe.Out) {
	most := somaxconn(r.host)
	var backlogErr error
	for _, s := range r.services {
		if s.conf == nil {
			for _, sig := range append([]*model.Signal{workers}, confSignals...) {
				out.Mark(sig, s.confErr)
			}
			backlogErr = s.confErr
			continue
		}
		for _, p := range s.conf.Pools {
			name := s.label(p.Name)
			out.Put(workers, float64(s.count[p.Name]), name)
			out.Put(poolInfo, 1, name, phpfpm.ListenAddress(p.Listen, r.ipv6), p.PM, s.master.Comm)
			for sig, n := range map[*model.Signal]int{maxChildren: p.MaxChildren, startServers: p.StartServers, maxSpare: p.MaxSpare} {
				if n > 0 {
					out.Put(sig, float64(n), name)
				}
			}
			if n, ok := p.BacklogIn(s.version, most); ok {
				out.Put(listenBacklog, float64(n), name)
			} else {
				backlogErr = host.Absent(fmt.Sprintf("pool %s has no listen.backlog, and its default is not known for this PHP", p.Name))
			}
		}
	}
	if backlogErr != nil {
		out.Mark(listenBacklog, backlogErr)
	}
}

// askAll asks every pool that has a status page and is not being asked already.
func (r *reader) askAll(now time.Time) {
	for _, s := range r.services {
		if s.conf == nil {
			continue
		}
		for _, p := range s.conf.Pools {
			if p.StatusPath == "" {
				delete(s.askers, p.Name)
				continue
			}
			a := s.askers[p.Name]
			if a == nil {
				a = newAsker(p.Name)
				s.askers[p.Name] = a
			}
			if a.due(now) {
				a.ask(s, p, now)
			}
		}
	}
}

// putPages records what the status pages say. A signal stands for all pools:
// where one did not answer it has failed, and where one has no page it is
// absent, because silence about that pool must not pass for a fact.
func (r *reader) putPages(out *probe.Out) {
	var failed, absent error
	unix, hasSlow := "", false
	until := time.Now().Add(askAtOnce)
	for _, s := range r.services {
		if s.conf == nil {
			failed = s.confErr
			continue
		}
		for _, p := range s.conf.Pools {
			a := s.askers[p.Name]
			if a == nil {
				absent = host.Absent(fmt.Sprintf("pool %s has no status page; set pm.status_path = /status (and pm.status_listen, so that it answers when all workers are busy)", p.Name))
				continue
			}
			a.collect(until)
			isUnix := strings.HasPrefix(phpfpm.ListenAddress(p.Listen, r.ipv6), "unix:")
			if isUnix {
				unix = p.Name
			}
			if a.last.err != nil {
				failed = a.last.err
			}
			hasSlow = hasSlow || p.SlowTimeout
			if a.fresh {
				put(out, s.label(p.Name), a.last, p, isUnix)
			}
		}
	}
	if !hasSlow {
		out.Mark(slow, host.Absent("no pool has request_slowlog_timeout; set it (and slowlog) to count slow requests"))
	}
	markPages(out, failed, absent, unix)
}

// markPages marks what the status pages did not tell, or cannot.
func markPages(out *probe.Out, failed, absent error, unix string) {
	if unix != "" {
		for _, s := range pageQueueSignals {
			out.Mark(s, host.Absent(fmt.Sprintf("pool %s listens on a Unix socket, whose queue PHP-FPM cannot see", unix)))
		}
	}
	err := failed
	if err == nil {
		err = absent
	}
	if err == nil {
		return
	}
	for _, s := range pageSignals {
		if s != up || failed == nil {
			out.Mark(s, err)
		}
	}
}

// put records one answer.
func put(out *probe.Out, name string, a answer, p phpfpm.Pool, unix bool) {
	if a.err != nil {
		out.Put(up, 0, name)
		return
	}
	out.Put(up, 1, name)
	st := a.status
	// Under load its children add to and take from the counts without waiting for each other.
	beyond := func(v *float64) bool { return v != nil && p.MaxChildren > 0 && *v > float64(p.MaxChildren) }
	for _, v := range []struct {
		signal *model.Signal
		value  *float64
		unseen bool // FPM writes a zero that it did not count, or a number that cannot be
	}{
		{accepted, st.AcceptedConn, false}, {listenQueue, st.ListenQueue, unix}, {maxListenQueue, st.MaxListenQueue, unix},
		{listenQueueLen, st.ListenQueueLen, unix}, {idle, st.IdleProcesses, false}, {active, st.ActiveProcesses, beyond(st.ActiveProcesses)},
		{total, st.TotalProcesses, beyond(st.TotalProcesses)}, {maxActive, st.MaxActiveProcesses, beyond(st.MaxActiveProcesses)},
		{maxChildrenHit, st.MaxChildrenReached, false}, {slow, st.SlowRequests, !p.SlowTimeout},
	} {
		if v.value != nil && !v.unseen {
			out.Put(v.signal, *v.value, name)
		}
	}
}

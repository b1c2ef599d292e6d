// Package nginx reads nginx: what its logs say, what it is set to, what its
// status page tells and how many sockets its workers have. It finds all that
// by looking at the processes of a host, their open files and configuration.
package nginx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/host/ownsocket"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/logtail"
	"plimsoll/internal/service/nginx"
)

const (
	// findEvery is the least time between two looks for instances of nginx.
	findEvery = 2 * time.Second
	// stubEvery is the least time between two questions to a status page, and
	// stubPatience how long one may take.
	stubEvery    = time.Second
	stubPatience = time.Second
	// stubAtOnce is how long a round waits for an answer that most likely comes at once.
	stubAtOnce = 2 * time.Millisecond
)

// All lists the package's probes.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "nginx",
		Scope:   probe.PerHost,
		Signals: allSignals(),
		Cost:    "0.1 to 0.2 µs a line of the access log, 0.5 µs a line of the error log; besides that up to 5 ms of CPU a second with the scan of processes, and one request a second where stub_status is configured (2 vCPU, nginx 1.22, 90,000 lines a second)",
		Blind: []string{
			"the status page is asked once a second: these requests are in nginx's own counts, and in its access log unless it is off there",
			"a request that is written to no access log, or by a condition (if=), is not counted; one that two server blocks log to different files is counted once",
			"a buffered access log shows requests only when its buffer is written",
			"configuration is read from the files when workers start; a file edited since is noted, but what stood there before is lost",
			"with several nginx on one host worker_connections and the other plain numbers are of the one nearest to its worker_connections",
			"with master_process off nginx is not found",
			"whether a file that nginx says is missing is there is looked up where it remembers failures (open_file_cache_errors), for a hundred names a round; by the access log where nothing answers but files below one root, else by the error log",
			"of two upstream blocks with the same server the limits of the last one are shown",
			"log lines written in the two seconds before a newly started nginx is found are not counted",
		},
		Open: open,
	}}
}

// reader reads all nginx instances of one host.
type reader struct {
	host      *host.Host
	looked    time.Time
	findErr   error // looking itself failed
	instances []*instance
	logs      *logtail.Set[logKind]
	tally     *tally
	// why there are access or error logs that are not followed
	accessErrs, errorErrs []error
	stubs                 map[string]*stubAsker // by master, address and URI
}

func open(h *host.Host) (probe.Reader, error) {
	r := &reader{host: h, logs: logtail.NewSet[logKind](), tally: newTally(), stubs: map[string]*stubAsker{}}
	r.find(time.Now())
	return r, nil
}

// Poll notes how many sockets the workers have, if there are any.
func (r *reader) Poll() bool {
	r.pollWorkers(false)
	return len(r.instances) > 0
}

func (r *reader) pollWorkers(count bool) {
	for _, in := range r.instances {
		for _, w := range in.workers {
			w.poll(r.host, count)
		}
	}
}

// Read reports everything that was found since the last Read.
func (r *reader) Read(out *probe.Out) error {
	if out.Now().Sub(r.looked) >= findEvery || len(r.instances) == 0 {
		r.find(out.Now())
	}
	r.askStubs(out.Now())
	r.tally.begin(out.Now())
	r.logs.Round(roundLimit, r.tally.take)
	r.pollWorkers(true)
	r.putLogs(out)
	if r.findErr != nil || len(r.instances) == 0 {
		return r.findErr // none here is a fact: read, and nothing of it
	}
	r.markLogs(out)
	r.putConf(out)
	r.putStubs(out)
	return nil
}

// Close ends following the logs. A question still on its way ends by itself.
func (r *reader) Close() error { return r.logs.Close() }

// find looks for instances and for what they log to.
func (r *reader) find(now time.Time) {
	r.looked = now
	procs, err := r.host.Services()
	if err != nil {
		r.findErr = err
		return
	}
	masters, workers := nginx.Split(r.host, procs)
	known := r.instances
	r.instances, r.accessErrs, r.errorErrs = nil, nil, nil
	for _, m := range masters {
		i := slices.IndexFunc(known, func(in *instance) bool { return in.master.PID == m.PID && in.master.Start == m.Start })
		in := &instance{host: r.host, master: m, root: filepath.Clean(r.host.ServicePath(m.PID, "/"))}
		if i >= 0 {
			in = known[i]
		}
		in.update(workers[m.PID])
		r.follow(in, now)
		r.instances = append(r.instances, in)
	}
	r.findErr = nil
	r.logs.Forget(now)
}

// putLogs records what the logs have said since Open.
func (r *reader) putLogs(out *probe.Out) {
	t := r.tally
	for status, n := range t.statuses {
		if n > 0 {
			out.Put(responses, float64(n), fmt.Sprintf("%03d", status))
		}
	}
	if t.requestCount > 0 {
		out.Put(requestSum, t.requestSum)
		out.Put(requestCount, float64(t.requestCount))
	}
	if t.upstreamCount > 0 {
		out.Put(upstreamSum, t.upstreamSum)
		out.Put(upstreamCount, float64(t.upstreamCount))
	}
	for key, n := range t.upstreamErrors {
		out.Put(upstreamErrors, float64(n), key.upstream, key.phase, key.errno)
	}
	for class, n := range t.errors {
		out.Put(errorLines, float64(n), class)
	}
	if t.remembered.lines > 0 {
		out.Put(missingThere, float64(t.remembered.lines))
	}
	if t.limited.told() {
		out.Put(servedBeside, float64(t.limited.all), "all")
		out.Put(servedBeside, float64(t.limited.theirs), "limited")
	}
	for _, e := range t.events {
		out.Event("nginx.error", e.text, e.labels)
	}
	r.putSkipped(out)
}

func (r *reader) putSkipped(out *probe.Out) {
	for name, n := range r.logs.Skipped() {
		if n > 0 {
			out.Put(skipped, float64(n), name)
			out.Note(fmt.Sprintf("host %s: lines of nginx's log %s were skipped: more was written than could be read, or they were not of the configured format; counts from it are too low", strings.Join(out.Hosts(), ", "), name))
		}
	}
}

// markLogs says what became of the signals that come from logs.
func (r *reader) markLogs(out *probe.Out) {
	accessErrs, errorErrs := r.accessErrs, r.errorErrs
	var access, errs int
	level := 0
	has := &nginx.LineFormat{}
	for l := range r.logs.All() {
		about := l.About
		switch {
		case l.Err != nil && about.access != nil:
			accessErrs = append(accessErrs[:len(accessErrs):len(accessErrs)], l.Err)
		case l.Err != nil:
			errorErrs = append(errorErrs[:len(errorErrs):len(errorErrs)], l.Err)
		case about.access == nil:
			errs++
			level = max(level, about.level)
		default:
			access++
			has.HasRequest = has.HasRequest || about.access.Format.HasRequest
			has.HasClient = has.HasClient || about.access.Format.HasClient
			has.HasUpstream = has.HasUpstream || about.access.Format.HasUpstream
			noteAccess(out, l)
		}
	}
	markAccess(out, access, accessErrs, has)
	markErrors(out, errs, errorErrs, level)
	r.markLimited(out, access, errs, has, accessErrs, errorErrs)
	switch {
	case !slices.ContainsFunc(r.instances, (*instance).mayRemember):
		out.Mark(missingThere, host.Absent("nginx remembers of no file that it could not be opened (open_file_cache_errors)"))
	case access+errs == 0:
		out.Mark(missingThere, firstOr(errorErrs, "no log of nginx"))
	}
}

// markLimited says why it is not known to whom good responses went: both logs tell it only together.
func (r *reader) markLimited(out *probe.Out, access, errs int, has *nginx.LineFormat, accessErrs, errorErrs []error) {
	switch {
	case access == 0:
		out.Mark(servedBeside, firstOr(accessErrs, "no access log of nginx"))
	case errs == 0:
		out.Mark(servedBeside, firstOr(errorErrs, "no error log of nginx"))
	case !has.HasClient:
		out.Mark(servedBeside, host.Absent("nginx's access log has no $remote_addr that can be told"))
	case r.tally.limited.tooMany:
		out.Mark(servedBeside, host.Absent(fmt.Sprintf("nginx served more than %d clients", maxClients)))
	}
}

func noteAccess(out *probe.Out, l *logFile) {
	host := strings.Join(out.Hosts(), ", ")
	if l.About.access.Buffered {
		out.Note(fmt.Sprintf("host %s: nginx's access log %s is written late (buffer=), and so are its requests counted", host, l.Name))
	}
	if l.About.access.Partial {
		out.Note(fmt.Sprintf("host %s: nginx's access log %s is written by a condition (if=): requests it leaves out are not counted", host, l.Name))
	}
}

func markAccess(out *probe.Out, followed int, errs []error, has *nginx.LineFormat) {
	if followed == 0 {
		for _, s := range []*model.Signal{responses, requestSum, requestCount, upstreamSum, upstreamCount} {
			out.Mark(s, firstOr(errs, "no access log of nginx"))
		}
		return
	}
	noteRest(out, errs)
	if !has.HasRequest {
		err := host.Absent("nginx's log_format has no $request_time; add $request_time to nginx's log_format to see how long requests take")
		out.Mark(requestSum, err)
		out.Mark(requestCount, err)
	}
	if !has.HasUpstream {
		err := host.Absent("nginx's log_format has no $upstream_response_time; add $upstream_response_time to nginx's log_format to see how long upstream servers take")
		out.Mark(upstreamSum, err)
		out.Mark(upstreamCount, err)
	}
}

func markErrors(out *probe.Out, followed int, errs []error, level int) {
	if followed == 0 {
		err := firstOr(errs, "no error log of nginx")
		out.Mark(upstreamErrors, err)
		out.Mark(errorLines, err)
		return
	}
	noteRest(out, errs)
	if level < nginx.LevelError {
		out.Mark(upstreamErrors, host.Absent(fmt.Sprintf("nginx's error_log has level %s, so most upstream errors (level error) are not written; set it to error", nginx.Levels[level])))
	}
}

// noteRest notes the logs that are not followed beside those that are.
func noteRest(out *probe.Out, errs []error) {
	for _, err := range errs {
		out.Note(fmt.Sprintf("host %s: not counted: %v", strings.Join(out.Hosts(), ", "), err))
	}
}

// firstOr is the first error, or one that says that nothing was found.
func firstOr(errs []error, what string) error {
	if len(errs) > 0 {
		return errs[0]
	}
	return host.Absent(what + " was found")
}

// nearest is the instance with a configuration whose busiest worker is nearest
// to worker_connections, and how many sockets that worker had (-1: not seen).
func (r *reader) nearest() (best *instance, used int) {
	share := -1.0
	for _, in := range r.instances {
		if in.conf == nil {
			continue
		}
		peak := -1
		for _, w := range in.workers {
			peak = max(peak, w.peak)
		}
		if s := float64(peak) / float64(max(in.conf.WorkerConnections, 1)); best == nil || s > share {
			best, used, share = in, peak, s
		}
	}
	return best, used
}

// putConf records what nginx is set to.
func (r *reader) putConf(out *probe.Out) {
	best, used := r.nearest()
	if best == nil {
		var errs []error
		for _, in := range r.instances {
			errs = append(errs, in.confErr)
		}
		for _, s := range append([]*model.Signal{workerNofile, connsUsed}, confSignals...) {
			out.Mark(s, firstOr(errs, "no configuration of nginx"))
		}
		return
	}
	c := best.conf
	n := c.WorkerProcesses
	if n == 0 {
		n = len(best.workers)
	}
	if n > 0 {
		out.Put(workerProcesses, float64(n))
	} else {
		out.Mark(workerProcesses, host.Absent("nginx counts its workers itself (auto), and has none at the moment"))
	}
	out.Put(workerConnections, float64(c.WorkerConnections))
	for _, listen := range sortedKeys(c.Backlogs) {
		out.Put(info, 1, listen)
	}
	if c.KeepaliveRequests > 0 {
		out.Put(keepaliveTimeout, c.KeepaliveTimeout)
		out.Put(keepaliveRequests, float64(c.KeepaliveRequests))
	} else {
		err := host.Absent("nginx's configuration has no http server")
		out.Mark(keepaliveTimeout, err)
		out.Mark(keepaliveRequests, err)
	}
	r.putWorkers(out, best, used)
	r.putConfOfAll(out)
}

func (r *reader) putWorkers(out *probe.Out, best *instance, used int) {
	if limit, err := best.nofile(); err != nil {
		out.Mark(workerNofile, err)
	} else {
		out.Put(workerNofile, limit)
	}
	err := errors.New("nginx's workers ended before their descriptors could be counted")
	for _, in := range r.instances {
		for _, w := range in.workers {
			w.peak = -1
			if w.peakErr != nil {
				err = w.peakErr
			}
		}
	}
	if used < 0 {
		out.Mark(connsUsed, err)
		return
	}
	out.Put(connsUsed, float64(used))
}

// putConfOfAll records the settings that have an address or a log for a label,
// or that are the same question for all instances.
func (r *reader) putConfOfAll(out *probe.Out) {
	backlogs, keepalives, conns, fails := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	weights := map[nginx.Server]int{}
	places := map[nginx.Pass]int{}
	remembers := 0.0
	buffered, known, level := true, false, 0
	for _, in := range r.instances {
		if in.conf == nil {
			out.Note(fmt.Sprintf("host %s: an nginx is passed over: %v", strings.Join(out.Hosts(), ", "), in.confErr))
			places[nginx.Pass{Upstream: nginx.UnknownUpstream}]++
			continue
		}
		if in.edited {
			out.Note(fmt.Sprintf("host %s: nginx's configuration under %s was edited after nginx loaded it; settings shown may not be in effect until it is reloaded", strings.Join(out.Hosts(), ", "), in.file))
		}
		for k, v := range in.conf.Backlogs {
			backlogs[k] = max(backlogs[k], v)
		}
		for k, v := range in.conf.Keepalives {
			keepalives[k] = max(keepalives[k], v)
		}
		maps.Copy(conns, in.conf.MaxConns)
		maps.Copy(fails, in.conf.MaxFails)
		for s, w := range in.conf.Weights { // several may have a block of the same name: one reading, or the recording ends
			weights[s] = max(weights[s], w)
		}
		for p, n := range in.conf.Passes {
			places[p] += n
		}
		remembers = max(remembers, in.conf.RemembersMissing)
		if b, ok := in.conf.LogsBuffered(); ok {
			known = true
			buffered = buffered && b
		}
		for _, e := range in.conf.ErrorLogs {
			level = max(level, e.Level)
		}
	}
	for s, w := range weights {
		out.Put(upstreamWeight, float64(w), s.Block, s.Address)
	}
	putPasses(out, places)
	for s, by := range map[*model.Signal]map[string]int{listenBacklog: backlogs, upstreamKeepalive: keepalives, upstreamMaxConns: conns, upstreamMaxFails: fails} {
		for _, k := range sortedKeys(by) {
			out.Put(s, float64(by[k]), k)
		}
	}
	out.Put(remembersMissing, remembers)
	out.Put(errorLogLevel, float64(level))
	if !known {
		out.Mark(bufferedLog, host.Absent("nginx writes no access log to a file"))
		return
	}
	out.Put(bufferedLog, ratio(buffered))
}

// maxPasses bounds how many kinds of places are told of.
const maxPasses = 500

// putPasses tells of places with a cache first; where some are left out, that there are others.
func putPasses(out *probe.Out, places map[nginx.Pass]int) {
	list := slices.SortedFunc(maps.Keys(places), func(a, b nginx.Pass) int {
		if a.Cached != b.Cached {
			if a.Cached {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Forbids, b.Forbids))
	})
	if len(list) > maxPasses {
		unknown := nginx.Pass{Upstream: nginx.UnknownUpstream}
		places[unknown]++
		list = append(slices.DeleteFunc(list, func(p nginx.Pass) bool { return p == unknown })[:maxPasses-1], unknown)
	}
	for _, p := range list {
		cached := "no"
		if p.Cached {
			cached = "yes"
		}
		out.Put(passes, float64(places[p]), p.Upstream, cached, cmp.Or(p.Forbids, "none"))
	}
}

func ratio(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// stubAsker asks one status page in the background, one question at a time.
type stubAsker struct {
	asked time.Time
	reply chan stubReply // nil when no question is on its way
	last  stubReply
	fresh bool // last came since the last Read
}

type stubReply struct {
	stub stub
	err  error
}

// askStubs asks each instance's status page that is not being asked already.
func (r *reader) askStubs(now time.Time) {
	wanted := map[string]bool{}
	for _, in := range r.instances {
		if in.conf == nil || in.conf.Status == nil {
			continue
		}
		page := in.conf.Status
		key := strconv.Itoa(in.master.PID) + " " + page.Address + page.URI
		wanted[key] = true
		a := r.stubs[key]
		if a == nil {
			a = &stubAsker{last: stubReply{err: errors.New("the stub_status page has not answered yet")}}
			r.stubs[key] = a
		}
		if a.reply == nil && now.Sub(a.asked) >= stubEvery-stubEvery/20 {
			a.ask(r.host, in, page, now)
		}
	}
	for key := range r.stubs {
		if !wanted[key] {
			delete(r.stubs, key)
		}
	}
}

func (a *stubAsker) ask(h *host.Host, in *instance, page *nginx.StatusPage, now time.Time) {
	a.asked = now
	reply := make(chan stubReply, 1)
	a.reply = reply
	dial, root, pids := h.Dial, in.root, []int{in.master.PID}
	if page.Network == "unix" {
		dial = func(ctx context.Context, _, path string) (net.Conn, error) {
			return ownsocket.Dial(ctx, h, root, path, pids...)
		}
	}
	go func() {
		s, err := fetchStub(dial, page, stubPatience)
		reply <- stubReply{s, err}
	}()
}

// collect takes an answer that is there, or comes by until.
func (a *stubAsker) collect(until time.Time) {
	a.fresh = false
	if a.reply == nil {
		return
	}
	select {
	case a.last = <-a.reply:
		a.reply, a.fresh = nil, true
	case <-time.After(time.Until(until)):
	}
}

// putStubs records the sum of all status pages, if all of them answer.
func (r *reader) putStubs(out *probe.Out) {
	if len(r.stubs) == 0 {
		err := host.Absent("nginx has no status page that we could ask; add \"location = /status { stub_status; access_log off; allow 127.0.0.1; deny all; }\" to a plain HTTP server")
		for _, in := range r.instances {
			if in.confErr != nil { // it may well have one
				err = in.confErr
			}
		}
		for _, s := range stubSignals {
			out.Mark(s, err)
		}
		return
	}
	var sum stub
	var err error
	fresh := false
	until := time.Now().Add(stubAtOnce)
	for _, a := range r.stubs {
		a.collect(until)
		fresh = fresh || a.fresh
		if a.last.err != nil {
			err = a.last.err
			continue
		}
		sum = sum.plus(a.last.stub)
	}
	if err != nil {
		if fresh {
			out.Put(up, 0)
		}
		for _, s := range stubSignals[1:] {
			out.Mark(s, err)
		}
		return
	}
	if !fresh {
		return
	}
	for s, v := range map[*model.Signal]float64{up: 1, active: sum.active, accepted: sum.accepted, handled: sum.handled,
		requests: sum.requests, reading: sum.reading, writing: sum.writing, waiting: sum.waiting} {
		out.Put(s, v)
	}
}

func (s stub) plus(o stub) stub {
	return stub{s.active + o.active, s.accepted + o.accepted, s.handled + o.handled, s.requests + o.requests,
		s.reading + o.reading, s.writing + o.writing, s.waiting + o.waiting}
}

// sortedKeys lists a map's keys in order, for output that does not jump about.
func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }

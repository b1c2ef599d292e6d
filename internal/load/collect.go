package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"strconv"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

// recordNanos is the time between two records.
const recordNanos = int64(time.Second)

// stoodStill is how late the collector wakes when nobody ran: on a busy machine it is some milliseconds late, or tens of them.
const stoodStill = int64(time.Second / 2)

// collector sums the threads' tallies up and makes records of them.
type collector struct {
	e    *engine
	emit func(Record) error

	phase     phase
	started   [drain + 1]int64 // when a phase began; never if it did not
	ended     [drain + 1]int64 // when it ended; never while it lasts
	cancelled bool
	lastAt    int64 // when the last record was made
	told      int64 // when whoever reads the records had taken the last one
	stood     int64 // for how long this process did not run though it was to, in nanoseconds

	sums    [counted]phaseSum // the whole run
	causes  map[string]string
	targets []groupTally
	stages  []groupTally
	recent  [counted][2]counts // responses and services since the last record; closed loop: services alone
	all     *hdr.Histogram     // scratch
	encoder encoder
	conns   Connections
	cpu     []ThreadCPU
	shares  *shares // what is told to whoever adds workers up; nil where there is one
}

func newCollector(e *engine, emit func(Record) error) *collector {
	c := &collector{e: e, emit: emit, cpu: make([]ThreadCPU, len(e.threads)+1), all: newHistogram(), causes: map[string]string{}}
	c.targets, c.stages = newGroups(len(e.job.names)), newGroups(len(e.job.plan.AllStages()))
	if e.job.plan.Part != nil {
		c.shares = newShares(len(c.targets), len(c.stages))
	}
	for p := range c.started {
		c.started[p], c.ended[p] = never, never
	}
	for p := range c.sums {
		c.sums[p].handshakes = map[agreement]int64{}
		for k := range c.sums[p].hist {
			c.sums[p].hist[k] = newHistogram()
		}
		if !e.openLoop {
			// The same thing then, so the threads only count the one.
			c.sums[p].hist[response] = c.sums[p].hist[service]
		}
	}
	return c
}

// collect makes records until the load is over. On an error of emit it returns
// it without waiting for what is in flight.
func (c *collector) collect(ctx context.Context) error {
	c.phase = c.e.timeline.at(0)
	c.started[c.phase] = 0
	if err := c.record(Record{PhaseStarted: c.phase.String()}); err != nil {
		return err
	}
	stop := ctx.Done()
	for tick := recordNanos; ; {
		due := min(tick, c.e.timeline.end(c.phase))
		timer := time.NewTimer(time.Duration(due - c.e.clock()))
		select {
		case <-timer.C:
		case <-c.e.settled:
		case <-stop:
			stop = nil
			c.cancelled = true
			c.e.stop(c.e.clock())
		}
		timer.Stop()
		now := c.e.clock()
		c.woke(due, now)
		change, changed := c.advance(now)
		if changed || now >= tick {
			if err := c.record(change); err != nil {
				return err
			}
		}
		for tick <= now {
			tick += recordNanos
		}
		if c.phase == drain && c.e.allSettled() {
			return c.finalRecord()
		}
	}
}

// woke counts for how long this process did not run though it was to: not while the reader of its records kept it waiting.
func (c *collector) woke(due, now int64) {
	if late := now - max(due, c.told); late > stoodStill {
		c.stood += late
	}
}

// advance moves on to the next phase that has a length, if it is time.
func (c *collector) advance(now int64) (change Record, changed bool) {
	at := c.e.timeline.end(c.phase)
	next := c.e.timeline.at(at)
	switch {
	case c.phase == drain:
		return Record{}, false
	case c.cancelled, c.phase == hold && c.e.job.plan.Requests > 0 && c.e.allSettled():
		at, next = min(at, now), drain
	case now < at:
		return Record{}, false
	}
	change = Record{PhaseEnded: c.phase.String(), PhaseStarted: next.String()}
	c.ended[c.phase], c.started[next] = at, at
	c.phase = next
	return change, true
}

func (c *collector) finalRecord() error {
	c.ended[drain] = c.e.clock()
	r := Record{PhaseEnded: Drain, Final: true, Totals: &Totals{Outcomes: map[string]int64{}, Cancelled: c.cancelled}}
	r.Totals.Seconds, r.Totals.StoodStill = float64(c.ended[drain])/1e9, float64(c.stood)/1e9
	return c.record(r)
}

// record completes r and emits it.
func (c *collector) record(r Record) error {
	c.gather()
	now := c.e.clock()
	r.Time, r.Target = c.unixMillis(now), c.e.target
	r.Phase = c.phase.String()
	r.Connections = c.conns
	r.Threads = slices.Clone(c.cpu)
	r.TLS = c.tlsRecord()
	r.DNS, r.Targets, r.Stages = c.e.dns, c.targetRecords(), c.stageRecords()
	if len(c.causes) > 0 {
		r.Causes = maps.Clone(c.causes)
	}
	for p := range c.sums {
		if c.phase == drain && c.started[p] == never && c.sums[p].begun > 0 {
			// It began between the cancellation and the moment a thread heard of it.
			c.started[p], c.ended[p] = c.started[drain], c.started[drain]
		}
		if c.started[p] != never {
			r.Phases = append(r.Phases, c.phaseRecord(phase(p)))
		}
	}
	var err error
	if r.Intervals, err = c.intervals(now); err != nil {
		return err
	}
	if c.shares != nil {
		late := c.e.late.Microseconds()
		r.LateMicros = &late
		if r.Shares, err = c.shares.told(c.e.job.names); err != nil {
			return err
		}
	}
	if r.Totals != nil {
		c.total(r.Totals)
	}
	err = c.emit(r)
	c.told = c.e.clock()
	return err
}

// gather asks every thread for its tally and adds it to the sums.
func (c *collector) gather() {
	for _, t := range c.e.threads {
		t.want.Store(true)
		t.poller.interrupt()
	}
	c.conns = Connections{}
	rest := &c.cpu[len(c.cpu)-1]
	*rest = processCPU()
	for i, t := range c.e.threads {
		full := <-t.handed
		c.conns.Connecting += full.connecting
		c.conns.Open += full.open
		c.conns.Idle += full.idle
		c.conns.Closed += full.closed
		c.conns.Failed += full.missing
		c.conns.Untried += full.untried
		if c.e.job.plan.MaxConnections > 0 {
			c.conns.Stood += full.stood
		}
		for o, text := range full.causes {
			c.causes[o.String()] = cmp.Or(c.causes[o.String()], text)
		}
		c.cpu[i] = ThreadCPU{Thread: strconv.Itoa(i), User: full.user, System: full.system}
		rest.User = max(rest.User-full.user, 0)
		rest.System = max(rest.System-full.system, 0)
		if c.shares != nil {
			c.shares.add(full)
		}
		for i := range full.targets {
			full.targets[i].moveTo(&c.targets[i])
		}
		for i := range full.stages {
			full.stages[i].moveTo(&c.stages[i])
		}
		for p := range full.phases {
			full.phases[p].moveTo(&c.sums[p], &c.recent[p])
		}
	}
}

// processCPU is the processor time of the whole process.
func processCPU() ThreadCPU {
	var use unix.Rusage
	// It can only fail on a bad argument.
	_ = unix.Getrusage(unix.RUSAGE_SELF, &use)
	return ThreadCPU{Thread: restOfThreads, User: seconds(use.Utime), System: seconds(use.Stime)}
}

func (c *collector) phaseRecord(p phase) PhaseRecord {
	s := &c.sums[p]
	r := PhaseRecord{
		Phase: p.String(), Start: c.unixMillis(c.started[p]),
		Requests: s.begun, Outcomes: s.ended.named(), Statuses: s.statuses.named(), Waits: s.ended.seconds(),
		Parts: partSeconds(&s.parts), Attempts: s.attempts, Received: s.received, Sent: s.sent, ConnectCalls: s.connectCalls.durations(), ReplyUnread: s.unread.durations(),
	}
	if c.ended[p] != never {
		r.End = c.unixMillis(c.ended[p])
	}
	r.tellTimes(&s.hist, c.all)
	return r
}

// tellTimes fills in the quantiles; all is scratch.
func (r *PhaseRecord) tellTimes(hist *[durations]*hdr.Histogram, all *hdr.Histogram) {
	for kind, q := range map[int]*model.Quantiles{response: &r.Response, service: &r.Service, connect: &r.Connect, firstWait: &r.FirstByte,
		transfer: &r.Transfer, delay: &r.SendDelay, lag: &r.Lag, unread: &r.Unread} {
		*q = quantiles(hist[kind])
	}
	r.Waited = r.Response
	if hist[failed].TotalCount() > 0 {
		all.Reset()
		all.Merge(hist[response])
		all.Merge(hist[failed])
		r.Waited = quantiles(all)
	}
}

// targetRecords tell of the targets that requests went to.
func (c *collector) targetRecords() (list []TargetRecord) {
	for i := range c.targets {
		t := &c.targets[i]
		if len(t.outcomes) == 0 {
			continue
		}
		r := TargetRecord{Name: c.e.job.names[i]}
		r.Outcomes, r.Response = t.known()
		list = append(list, r)
	}
	return list
}

// stageRecords tell of the stages in which requests were due that have ended.
func (c *collector) stageRecords() (list []StageRecord) {
	for i := range c.stages {
		if s := &c.stages[i]; len(s.outcomes) > 0 {
			r := StageRecord{Stage: i, Lag: quantiles(s.lag)}
			r.Outcomes, r.Response = s.known()
			list = append(list, r)
		}
	}
	return list
}

// tlsRecord tells of all phases' handshakes, nil without any.
func (c *collector) tlsRecord() *TLSRecord {
	r := &TLSRecord{}
	var crypto summed
	for p := range c.sums {
		r.Handshakes = append(r.Handshakes, agreements(phase(p).String(), c.sums[p].handshakes)...)
		crypto.n += c.sums[p].crypto.n
		crypto.nanos += c.sums[p].crypto.nanos
	}
	if len(r.Handshakes) == 0 {
		return nil
	}
	r.Full, r.Resumed, r.Crypto = c.ofAllPhases(fullHandshake), c.ofAllPhases(resumedHandshake), crypto.durations()
	return r
}

func (c *collector) ofAllPhases(kind int) model.Quantiles {
	c.all.Reset()
	for p := range c.sums {
		c.all.Merge(c.sums[p].hist[kind])
	}
	return quantiles(c.all)
}

// intervals encodes the latencies since the last record and starts anew.
func (c *collector) intervals(now int64) ([]Interval, error) {
	var found []Interval
	for p := range c.recent {
		of := &c.recent[p]
		if of[service].empty() {
			continue
		}
		add := func(kind, text string) {
			found = append(found, Interval{
				Phase: phase(p).String(), Kind: kind,
				Start: c.unixMillis(c.lastAt), End: c.unixMillis(now), Histogram: text,
			})
		}
		text, err := c.encoder.encodeCounts(&of[service])
		if err != nil {
			return nil, err
		}
		add("service", text)
		if c.e.openLoop {
			if text, err = c.encoder.encodeCounts(&of[response]); err != nil {
				return nil, err
			}
		}
		add("response", text)
		of[service].clear()
		of[response].clear()
	}
	c.lastAt = now
	return found, nil
}

func (c *collector) total(t *Totals) {
	for p := range c.sums {
		t.Requests += c.sums[p].begun
		for name, n := range c.sums[p].ended.named() {
			t.Outcomes[name] += n
		}
	}
	for _, thread := range c.cpu {
		t.CPUSeconds += thread.User + thread.System
	}
}

func (c *collector) unixMillis(at int64) int64 {
	return c.e.base.Add(time.Duration(at)).UnixMilli()
}

// agreements are the handshakes of a phase, by what was agreed upon.
func agreements(phase string, done map[agreement]int64) []model.TLSHandshakes {
	var list []model.TLSHandshakes
	for a, n := range done {
		list = append(list, model.TLSHandshakes{
			Phase: phase, Version: tlsVersionName(a.version), Cipher: tls.CipherSuiteName(a.cipher), Resumed: a.resumed, Count: n,
		})
	}
	slices.SortFunc(list, func(a, b model.TLSHandshakes) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Cipher, b.Cipher), cmp.Compare(resumption(a), resumption(b)))
	})
	return list
}

func resumption(h model.TLSHandshakes) string { return strconv.FormatBool(h.Resumed) }

package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
)

// Sum adds the records of several workers up to those of the one load that they play. Counts add up exactly; latencies are
// added as histograms, so that their quantiles are those of all requests. Of a worker that is gone what it told stays.
type Sum struct {
	plan  model.LoadPlan
	names []string // of the workers
	newest,
	told []*Record // of each worker: the newest one, and the one that the last sum had
	hists  map[Share]*hdr.Histogram    // without their texts; since the begin
	recent map[Interval]*hdr.Histogram // by phase and kind; since the last sum
	all    *hdr.Histogram              // scratch
	lastAt int64

	encoder encoder
}

// NewSum adds up the records of workers of these names.
func NewSum(plan model.LoadPlan, names []string) *Sum {
	return &Sum{plan: plan, names: names, newest: make([]*Record, len(names)), told: make([]*Record, len(names)),
		hists: map[Share]*hdr.Histogram{}, recent: map[Interval]*hdr.Histogram{}, all: newHistogram()}
}

// Take takes a record of worker k, which is ahead milliseconds before our clock.
func (s *Sum) Take(k int, r Record, ahead int64) error {
	if err := r.modest(); err != nil {
		return err
	}
	for i := range r.Shares {
		if !s.expects(&r.Shares[i]) {
			return fmt.Errorf("a share %q of %q %q: the plan has none of that name", r.Shares[i].Kind, r.Shares[i].Of, r.Shares[i].Name)
		}
	}
	r.Time -= ahead
	for i := range r.Phases {
		p := &r.Phases[i]
		p.Start -= ahead
		if p.End > 0 {
			p.End -= ahead
		}
	}
	for _, one := range r.Shares {
		h, err := decode(one.Histogram)
		if err != nil {
			return err
		}
		one.Histogram = ""
		s.add(one, h)
		if i := (Interval{Phase: one.Of, Kind: one.Kind}); one.Name == "" && (one.Kind == shareKinds[response] || one.Kind == shareKinds[service]) {
			if s.recent[i] == nil {
				s.recent[i] = newHistogram()
			}
			s.recent[i].Merge(h)
		}
	}
	r.Shares = nil
	s.newest[k] = &r
	if s.lastAt == 0 {
		s.lastAt = r.Time
	}
	return nil
}

// expects says whether the plan has what a share is of: each that is new takes memory.
func (s *Sum) expects(one *Share) bool {
	switch one.Of {
	case ofTarget:
		return slices.ContainsFunc(s.plan.Targets, func(t model.Target) bool { return t.Name == one.Name })
	case ofStage:
		i, err := strconv.Atoi(one.Name)
		return err == nil && i >= 0 && i <= len(s.plan.Stages) && strconv.Itoa(i) == one.Name
	}
	return one.Name == ""
}

func (s *Sum) add(key Share, h *hdr.Histogram) {
	if s.hists[key] == nil {
		s.hists[key] = hdr.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
	}
	s.hists[key].Merge(h)
}

// Newest is the newest record of worker k, nil before the first.
func (s *Sum) Newest(k int) *Record { return s.newest[k] }

// Fresh says whether worker k has told something since the last sum.
func (s *Sum) Fresh(k int) bool { return s.newest[k] != s.told[k] }

// Record is the sum of the newest records; in says which workers are still there. r has what marks it.
func (s *Sum) Record(r Record, in []bool) (Record, error) {
	var conns Connections
	causes := map[string]string{}
	for k, one := range s.newest {
		w := WorkerRecord{Worker: model.Worker{Name: s.names[k]}, Record: one, Fresh: s.Fresh(k)}
		if one == nil {
			r.Workers = append(r.Workers, w)
			continue
		}
		if one.LateMicros != nil {
			w.LateMS = float64(*one.LateMicros) / 1000
		}
		r.Workers = append(r.Workers, w)
		r.Time, r.Target = max(r.Time, one.Time), cmp.Or(r.Target, one.Target)
		conns.add(one.Connections)
		for _, t := range one.Threads {
			t.Thread = s.names[k] + "/" + t.Thread
			r.Threads = append(r.Threads, t)
		}
		for outcome, text := range one.Causes {
			causes[outcome] = cmp.Or(causes[outcome], text)
		}
		if one.DNS != nil && (r.DNS == nil || *r.DNS < *one.DNS) {
			r.DNS = one.DNS
		}
	}
	copy(s.told, s.newest)
	r.Connections = conns
	if len(causes) > 0 {
		r.Causes = causes
	}
	for p := range counted {
		if one, ok := s.phase(phase(p), in); ok {
			r.Phases = append(r.Phases, one)
		}
	}
	r.TLS, r.Targets, r.Stages = s.tls(), s.targets(), s.stages()
	if r.Final {
		s.total(&r)
	}
	var err error
	r.Intervals, err = s.intervals(r.Time)
	return r, err
}

func (c *Connections) add(o Connections) {
	c.Connecting += o.Connecting
	c.Open += o.Open
	c.Idle += o.Idle
	c.Closed += o.Closed
	c.Failed += o.Failed
	c.Untried += o.Untried
	c.Stood += o.Stood
}

// phase is the sum of one, and whether any worker had it.
func (s *Sum) phase(p phase, in []bool) (sum PhaseRecord, ok bool) {
	sum = PhaseRecord{Phase: p.String(), Outcomes: map[string]int64{}, Statuses: map[string]int64{}, Waits: map[string]float64{}, Parts: map[string]float64{}}
	lasts := false
	for k, one := range s.newest {
		if one == nil {
			continue
		}
		i := slices.IndexFunc(one.Phases, func(r PhaseRecord) bool { return r.Phase == sum.Phase })
		if i < 0 {
			lasts = lasts || in[k]
			continue
		}
		of := &one.Phases[i]
		if !ok || of.Start < sum.Start {
			sum.Start = of.Start
		}
		ok = true
		sum.End = max(sum.End, of.End)
		lasts = lasts || in[k] && of.End == 0
		sum.addCounts(of)
	}
	if lasts {
		sum.End = 0
	} else if sum.End == 0 { // nobody is left who saw its end
		for _, one := range s.newest {
			if one != nil {
				sum.End = max(sum.End, one.Time)
			}
		}
	}
	var hist [durations]*hdr.Histogram
	for k := range hist {
		hist[k] = s.of(Share{Of: sum.Phase, Kind: shareKinds[k]})
	}
	if s.plan.Rate == 0 { // the same thing then, so that the one is counted
		hist[response] = hist[service]
	}
	sum.tellTimes(&hist, s.all)
	return sum, ok
}

func (r *PhaseRecord) addCounts(o *PhaseRecord) {
	r.Requests += o.Requests
	addOutcomes(r.Outcomes, o.Outcomes)
	addOutcomes(r.Statuses, o.Statuses)
	for name, n := range o.Waits {
		r.Waits[name] += n
	}
	for name, n := range o.Parts {
		r.Parts[name] += n
	}
	r.Attempts += o.Attempts
	r.Received += o.Received
	r.Sent += o.Sent
	r.ConnectCalls.add(o.ConnectCalls)
	r.ReplyUnread.add(o.ReplyUnread)
}

func (d *Durations) add(o Durations) {
	d.Count += o.Count
	d.Seconds += o.Seconds
}

// of is a histogram, an empty one where nothing was told.
func (s *Sum) of(key Share) *hdr.Histogram {
	if s.hists[key] == nil {
		s.hists[key] = newHistogram()
	}
	return s.hists[key]
}

func (s *Sum) tls() *TLSRecord {
	done := map[model.TLSHandshakes]int64{}
	sum := &TLSRecord{}
	for _, one := range s.newest {
		if one == nil || one.TLS == nil {
			continue
		}
		sum.Crypto.add(one.TLS.Crypto)
		for _, h := range one.TLS.Handshakes {
			n := h.Count
			h.Count = 0
			done[h] += n
		}
	}
	if len(done) == 0 {
		return nil
	}
	for h, n := range done {
		h.Count = n
		sum.Handshakes = append(sum.Handshakes, h)
	}
	slices.SortFunc(sum.Handshakes, func(a, b model.TLSHandshakes) int {
		return cmp.Or(cmp.Compare(slices.Index(phaseNames, a.Phase), slices.Index(phaseNames, b.Phase)), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Version, b.Version), cmp.Compare(a.Cipher, b.Cipher), cmp.Compare(resumption(a), resumption(b)))
	})
	for kind, q := range map[int]*model.Quantiles{fullHandshake: &sum.Full, resumedHandshake: &sum.Resumed} {
		s.all.Reset()
		for p := range counted {
			s.all.Merge(s.of(Share{Of: phase(p).String(), Kind: shareKinds[kind]}))
		}
		*q = quantiles(s.all)
	}
	return sum
}

func (s *Sum) targets() (list []TargetRecord) {
	by := map[string]map[string]int64{}
	for _, one := range s.newest {
		if one == nil {
			continue
		}
		for _, t := range one.Targets {
			if by[t.Name] == nil {
				by[t.Name] = map[string]int64{}
			}
			addOutcomes(by[t.Name], t.Outcomes)
		}
	}
	for _, t := range s.plan.Targets { // in the plan's order, each name once
		if outcomes := by[t.Name]; outcomes != nil {
			list = append(list, TargetRecord{Name: t.Name, Outcomes: outcomes, Response: quantiles(s.of(Share{Of: ofTarget, Kind: shareKinds[response], Name: t.Name}))})
			delete(by, t.Name)
		}
	}
	return list
}

func (s *Sum) stages() (list []StageRecord) {
	by := map[int]map[string]int64{}
	for _, one := range s.newest {
		if one == nil {
			continue
		}
		for _, t := range one.Stages {
			if by[t.Stage] == nil {
				by[t.Stage] = map[string]int64{}
			}
			addOutcomes(by[t.Stage], t.Outcomes)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(by)) {
		name := strconv.Itoa(i)
		list = append(list, StageRecord{Stage: i, Outcomes: by[i],
			Response: quantiles(s.of(Share{Of: ofStage, Kind: shareKinds[response], Name: name})),
			Lag:      quantiles(s.of(Share{Of: ofStage, Kind: shareKinds[lag], Name: name}))})
	}
	return list
}

func addOutcomes(to, from map[string]int64) {
	for name, n := range from {
		to[name] += n
	}
}

// total sums the load up. Of a worker that is gone it has what it told last.
func (s *Sum) total(r *Record) {
	r.Totals = &Totals{Outcomes: map[string]int64{}}
	for i := range r.Phases {
		r.Totals.Requests += r.Phases[i].Requests
		addOutcomes(r.Totals.Outcomes, r.Phases[i].Outcomes)
	}
	for _, one := range s.newest {
		if one == nil {
			continue
		}
		for _, t := range one.Threads {
			r.Totals.CPUSeconds += t.User + t.System
		}
		if one.Totals != nil {
			r.Totals.Seconds = max(r.Totals.Seconds, one.Totals.Seconds)
			r.Totals.Cancelled = r.Totals.Cancelled || one.Totals.Cancelled
			r.Totals.StoodStill = max(r.Totals.StoodStill, one.Totals.StoodStill)
		}
	}
}

// intervals are the latencies since the last sum.
func (s *Sum) intervals(now int64) (list []Interval, err error) {
	for p := range counted {
		for _, kind := range []int{service, response} {
			key := Interval{Phase: phase(p).String(), Kind: shareKinds[kind]}
			from := key
			if s.plan.Rate == 0 {
				from.Kind = shareKinds[service]
			}
			h := s.recent[from]
			if h == nil || h.TotalCount() == 0 {
				continue
			}
			key.Start, key.End = min(s.lastAt, now), now
			if key.Histogram, err = s.encoder.encode(h); err != nil {
				return nil, err
			}
			list = append(list, key)
		}
	}
	for _, h := range s.recent {
		h.Reset()
	}
	s.lastAt = now
	return list, nil
}

// Package exporter shows what a collector reads to whoever scrapes it: the newest reading
// of each series, in OpenMetrics, for as long as it runs. Nothing is kept but that.
package exporter

import (
	"strings"
	"sync"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/export"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/secret"
)

// The most series that are shown: of one signal on a host, and of all. A machine of 200
// CPUs has 1,600 of node_cpu_seconds_total, which are the most of those that do not come and go.
const (
	MaxOfSignal = 2_000
	MaxSeries   = 30_000
)

const (
	// maxLabel is the longest value of a label, in bytes.
	maxLabel = 1024
	// patience is how many times the time between two readings of a signal passes until
	// there is none of it any more.
	patience = 3
	// mayGrow is how many more series there may be than usual before everything is begun anew. What is usual is known
	// after settles renewals.
	mayGrow = 3_000
	settles = 2
	// fullFor is for how many renewals probes may be without room for new names: a machine may have so many at once, and then
	// nothing is won, and counters begin at zero.
	fullFor = 12
	// forget is how long a series is known that is not shown: one that comes back goes on, and
	// does not begin at zero again.
	forget = 5 * time.Minute
	// maxNotes is how many sentences about the observation itself are passed on.
	maxNotes = 100
)

// store is the newest reading of everything. It is the Log of a collector that runs for
// months, so what it holds is bounded. It is safe for concurrent use.
type store struct {
	interval time.Duration
	hosts    []collect.Host
	say      func(note string)

	mu       sync.Mutex
	round    collect.Round // the newest
	families map[string]*family
	count    int // of all series that are known
	swept    int // the round in which room was made
	renewals int // since everything was begun
	usual    int // the series that were known settles renewals after that
	anew     int // how often everything was begun anew
	// short says that there was no room for a series since the last renewal: where MaxSeries are near there cannot be mayGrow more.
	short bool
	// partly says that not all could be the last time: what is known since then is not what is usual.
	partly bool
	key    []byte
	status map[string]map[string]model.State // by host and signal
	cut    map[cutKey]float64                // readings for which there was no room
	notes  map[string]bool
	pages  map[format]*page // of this round
	sizes  map[format]int   // of the pages that were made last, in bytes
}

type cutKey struct{ host, signal string }

// family is what there is of a signal.
type family struct {
	signal *model.Signal
	hosts  map[string]*readings
}

// readings are a signal's on a host.
type readings struct {
	newest int64 // when it was read last, Unix milliseconds
	gap    int64 // the longest time between two of its readings
	over   bool  // it could not be read since
	known  map[string]*series
	list   []*series // the same, in the order in which they came
	latest *series   // that was read last
}

// series is one of them.
type series struct {
	key    string
	labels string // as they are shown
	value  float64
	at     int64 // when it was read last
	// zero says that it is shown as 0: a counter of ours that nobody has seen yet began there.
	zero, seen bool
	after      *series // the one that was read after it the last time: most readings are in the order of the one before
}

func newStore(interval time.Duration, hosts []collect.Host, say func(string)) *store {
	s := &store{interval: interval, hosts: hosts, say: say, families: map[string]*family{}, status: map[string]map[string]model.State{},
		cut: map[cutKey]float64{}, notes: map[string]bool{}, pages: map[format]*page{}, sizes: map[format]int{}}
	for _, h := range hosts {
		s.status[h.Name] = map[string]model.State{}
	}
	return s
}

// Sample takes one value of a series.
func (s *store) Sample(host string, t int64, sig *model.Signal, value float64, labelValues ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.families[sig.Name]
	if f == nil {
		f = &family{signal: sig, hosts: map[string]*readings{}}
		s.families[sig.Name] = f
	}
	of := f.hosts[host]
	if of == nil {
		of = &readings{newest: t, known: map[string]*series{}}
		f.hosts[host] = of
	}
	of.read(t)
	s.key = s.key[:0]
	for _, v := range labelValues {
		s.key = append(append(s.key, v...), 0)
	}
	one := of.named(s.key)
	if one == nil {
		if one = s.meet(of, host, sig, labelValues); one == nil {
			s.cut[cutKey{host, sig.Name}]++
			return
		}
	}
	if of.latest != nil {
		of.latest.after = one
	}
	of.latest = one
	one.value, one.at = value, t
}

// named is the series of these labels, nil if it is not known.
func (of *readings) named(key []byte) *series {
	if of.latest != nil && of.latest.after != nil && of.latest.after.key == string(key) {
		return of.latest.after
	}
	return of.known[string(key)]
}

// read says that the signal was read at t.
func (of *readings) read(t int64) {
	if t > of.newest {
		of.gap = max(of.gap, min(t-of.newest, forget.Milliseconds()/patience))
		of.newest = t
	}
	of.over = false
}

// meet makes room for a series that was not known, nil where there is none, or where
// another is shown by the same labels.
func (s *store) meet(of *readings, host string, sig *model.Signal, labelValues []string) *series {
	if s.count >= MaxSeries || len(of.list) >= MaxOfSignal {
		s.makeRoom()
		if s.count >= MaxSeries || len(of.list) >= MaxOfSignal {
			s.short = s.short || s.count >= MaxSeries
			return nil
		}
	}
	text, changed := labelled(host, sig, labelValues)
	if changed {
		for _, other := range of.list {
			if other.labels == text {
				return nil
			}
		}
	}
	one := &series{key: string(s.key), labels: text, zero: sig.StartsAtZero}
	of.known[one.key] = one
	of.list = append(of.list, one)
	s.count++
	return one
}

// labelled writes labels as they are shown, and says whether they are others than
// they were: two that were different may be the same then.
func labelled(host string, sig *model.Signal, labelValues []string) (text string, changed bool) {
	var b strings.Builder
	b.WriteString(`host="` + export.Escaped(host) + `"`)
	for i, v := range labelValues {
		if v == "" || i >= len(sig.Labels) { // an empty label is none
			continue
		}
		shown := clean(v)
		changed = changed || shown != v
		b.WriteString(`,` + sig.Labels[i] + `="` + export.Escaped(shown) + `"`)
	}
	return b.String(), changed
}

// clean masks what gives access to something, cuts a label's value off, and writes out what would
// steer a terminal.
func clean(v string) string {
	v = secret.Text(v)
	v = strings.ToValidUTF8(v[:min(len(v), maxLabel)], "\uFFFD")
	return layout.Line(v)
}

// makeRoom forgets what is not shown, once a round.
func (s *store) makeRoom() {
	if s.swept == s.round.Number+1 {
		return
	}
	s.swept = s.round.Number + 1
	s.sweep(0)
}

// crowded is asked at each renewal whether all who read are to begin anew: tracers and probes know names that they met for as long as they
// run, and tell their counters. full says that a probe has no room for another.
func (s *store) crowded(full bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	if s.renewals <= settles {
		if !s.partly {
			s.usual = s.count
		}
		return false
	}
	full, s.short = full || s.short, false
	return s.count > s.usual+mayGrow || full && s.renewals >= fullFor
}

// begun says that all who read, or but some of them, were begun anew: what is usual now is to be seen.
func (s *store) begun(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals = 0
	s.anew++
	s.partly = !all
}

// sweep forgets what was not read for so long, and is not shown.
func (s *store) sweep(after time.Duration) {
	now := s.round.Time.UnixMilli()
	for _, f := range s.families {
		for _, of := range f.hosts {
			kept := of.list[:0]
			for _, one := range of.list {
				if now-one.at <= after.Milliseconds() || one.at == of.newest {
					kept = append(kept, one)
					continue
				}
				delete(of.known, one.key)
				s.count--
			}
			if len(kept) == len(of.list) {
				continue
			}
			clear(of.list[len(kept):])
			of.list, of.latest = kept, nil
			for _, one := range kept {
				one.after = nil // it may be one of those that are gone
			}
		}
	}
}

// shown says whether a series is part of the newest reading of its signal, and that is
// one of now. What was read before and is not any more is not shown.
func (s *store) shown(of *readings, one *series) bool {
	if of.over || one.at != of.newest {
		return false
	}
	age := s.round.Time.UnixMilli() - of.newest
	return age <= patience*max(of.gap, s.interval.Milliseconds())
}

// Commit ends a round: what is scraped from now on is of it.
func (s *store) Commit(r collect.Round) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round = r
	clear(s.pages)
	for _, f := range s.families {
		if !f.signal.StartsAtZero {
			continue
		}
		for _, of := range f.hosts {
			for _, one := range of.list {
				one.zero = one.zero && !one.seen
			}
		}
	}
	s.forgetOld()
	return nil
}

// forgetOld forgets what is long gone: of a signal that is not read any more, all.
func (s *store) forgetOld() {
	now := s.round.Time.UnixMilli()
	for name, f := range s.families {
		for host, of := range f.hosts {
			if now-of.newest > forget.Milliseconds() {
				s.count -= len(of.list)
				delete(f.hosts, host)
			}
		}
		if len(f.hosts) == 0 {
			delete(s.families, name)
		}
	}
	s.sweep(forget)
}

// Status takes what became of a signal on a host.
func (s *store) Status(host, signal string, st model.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status[host] == nil {
		return // it is none of ours
	}
	s.status[host][signal] = st.State
	if f := s.families[signal]; f != nil && f.hosts[host] != nil && st.State != model.Read {
		f.hosts[host].over = true
	}
}

// Note passes a sentence about the observation on, once, and not without end.
func (s *store) Note(sentence string) {
	sentence = secret.Text(sentence)
	s.mu.Lock()
	said := s.notes[sentence] || len(s.notes) >= maxNotes
	if !said {
		s.notes[sentence] = true
	}
	s.mu.Unlock()
	if !said {
		s.say(sentence)
	}
}

// What a run keeps beside its series has no place here.

func (s *store) Event(model.Event)                     {}
func (s *store) Interval(int64, int64, string, string) {}
func (s *store) Profile(string, []byte) error          { return nil }
func (s *store) Packets(string, []byte) error          { return nil }
func (s *store) Traced(model.Tracing)                  {}

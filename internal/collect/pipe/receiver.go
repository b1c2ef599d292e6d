package pipe

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// Bounds of what a collector may say.
const (
	maxSignals  = 10_000
	maxLabels   = 20
	maxFiles    = 64 << 20 // bytes
	maxStatuses = 50_000
	// farOff is further from now than the time of a sample can be.
	farOff = 24 * time.Hour
)

// What frames that make no sense are told.
var (
	errNoHost   = errors.New("it is of a host that the collector does not observe")
	errNoSignal = errors.New("it is of a signal that was not introduced")
	errNoSeries = errors.New("it is of a series that was not introduced")
	errNoName   = errors.New("it has a name that is none")
	errNoValue  = errors.New("its value or its time is none")
	errNoOrder  = errors.New("it comes out of turn")
	errNoKind   = errors.New("there is no such kind, or state")
	errNotAsked = errors.New("nobody asked for it")
	errTooMany  = errors.New("there are more than any collector has")
)

// receiver writes what a collector at the far end of a pipe records to a Log, at the
// times of our clock.
type receiver struct {
	log     collect.Log
	now     func() time.Time
	names   []string      // of its hosts
	capture bool          // it was asked for packets
	ahead   time.Duration // its clock beyond ours, in whole milliseconds

	signals  []*model.Signal
	series   []farSeries
	statuses map[farSignal]farStatus
	files    map[string][]byte // those that are not whole yet
	captured map[string]int64  // bytes of packets, by host
	filed    int               // bytes of all that came
	traced   bool
	round    roundFrame // the newest whole one
	dropped  int64      // samples, in all
	err      error      // of keeping a file
}

type farSeries struct {
	host   string
	signal *model.Signal
	labels []string
	last   int64 // time of its last value, by our clock
}

type farSignal struct{ host, signal string }

// farStatus is how a signal stands.
type farStatus struct {
	state model.State
	gap   string // says that it was read, but not to the end: so it stays
}

func newReceiver(log collect.Log, now func() time.Time, names []string, ahead time.Duration) *receiver {
	return &receiver{log: log, now: now, names: names, ahead: ahead, statuses: map[farSignal]farStatus{}, files: map[string][]byte{}, captured: map[string]int64{}}
}

// take records a frame. An error says that no collector would send it.
func (r *receiver) take(k kind, payload []byte) error {
	if err := r.record(k, payload); err != nil {
		return fmt.Errorf("a frame of kind %q and %d bytes: %w", k, len(payload), err)
	}
	return nil
}

func (r *receiver) record(k kind, payload []byte) error {
	switch k {
	case isSignal:
		return r.signal(payload)
	case isSeries:
		return r.meet(payload)
	case isValues:
		return eachValue(payload, r.value)
	case isEvent:
		return r.event(payload)
	case isStatus:
		return r.status(payload)
	case isNote:
		sentence, err := parse[string](payload)
		if err == nil {
			r.log.Note(short(sentence))
		}
		return err
	case isFile:
		return r.file(payload)
	case isPackets:
		return r.packets(payload)
	case isTraced:
		return r.trace(payload)
	case isRound:
		return r.commit(payload)
	}
	return errNoKind
}

// isName says whether s can be the name of a signal, a label, a file.
func isName(s string) bool {
	return s != "" && len(s) <= 200 && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == ':')
	})
}

func isNoName(s string) bool { return !isName(s) }

func (r *receiver) signal(payload []byte) error {
	s, err := parse[signalFrame](payload)
	switch {
	case err != nil:
		return err
	case isNoName(s.Name) || slices.ContainsFunc(s.Labels, isNoName):
		return errNoName
	case len(r.signals) == maxSignals || len(s.Labels) > maxLabels:
		return errTooMany
	}
	r.signals = append(r.signals, &model.Signal{Name: s.Name, Labels: s.Labels, StartsAtZero: s.StartsAtZero})
	return nil
}

func (r *receiver) meet(payload []byte) error {
	id, rest, err := takeNumber(payload)
	if err != nil {
		return err
	}
	if id >= uint64(len(r.signals)) {
		return errNoSignal
	}
	s := farSeries{signal: r.signals[id], last: math.MinInt64}
	if s.host, rest, err = takeString(rest); err != nil {
		return err
	}
	for range s.signal.Labels {
		var value string
		if value, rest, err = takeString(rest); err != nil {
			return err
		}
		s.labels = append(s.labels, value)
	}
	switch {
	case len(rest) > 0:
		return errNoName
	case !slices.Contains(r.names, s.host):
		return errNoHost
	case len(r.series) == maxSeries:
		return errTooMany
	}
	r.series = append(r.series, s)
	return nil
}

func (r *receiver) value(t int64, id uint64, v float64) error {
	if id >= uint64(len(r.series)) {
		return errNoSeries
	}
	if math.IsNaN(v) || r.isFarOff(t) {
		return errNoValue
	}
	s := &r.series[id]
	s.last = max(r.ours(t), s.last+1)
	r.log.Sample(s.host, s.last, s.signal, v, s.labels...)
	return nil
}

// isFarOff says of a time of the collector's clock that nothing can be of then.
func (r *receiver) isFarOff(t int64) bool {
	now := r.now().UnixMilli()
	return t < 0 || r.ours(t) > now+farOff.Milliseconds() || r.ours(t) < now-farOff.Milliseconds()
}

// ours is a time of the collector's clock by our own, in Unix milliseconds.
func (r *receiver) ours(t int64) int64 { return t - r.ahead.Milliseconds() }

func (r *receiver) event(payload []byte) error {
	e, err := parse[model.Event](payload)
	if err != nil {
		return err
	}
	if !slices.Contains(r.names, e.Host) {
		return errNoHost
	}
	e.Time = r.ours(e.Time)
	r.log.Event(e)
	return nil
}

func (r *receiver) status(payload []byte) error {
	s, err := parse[statusFrame](payload)
	switch {
	case err != nil:
		return err
	case !slices.Contains(r.names, s.Host):
		return errNoHost
	case isNoName(s.Signal):
		return errNoName
	case !slices.Contains([]model.State{model.Read, model.Absent, model.Denied, model.Failed}, s.State):
		return errNoKind
	}
	key := farSignal{s.Host, s.Signal}
	before, known := r.statuses[key]
	if !known && len(r.statuses) == maxStatuses {
		return errTooMany
	}
	r.statuses[key] = farStatus{s.State, before.gap}
	s.Why = short(s.Why)
	if s.State == model.Read && before.gap != "" {
		s.Status = model.Status{State: model.Failed, Why: before.gap}
	}
	r.log.Status(s.Host, s.Signal, s.Status)
	return nil
}

// file takes a piece of one; the last one makes it whole.
func (r *receiver) file(payload []byte) error {
	name, rest, err := takeString(payload)
	switch {
	case err != nil:
		return err
	case isNoName(name):
		return errNoName
	case len(rest) == 0:
		return errShort
	}
	if r.filed += len(payload); r.filed > maxFiles {
		return errTooMany
	}
	r.files[name] = append(r.files[name], rest[1:]...)
	if rest[0] == 0 {
		return nil
	}
	data := r.files[name]
	delete(r.files, name)
	r.err = errors.Join(r.err, r.log.Profile(name, data))
	return nil
}

// packets takes a piece of a host's packets.
func (r *receiver) packets(payload []byte) error {
	host, part, err := takeString(payload)
	switch {
	case err != nil:
		return err
	case !slices.Contains(r.names, host):
		return errNoHost
	case !r.capture:
		return errNotAsked
	}
	if r.captured[host] += int64(len(part)); r.captured[host] > collect.MaxPackets {
		return errTooMany
	}
	r.err = errors.Join(r.err, r.log.Packets(host, part))
	return nil
}

func (r *receiver) trace(payload []byte) error {
	t, err := parse[model.Tracing](payload)
	switch {
	case err != nil:
		return err
	case r.traced:
		return errNoOrder
	case slices.ContainsFunc(t.Profiles, isNoName):
		return errNoName
	}
	r.traced = true
	r.log.Traced(t)
	return nil
}

// commit ends a round, and says what was dropped before it.
func (r *receiver) commit(payload []byte) error {
	f, err := parse[roundFrame](payload)
	if err != nil {
		return err
	}
	if f.Number <= r.round.Number {
		return errNoOrder
	}
	if r.isFarOff(f.Time) {
		return errNoValue
	}
	r.round = f
	if f.Dropped != nil {
		r.drop(*f.Dropped, f.Time)
	}
	_ = r.log.Commit(collect.Round{Number: f.Number, Time: time.UnixMilli(r.ours(f.Time)), Edge: f.Edge}) // the recorder keeps its error
	return nil
}

// drop says that the pipe was full until a time. Where that was for longer than a
// signal may be unreadable, nothing counts as read to the end.
func (r *receiver) drop(l lost, until int64) {
	r.dropped += l.Samples
	why := fmt.Sprintf("from %s to %s the pipe to the collector was full: %d rounds, %d samples, %d events and %d notes were dropped",
		r.said(l.From), r.said(until), l.Rounds, l.Samples, l.Events, l.Notes)
	r.log.Note(fmt.Sprintf("hosts %q: %s", r.names, why))
	if time.Duration(until-l.From)*time.Millisecond > probe.Blink {
		r.lose(why)
	}
}

func (r *receiver) said(t int64) string {
	return time.UnixMilli(r.ours(t)).UTC().Format("15:04:05")
}

// lose says of every signal that was read that it was not to the end.
func (r *receiver) lose(why string) {
	for key, st := range r.statuses {
		if st.state == model.Read && st.gap == "" {
			st.gap = "it was read before, but not to the end: " + why
			r.statuses[key] = st
			r.log.Status(key.host, key.signal, model.Status{State: model.Failed, Why: st.gap})
		}
	}
}

// cut says what is missing since the pipe is no more.
func (r *receiver) cut(why error) {
	lost := "nothing of it was recorded"
	if r.round.Number > 0 {
		lost = fmt.Sprintf("what came after round %d (%s) is missing", r.round.Number, r.said(r.round.Time))
	}
	if len(r.files) > 0 {
		lost += fmt.Sprintf(", and %d files that were under way", len(r.files))
	}
	r.log.Note(fmt.Sprintf("hosts %q: the pipe to their collector was cut: %v; %s", r.names, why, lost))
	r.lose(fmt.Sprintf("the pipe to the collector was cut: %v", why))
}

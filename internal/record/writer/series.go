package writer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	walrecord "github.com/prometheus/prometheus/tsdb/record"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer/store"
	"plimsoll/internal/secret"
)

// The most series that a run has: of one signal on a host, and of all. Devices and
// processes that come and go under new names make new ones without end.
const (
	maxOfSignal = 20_000
	maxSeries   = 200_000
)

// maxLabel is the longest value of a label, in bytes; the kernel's longest path has
// so many.
const maxLabel = 4096

// freshAtOnce is how many new series stand in one record of the log.
const freshAtOnce = 5000

// errFull says that a new series had no room.
var errFull = fmt.Errorf("more than %d series of one signal, or %d of all, came in this run (devices, containers or processes under ever new names); the later ones were not recorded", maxOfSignal, maxSeries)

// errTwin says that a series has the labels of another.
var errTwin = fmt.Errorf("some series (of processes, files or the like) have names that are the same once what looks like a secret is masked, or after %d bytes; of those the one that came first was recorded alone", maxLabel)

// series writes samples to a write-ahead log of Prometheus' form. While the
// run lasts nothing else is kept of them in memory but where each series'
// next sample goes: no head, no chunks. The block is made at the end.
type series struct {
	run      string // the directory of the run
	dir      string // of the series, in it
	interval int64
	start    int64
	log      *store.Log
	refs     map[string]*entry // by signal, host and labels as they were given
	cleaned  map[string]*entry // those that are recorded under other labels, by these
	latest   *entry            // that had a sample last
	named    uint64            // the number of the series that was met last
	part     int               // of the log, from 0; see turn
	ofSignal map[string]int    // how many of refs, by signal and host
	key      []byte
	readings map[string]*reading // by signal and host, of those that start at zero
	fresh    []walrecord.RefSeries
	samples  []walrecord.RefSample
	buf      []byte
	builder  labels.ScratchBuilder
	// pieceSamples is the constant of that name; fewer in tests.
	pieceSamples int
}

// reading holds the times of a signal's newest reading and of the one before.
type reading struct{ newest, before int64 }

// entry is a series that has been met.
type entry struct {
	ref   chunks.HeadSeriesRef
	last  int64 // time of its last sample
	part  int   // of the log, in which it was declared last
	key   string
	after *entry // the one that had a sample after it the last time: most readings are in the order of the one before
	// heard are its labels for those who listen, nil until there is one.
	heard   *labels.Labels
	cleaned bool // its labels are others than were given
	// twin is set where another has the labels under which it would be recorded: two in one would be neither's course, nor in order of time.
	twin bool
}

func newSeries(run string, interval, start int64) (*series, error) {
	dir := filepath.Join(run, record.SeriesDir)
	log, err := store.NewLog(filepath.Join(dir, record.WALDir))
	if err != nil {
		return nil, err
	}
	return &series{
		run: run, dir: dir, interval: max(interval, 1), start: start, log: log,
		refs: map[string]*entry{}, cleaned: map[string]*entry{}, ofSignal: map[string]int{}, readings: map[string]*reading{}, pieceSamples: pieceSamples,
	}, nil
}

// add buffers one sample until commit. errFull tells of one that has no room, errTwin of one that is another's by its labels; any
// other error costs data that should be there.
func (s *series) add(host string, t int64, sig *model.Signal, value float64, labelValues []string) (*entry, error) {
	if len(labelValues) != len(sig.Labels) {
		return nil, fmt.Errorf("%s: %d label values %q, want one for each of %q", sig.Name, len(labelValues), slices.Clone(labelValues), sig.Labels)
	}
	if math.IsNaN(value) {
		return nil, fmt.Errorf("%s on %s: not a number; what was not read must not be recorded", sig.Name, host)
	}
	s.key = append(append(append(s.key[:0], sig.Name...), 0), host...)
	own := len(s.key)
	var before int64
	if sig.StartsAtZero {
		before = s.readBefore(t)
	}
	for _, v := range labelValues {
		s.key = withLabel(s.key, v)
	}
	e := s.known()
	if e == nil {
		if len(s.refs) >= maxSeries || s.ofSignal[string(s.key[:own])] >= maxOfSignal {
			return nil, errFull
		}
		s.ofSignal[string(s.key[:own])]++
		e = s.meet(host, t, before, sig, labelValues)
	}
	if s.latest != nil {
		s.latest.after = e
	}
	s.latest = e
	if e.twin {
		return nil, errTwin
	}
	if e.part != s.part {
		e.part = s.part
		s.fresh = append(s.fresh, walrecord.RefSeries{Ref: e.ref, Labels: s.recorded(host, sig, labelValues)})
	}
	if t == e.last {
		t++
	}
	if t < e.last {
		return nil, fmt.Errorf("%s on %s: a sample of %d ms after one of %d ms; time runs forward in a series", sig.Name, host, t, e.last)
	}
	e.last = t
	s.samples = append(s.samples, walrecord.RefSample{Ref: e.ref, T: t, V: value})
	return e, nil
}

// withLabel adds a label's value to a series' key. A value may hold any byte, so its length is in it.
func withLabel(key []byte, v string) []byte {
	return append(binary.AppendUvarint(append(key, 0), uint64(len(v))), v...)
}

// known is the series whose key is in s.key, nil if it was not met.
func (s *series) known() *entry {
	if s.latest != nil && s.latest.after != nil && s.latest.after.key == string(s.key) {
		return s.latest.after
	}
	return s.refs[string(s.key)]
}

// readBefore returns when the signal and host whose key is in s.key were read
// before t: the time of the last reading, else an interval earlier, though not
// before the run's start.
func (s *series) readBefore(t int64) int64 {
	r := s.readings[string(s.key)]
	if r == nil {
		first := max(t-s.interval, s.start)
		r = &reading{newest: first, before: first}
		s.readings[string(s.key)] = r
	}
	if t > r.newest {
		r.before, r.newest = r.newest, t
	}
	return r.before
}

// meet makes a new series. One that starts at zero gets that zero at the time
// of the signal's reading before this one, when there was none of it yet; a
// millisecond earlier when there is no room.
func (s *series) meet(host string, t, before int64, sig *model.Signal, labelValues []string) *entry {
	s.named++
	e := &entry{ref: chunks.HeadSeriesRef(s.named), last: math.MinInt64, part: s.part, key: string(s.key)}
	e.twin = s.taken(e, host, sig, labelValues)
	s.refs[e.key] = e
	if e.twin {
		return e
	}
	s.fresh = append(s.fresh, walrecord.RefSeries{Ref: e.ref, Labels: s.recorded(host, sig, labelValues)})
	if sig.StartsAtZero {
		e.last = min(before, t-1)
		s.samples = append(s.samples, walrecord.RefSample{Ref: e.ref, T: e.last})
	}
	return e
}

// taken says whether another series is recorded under the labels of a new one; else they are the new one's.
func (s *series) taken(e *entry, host string, sig *model.Signal, labelValues []string) bool {
	key := append(append([]byte(sig.Name), 0), clean(host)...)
	for _, v := range labelValues {
		key = withLabel(key, clean(v))
	}
	if same := s.refs[string(key)]; s.cleaned[string(key)] != nil || same != nil && !same.cleaned {
		return true
	}
	if e.cleaned = string(key) != e.key; e.cleaned {
		s.cleaned[string(key)] = e
	}
	return false
}

// recorded are the labels of a series as the run has them.
func (s *series) recorded(host string, sig *model.Signal, labelValues []string) labels.Labels {
	s.builder.Reset()
	s.builder.Add("__name__", sig.Name)
	s.builder.Add("host", clean(host))
	for i, v := range labelValues {
		if v != "" { // an empty label is none
			s.builder.Add(sig.Labels[i], clean(v))
		}
	}
	s.builder.Sort()
	return s.builder.Labels()
}

// labelsOf are those of a series that somebody listens to, made once.
func (s *series) labelsOf(e *entry, host string, sig *model.Signal, labelValues []string) *labels.Labels {
	if e.heard == nil {
		l := s.recorded(host, sig, labelValues)
		e.heard = &l
	}
	return e.heard
}

// clean copies a label value, masks what gives access to something, cuts it off and
// replaces what is no UTF-8.
func clean(v string) string {
	v = secret.Text(v)
	return strings.Clone(strings.ToValidUTF8(v[:min(len(v), maxLabel)], "�"))
}

// commit writes what add buffered. The log flushes it to the kernel.
func (s *series) commit() error {
	if len(s.samples) == 0 {
		return nil
	}
	var enc walrecord.Encoder
	for some := range slices.Chunk(s.fresh, freshAtOnce) { // a reader has bounds for a record
		s.buf = enc.Series(some, s.buf[:0])
		if err := s.log.Add(s.buf); err != nil {
			return err
		}
	}
	s.fresh = nil
	s.buf = enc.Samples(s.samples, s.buf[:0])
	s.samples = s.samples[:0]
	return s.log.Add(s.buf)
}

// turn begins a part of the log that can be read without those before it: each series is declared in it
// again. It returns the number of its first file.
func (s *series) turn() (int, error) {
	s.part++
	err := s.log.Next()
	file, _ := s.log.At()
	return file, err
}

// forget forgets the series without a sample in this part of the log, or a later one, and those whose labels such a one may have had.
func (s *series) forget(before int) {
	s.latest = nil
	for key, e := range s.refs {
		e.after = nil // it may be one of those that go
		if e.part >= before && !e.twin {
			continue
		}
		delete(s.refs, key)
		own := ofSignalAndHost(key)
		if s.ofSignal[own]--; s.ofSignal[own] == 0 {
			delete(s.ofSignal, own)
		}
	}
	maps.DeleteFunc(s.cleaned, func(_ string, e *entry) bool { return e.part < before })
}

// ofSignalAndHost is the part of a series' key that it shares with others of its signal and host.
func ofSignalAndHost(key string) string {
	name, rest, _ := strings.Cut(key, "\x00")
	host, _, _ := strings.Cut(rest, "\x00")
	return name + "\x00" + host
}

func (s *series) close() error { return s.log.Close() }

package pipe

import (
	"encoding/binary"
	"sync"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// maxSeries is the most series that cross a pipe: as many as a run can have.
const maxSeries = 200_000

// valuesAtOnce is about how many bytes of values stand in one frame.
const valuesAtOnce = 32 << 10

// fileAtOnce is how many bytes of a file stand in one frame.
const fileAtOnce = 256 << 10

// sender is the Log of a collector at the far end of a pipe. What the pipe does not take
// in time is dropped by whole rounds, counted, and told with the next round that is not.
type sender struct {
	out *outbox

	mu       sync.Mutex
	signals  map[string]uint64
	series   map[string]uint64
	key      []byte
	at       int64  // time of values
	values   []byte // not yet a frame
	held     int64  // how many those are
	dropping bool   // until the pipe has taken half of what waits
	lost     lost
}

func newSender(out *outbox) *sender {
	return &sender{out: out, signals: map[string]uint64{}, series: map[string]uint64{}}
}

// Sample sends one value.
func (s *sender) Sample(host string, t int64, sig *model.Signal, value float64, labelValues ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := uint64(0), false
	if !s.dropping {
		id, ok = s.meet(host, sig, labelValues)
	}
	if !ok {
		s.drop(&s.lost.Samples, 1, t)
		return
	}
	if t != s.at || len(s.values) > valuesAtOnce {
		s.flush()
	}
	if len(s.values) == 0 {
		s.at = t
		s.values = binary.AppendVarint(s.values, t)
	}
	s.values = appendValue(s.values, id, value)
	s.held++
}

// meet returns the number of a series, which it introduces; false if there is no room.
func (s *sender) meet(host string, sig *model.Signal, labelValues []string) (uint64, bool) {
	s.key = append(append(append(s.key[:0], sig.Name...), 0), host...)
	for _, v := range labelValues {
		s.key = append(append(s.key, 0), v...)
	}
	if id, ok := s.series[string(s.key)]; ok {
		return id, true
	}
	if len(s.series) == maxSeries || len(s.key) > maxFrame/2 {
		return 0, false
	}
	signal, ok := s.signals[sig.Name]
	if !ok {
		signal = uint64(len(s.signals))
		if !s.out.offer(jsonFrame(isSignal, signalFrame{sig.Name, sig.Labels, sig.StartsAtZero})) {
			return 0, false
		}
		s.signals[sig.Name] = signal
	}
	body := appendString(binary.AppendUvarint(nil, signal), host)
	for _, v := range labelValues {
		body = appendString(body, v)
	}
	if !s.out.offer(frame(isSeries, body)) {
		return 0, false
	}
	id := uint64(len(s.series))
	s.series[string(s.key)] = id
	return id, true
}

func (s *sender) drop(what *int64, n, t int64) {
	if s.lost == (lost{}) {
		s.lost.From = t
	}
	*what += n
}

// flush makes a frame of the values so far.
func (s *sender) flush() {
	if len(s.values) > 0 && !s.out.offer(frame(isValues, s.values)) {
		s.drop(&s.lost.Samples, s.held, s.at)
		s.dropping = true
	}
	s.values, s.held = s.values[:0], 0
}

// Event sends one, if there is room.
func (s *sender) Event(e model.Event) {
	f := jsonFrame(isEvent, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f) > maxFrame || s.dropping || !s.out.offer(f) {
		s.drop(&s.lost.Events, 1, e.Time)
	}
}

// Status sends what became of a signal.
func (s *sender) Status(host, signal string, st model.Status) {
	st.Why = short(st.Why)
	s.out.must(jsonFrame(isStatus, statusFrame{host, signal, st}))
}

// Note sends a sentence, if there is room.
func (s *sender) Note(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.out.offer(jsonFrame(isNote, short(sentence))) {
		s.drop(&s.lost.Notes, 1, s.at)
	}
}

// Interval is never called: the load is the session's, and what users waited for is none of a collector's to say.
func (s *sender) Interval(_, _ int64, tag, _ string) {
	panic("a collector in a process of its own records latencies: " + tag)
}

// Profile sends stacks, piece by piece, as fast as the pipe takes them. Each piece has
// the name, and whether it is the last.
func (s *sender) Profile(name string, data []byte) error {
	for last := false; !last; {
		piece := data[:min(len(data), fileAtOnce)]
		data = data[len(piece):]
		last = len(data) == 0
		body := appendString(nil, name)
		if last {
			body = append(body, 1)
		} else {
			body = append(body, 0)
		}
		if err := s.out.wait(frame(isFile, append(body, piece...))); err != nil {
			return err
		}
	}
	return nil
}

// Packets sends a piece of a host's packets as fast as the pipe takes it: what comes
// faster finds no room in the capture, and is counted there.
func (s *sender) Packets(host string, part []byte) error {
	for len(part) > 0 {
		n := min(len(part), fileAtOnce)
		if err := s.out.wait(frame(isPackets, append(appendString(nil, host), part[:n]...))); err != nil {
			return err
		}
		part = part[n:]
	}
	return nil
}

// Traced sends what there was of tracing.
func (s *sender) Traced(t model.Tracing) { s.out.must(jsonFrame(isTraced, t)) }

// Commit ends a round. Whether the next one is sent depends on what waits by then.
func (s *sender) Commit(r collect.Round) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.dropping = s.dropping && s.out.crowded()
	if s.dropping {
		s.drop(&s.lost.Rounds, 1, r.Time.UnixMilli())
		return nil
	}
	f := roundFrame{Number: r.Number, Time: r.Time.UnixMilli(), Edge: r.Edge, Dropped: s.told()}
	if !s.out.offer(jsonFrame(isRound, f)) {
		s.dropping = true
		s.drop(&s.lost.Rounds, 1, r.Time.UnixMilli())
		return nil
	}
	s.lost = lost{}
	return nil
}

// told is what was dropped, nil for nothing.
func (s *sender) told() *lost {
	if s.lost == (lost{}) {
		return nil
	}
	l := s.lost
	return &l
}

// rest is what was dropped and is not told by a round, since there is none any more.
func (s *sender) rest() *lost {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return s.told()
}

// edge lets the next round be sent if there is any room at all.
func (s *sender) edge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropping = false
}

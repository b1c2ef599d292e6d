package collect

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// settling is a source that records once more when it settles, as a burst does.
type settling struct {
	rec   *Recorder
	now   func() time.Time
	round Round
}

func (*settling) Start(context.Context) error { return nil }
func (*settling) Phase(string)                {}
func (*settling) Close() error                { return nil }

func (s *settling) Settle() { s.put(s.now()) }

func (s *settling) Round(_ context.Context, r Round) error {
	s.round = r
	s.put(r.Time)
	return nil
}

func (s *settling) put(at time.Time) { s.rec.Sample("a", at.UnixMilli(), counter, 1, "x") }

// An edge comes after what was recorded in settling for it.
func TestAnEdgeComesAfterWhatSettled(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	now := func() time.Time { // the time goes on while the source settles
		at = at.Add(20 * time.Millisecond)
		return at
	}
	l, err := Open(Config{Interval: time.Hour}, nil, now)
	check(t, err)
	dir := t.TempDir() + "/run"
	out, err := writer.Create(dir, model.Run{})
	check(t, err)
	check(t, l.Start(t.Context(), Into(out)))
	s := &settling{rec: l.Recorder(), now: now}
	check(t, l.Add(t.Context(), s))
	for number, window := range []string{model.Hold, ""} {
		edge := l.Settle().Add(time.Millisecond)
		took, err := l.Edge(t.Context(), Edge{Time: edge, Window: window})
		check(t, err)
		if want := (Round{Number: number + 1, Time: edge, Edge: true}); s.round != want || !took.Equal(edge) {
			t.Errorf("round %+v at %v, want %+v", s.round, took, want)
		}
	}
	check(t, l.Close())
	check(t, out.Close())
	if got := len(readings(t, opened(t, dir), counter.Name, nil)); got != 5 { // and the zero before
		t.Errorf("%d samples, want 5", got)
	}
}

// A process that was stopped for a while says so.
func TestRoundsThatAreFarApartAreNoted(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	l, err := Open(Config{Interval: time.Second}, nil, func() time.Time { return at })
	check(t, err)
	l.named = []Host{{Host: model.Host{Name: "a"}}}
	dir := t.TempDir() + "/run"
	out, err := writer.Create(dir, model.Run{})
	check(t, err)
	check(t, l.Start(t.Context(), Into(out)))
	_, err = l.Edge(t.Context(), Edge{Time: at})
	check(t, err)
	for _, after := range []time.Duration{time.Second, 4 * time.Second, 10 * time.Second} {
		at = at.Add(after)
		l.regular(t.Context())
	}
	check(t, l.Close())
	check(t, out.Close())
	want := []string{`hosts ["a"]: nobody looked for 10s until 22:13:35: what observes them was held up; what came and went meanwhile was not seen`}
	if d := cmp.Diff(want, opened(t, dir).Meta().Notes); d != "" {
		t.Error(d)
	}
}

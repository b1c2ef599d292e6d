package live

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

const start = 1_700_000_000_000 // Unix milliseconds

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	outcome = &model.Signal{Name: outcomes, Kind: model.Counter, Labels: []string{"phase", "outcome"}, StartsAtZero: true}
	cpu     = &model.Signal{Name: "node_cpu_seconds_total", Kind: model.Counter, Labels: []string{"cpu", "mode"}}
	other   = &model.Signal{Name: "node_load1", Kind: model.Gauge}
)

// waits is a histogram of an interval.
func waits(t *testing.T, r *rand.Rand, n int) string {
	h := hdr.New(1, 60_000_000, 3)
	for range n {
		check(t, h.RecordValue(int64(1+r.IntN(1_000_000))))
	}
	raw, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	check(t, err)
	if _, err := base64.StdEncoding.DecodeString(string(raw)); err != nil {
		return base64.StdEncoding.EncodeToString(raw)
	}
	return string(raw)
}

// Whatever the order in which rounds, edges of windows and histograms come: each second has,
// when the run is closed, the figures that were shown of it.
func TestSecondsAreThoseOfTheClosedRun(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := filepath.Join(t.TempDir(), "run")
		plan := model.Plan{Mode: "run", Interval: 1000, Load: &model.LoadPlan{URL: "http://x/", Connections: 1}}
		w, err := writer.Create(dir, model.Run{Started: start, Plan: plan})
		check(t, err)
		heard, run := make(chan struct{}, 1000), New(1000)
		l := w.Listen(1000)
		done := make(chan struct{})
		go func() {
			defer close(done)
			run.Follow(t.Context(), l, func() { heard <- struct{}{} })
		}()
		counts := map[[2]string]float64{}
		at, phase := int64(start), model.Ramp
		open := func(name string) {
			check(t, w.Update(func(m *model.Run) {
				if n := len(m.Windows); n > 0 {
					m.Windows[n-1].End = at
				}
				m.Windows = append(m.Windows, model.Window{Name: name, Start: at})
			}))
			phase = name
		}
		w.Sample("a", at, other, 1)
		check(t, w.Commit())
		open(model.Ramp)
		for range 30 {
			before := at
			at += int64(900 + r.IntN(200))
			for _, o := range []string{"2xx", "5xx", "read:timeout"}[:1+r.IntN(3)] {
				key := [2]string{phase, o}
				counts[key] += float64(r.IntN(50))
				w.Sample("a", at, outcome, counts[key], phase, o)
			}
			for c := range 2 {
				w.Sample("a", at, cpu, float64(at-start)/1000, fmt.Sprint(c), "user")
			}
			if phase == model.Hold && r.IntN(4) > 0 {
				middle := (before + at) / 2
				w.Interval(before, middle, "response", waits(t, r, 1+r.IntN(9)))
				w.Interval(middle, at, "response", waits(t, r, 1+r.IntN(9)))
				w.Interval(before, at, "service", waits(t, r, 3))
			}
			check(t, w.Commit())
			switch r.IntN(12) {
			case 0:
				open(model.Hold)
			case 1:
				open(model.Cool)
			}
		}
		check(t, w.Update(func(m *model.Run) { m.Windows[len(m.Windows)-1].End = at }))
		check(t, w.Close())
		<-done
		closed, err := record.Open(dir)
		check(t, err)
		want, err := closed.Load()
		check(t, err)
		v := run.View()
		if d := cmp.Diff(want.Course, v.Seconds); d != "" || len(v.Seconds) == 0 {
			t.Errorf("seed %d: -closed run +shown\n%s", seed, d)
		}
		check(t, closed.Close())
		if v.Missed != 0 || v.Open {
			t.Errorf("missed %d, open %v", v.Missed, v.Open)
		}
	}
}

func TestOnlyTheLastMinutesOfAFewSeriesAreHeld(t *testing.T) {
	w, err := writer.Create(filepath.Join(t.TempDir(), "run"), model.Run{Started: start, Plan: model.Plan{Interval: 1000}})
	check(t, err)
	run, l := New(1000), w.Listen(4)
	const rounds = 3 * Reach / 1000
	for i := range int64(rounds) {
		at := start + i*1000
		w.Sample("a", at, other, 1)
		w.Sample("a", at, cpu, float64(i), "0", "user")
		w.Sample("a", at, cpu, float64(2*i), "1", "user")
		check(t, w.Commit())
		b, missed, err := l.Next(t.Context())
		check(t, err)
		run.take(b, missed)
	}
	v := run.View()
	first, last, err := v.Recent.Span()
	check(t, err)
	if last != start+(rounds-1)*1000 || first != last-Reach {
		t.Errorf("held from %d to %d", first-start, last-start)
	}
	n := 0
	for s, err := range v.Recent.Series(first, last, record.Match("node_cpu_seconds_total", "host", "a", "mode", "user")...) {
		check(t, err)
		if n++; s.Last() != 3*(rounds-1) {
			t.Errorf("the CPUs add up to %v, want %v", s.Last(), 3*(rounds-1))
		}
	}
	if n != 1 {
		t.Errorf("%d series, want the sum", n)
	}
	for range v.Recent.Series(first, last, record.Match("node_load1")...) {
		t.Error("what is not shown is held")
	}
	check(t, w.Close())
}

func TestALostRoundIsTold(t *testing.T) {
	run := New(1000)
	run.take(&writer.Batch{}, writer.Missed{Batches: 3})
	if v := run.View(); v.Missed != 3 || v.Seconds != nil {
		t.Errorf("%+v", v)
	}
	if _, ok := run.View().Last(); ok {
		t.Error("a run without seconds has a last one")
	}
}

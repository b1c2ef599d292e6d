package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
)

func TestSeriesAreThoseThatFitInTheOrderOfTheirLabels(t *testing.T) {
	var m Memory
	m.Add(labels.FromStrings("__name__", "up", "host", "b"), []Point{{1, 1}, {2, 2}, {3, 3}})
	m.Add(labels.FromStrings("__name__", "up", "host", "a", "kind", "x"), []Point{{2, 5}})
	m.Add(labels.FromStrings("__name__", "up", "host", "c"), []Point{{9, 1}})
	m.Add(labels.FromStrings("__name__", "other", "host", "a"), []Point{{2, 1}})
	m.Sort()
	run := InMemory(model.Run{}, &m)
	for name, c := range map[string]struct {
		pairs []string
		want  map[string][]Point
	}{
		"all of the name that were read meanwhile": {nil, map[string][]Point{`{__name__="up", host="a", kind="x"}`: {{2, 5}}, `{__name__="up", host="b"}`: {{2, 2}, {3, 3}}}},
		"those of a label":                         {[]string{"kind", "x"}, map[string][]Point{`{__name__="up", host="a", kind="x"}`: {{2, 5}}}},
		"those without it":                         {[]string{"kind", ""}, map[string][]Point{`{__name__="up", host="b"}`: {{2, 2}, {3, 3}}}},
	} {
		got, before := map[string][]Point{}, labels.EmptyLabels()
		for s, err := range run.Series(2, 3, Match("up", c.pairs...)...) {
			if err != nil {
				t.Fatal(err)
			}
			if labels.Compare(before, s.Labels) > 0 {
				t.Errorf("%s: %s after %s", name, s.Labels, before)
			}
			before = s.Labels
			got[s.Labels.String()] = s.Points
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestACounterThatBeginsAnew(t *testing.T) {
	s := Series{Points: []Point{{0, 7}, {1000, 10}, {2000, 30}, {3000, 5}, {5000, 9}}}
	if got := s.Increase(1500, 5000); got != 20+5+4 {
		t.Errorf("it grew by %v since its reading at 1 s, want 29", got)
	}
	want := []Point{{1000, 3}, {2000, 20}, {5000, 2}}
	if diff := cmp.Diff(want, s.Rates()); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
}

func TestAMeanWeighsReadingsByTheirTime(t *testing.T) {
	s := Series{Points: []Point{{0, 100}, {1000, 1}, {4000, 3}, {6000, 100}}}
	if got := s.Mean(0, 4000); got != (1*1000+3*3000)/4000. {
		t.Errorf("mean %v, want 2.5", got)
	}
}

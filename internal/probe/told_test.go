package probe

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is gone is told as nothing; where there is a rest, once, and it makes room for others, the largest of them first.
func TestTold(t *testing.T) {
	kept := Told[string]{Most: 2}
	rest := Told[string]{Most: 2, Rest: func(string) string { return "other" }}
	for i, step := range []struct{ now, kept, rest map[string]float64 }{
		{map[string]float64{"a": 1, "b": 2}, map[string]float64{"a": 1, "b": 2}, map[string]float64{"a": 1, "b": 2}},
		{map[string]float64{"b": 1, "c": 5}, map[string]float64{"a": 0, "b": 1}, map[string]float64{"a": 0, "b": 1, "other": 5}},
		{map[string]float64{"c": 1, "d": 5, "e": 3}, map[string]float64{"a": 0, "b": 0}, map[string]float64{"b": 0, "other": 9}},
		{map[string]float64{"d": 2, "e": 3}, map[string]float64{"a": 0, "b": 0}, map[string]float64{"other": 2, "e": 3}},
	} {
		for name, c := range map[string]struct {
			told *Told[string]
			want map[string]float64
		}{"kept": {&kept, step.kept}, "rest": {&rest, step.rest}} {
			got := map[string]float64{}
			c.told.Each(maps.Clone(step.now), func(k string, n float64) { got[k] = n })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("step %d, %s: %s", i, name, diff)
			}
		}
	}
}

package probe

import (
	"cmp"
	"maps"
	"slices"
)

// Told is of which kinds of something was told, each by its label values: what is gone is told as 0,
// since silence would say that nobody looked. It is bounded, because many of these names are anybody's.
type Told[K comparable] struct {
	Most int // how many kinds are told of
	// Rest stands for each of the others, of which there are the fewest; nil leaves them out. With it, what is gone
	// is told as 0 once, and makes room: only sums over time, and no means, may be made of such a signal.
	Rest  func(K) K
	known map[K]bool
}

// Each calls put for all kinds that were told of, with what there is of each now.
func (t *Told[K]) Each(now map[K]float64, put func(K, float64)) {
	if t.known == nil {
		t.known = map[K]bool{}
	}
	sums := map[K]float64{}
	if t.Rest != nil {
		maps.DeleteFunc(t.known, func(k K, told bool) bool { return !told })
	}
	for _, k := range slices.SortedFunc(maps.Keys(now), func(a, b K) int { return cmp.Compare(now[b], now[a]) }) {
		n := now[k]
		if _, known := t.known[k]; !known && len(t.known) >= t.Most {
			if t.Rest == nil {
				continue
			}
			k = t.Rest(k)
		}
		t.known[k] = true
		sums[k] += n
	}
	for k := range t.known {
		n, there := sums[k]
		t.known[k] = there
		put(k, n)
	}
}

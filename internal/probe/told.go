package probe

// Told is of which kinds of something was told, each by its label values: what is gone is told as 0,
// since silence would say that nobody looked. It is bounded, because many of these names are anybody's.
type Told[K comparable] struct {
	Most  int       // how many kinds are told of
	Rest  func(K) K // what stands for each of the others; nil leaves them out
	known map[K]bool
}

// Each calls put for all kinds that were told of, with what there is of each now.
func (t *Told[K]) Each(now map[K]float64, put func(K, float64)) {
	if t.known == nil {
		t.known = map[K]bool{}
	}
	sums := map[K]float64{}
	for k, v := range now {
		if !t.known[k] && len(t.known) >= t.Most {
			if t.Rest == nil {
				continue
			}
			k = t.Rest(k)
		}
		t.known[k] = true
		sums[k] += v
	}
	for k := range t.known {
		put(k, sums[k])
	}
}

package requests

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/wait/reason"
)

// maxHolders is how many threads are looked at in a round: some 10 µs each.
const maxHolders = 128

// doing is how many threads do what, by a group's number.
type doing map[uint32]map[string]uint64

// whatHoldersDo looks at the threads that the last walk found with a request in hand. Where
// they are more than are looked at, each of those stands for others, too.
func (t *Trace) whatHoldersDo() (doing, error) {
	found := map[bpfHolder]uint64{}
	if err := trace.Each(t.Maps.Maps[bpfMapHolders], func(h *bpfHolder, weight *uint64) { found[*h] = *weight }); err != nil {
		return nil, fmt.Errorf("read which threads have requests in hand: %w", err)
	}
	by, looked := doing{}, 0
	for h, weight := range found {
		if looked++; looked > maxHolders {
			break
		}
		what, err := reason.OfThread(int(h.Tid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		if by[h.Group] == nil {
			by[h.Group] = map[string]uint64{}
		}
		by[h.Group][what] += weight
	}
	if len(found) > maxHolders {
		by.scale(float64(len(found)) / maxHolders)
	}
	return by, nil
}

// scale lets each stand for so many.
func (d doing) scale(by float64) {
	for _, of := range d {
		for what, n := range of {
			of[what] = uint64(math.Round(float64(n) * by))
		}
	}
}

// forgetHolders empties the map before a walk.
func (t *Trace) forgetHolders() error {
	m := t.Maps.Maps[bpfMapHolders]
	var old []bpfHolder
	if err := trace.Each(m, func(h *bpfHolder, _ *uint64) { old = append(old, *h) }); err != nil {
		return err
	}
	return trace.Remove(m, old)
}

// putHolders puts what the threads of a group did, and zero for what they did before.
func (t *Trace) putHolders(out model.Sink, c Group, labels []string) {
	if c.Doing == nil || c.Name == "" {
		return
	}
	key := [2]string(labels)
	if t.did[key] == nil {
		t.did[key] = map[string]bool{}
	}
	for what := range c.Doing {
		t.did[key][what] = true
	}
	for what := range t.did[key] {
		out.Put(holders, float64(c.Doing[what]), labels[0], labels[1], what)
	}
}

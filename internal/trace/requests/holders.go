package requests

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/wait/reason"
)

// maxHolders is how many threads of either side are looked at in a round, some 10 µs each, and one of each group at least.
const maxHolders = 128

// counts is how many threads there were of which kind, by a group's number.
type counts map[uint32]map[string]uint64

// threads are those that the last walk found: of servers, by what they do; of clients, by their names.
// nil where nobody looked.
type threads struct{ holding, asking counts }

// lookAtThreads looks at the threads that the last walk found with a request in hand, or on its way to an upstream.
func (t *Trace) lookAtThreads() (threads, error) {
	began := time.Now()
	defer func() { t.next = t.next.Add(time.Duration(float64(time.Since(began)) / walkShare)) }()
	holding, asking := map[bpfHolder]uint64{}, map[bpfHolder]uint64{}
	t.served.next()
	err := trace.Each(t.Maps.Maps[bpfMapHolders], func(h *bpfHolder, weight *uint64) {
		if h.Asks != 0 {
			asking[*h] = *weight
		} else {
			holding[*h] = *weight
			t.served.note(h.Tid)
		}
	})
	if err != nil {
		return threads{}, fmt.Errorf("read which threads have requests in hand: %w", err)
	}
	var seen threads
	if seen.holding, err = look(holding, reason.OfThread); err != nil {
		return threads{}, err
	}
	seen.asking, err = look(asking, func(tid int) (string, error) {
		if t.served.lately(uint32(tid)) {
			return requestsOwn, nil
		}
		return nameOf(tid)
	})
	return seen, err
}

// look counts threads by what kind says of each. Where they are more than are looked at, each of a group's that are stands
// for others of it, too.
func look(found map[bpfHolder]uint64, kind func(tid int) (string, error)) (counts, error) {
	of := map[uint32][]bpfHolder{}
	for h := range found {
		of[h.Group] = append(of[h.Group], h)
	}
	by, share := counts{}, shares(of)
	for group, all := range of {
		by[group] = map[string]uint64{}
		for _, h := range all[:share[group]] {
			what, err := kind(int(h.Tid))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				continue // it has ended
			}
			if err != nil {
				return nil, err
			}
			by[group][what] += found[h]
		}
		by.scale(group, float64(len(all))/float64(share[group]))
	}
	return by, nil
}

// shares is how many of each group's threads are looked at: as many of each as there are, or of all the others.
func shares(of map[uint32][]bpfHolder) map[uint32]int {
	groups := slices.SortedFunc(maps.Keys(of), func(a, b uint32) int { return cmp.Compare(len(of[a]), len(of[b])) })
	share, left := map[uint32]int{}, maxHolders
	for i, group := range groups {
		n := min(len(of[group]), max(left/(len(groups)-i), 1))
		share[group] = n
		left -= n
	}
	return share
}

// of are a group's, none of one that has none.
func (c counts) of(group uint32) map[string]uint64 {
	if c[group] == nil {
		return map[string]uint64{}
	}
	return c[group]
}

// requestsOwn stands for the names of those who have a request in hand themselves, for which they ask, or had one lately.
const requestsOwn = "-"

// nameOf is a thread's name without its number.
func nameOf(tid int) (string, error) {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/comm")
	if err != nil {
		return "", err
	}
	return withoutNumber(strings.ToValidUTF8(strings.TrimSuffix(string(name), "\n"), "\uFFFD")), nil
}

// withoutNumber cuts off the number at a name's end, and what parts it from the name: a pool's threads differ in that alone.
func withoutNumber(name string) string {
	if cut := strings.TrimRight(name, "0123456789-_#:. "); cut != "" {
		return cut
	}
	return name
}

// scale lets each of a group's stand for so many.
func (c counts) scale(group uint32, by float64) {
	for what, n := range c[group] {
		c[group][what] = uint64(math.Round(float64(n) * by))
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

// maxKinds is how many kinds of threads are told apart at one place: names may be anything.
const maxKinds = 32

// putThreads puts how many of a group's threads there were of each kind, and zero of those that there were before.
func (t *Trace) putThreads(out model.Sink, s *model.Signal, name string, now map[string]uint64, labels []string) {
	if now == nil || name == "" {
		return
	}
	key := [2]string(labels)
	if t.did[key] == nil {
		t.did[key] = map[string]bool{}
	}
	sums := map[string]uint64{}
	for kind, n := range now {
		if !t.did[key][kind] && len(t.did[key]) >= maxKinds {
			kind = "other"
		}
		t.did[key][kind] = true
		sums[kind] += n
	}
	for kind := range t.did[key] {
		out.Put(s, float64(sums[kind]), labels[0], labels[1], kind)
	}
}

package bill

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// leastTold is how many samples must have told by their names of a part, before code without a name counts for it.
const leastTold = 5

// nameless is a function of a mechanism that was told by its file of code alone.
type nameless struct {
	group, file string
	model.BillFunction
}

// shareOut gives each part of a mechanism as much of that one's nameless code as the functions with names
// tell: a library without symbols has some left, those that others may call, and these are spread over what it does.
func (t *table) shareOut(all *sums) {
	for i := range t.Mechanisms {
		m := &t.Mechanisms[i]
		part, whole := all.by[m], all.by[t.byID(m.PartOf)]
		if part == nil || whole == nil || part.samples < leastTold {
			continue
		}
		told := whole.samples
		for _, n := range whole.nameless {
			told -= n
		}
		part.takeFrom(whole, float64(part.samples)/float64(part.samples+told))
	}
}

// takeFrom moves that share of the nameless code; what is rounded off one function is added to the next.
func (part *sum) takeFrom(whole *sum, share float64) {
	keys := slices.SortedFunc(maps.Keys(whole.nameless), func(a, b nameless) int {
		return cmp.Or(strings.Compare(a.Function, b.Function), strings.Compare(a.group, b.group), strings.Compare(a.file, b.file))
	})
	owed := 0.0
	for _, k := range keys {
		owed += share * float64(whole.nameless[k])
		n := min(int64(owed), whole.nameless[k])
		owed -= float64(n)
		whole.nameless[k] -= n
		move(&whole.samples, &part.samples, n)
		moveIn(whole.files, part.files, k.file, n)
		moveIn(whole.groups, part.groups, k.group, n)
		moveIn(whole.functions, part.functions, k.BillFunction, n)
	}
}

func move(from, to *int64, n int64) { *from, *to = *from-n, *to+n }

func moveIn[K comparable](from, to map[K]int64, key K, n int64) {
	from[key] -= n
	if to[key] += n; to[key] == 0 {
		delete(to, key)
	}
	if from[key] == 0 {
		delete(from, key)
	}
}

// byID is a mechanism, nil where there is none of that id.
func (t *table) byID(id string) *mechanism {
	i := slices.IndexFunc(t.Mechanisms, func(m mechanism) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return &t.Mechanisms[i]
}

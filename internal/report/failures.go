package report

import (
	"sort"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// failures lists those outcomes that are no good reply, the most frequent first.
func failures(outcomes map[string]int64, of func(outcome string) bool) (string, int64) {
	var names []string
	var sum int64
	for o, n := range outcomes {
		if n > 0 && !model.IsGood(o) && of(o) {
			names = append(names, o)
			sum += n
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := outcomes[names[i]], outcomes[names[j]]
		return a > b || a == b && names[i] < names[j]
	})
	for i, o := range names {
		names[i] = layout.Count(outcomes[o]) + " " + strings.Replace(o, ":", " ", 1)
	}
	return strings.Join(names, ", "), sum
}

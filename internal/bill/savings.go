package bill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// savings adds to each entry what of it could be spared.
func (t *table) savings(q *query.Run, known query.Records, b *model.Bill, all *sums) error {
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Share < leastSaving {
			continue
		}
		m := &t.Mechanisms[slices.IndexFunc(t.Mechanisms, func(m mechanism) bool { return m.ID == e.Mechanism })]
		for j := range m.Savings {
			if !m.Savings[j].isShown(all.by[m]) {
				continue
			}
			s, found, err := m.Savings[j].of(q, known, b.Requests, e.Share)
			if err != nil {
				return err
			}
			if found && s.Share >= leastSaving {
				e.Avoidable = append(e.Avoidable, s)
			}
		}
		slices.SortFunc(e.Avoidable, func(a, b model.Saving) int {
			return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.ID, b.ID))
		})
	}
	return nil
}

// of is what s would spare of a mechanism's share; false where its evidence is not
// there, or was not measured.
func (s *saving) of(q *query.Run, known query.Records, requests *float64, share float64) (out model.Saving, found bool, err error) {
	out = model.Saving{ID: s.ID, Title: s.Title, Share: share, Remedy: s.Remedy, Costs: s.Costs}
	if s.Measure != "" {
		v, measured, err := asked(q, s.Measure, known)
		if s.OverRequests {
			if requests == nil {
				return out, false, err
			}
			v /= *requests
		}
		if err != nil || !measured || !s.is.Holds(v) {
			return out, false, err
		}
		if out.Evidence, err = s.say.Fill(ruleset.Facts{Value: ruleset.Number(v)}); err != nil {
			return out, false, fmt.Errorf("mechanisms: %s: %w", s.ID, err)
		}
	}
	if s.Saves != "" {
		part, measured, err := asked(q, s.Saves, known)
		if err != nil || !measured {
			return out, false, err
		}
		out.Share *= min(max(part, 0), 1)
	}
	out.Throughput = 1 / max(1-out.Share, 0.01)
	return out, true, nil
}

// isShown says whether the functions stand in the samples that a saving is told by.
func (s *saving) isShown(of *sum) bool {
	n := int64(0)
	for name, samples := range of.innermost {
		if s.shows.has(name) {
			n += samples
		}
	}
	return len(s.Shows) == 0 || float64(n) >= leastSaving*float64(of.samples)
}

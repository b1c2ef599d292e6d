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
		m := t.byID(e.Mechanism)
		for j := range m.Savings {
			if !m.Savings[j].isShown(all.by[m]) || e.Share < m.Savings[j].Least {
				continue
			}
			s, found, err := m.Savings[j].of(q, known, b.Requests, e.Share)
			if err != nil {
				return err
			}
			if found && s.Share >= leastSaving {
				s.AtMost = min(s.Share+s.Share/e.Share*all.dragged(m, m.Savings[j].Drags), 1)
				s.Throughput = 1 / max(1-s.AtMost, leastLeft)
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
	out = model.Saving{ID: s.ID, Title: s.Title, Share: share, Remedy: s.Remedy, Costs: s.Costs, Check: s.Check, Then: s.Then, Back: s.Back, InCode: s.InCode}
	if s.Measure != "" {
		w, measured, err := witness(q, s.Measure, known)
		v := w.Value
		switch {
		case err == nil && s.OverRequests && requests == nil:
			return s.withoutRequests(q, known, out)
		case s.OverRequests && requests != nil:
			v /= *requests
		}
		if err != nil || !measured || !s.is.Holds(v) {
			return out, false, err
		}
		if out.Evidence, err = s.say.Fill(ruleset.Facts{Value: ruleset.Number(v), Labels: w.Labels}); err != nil {
			return out, false, fmt.Errorf("mechanisms: %s: %w", s.ID, err)
		}
	}
	return s.part(q, known, out)
}

// withoutRequests is what s would spare where nobody counted requests: that the mechanism
// takes so much says that it is often, if not how often for each.
func (s *saving) withoutRequests(q *query.Run, known query.Records, out model.Saving) (model.Saving, bool, error) {
	if s.Needs {
		return out, false, nil
	}
	return s.part(q, known, out)
}

// part cuts a saving down to the part of the mechanism that it can spare.
func (s *saving) part(q *query.Run, known query.Records, out model.Saving) (model.Saving, bool, error) {
	if s.Saves != "" {
		part, measured, err := asked(q, s.Saves, known)
		if err != nil || !measured {
			return out, false, err
		}
		out.Share *= min(max(part, 0), 1)
	}
	return out, true, nil
}

// leastLeft is what of the CPU time there is always left: what is less was not sampled.
const leastLeft = 0.01

// dragged is the share of what would go with a mechanism, at most: all of these, and the
// interrupts elsewhere, which come as long as it takes.
func (all *sums) dragged(by *mechanism, drags []string) float64 {
	n := int64(0)
	for m, of := range all.by {
		switch {
		case slices.Contains(drags, m.ID):
			n += of.samples
		case m != by:
			n += of.interrupts
		}
	}
	return float64(n) / float64(all.all)
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

package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// sideImpact is the share of requests below which a confirmed cause is told
// beside the answer instead of being it: less than a tenth is not what holds
// throughput back.
const sideImpact = 0.1

// candidate is a finding with what the verdict has to know about it.
type candidate struct {
	model.Finding
	rule      *ruleset.Rule
	by        *candidate // the strongest that explains it
	beneath   []link     // what it explains directly
	explained bool
	root      bool
}

// condition asks an explanation's "when" for the subject of what would be explained.
type condition func(when *ruleset.Clue, of map[string]string) model.Clue

// link is one declared "explains" that fits.
type link struct {
	to  *candidate
	how string
}

// may tells whether the finding may hold: confirmed or suspected.
func (c *candidate) may() bool {
	return c.Answer == model.Confirmed || c.Answer == model.Suspected
}

func (c *candidate) confirmed(kinds ...string) bool {
	return c.Answer == model.Confirmed && slices.Contains(kinds, c.Kind)
}

// verdict orders all findings by cause.
func verdict(rules ruleset.Rules, findings []model.Finding, ask condition) model.Verdict {
	var open []*candidate
	v := model.Verdict{Root: []model.Finding{}, Grounds: []model.Finding{}, Findings: []model.Finding{}, RuledOut: []model.Finding{}, Unknown: []model.Finding{}}
	for _, f := range findings {
		switch f.Answer {
		case model.RuledOut:
			v.RuledOut = append(v.RuledOut, f)
		case model.UnknownState:
			v.Unknown = append(v.Unknown, f)
		default:
			open = append(open, &candidate{Finding: f, rule: rules.Get(f.Rule)})
		}
	}
	slices.SortFunc(v.RuledOut, byImpact)
	slices.SortFunc(v.Unknown, byImpact)
	slices.SortFunc(open, func(a, b *candidate) int { return byImpact(a.Finding, b.Finding) })
	explain(open, ask)
	var roots []*candidate
	v.Answer, roots = conclude(open)
	for _, c := range roots {
		c.root = true
	}
	for _, c := range open {
		c.Explains = beneath(c)
	}
	v.Findings = inOrder(open, roots)
	for _, c := range roots {
		if v.Answer == model.AnswerCause {
			v.Root = append(v.Root, c.Finding)
		} else {
			v.Grounds = append(v.Grounds, c.Finding)
		}
	}
	v.Nearest = []model.Candidate{}
	if v.Answer == model.AnswerUnclear {
		v.Nearest = nearest(open, v.Unknown)
	}
	v.Sentence = sentence(v.Answer, roots, v.Nearest)
	return v
}

// byImpact orders by impact (largest first, unknown last), rule and subject.
func byImpact(a, b model.Finding) int {
	known := func(f model.Finding) float64 {
		if f.Impact == nil {
			return -1
		}
		return *f.Impact
	}
	return cmp.Or(
		cmp.Compare(known(b), known(a)),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(subjectKey(a.Subject), subjectKey(b.Subject)),
	)
}

// explain links findings by their rules' declarations. A confirmed finding
// explains whatever fits; a suspected one only what is no confirmed cause or
// capacity, and only where no confirmed one does. Where the condition of a confirmed
// one is not met, that is noted.
func explain(open []*candidate, ask condition) {
	for _, answer := range []model.FindingAnswer{model.Confirmed, model.Suspected} {
		var found []*candidate
		for _, a := range open {
			if a.Answer != answer || a.Kind == ruleset.Healthy {
				continue
			}
			for _, b := range open {
				e, ok := explains(a, b)
				if !ok || b.explained || (answer == model.Suspected && b.confirmed(ruleset.Cause, ruleset.Capacity)) {
					continue
				}
				if slight(a, b) {
					continue
				}
				if e.When != nil {
					if c := ask(e.When, b.Subject); c.Truth != model.True {
						b.Unexplained = append(b.Unexplained, model.Unexplained{Rule: a.Rule, When: c})
						continue
					}
				}
				a.beneath = append(a.beneath, link{b, e.How})
				if b.by == nil {
					b.by = a
				}
				found = append(found, b)
			}
		}
		for _, b := range found {
			b.explained = true
		}
	}
	for _, c := range open {
		if c.by != nil {
			c.ExplainedBy, c.Unexplained = c.by.Rule, nil
		}
	}
}

// explains returns the first declaration by which b, that may hold, is a consequence of a.
func explains(a, b *candidate) (e ruleset.Explain, ok bool) {
	if !b.may() || b.Kind == ruleset.Healthy || a == b || a.Aside != "" && b.Aside == "" { // who is no user's explains nothing that users feel
		return e, false
	}
	for _, e := range a.rule.Consequences(b.rule) {
		if subjectsFit(a.Subject, b.Subject, e.Where) {
			return e, true
		}
	}
	return e, false
}

// lineImpact is the least share of another cause's impact that explains it, where both are of one measure that
// lines make grow: a thousand may stand in line for what one holds, so that it takes a thousandth of the time of the line.
const lineImpact = 0.001

// slight says that a takes too little to be why there is b, as far as the weights of both are known and can be
// compared: of a symptom by what users lost, of another cause by what is a share of the same.
func slight(a, b *candidate) bool {
	if a.Impact == nil || b.Impact == nil {
		return false
	}
	switch {
	case b.Kind == ruleset.Symptom:
		return *a.Impact < sideImpact**b.Impact
	case a.ImpactOf != b.ImpactOf:
		return false
	case a.ImpactOf == model.ImpactMachineCPU && a.Subject["host"] != b.Subject["host"]:
		return false // a hundredth of a large machine's may be what fills a small one
	case a.ImpactOf == model.ImpactMachineCPU:
		// CPU time only adds up, whoever stands in line for it
		return *a.Impact < sideImpact**b.Impact
	}
	return *a.Impact < lineImpact**b.Impact
}

// subjectsFit tells whether two subjects agree: in the labels of where, or,
// when it is nil, in all labels that both have.
func subjectsFit(a, b map[string]string, where []string) bool {
	if where == nil {
		return query.Agree(a, b)
	}
	for _, name := range where {
		if a[name] != b[name] {
			return false
		}
	}
	return true
}

// beneath lists all that a finding explains, directly or through others, the
// direct ones first.
func beneath(c *candidate) []model.Explained {
	var out []model.Explained
	for _, l := range below(c) {
		out = append(out, model.Explained{Rule: l.to.Rule, Subject: l.to.Subject, How: l.how})
	}
	return out
}

// below are the candidates that one explains, in the order of beneath.
func below(c *candidate) []link {
	var out []link
	seen := map[*candidate]bool{c: true}
	for next := []*candidate{c}; len(next) > 0; {
		from := next[0]
		next = next[1:]
		for _, l := range from.beneath {
			if !seen[l.to] {
				seen[l.to] = true
				out = append(out, l)
				next = append(next, l.to)
			}
		}
	}
	return out
}

// little tells whether it is known to take less than a tenth.
func (c *candidate) little() bool { return c.Impact != nil && *c.Impact < sideImpact }

// aside says that a cause takes too little to be the answer while there is another one: less than a tenth, and none
// of the confirmed causes that it makes takes more. What it explains is not told by itself, and must not get lost;
// what one that takes more explains as well is told there.
func aside(c *candidate, open []*candidate) bool {
	if !c.little() {
		return false
	}
	told := func(b *candidate) bool {
		return slices.ContainsFunc(open, func(o *candidate) bool {
			return o.confirmed(ruleset.Cause) && !o.explained && !o.little() && slices.ContainsFunc(below(o), func(l link) bool { return l.to == b })
		})
	}
	return !slices.ContainsFunc(below(c), func(l link) bool { return l.to.confirmed(ruleset.Cause) && !l.to.little() && !told(l.to) })
}

// conclude gives the answer and what it rests on, the first that fits of:
//
//	confirmed causes, unexplained, impact unknown or at least a tenth,
//	theirs or that of a confirmed cause that they alone explain         cause
//	confirmed capacity, unexplained                                     capacity
//	suspected causes, unexplained, impact known and at least a tenth    cause
//	confirmed healthy and no confirmed symptom                          healthy
//	confirmed causes of less impact, no symptom of known weight left    cause
//	otherwise                                                           unclear
//
// What is about a listener of others alone (Aside) is none of these.
func conclude(open []*candidate) (model.Answer, []*candidate) {
	var causes, side, suspects, capacity, healthy []*candidate
	symptom, left := false, false
	for _, c := range open {
		symptom = symptom || c.confirmed(ruleset.Symptom)
		left = left || c.confirmed(ruleset.Symptom) && !c.explained && c.Impact != nil
		if c.confirmed(ruleset.Healthy) {
			healthy = append(healthy, c)
		}
		switch {
		case c.explained || !c.may() || c.Aside != "":
		case c.confirmed(ruleset.Capacity):
			capacity = append(capacity, c)
		case c.Kind != ruleset.Cause:
		case c.Answer == model.Confirmed && aside(c, open):
			side = append(side, c)
		case c.Answer == model.Confirmed:
			causes = append(causes, c)
		case c.Impact != nil && *c.Impact >= sideImpact:
			suspects = append(suspects, c)
		}
	}
	switch {
	case len(causes) > 0:
		return model.AnswerCause, causes
	case len(capacity) > 0:
		return model.AnswerCapacity, capacity
	case len(suspects) > 0:
		return model.AnswerCause, suspects
	case len(healthy) > 0 && !symptom:
		return model.AnswerHealthy, healthy
	case len(side) > 0 && !left:
		return model.AnswerCause, side
	}
	return model.AnswerUnclear, nil
}

// inOrder lists the open findings: each root with all beneath it, then other
// confirmed causes and capacities, suspected and near ones, symptoms nobody
// explains, and the healthy answers.
func inOrder(open, roots []*candidate) []model.Finding {
	out := []model.Finding{}
	taken := map[*candidate]bool{}
	var take func(c *candidate)
	take = func(c *candidate) {
		if taken[c] {
			return
		}
		taken[c] = true
		out = append(out, c.Finding)
		for _, l := range c.beneath {
			if !l.to.root {
				take(l.to)
			}
		}
	}
	for _, c := range roots {
		take(c)
	}
	rest := slices.Clone(open)
	slices.SortStableFunc(rest, func(a, b *candidate) int { return cmp.Compare(rank(a), rank(b)) })
	for _, c := range rest {
		take(c)
	}
	return out
}

func rank(c *candidate) int {
	switch {
	case c.confirmed(ruleset.Cause, ruleset.Capacity):
		return 0
	case c.Kind == ruleset.Cause && c.Answer == model.Suspected:
		return 1
	case c.Kind == ruleset.Capacity && c.Answer == model.Suspected:
		return 2
	case c.Kind == ruleset.Cause:
		return 3
	case c.Kind == ruleset.Capacity:
		return 4
	case c.Kind == ruleset.Symptom:
		return 5
	}
	return 6
}

// sentence says the verdict in one line.
func sentence(a model.Answer, roots []*candidate, nearest []model.Candidate) string {
	switch a {
	case model.AnswerCause:
		text := named(roots)
		if more := cmp.Or(said(roots[0], "who"), said(roots[0], "place"), said(roots[0], "code")); more != "" && len(roots) == 1 {
			text = strings.TrimSuffix(text, ".") + "; " + more + "."
		}
		if roots[0].Answer == model.Suspected {
			return "Probably: " + text
		}
		return text
	case model.AnswerCapacity:
		return strings.TrimSuffix(named(roots), ".") + whatFills(roots[0]) + "."
	case model.AnswerHealthy:
		if server := said(roots[0], "server"); server != "" {
			return roots[0].Title + "; " + server + "; " + whatWaits(roots[0]) + "."
		}
		return roots[0].Title + "; " + whatWaits(roots[0]) + "."
	}
	if len(nearest) > 0 && (nearest[0].Answer == model.Suspected || nearest[0].Answer == model.Near) {
		c := nearest[0]
		return fmt.Sprintf("What holds it back was not found; nearest comes: %s (%s).", c.Title, model.SpokenSubject(c.Subject))
	}
	return "What holds it back, if anything does, was not found."
}

// whatWaits tells what programs did that nothing held back: how far away users are, what was started again and again, else who used a CPU,
// else who slept by his own will, and beside that who waited for somebody of whom it is not known whether he is slow.
func whatWaits(c *candidate) string {
	did := cmp.Or(said(c, "again"), said(c, "who"), said(c, "paces"), said(c, "asks"))
	waited := cmp.Or(said(c, "refused"), said(c, "terminal"), said(c, "waits"))
	if did == "" && waited == "" {
		did = "nothing held it back"
	}
	var told []string
	for _, s := range []string{said(c, "way"), did, waited} {
		if s != "" {
			told = append(told, s)
		}
	}
	return strings.Join(told, "; ")
}

// whatFills tells what is started again and again, else who uses most of what is the limit, in which statement of a database, else in which function, and
// who asks for that again and again, as a finding's clues "again", "who", "statement", "function", and "asked" or "once" say.
func whatFills(c *candidate) string {
	who, what := said(c, "who"), cmp.Or(said(c, "statement"), said(c, "function"))
	var fills string
	switch again := said(c, "again"); {
	case again != "":
		fills = "; " + again
	case who != "" && what != "":
		fills = "; " + who + ", and " + what
	case who != "" || what != "":
		fills = "; " + who + what
	}
	if asked := cmp.Or(said(c, "asked"), said(c, "once")); asked != "" {
		fills += "; " + asked
	}
	return fills
}

// said is what a clue says that is true, "" of another.
func said(c *candidate, id string) string {
	for _, clue := range c.Clues {
		if clue.ID == id && clue.Truth == model.True {
			return clue.Say
		}
	}
	return ""
}

// named lists titles, each once, with their subjects.
func named(list []*candidate) string {
	var titles []string
	subjects := map[string][]string{}
	for _, c := range list {
		if subjects[c.Title] == nil {
			titles = append(titles, c.Title)
		}
		subjects[c.Title] = append(subjects[c.Title], model.SpokenSubject(c.Subject))
	}
	for i, t := range titles {
		titles[i] = fmt.Sprintf("%s (%s)", t, strings.Join(subjects[t], "; "))
	}
	return strings.Join(titles, "; and: ") + "."
}

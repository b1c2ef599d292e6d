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

// eyes tells what was seen on which host.
type eyes struct {
	hosts  []string // sorted
	status map[string]map[string]model.Status
	// partial: somebody else collected the series, so that an absent one says
	// nothing about what there is.
	partial bool
}

// look returns what became of a signal on a host; false when it was not tried.
func (e eyes) look(host, signal string) (model.Status, bool) {
	st, ok := e.status[host][signal]
	return st, ok
}

// sight is how well the signals of an expression were seen, for one subject.
type sight struct {
	// closed is the first signal that was not read, with the reason.
	closed string
	// dim is the first signal that is there and could not be read (denied, failed).
	dim string
	// dimExcludes is the same for what stands to the right of "unless".
	dimExcludes string
}

// sightOf asks for the signals of an expression on the subject's host, or on
// all hosts where the selector speaks of all or the subject has no host. What stands behind
// "or on ()" is not asked for where what stands before it has a result, nor what only says more exactly what another says
// that stands beside it; asked alone, it is missed.
func (r *run) sightOf(expr *query.Expression, subject map[string]string) sight {
	var s sight
	note := func(into *string, sentence string) {
		if *into == "" {
			*into = sentence
		}
	}
	host, own := subject["host"]
	for _, sel := range expr.Selectors() {
		if sel.Refines || slices.ContainsFunc(sel.Before, func(e *query.Expression) bool { return len(r.Ask(e).Samples) > 0 }) {
			continue
		}
		closed, dim := "", ""
		if own && !sel.Global {
			closed, dim = r.onHost(host, sel.Name)
		} else {
			closed, dim = r.onAny(sel.Name)
		}
		if sel.Excludes {
			if r.partial {
				dim = closed
			}
			note(&s.dimExcludes, dim)
			continue
		}
		note(&s.closed, closed)
		note(&s.dim, dim)
	}
	return s
}

// onHost says why a signal was not read on a host ("" when it was), and why it
// could not be although it is there.
func (e eyes) onHost(host, signal string) (closed, dim string) {
	st, tried := e.look(host, signal)
	switch {
	case !tried:
		return fmt.Sprintf("%s: was not looked for on %s", signal, host), ""
	case st.State == model.Read:
		return "", ""
	}
	sentence := signal + ": " + why(st)
	if st.State == model.Absent {
		return sentence, ""
	}
	return sentence, sentence
}

// onAny is onHost for a signal that may come from any host: one has to have
// read it, and none may have failed to.
func (e eyes) onAny(signal string) (closed, dim string) {
	seen := false
	absent := ""
	for _, host := range e.hosts {
		st, tried := e.look(host, signal)
		switch {
		case !tried:
		case st.State == model.Read:
			seen = true
		case st.State == model.Absent && absent == "":
			absent = signal + ": " + why(st)
		case st.State != model.Absent && dim == "":
			dim = signal + ": " + why(st)
		}
	}
	switch {
	case dim != "":
		return dim, dim
	case seen:
		return "", ""
	case absent != "":
		return absent, ""
	}
	return signal + ": was not looked for", ""
}

func why(st model.Status) string {
	if st.Why != "" {
		return st.Why
	}
	return string(st.State)
}

// truth holds a measured value (nil: none) against a threshold. What was seen
// stands by itself; what was not seen needs every eye open:
//
//	value      meets     signals                              answer
//	some       yes       not met by 0, or none denied/failed  true
//	some       no        none denied or failed                false
//	none       -         all read, and 0 would not meet       false
//	otherwise                                                 unknown
//
// Signals to the right of "unless" take away from the result: with one of
// them denied or failed, a true is unknown.
func truth(value *float64, is ruleset.Comparison, s sight) (t model.Truth, missing string) {
	if value == nil {
		switch {
		case s.closed != "":
			return model.Unknown, s.closed
		case is.Holds(0):
			return model.Unknown, "there is no value to hold against the threshold"
		}
		return model.False, ""
	}
	if is.Holds(*value) {
		switch {
		case s.dimExcludes != "":
			return model.Unknown, s.dimExcludes
		case is.Holds(0) && s.dim != "":
			return model.Unknown, s.dim
		}
		return model.True, ""
	}
	if s.dim != "" {
		return model.Unknown, s.dim
	}
	return model.False, ""
}

// clue evaluates a clue for one subject. The labels are those of the sample
// that answered. The error is one of the rule; the clue is then unknown.
func (r *run) clue(c *ruleset.Clue, subject map[string]string) (model.Clue, map[string]string, error) {
	out := model.Clue{ID: c.ID, Role: c.Role, Is: c.Is, Why: strings.TrimSpace(c.Why), Stays: c.Stays}
	res := r.Ask(c.MeasureExpr)
	f := ruleset.Facts{Subject: subject, Labels: map[string]string{}}
	switch {
	case res.Missing != "":
		out.Truth, out.Missing = model.Unknown, res.Missing
	case res.Failed != nil:
		out.Truth, out.Missing = model.Unknown, "the rule's expression failed: "+res.Failed.Error()
	default:
		if s, ok := query.Largest(res.Samples, subject); ok {
			out.Value = &s.Value
			f.Value, f.Labels = ruleset.Number(s.Value), s.Labels
			out.Assumed = assumed(s.Labels)
			if c.SayText.Names(".Every.") {
				f.Every = every(res.Samples, subject)
			}
		}
		out.Truth, out.Missing = truth(out.Value, c.Threshold, r.sightOf(c.MeasureExpr, subject))
	}
	say, sayErr := c.SayText.Fill(f)
	if out.Truth == model.True && r.asBefore(c, *out.Value, subject) {
		out.Truth = model.False
		say += ", as often as before the load"
	}
	_, handErr := c.ByHandText.Fill(f)
	out.ByHand = r.command(c.ByHandText.Pieces(f), subject, f.Labels)
	switch {
	case out.Value != nil:
		out.Say, out.Names = say, namesIn(c.SayText, subject, f.Labels)
	case out.Truth == model.False:
		out.Say, sayErr, handErr = nothingSeen(c.MeasureExpr, say), nil, nil
	default:
		sayErr, handErr = nil, nil
	}
	err := res.Failed
	if err == nil {
		err = sayErr
	}
	if err == nil {
		err = handErr
	}
	return out, f.Labels, err
}

// mostNames is how many values of a label a sentence lists: more are no longer read.
const mostNames = 8

// every lists, for each label, what the samples of a subject say, each value once and the largest sample's first.
func every(samples []query.Sample, subject map[string]string) map[string]string {
	var own []query.Sample
	for _, s := range samples {
		if query.Agree(s.Labels, subject) {
			own = append(own, s)
		}
	}
	slices.SortStableFunc(own, func(a, b query.Sample) int { return cmp.Compare(b.Value, a.Value) })
	seen := map[string][]string{}
	for _, s := range own {
		for name, value := range s.Labels {
			if !slices.Contains(seen[name], value) {
				seen[name] = append(seen[name], value)
			}
		}
	}
	out := map[string]string{}
	for name, values := range seen {
		if more := len(values) - mostNames; more > 0 {
			values = append(values[:mostNames:mostNames], fmt.Sprintf("%d more", more))
		}
		out[name] = strings.Join(values, ", ")
	}
	return out
}

// assumed says whether a sample says of itself that nobody measured it: a record that has to take something to be so says it in a
// label.
func assumed(labels map[string]string) bool {
	return strings.HasPrefix(labels["who"], "assumed, not measured")
}

// namesIn is what a clue's sentence names beyond its finding's subject.
func namesIn(say *ruleset.Text, subject, labels map[string]string) map[string]string {
	var names map[string]string
	for _, label := range say.Labels() {
		if value := labels[label]; value != "" && value != "-" && subject[label] != value {
			if names == nil {
				names = map[string]string{}
			}
			names[label] = value
		}
	}
	return names
}

// nothingSeen is the sentence of a clue that is false without a value. Where its own sentence, filled in without one, is of a share,
// it says that there was none.
func nothingSeen(e *query.Expression, say string) string {
	text := "there was none of it"
	if share, of := strings.CutPrefix(say, "? of "); of && !strings.ContainsAny(share, "?<") {
		text = "none of " + share
	}
	if len(e.Selectors()) == 0 {
		return text
	}
	return fmt.Sprintf("%s (%s shows nothing here)", text, e.Selectors()[0].Name)
}

// answer is the answer of a rule for one subject, the first line that fits:
//
//	some needs false             ruled out
//	some needs unknown           unknown
//	some decides or proves true  confirmed
//	some decides unknown         unknown
//	some decides false           near
//	otherwise                    suspected
//
// An unknown proves does not count, as a false one would not; supports never
// does. One decides that is false does not outweigh another that is unknown,
// since that one might be true and would then prove.
func answer(clues []model.Clue) model.FindingAnswer {
	has := func(t model.Truth, roles ...model.Role) bool {
		for _, c := range clues {
			for _, role := range roles {
				if c.Role == role && c.Truth == t {
					return true
				}
			}
		}
		return false
	}
	switch {
	case has(model.False, model.Needs):
		return model.RuledOut
	case has(model.Unknown, model.Needs):
		return model.UnknownState
	case has(model.True, model.Decides, model.Proves):
		return model.Confirmed
	case has(model.Unknown, model.Decides):
		return model.UnknownState
	case has(model.False, model.Decides):
		return model.Near
	}
	return model.Suspected
}

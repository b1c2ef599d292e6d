package diagnose

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

// TestAnswer is the table of answer's comment, row by row: clues as
// role:truth, truths by their first letter.
func TestAnswer(t *testing.T) {
	for clues, want := range map[string]model.FindingAnswer{
		"needs:f":                                model.RuledOut,
		"needs:f decides:t proves:t":             model.RuledOut,
		"needs:f needs:u":                        model.RuledOut,
		"needs:u":                                model.UnknownState,
		"needs:u decides:t":                      model.UnknownState,
		"needs:t needs:u proves:t":               model.UnknownState,
		"needs:t decides:t":                      model.Confirmed,
		"needs:t proves:t":                       model.Confirmed,
		"proves:t":                               model.Confirmed,
		"needs:t decides:t decides:f":            model.Confirmed,
		"needs:t decides:t decides:u":            model.Confirmed,
		"needs:t decides:f proves:t":             model.Confirmed,
		"needs:t decides:u proves:t":             model.Confirmed,
		"needs:t decides:u":                      model.UnknownState,
		"needs:t decides:u decides:f":            model.UnknownState,
		"needs:t decides:u proves:f":             model.UnknownState,
		"needs:t decides:f":                      model.Near,
		"needs:t decides:f proves:f":             model.Near,
		"needs:t decides:f proves:u":             model.Near,
		"needs:t":                                model.Suspected,
		"needs:t proves:f":                       model.Suspected,
		"needs:t proves:u":                       model.Suspected,
		"needs:t supports:t":                     model.Suspected,
		"needs:t supports:u supports:f":          model.Suspected,
		"needs:t decides:t supports:u":           model.Confirmed,
		"supports:t":                             model.Suspected,
		"needs:t needs:t decides:f supports:t":   model.Near,
		"decides:f":                              model.Near,
		"needs:f decides:u proves:u supports:u":  model.RuledOut,
		"needs:t proves:u proves:t":              model.Confirmed,
		"needs:t proves:u decides:f supports:t ": model.Near,
	} {
		if got := answer(cluesFrom(clues)); got != want {
			t.Errorf("%s: %s, want %s", clues, got, want)
		}
	}
}

func cluesFrom(s string) []model.Clue {
	var list []model.Clue
	for _, c := range strings.Fields(s) {
		role, truth, _ := strings.Cut(c, ":")
		list = append(list, model.Clue{
			Role:  model.Role(role),
			Truth: map[string]model.Truth{"t": model.True, "f": model.False, "u": model.Unknown}[truth],
		})
	}
	return list
}

// TestTruth is the table of truth's comment. The signals: a is read, b is
// absent, d is denied, n was not tried; on the subject's host "s".
func TestTruth(t *testing.T) {
	store := new(record.Memory)
	store.Add(labels.FromStrings("__name__", "a", "host", "s"), []record.Point{{Time: 1000, Value: 2}, {Time: 2000, Value: 2}})
	r := &run{Run: query.Over(model.Run{}, store, 1000, 2000), eyes: eyes{hosts: []string{"other", "s"}, status: map[string]map[string]model.Status{
		"s":     {"a": {State: model.Read}, "b": {State: model.Absent}, "d": {State: model.Denied, Why: "run as root"}},
		"other": {"a": {State: model.Read}, "b": {State: model.Read}, "far": {State: model.Read}},
	}}}
	value := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		name, expr, is string
		value          *float64
		want           model.Truth
		missing        string
	}{
		{"a value that meets", "a", "> 1", value(2), model.True, ""},
		{"a value that does not", "a", "> 1", value(1), model.False, ""},
		{"none of it, and all was read", "a", "> 0", nil, model.False, ""},
		{"none of it, where zero would do", "a", "< 5", nil, model.Unknown, "there is no value to hold against the threshold"},
		{"none of it, the same with equality", "a", "== 0", nil, model.Unknown, "there is no value to hold against the threshold"},
		{"none of it, and not zero", "a", "!= 0", nil, model.False, ""},
		{"none, since it is absent", "b", "> 0", nil, model.Unknown, "b: absent"},
		{"none, since it is denied", "d", "> 0", nil, model.Unknown, "d: run as root"},
		{"none, and it was not looked for", "n", "> 0", nil, model.Unknown, "n: was not looked for on s"},
		{"none, and one of two is absent", "a or b", "> 0", nil, model.Unknown, "b: absent"},
		{"seen in spite of a signal that is denied", "a or d", "> 1", value(2), model.True, ""},
		{"not seen, and a signal is denied", "a or d", "> 1", value(1), model.Unknown, "d: run as root"},
		{"not seen, and the other signal does not exist here", "a or b", "> 1", value(1), model.False, ""},
		{"not seen, and the other was not looked for", "a or n", "> 1", value(1), model.False, ""},
		{"little, and a signal is denied", "a or d", "< 5", value(2), model.Unknown, "d: run as root"},
		{"not needed, since what stands before it has a result", "a or on () d", "> 3", value(2), model.False, ""},
		{"little, and what is denied is not needed", "a or on () d", "< 5", value(2), model.True, ""},
		{"needed, since what stands before it has none", "(a > 2) or on () d", "> 3", value(2), model.Unknown, "d: run as root"},
		{"little, and all was read", "a", "< 5", value(2), model.True, ""},
		{"what would be taken away is denied", "a unless d", "> 1", value(2), model.Unknown, "d: run as root"},
		{"what would be taken away is absent", "a unless b", "> 1", value(2), model.True, ""},
		{"less could only be less", "a unless d", "> 1", value(1), model.False, ""},
		{"nothing is left, whatever would be taken away", "a unless n", "> 1", nil, model.False, ""},
		{"another host read it, but this one did not", "far", "> 1", nil, model.Unknown, "far: was not looked for on s"},
		{"another host read it, and all hosts are meant", "sum(far)", "> 1", nil, model.False, ""},
		{"absent here and read there, all hosts meant", "sum(b)", "> 1", nil, model.False, ""},
		{"denied on one of all hosts", "sum(d)", "> 1", nil, model.Unknown, "d: run as root"},
		{"looked for on no host", "sum(n)", "> 1", nil, model.Unknown, "n: was not looked for"},
	} {
		is, err := ruleset.ParseComparison(c.is)
		if err != nil {
			t.Fatal(err)
		}
		e := query.MustParse(c.expr)
		got, missing := truth(c.value, is, r.sightOf(e, map[string]string{"host": "s"}))
		if got != c.want || missing != c.missing {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, got, missing, c.want, c.missing)
		}
	}
}

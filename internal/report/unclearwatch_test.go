package report

import (
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// A watch that found nothing ends in a command that can be typed: what the busiest program waits for, a load on the listener
// that has the users, or a load tool for what that speaks.
func TestAfterUnclearWatch(t *testing.T) {
	uses := 1.5
	well := func(rule string, c model.Clue) model.Verdict {
		return model.Verdict{Answer: model.AnswerUnclear, RuledOut: []model.Finding{{Rule: rule, Kind: "healthy", Clues: []model.Clue{{ID: "good", Role: model.Needs, Truth: model.False}, c}}}}
	}
	at := func(listen, speaks string) model.Verdict {
		return well("requests.answered", model.Clue{ID: "listener", Truth: model.True, Names: map[string]string{"listen": listen, "speaks": speaks}})
	}
	here, far := []model.Host{{Name: "local", Spec: "local"}}, []model.Host{{Name: "web", Spec: "netns:web"}}
	for _, c := range []struct {
		verdict model.Verdict
		hosts   []model.Host
		typed   string
		says    string
	}{
		{well(programsWell, model.Clue{ID: "who", Truth: model.True, Value: &uses, Names: map[string]string{"groupname": "node", "cpus": "2"}}), here,
			"plimsoll watch --of node -d 30s", "the program \"node\" waits for (it used most: 1.5 of 2 CPUs)"},
		{well(programsWell, model.Clue{}), here, "plimsoll watch --of PROGRAM -d 30s", "the programs wait for"},
		{at("[::]:8000", spokenHTTP), here, "plimsoll run http://127.0.0.1:8000/", "the path: one that users ask for"},
		{at("10.0.0.2:443", spokenHTTP), far, "plimsoll run https://10.0.0.2:443/ --host web=netns:web", "the path"},
		{at("0.0.0.0:80", spokenHTTP), far, "plimsoll run http://ADDRESS:80/ --host web=netns:web", "ADDRESS: the one that users connect to"},
		{at("0.0.0.0:6379", "no HTTP that was seen"), here, "plimsoll watch -- COMMAND", "load 0.0.0.0:6379"},
		{model.Verdict{}, far, "plimsoll run http://ADDRESS:PORT/ --host web=netns:web", "ADDRESS and PORT"},
	} {
		s := &sheet{o: TextOptions{Width: 80}}
		afterUnclearWatch(s, model.Report{Verdict: c.verdict, Hosts: c.hosts})
		var said strings.Builder
		for _, step := range s.steps {
			said.WriteString(step.Text + "\n")
		}
		if !slices.Contains(s.steps, Step{Label: doFirst, Text: c.typed, Typed: true}) || !strings.Contains(said.String(), c.says) {
			t.Errorf("want %q typed and %q said, got\n%s", c.typed, c.says, said.String())
		}
	}
}

// What could not be judged is named with the reason where that is short, else counted.
func TestUnjudgedAreNamed(t *testing.T) {
	lacks := func(rule, why string) model.Finding {
		return model.Finding{Rule: rule, Kind: "cause", Clues: []model.Clue{{Truth: model.Unknown, Missing: why}}}
	}
	r := model.Report{Verdict: model.Verdict{Unknown: []model.Finding{
		lacks("a", "this run has no calm window"), lacks("b", "this run has no baseline window"), lacks("a", "denied"), lacks("c", "denied"), {Rule: "d", Kind: "healthy", Clues: lacks("", "x").Clues}}}}
	if got, want := unjudged(r), "a, b (they need a time without load: plimsoll run); c (denied)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := briefCounts(r, true); strings.Contains(got, "judged") {
		t.Errorf("%q tells again what is named", got)
	}
	r.Verdict.Unknown = append(r.Verdict.Unknown, lacks("e", strings.Repeat("a long reason ", 20)))
	if got := unjudged(r); got != "" {
		t.Errorf("%q, which takes too many lines", got)
	}
}

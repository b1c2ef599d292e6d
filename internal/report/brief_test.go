package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"plimsoll/internal/model"
)

func TestBriefGoldens(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			golden(t, s.name+"_brief.txt", text(t, s.make(), TextOptions{}))
			golden(t, s.name+"_evidence.txt", text(t, s.make(), TextOptions{Detail: Evidence}))
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]+m")

// Where a limit is reached that has no fix of its own, what a request could be spared is one.
func TestBriefSaysWhatCanBeSpared(t *testing.T) {
	got := string(text(t, billedReport(), TextOptions{}))
	if !strings.Contains(got, "up to 2.17 × the replies by: php.ini: opcache.enable=1") {
		t.Errorf("%s", got)
	}
}

// What packets show is said to its end where no rule says what it means: nothing else is said then.
func TestBriefSaysWhatPacketsShow(t *testing.T) {
	r := watchAloneReport()
	r.Plan = model.Plan{Mode: "capture", Capture: &model.CapturePlan{Files: []string{"a.pcap"}}}
	r.Verdict.Sentence = strings.Repeat("so many resets by the client, since it had closed. ", 8) + "Segments were lost, too."
	got := string(text(t, r, TextOptions{}))
	if !strings.Contains(got, "lost, too.") || strings.Count(got, "\n") > briefLines {
		t.Errorf("%s", got)
	}
}

// Whatever a run has, its brief report fits a small terminal, and says the answer,
// what to do, and how to see more.
func TestBriefFitsAScreen(t *testing.T) {
	words := func(t *rapid.T, name string) string {
		return strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,14}`), 1, 60).Draw(t, name), " ")
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(samples).Draw(t, "sample").make()
		r.Closed = rapid.Bool().Draw(t, "closed")
		r.Verdict.Sentence = words(t, "sentence")
		r.Notes = []string{words(t, "note")}
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			r.ToolSummaries = append(r.ToolSummaries, model.ToolSummary{Tool: words(t, "tool")})
		}
		for _, list := range [][]model.Finding{r.Verdict.Root, r.Verdict.Grounds} {
			for i := range list {
				f := &list[i]
				for range rapid.IntRange(0, 4).Draw(t, "clues") {
					f.Clues = append(f.Clues, model.Clue{Role: model.Decides, Truth: model.True, Say: words(t, "say"), ByHand: words(t, "by hand") + "  # " + words(t, "comment")})
				}
				f.Clues = append(f.Clues, f.Clues...)
				f.Fix = append([]model.Fix{{Title: words(t, "fix"), Command: strings.Repeat(words(t, "command")+"\n", rapid.IntRange(1, 5).Draw(t, "lines")), Costs: words(t, "costs")}}, f.Fix...)
			}
		}
		for i := range r.Verdict.Nearest {
			r.Verdict.Nearest[i].Settle, r.Verdict.Nearest[i].ByHand = words(t, "settle"), words(t, "by hand")
		}
		var b bytes.Buffer
		if err := Text(&b, r, TextOptions{Color: rapid.Bool().Draw(t, "color")}); err != nil {
			t.Fatal(err)
		}
		said := escapes.ReplaceAllString(b.String(), "")
		lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
		if len(lines) > briefLines {
			t.Fatalf("%d lines\n%s", len(lines), said)
		}
		reasons := map[string]bool{}
		for _, l := range lines {
			if _, reason, ok := strings.Cut(l, " + "); ok {
				if reasons[reason] {
					t.Fatalf("said twice: %s\n%s", reason, said)
				}
				reasons[reason] = true
			}
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Fatalf("%d columns: %s", n, l)
			}
		}
		for _, want := range []string{"VERDICT: ", "more "} {
			if !strings.Contains(said, want) {
				t.Fatalf("no %q in\n%s", want, said)
			}
		}
		if len(r.Verdict.Root) > 0 && !strings.Contains(said, "fix ") {
			t.Fatalf("no fix in\n%s", said)
		}
	})
}

// A fix of which a value is not known would do nothing here; what a person can do stands first then.
func TestBriefAdvisesWhatCanBeDone(t *testing.T) {
	unknown := model.Fix{Title: "one", Changes: []model.FixChange{{Kind: model.ChangePolicy, Name: "sh"}}}
	person := model.Fix{Title: "two", Changes: []model.FixChange{{Kind: model.ChangePerson, Name: "look"}}}
	known := model.Fix{Title: "three", Changes: []model.FixChange{{Kind: model.ChangeNice, Name: "sh", Value: "5"}}}
	for want, list := range map[string][]model.Fix{"two": {unknown, person, known}, "three": {known, person}, "one": {unknown}} {
		if got := mostUseful(list); got.Title != want {
			t.Errorf("%s, want %s", got.Title, want)
		}
	}
}

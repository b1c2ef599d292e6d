package rulesuite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// Of every recorded fault the screen says how sure it is, the one thing to type first, what to do then and where that shows nothing, what it costs, how
// it is taken back, and how to measure again, and fits.
// PLIMSOLL_SCREENS=DIR writes them there, to be read.
func TestScreensOfRecordedFaults(t *testing.T) {
	set, err := ruleset.LoadTried(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	left, dir := int64(1<<30), os.Getenv("PLIMSOLL_SCREENS")
	for _, rule := range set.List {
		list, err := readSlices(rule, &left)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if len(s.Holds) == 0 {
				continue
			}
			r := s.report(set, rule)
			var b bytes.Buffer
			if err := report.Text(&b, r, report.TextOptions{Run: "last"}); err != nil {
				t.Fatal(err)
			}
			if dir != "" {
				if err := os.WriteFile(filepath.Join(dir, rule.ID+"."+s.name+".txt"), b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, lacks := range lackOf(b.String(), r.Verdict) {
				t.Errorf("%s, %s: %s\n%s", rule.ID, s.name, lacks, b.String())
			}
		}
	}
}

// report is what is told of a slice, as far as its rule tells.
func (s *slice) report(set ruleset.Rules, rule *ruleset.Rule) model.Report {
	q := s.run()
	meta := q.Meta()
	if l := meta.Plan.Load; l != nil {
		meta.Plan.CommandLine = []string{"plimsoll", "run", l.URL, "-c", fmt.Sprint(l.Connections), "-d", fmt.Sprintf("%ds", l.DurationMS/1000), "--host", "server=netns:plimsoll-lab-server"}
	}
	set.List = []*ruleset.Rule{rule}
	r := model.Report{Plan: meta.Plan, Hosts: meta.Hosts, Windows: meta.Windows, Tracing: meta.Tracing, Closed: true, Dir: "RUN"}
	r.Verdict = diagnose.Diagnose(q, set, report.ByHand{Plan: meta.Plan, Hosts: meta.Hosts}.Command)
	return r
}

// lackOf says what a screen does not tell that it should.
func lackOf(screen string, v model.Verdict) (list []string) {
	const most = 23 // lines
	if n := strings.Count(screen, "\n"); n > most {
		list = append(list, fmt.Sprintf("%d lines", n))
	}
	if !strings.Contains(screen, "\ncost ") {
		list = append(list, "no cost")
	}
	if v.Answer != model.AnswerCause {
		return list
	}
	if !strings.Contains(screen, "\nundo ") && !strings.Contains(screen, "nothing is changed by looking") {
		list = append(list, "no way back")
	}
	if !strings.Contains(screen, "\nhow sure ") {
		list = append(list, "not how sure that is")
	}
	if n := strings.Count(screen, "\ndo first "); n != 1 {
		list = append(list, fmt.Sprintf("%d first steps", n))
	}
	typed := strings.Contains(screen, "\ndo first     ") // else it is advice, since what a rule would type is not known here
	if typed && strings.Count(screen, "\nthen ") != 1 {
		list = append(list, "not what to do then")
	}
	if first := report.MostUseful(v.Root[0].Fix).First; first != nil && !strings.Contains(oneLine(screen), strings.ReplaceAll(oneLine(first.Then), "plimsoll again -", "plimsoll again last -")) {
		list = append(list, "not all of what to do then")
	}
	if typed && !strings.Contains(screen, "an error: nothing is set") && !strings.Contains(screen, "\nif empty   or only a header: ") {
		list = append(list, "not what to do where the first step does not show what it should")
	}
	if !strings.Contains(screen, "\nagain      plimsoll again last: ") {
		list = append(list, "no whole command that measures again")
	}
	return list
}

// oneLine is a text as it is before it is laid out.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

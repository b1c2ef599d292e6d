package rulesuite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

func TestPrintScreens(t *testing.T) {
	dir := os.Getenv("PLIMSOLL_SCREENS")
	if dir == "" {
		t.Skip()
	}
	set, err := ruleset.LoadTried(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(1 << 30)
	for _, rule := range set.List {
		list, err := readSlices(rule, &left)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if len(s.Holds) == 0 {
				continue
			}
			q := s.run()
			meta := q.Meta()
			one := set
			one.List = []*ruleset.Rule{rule}
			r := model.Report{Plan: meta.Plan, Hosts: meta.Hosts, Windows: meta.Windows, Tracing: meta.Tracing, Closed: true, Dir: "RUN"}
			if l := r.Plan.Load; l != nil {
				r.Plan.CommandLine = []string{"plimsoll", "run", l.URL, "-c", fmt.Sprint(l.Connections), "-d", fmt.Sprintf("%ds", l.DurationMS/1000), "--host", "server=netns:plimsoll-lab-server"}
			}
			r.Verdict = diagnose.Diagnose(q, one, report.ByHand{Plan: meta.Plan, Hosts: meta.Hosts}.Command)
			var b bytes.Buffer
			if err := report.Text(&b, r, report.TextOptions{Run: "last"}); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s--%s.txt", rule.ID, s.name)), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

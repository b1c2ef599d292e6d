package baseline

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

func TestAlertsNameWhatTheyLeadTo(t *testing.T) {
	ids := []string{"cpu.saturated", "net.conntrack.table_full", "net.ports.exhausted"}
	got, err := Alerts(func(expr string) (bool, error) { return strings.Contains(expr, "conntrack"), nil }, ids)
	want := Opinion{Says: "NodeHighNumberConntrackEntriesUsed", Rules: []string{"net.conntrack.table_full"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = Alerts(func(string) (bool, error) { return false, nil }, ids)
	if err != nil || got.Says != "" || len(got.Rules) > 0 {
		t.Errorf("nothing fires: %+v, %v", got, err)
	}
	if _, err := Alerts(func(string) (bool, error) { return false, errors.New("broken") }, ids); err == nil || !strings.Contains(err.Error(), "alert NodeCPU") {
		t.Errorf("a broken expression: %v", err)
	}
}

// Every alert's expression is asked of a real run, and its patterns are good ones.
func TestAlertsAreSound(t *testing.T) {
	list, err := readAlerts()
	if err != nil {
		t.Fatal(err)
	}
	ask, err := query.Of(made(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if _, err := ask.Samples(a.Expr, nil); err != nil {
			t.Errorf("%s: %v", a.Alert, err)
		}
		for _, p := range a.Rules {
			if _, err := path.Match(p, ""); err != nil {
				t.Errorf("%s: pattern %q: %v", a.Alert, p, err)
			}
		}
	}
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) (bool, error) { return true, nil }
	o, err := Alerts(all, []string{set.List[0].ID, "cpu.saturated", "disk.saturated", "net.conntrack.table_full"})
	if err != nil || !slices.Contains(o.Rules, "disk.saturated") {
		t.Errorf("all alerts together lead to %v, %v", o.Rules, err)
	}
}

// made is a run in which one gauge jumps, a counter's rate doubles, and a
// counter goes on as it did.
func made(t *testing.T) *record.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	const start = 1_000_000
	w, err := writer.Create(dir, model.Run{Started: start, Plan: model.Plan{Interval: 1000},
		Windows: []model.Window{{Name: model.Baseline, Start: start, End: start + 4000}, {Name: model.Hold, Start: start + 4000, End: start + 10_000}}})
	if err != nil {
		t.Fatal(err)
	}
	queue := &model.Signal{Name: "queue", Kind: model.Gauge}
	doubles := &model.Signal{Name: "doubles_total", Kind: model.Counter}
	same := &model.Signal{Name: "same_total", Kind: model.Counter}
	sum := 0.0
	for i := range int64(11) {
		level := 1 + float64(i%2)
		if i > 4 {
			level += 50
		}
		sum += 100 + float64(i%2)
		if i > 4 {
			sum += 100
		}
		at := start + 1000*i
		w.Sample("s", at, queue, level)
		w.Sample("s", at, doubles, sum)
		w.Sample("s", at, same, float64(7*i))
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestLargestScore(t *testing.T) {
	r := made(t)
	counters := map[string]bool{"doubles_total": true, "same_total": true}
	for name, c := range map[string]struct {
		rules map[string][]string
		says  string
	}{
		"the largest of all":            {map[string][]string{"queue": {"a.b"}, "doubles_total": {"c.d"}, "same_total": {"e.f"}}, "queue (z 96)"},
		"of those that a rule rests on": {map[string][]string{"doubles_total": {"c.d"}, "same_total": {"e.f"}}, "doubles_total (z 50)"},
		"what goes on as before":        {map[string][]string{"same_total": {"e.f"}}, ""},
	} {
		got, err := LargestScore(r, c.rules, counters)
		if err != nil || got.Says != c.says {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.says)
		}
	}
}

func TestSignalsThatTieAreAllNamed(t *testing.T) {
	rulesOf := map[string][]string{"x": {"a.b", "c.d"}, "y": {"c.d"}, "z": {"e.f"}}
	got := opinion([]moving{{"x", 99.5}, {"y", 100}, {"x", 98}, {"z", 80}}, rulesOf)
	want := Opinion{Says: "x, y (z 100)", Rules: []string{"a.b", "c.d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScore(t *testing.T) {
	for name, c := range map[string]struct {
		a, b []float64
		want float64
	}{
		"nothing to tell by":   {nil, []float64{1}, 0},
		"no difference":        {[]float64{1, 3}, []float64{2}, 0},
		"from zero, standing":  {[]float64{0, 0}, []float64{5, 5}, 100},
		"two deviations apart": {[]float64{1, 3}, []float64{3, 5}, 2},
	} {
		if got := score(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

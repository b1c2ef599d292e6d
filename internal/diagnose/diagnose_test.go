package diagnose

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/ruleset"
)

// evaluated evaluates the good rule, changed, over a vector's little run, and
// writes each finding with its first clue.
func evaluated(t *testing.T, vector string, status map[string]map[string]model.Status, changes ...string) string {
	t.Helper()
	rs := goodSet(t, changes...)
	v := written(t, vector)
	if status != nil {
		v.Meta.Status = status
	}
	findings, _ := Findings(over(v), rs.Get("x.good"))
	var out []string
	for _, f := range findings {
		c := f.Clues[0]
		out = append(out, strings.TrimSpace(strings.Join([]string{model.SpokenSubject(f.Subject), string(f.Answer), c.ID, string(c.Truth), c.Say + c.Missing}, "|")))
	}
	return strings.Join(out, "\n")
}

func TestSubjects(t *testing.T) {
	read := model.Status{State: model.Read}
	full := func(hosts ...string) string {
		s := "  series:\n"
		for _, h := range hosts {
			s += `    - 'limit_size{host="` + h + `"} 100x9'` + "\n" + `    - 'used_size{host="` + h + `"} 96x9'` + "\n" + `    - 'refused_total{host="` + h + `",cpu="0"} 0+1x9'` + "\n"
		}
		return s
	}
	for name, c := range map[string]struct {
		series  string
		status  map[string]map[string]model.Status
		changes []string
		want    string
	}{
		"each host is a subject, in order": {series: full("b", "a"), want: "a|confirmed|full|true|96 % on a\nb|confirmed|full|true|96 % on b"},
		"a host where nothing is there": {series: full("a") + "  hosts: [b]\n",
			want: "a|confirmed|full|true|96 % on a\nb|ruled out|applies|false|there is nothing here that the rule could apply to"},
		"a host where it is denied": {series: full("a"),
			status: map[string]map[string]model.Status{
				"a": {"limit_size": read, "used_size": read, "refused_total": read},
				"b": {"limit_size": {State: model.Denied, Why: "run as root"}},
				"c": {"used_size": read}, // limit_size was never tried here
			},
			want: "a|confirmed|full|true|96 % on a\nb|unknown|applies|unknown|limit_size: run as root"},
		"the clue that rules out comes first": {series: full("a"), changes: []string{"role: decides\n    measure: increase(refused_total[$window])\n    is: \"> 0\"", "role: needs\n    measure: increase(refused_total[$window])\n    is: \"> 99\""},
			want: "a|ruled out|refused|false|9 refused by 0"},
		"the clue that is unknown comes first": {series: full("a"), changes: []string{"refused_total[$window]", "refused_total[$calm]"},
			want: "a|unknown|refused|unknown|this run has no calm window"},
		"a rule whose window is not there": {series: full("a"), changes: []string{"applies: limit_size > 0", "applies: last_over_time(limit_size[$calm])"},
			want: "|unknown|applies|unknown|this run has no calm window"},
		"a subject's label that no result has": {series: full("a"), changes: []string{"subject: [host]", "subject: [host, cpu]"},
			want: "|unknown|applies|unknown|the rule's expression failed: applies: a result has no label cpu, which is one of the subject's"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, evaluated(t, c.series, c.status, c.changes...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLargestOfSeveralResultsCounts(t *testing.T) {
	vector := `  series:
    - 'limit_size{host="a"} 100x9'
    - 'used_size{host="a"} 99x9'
    - 'refused_total{host="a",cpu="0"} 0+1x9'
    - 'refused_total{host="a",cpu="1"} 0+3x9'
    - 'refused_total{host="b",cpu="2"} 0+9x9'
`
	got := evaluated(t, vector, nil, "id: full", "id: zfull", "role: decides", "role: needs", `is: "> 0"`, `is: "> 99"`)
	if !strings.HasPrefix(got, "a|ruled out|refused|false|27 refused by 1") {
		t.Error(got)
	}
}

func TestChanges(t *testing.T) {
	vector := "  series: ['limit_size{host=\"s\"} 100.5x9', 'used_size{host=\"s\"} 100x9']\n  read: [refused_total]\n"
	for change, want := range map[string]string{
		"{sysctl: x.max, to: 2 * limit_size}":                             "sysctl -w x.max=201",
		"{sysctl: x.max, to: '3 * max_over_time(limit_size[$window])'}":   "sysctl -w x.max=302",
		"{sysctl: x.range, to: 1024 65535}":                               `sysctl -w x.range='1024 65535'`,
		"{sysctl: x.max, to: 'increase(refused_total[$window])'}":         "sysctl -w x.max=…",
		"{nginx: worker_connections, to: 4096}":                           "worker_connections 4096;",
		"{nginx: 'listen 80 backlog={{.To}};', to: 4096}":                 "listen 80 backlog=4096;",
		"{phpfpm: pm.max_children, to: 40}":                               "pm.max_children = 40",
		"{person: 'look at {{.Subject.host}}'}":                           "look at s",
		"{sysctl: 'x.{{.Subject.host}}.max', to: 2 * limit_size + 0 * 1}": "sysctl -w x.s.max=201",
	} {
		rs := goodSet(t, "{sysctl: x.max, to: 2 * limit_size}", change)
		findings, err := Findings(over(written(t, vector)), rs.Get("x.good"))
		if err != nil || len(findings) != 1 {
			t.Fatal(findings, err)
		}
		if got := findings[0].Fix[0].Command; got != want {
			t.Errorf("%s: %s, want %s", change, got, want)
		}
	}
}

// TestSameBytes: a run that is still a log and the same run as a block give
// the same verdict, byte for byte, each time.
func TestSameBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	const start = 1_700_000_000_123
	w, err := writer.Create(dir, model.Run{Started: start, Plan: model.Plan{Interval: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(10) {
		at := start + i*1003
		for _, host := range []string{"a", "b", "c"} {
			w.Sample(host, at, goodSignals[0], 100)
			w.Sample(host, at, goodSignals[1], float64(90+i))
			for _, cpu := range []string{"0", "1", "2"} {
				w.Sample(host, at, goodSignals[2], float64(i)*0.1, cpu)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	rs := goodSet(t, "increase(refused_total[$window])", "sum without (cpu) (rate(refused_total[$window]))",
		"{{count .Value}} refused by {{.Labels.cpu}}", "{{.Value}}")
	fromLog := verdictOf(t, dir, rs)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fromLog, `"answer":"cause"`) {
		t.Errorf("no cause: %s", fromLog)
	}
	for range 5 {
		if diff := cmp.Diff(fromLog, verdictOf(t, dir, rs)); diff != "" {
			t.Fatalf("(-from the log +from the block):\n%s", diff)
		}
	}
}

func verdictOf(t *testing.T, dir string, rs ruleset.Rules) string {
	t.Helper()
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	q, err := query.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	v := Diagnose(q, rs, asItIs)
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var goodSignals = []*model.Signal{
	{Name: "limit_size"}, {Name: "used_size"}, {Name: "refused_total", Labels: []string{"cpu"}},
}

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/ruleset/alerts"
	"plimsoll/internal/rulesuite"
	"plimsoll/rules"
)

// promtoolTests is a file of promtool's unit tests.
type promtoolTests struct {
	Rules    []string       `yaml:"rule_files"`
	Interval string         `yaml:"evaluation_interval"`
	Tests    []promtoolTest `yaml:"tests"`
}

type promtoolTest struct {
	Name     string           `yaml:"name"`
	Interval string           `yaml:"interval"`
	Series   []promtoolSeries `yaml:"input_series"`
	Asked    []promtoolAsked  `yaml:"promql_expr_test"`
}

type promtoolSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type promtoolAsked struct {
	Expr    string           `yaml:"expr"`
	At      string           `yaml:"eval_time"`
	Samples []promtoolSample `yaml:"exp_samples"`
}

type promtoolSample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// TestVectorsInPromtool has promtool evaluate each rule's alert over the series of each of its vectors,
// as exporters would have had them in the main window. It has to ring for the very subjects for which our
// own engine confirms the rule over these series, of each host by itself. Of each rule it is one vector that
// fires and one that comes near; with PLIMSOLL_VECTORS=all all of them, which takes minutes.
func TestVectorsInPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err) // make test installs it
	} else if err != nil {
		t.Skip("promtool is not here; scripts/install-deps tests installs it")
	}
	w := &world{}
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	suite, err := rulesuite.Read(set)
	if err != nil {
		t.Fatal(err)
	}
	b := &vectorBook{t: t, dir: t.TempDir(), set: set, given: inExporter(w), signals: allSignals(w), alerts: map[string]string{}}
	seen := map[string]bool{}
	for rule, v := range suite.Vectors() {
		key := rule.ID + " " + v.Case
		all := os.Getenv("PLIMSOLL_VECTORS") == "all" && !slices.Contains(onTheEdge, v.Name)
		if (v.Case == "fires" || v.Case == "near") && !seen[key] || all {
			seen[key] = true
			b.add(rule, v)
		}
	}
	if b.rings < 50 {
		t.Errorf("alerts ring in %d vectors; want 50 at least, else it shows little", b.rings)
	}
	cmd := exec.Command(promtool, append([]string{"test", "rules"}, b.files...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, saidFailed(out))
	}
	t.Logf("%d vectors, %d alerts that ring in them", len(b.files), b.rings)
}

// onTheEdge are vectors in which a clue's value is its threshold to the last bit: Prometheus' rate() divides in
// another order than ours, and rounds to the other side.
var onTheEdge = []string{
	"a fifth more than it was told", "exactly a tenth idle, a fifth foreign, a quarter waited",
	"users wait on exactly half of the connections", "users wait on just less than half of the connections",
}

// asMillis writes a duration so that promtool reads it, which takes no part of a second.
func asMillis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// saidFailed is what promtool printed, but for files without one.
func saidFailed(out []byte) []byte {
	var list [][]byte
	for _, part := range bytes.Split(out, []byte("Unit Testing:")) {
		if bytes.Contains(part, []byte("FAILED")) {
			list = append(list, part)
		}
	}
	return bytes.Join(list, nil)
}

// vectorBook writes vectors as promtool's tests.
type vectorBook struct {
	t       *testing.T
	dir     string
	set     ruleset.Rules
	given   func(string) bool
	signals []*model.Signal
	alerts  map[string]string // files by what stands in them
	files   []string
	rings   int
}

// add writes a vector, and nothing for a rule that is no alert.
func (b *vectorBook) add(rule *ruleset.Rule, v *rulesuite.Vector) {
	main, ok := mainWindow(v)
	interval := time.Duration(v.Meta.Plan.Interval) * time.Millisecond
	length := time.Duration(main.End-main.Start) * time.Millisecond
	if !ok || length < 2*interval {
		return
	}
	doc := b.alert(rule, length, interval)
	if doc == "" {
		return
	}
	hosts := slices.Sorted(maps.Keys(v.Meta.Status))
	test := promtoolTest{Name: v.Name, Interval: asMillis(interval), Series: b.states(v, hosts, int(length/interval)+1)}
	asked := promtoolAsked{At: asMillis(length), Expr: fmt.Sprintf(`group by (%s) (ALERTS{plimsoll_rule=%q,alertstate="firing"})`, strings.Join(rule.Subject, ", "), rule.ID)}
	for _, host := range hosts {
		run := b.alone(v, host, main)
		test.Series = append(test.Series, promtoolSeriesOf(run, main, interval)...)
		for _, subject := range b.confirmed(run, rule, host) {
			asked.Samples = append(asked.Samples, promtoolSample{Labels: "{" + subject + "}", Value: 1})
			b.rings++
		}
	}
	test.Asked = []promtoolAsked{asked}
	b.write(doc, promtoolTests{Interval: asMillis(length), Tests: []promtoolTest{test}})
}

// alert is the file with a rule's alert over such a window, "" where the rule is none.
func (b *vectorBook) alert(rule *ruleset.Rule, window, interval time.Duration) string {
	name := fmt.Sprintf("%s.%v.%v.rules.yml", rule.ID, window, interval)
	if known, ok := b.alerts[name]; ok {
		return known
	}
	all, err := alerts.Of(b.set, alerts.Options{Signals: b.signals, Given: b.given, Window: window, Interval: interval, Only: []string{rule.ID}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.alerts[name] = ""
	if len(all.Alerts()) > 0 {
		doc, err := all.Prometheus()
		if err != nil {
			b.t.Fatal(err)
		}
		b.file(name, doc)
		b.alerts[name] = name
	}
	return b.alerts[name]
}

// write writes a test of the rules in that file.
func (b *vectorBook) write(rules string, tests promtoolTests) {
	name := "vector" + strconv.Itoa(len(b.files)) + ".yml"
	tests.Rules = []string{rules}
	raw, err := yaml.Marshal(tests)
	if err != nil {
		b.t.Fatal(err)
	}
	b.file(name, raw)
	b.files = append(b.files, name)
}

func (b *vectorBook) file(name string, content []byte) {
	if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// mainWindow is the window that rules call $window.
func mainWindow(v *rulesuite.Vector) (model.Window, bool) {
	for _, w := range v.Meta.Windows {
		if w.Name == model.Hold {
			return w, true
		}
	}
	first, last, ok := v.Store.Span()
	for _, w := range v.Meta.Windows {
		if w.Name == model.Baseline && last > w.End {
			return model.Window{Start: w.End, End: last}, ok
		}
	}
	return model.Window{Start: first, End: last}, ok && last > first
}

// oneHost is a run of what exporters had of one host in the main window.
type oneHost struct {
	meta  model.Run
	store record.Memory
	list  []hostSeries
}

type hostSeries struct {
	labels labels.Labels
	points []record.Point
}

func (b *vectorBook) alone(v *rulesuite.Vector, host string, main model.Window) *oneHost {
	run := &oneHost{meta: model.Run{
		Plan:    model.Plan{Mode: "prometheus", Interval: v.Meta.Plan.Interval, Remote: &model.RemotePlan{}},
		Windows: []model.Window{{Name: model.Hold, Start: main.Start, End: main.End}},
		Hosts:   []model.Host{{Name: host, Machine: "machine of " + host}},
		Status:  map[string]map[string]model.Status{host: {}},
	}}
	for name, st := range v.Meta.Status[host] {
		if b.given(name) {
			run.meta.Status[host][name] = st
		}
	}
	q, err := v.Store.Querier(main.Start, main.End)
	if err != nil {
		b.t.Fatal(err)
	}
	found := q.Select(b.t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "host", host))
	for found.Next() {
		s := found.At()
		var points []record.Point
		for it := s.Iterator(nil); it.Next() != chunkenc.ValNone; {
			if at, value := it.At(); main.Start <= at && at <= main.End {
				points = append(points, record.Point{Time: at, Value: value})
			}
		}
		if len(points) > 0 && b.given(s.Labels().Get("__name__")) {
			run.store.Add(s.Labels(), points)
			run.list = append(run.list, hostSeries{s.Labels(), points})
		}
	}
	run.store.Sort()
	return run
}

// confirmed are the subjects for which our own engine confirms a rule, and for which it takes enough
// from users, as promtool writes labels.
func (b *vectorBook) confirmed(run *oneHost, rule *ruleset.Rule, host string) []string {
	if len(run.list) == 0 {
		return nil
	}
	main := run.meta.Windows[0]
	findings, err := diagnose.Findings(query.Over(run.meta, &run.store, main.Start, main.End), rule)
	if err != nil {
		b.t.Errorf("%s: %v", rule.ID, err)
	}
	var list []string
	for _, f := range findings {
		if f.Answer != model.Confirmed || f.Impact != nil && *f.Impact < 0.1 {
			continue
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(f.Subject)) {
			if f.Subject[name] != "" {
				parts = append(parts, fmt.Sprintf("%s=%q", name, f.Subject[name]))
			}
		}
		list = append(list, strings.Join(parts, ","))
	}
	return list
}

// states are what exporters of ours say of their hosts and signals.
func (b *vectorBook) states(v *rulesuite.Vector, hosts []string, n int) []promtoolSeries {
	always := fmt.Sprintf("1x%d", n)
	var list []promtoolSeries
	for _, host := range hosts {
		list = append(list, promtoolSeries{fmt.Sprintf(`plimsoll_host_info{host=%q,machine=%q}`, host, "machine of "+host), always})
		for _, name := range slices.Sorted(maps.Keys(v.Meta.Status[host])) {
			if b.given(name) {
				list = append(list, promtoolSeries{fmt.Sprintf(`plimsoll_signal_state{host=%q,signal=%q,state=%q}`, host, name, v.Meta.Status[host][name].State), always})
			}
		}
	}
	return list
}

// promtoolSeriesOf writes series as they are scraped: a series of which there is no reading at a
// scrape is over, until there is one again.
func promtoolSeriesOf(run *oneHost, main model.Window, interval time.Duration) []promtoolSeries {
	step := interval.Milliseconds()
	var list []promtoolSeries
	for _, s := range run.list {
		at := map[int64]float64{}
		for _, p := range s.points {
			at[p.Time] = p.Value
		}
		var values []string
		for t := main.Start; t <= main.End; t += step {
			value, ok := at[t]
			switch {
			case ok:
				values = append(values, strconv.FormatFloat(value, 'g', -1, 64))
			case t > main.Start && known(at, t-step):
				values = append(values, "stale")
			default:
				values = append(values, "_")
			}
		}
		list = append(list, promtoolSeries{s.labels.String(), strings.Join(values, " ")})
	}
	return list
}

func known(at map[int64]float64, t int64) bool { _, ok := at[t]; return ok }

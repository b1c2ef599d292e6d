package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/ruleset"
	"plimsoll/internal/ruleset/alerts"
	"plimsoll/rules"
)

// usualAlerts are the alerts as "rules export" writes them without flags: made once, for tests that read them.
func usualAlerts(t *testing.T) (ruleset.Rules, alerts.Set) {
	t.Helper()
	all, err := usual()
	ok(t, err)
	return all.rules, all.alerts
}

type ruleAlerts struct {
	rules  ruleset.Rules
	alerts alerts.Set
}

var usual = sync.OnceValues(func() (ruleAlerts, error) {
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		return ruleAlerts{}, err
	}
	w, _, _ := testWorld()
	all, err := alertsOf(w, set, alertOptions)
	return ruleAlerts{set, all}, err
})

// TestAlertsLeftOutPageIsFresh keeps the list of rules that are no alerts, with the reasons.
func TestAlertsLeftOutPageIsFresh(t *testing.T) {
	set, all := usualAlerts(t)
	left := all.LeftOut()
	var page strings.Builder
	page.WriteString("# Rules that are no alerts\n\nWhat `plimsoll rules export` leaves out, as its comments say it ([Alerts](alerts.md)). " +
		"Generated; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew.\n\n| rule | why |\n|---|---|\n")
	for _, r := range set.List {
		if why, ok := left[r.ID]; ok {
			fmt.Fprintf(&page, "| [%s](rules/%s.md) | %s |\n", r.ID, r.ID, why)
		}
	}
	fresh(t, "alerts-left-out.md", page.String())
	for _, r := range set.List {
		if _, ok := left[r.ID]; ok == slices.Contains(all.Alerts(), r.ID) {
			t.Errorf("%s: want it either among the alerts, or left out with a reason", r.ID)
		}
	}
}

// TestAlertsSilenceNoneOfThemselves: of two alerts of one host that make each other quiet, nobody would hear.
func TestAlertsSilenceNoneOfThemselves(t *testing.T) {
	_, all := usualAlerts(t)
	below := all.Silences()
	var walk func(path []string)
	walk = func(path []string) {
		for _, next := range below[path[len(path)-1]] {
			if next == path[0] {
				t.Errorf("%s: each makes the next one quiet", strings.Join(path, " → "))
			} else if len(path) < 3 {
				walk(append(slices.Clone(path), next))
			}
		}
	}
	for id := range below {
		walk([]string{id})
	}
}

// Hosts that belong together explain one another's alerts where the rules do not ask for one host; one without the label is by itself.
func TestHostsTogether(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load(rules.FS)
	ok(t, err)
	w, _, _ := testWorld()
	opt := alertOptions
	opt.Together = "system"
	all, err := alertsOf(w, set, opt)
	ok(t, err)
	doc, err := all.Alertmanager()
	ok(t, err)
	var config struct {
		Inhibit []struct {
			Source, Target []string
			Equal          []string
		} `yaml:"inhibit_rules"`
	}
	text := strings.NewReplacer("source_matchers", "source", "target_matchers", "target").Replace(string(doc))
	ok(t, yaml.Unmarshal([]byte(text), &config))
	equal := map[string][]string{}
	for _, i := range config.Inhibit {
		if i.Source[0] == `plimsoll_rule = "net.listen.queue_full"` {
			for _, of := range []string{"net[.]drops", "net[.]tcp[.]syn_retransmits"} {
				if strings.Contains(strings.ReplaceAll(i.Target[0], `"net.drops"`, `"net[.]drops"`), of) {
					equal[of] = i.Equal
				}
			}
		}
	}
	if got := fmt.Sprint(equal); got != "map[net[.]drops:[host] net[.]tcp[.]syn_retransmits:[system]]" {
		t.Errorf("what a full queue explains agrees in %s", got)
	}
	opt.Only = []string{"net.tcp.syn_retransmits"}
	one, err := alertsOf(w, set, opt)
	ok(t, err)
	doc, err = one.Prometheus()
	ok(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	ok(t, yaml.Unmarshal(doc, &file))
	list := file.Groups[0].Rules
	askPromtool(t, list[len(list)-1].Expr)
}

// askPromtool has promtool evaluate the alert of lost SYNs for two hosts of a system, of which one is scraped twice, and for one of none.
func askPromtool(t *testing.T, expr string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("promtool is not here; scripts/install-deps tests installs it")
	}
	ok(t, err) // make test installs it
	test := promtoolTest{Interval: "5s", Asked: []promtoolAsked{{Expr: expr, At: "2m", Samples: []promtoolSample{
		{`{host="a", system="shop"}`, 1}, {`{host="b", system="shop"}`, 1}, {`{host="c", system="host c"}`, 1}}}}}
	add := func(values, series string) { test.Series = append(test.Series, promtoolSeries{series, values}) }
	for host, label := range map[string]string{"a": `,system="shop"`, "b": `,system="shop"`, "c": ""} {
		add("0+10x100", fmt.Sprintf(`node_netstat_TcpExt_TCPSynRetrans{host=%q%s}`, host, label))
		add("0+10x100", fmt.Sprintf(`node_netstat_Tcp_ActiveOpens{host=%q%s}`, host, label))
		add("0+10x100", fmt.Sprintf(`node_netstat_Tcp_PassiveOpens{host=%q%s}`, host, label))
		add("1x100", fmt.Sprintf(`plimsoll_host_info{host=%q,machine="m"%s}`, host, label))
	}
	add("1x100", `plimsoll_host_info{host="a",machine="m",job="again"}`)
	raw, err := yaml.Marshal(promtoolTests{Interval: "5s", Tests: []promtoolTest{test}})
	ok(t, err)
	path := filepath.Join(t.TempDir(), "test.yml")
	ok(t, os.WriteFile(path, raw, 0o600))
	if out, err := exec.Command(promtool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// A symptom of which nobody knows whether users have it calls nobody; one that requests show does.
func TestSeverities(t *testing.T) {
	_, all := usualAlerts(t)
	doc, err := all.Prometheus()
	ok(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Labels map[string]string }
		}
	}
	ok(t, yaml.Unmarshal(doc, &file))
	got := map[string]string{}
	for _, r := range file.Groups[0].Rules {
		got[r.Labels["plimsoll_rule"]] = r.Labels["severity"]
	}
	for rule, want := range map[string]string{"net.tcp.syn_retransmits": "info", "net.drops": "info", "cpu.capacity": "info", "process.stands_still": "info",
		"nginx.bad_gateway": "warning", "requests.failing": "warning", "net.listen.queue_full": "warning"} {
		if got[rule] != want {
			t.Errorf("%s: severity %q, want %s", rule, got[rule], want)
		}
	}
}

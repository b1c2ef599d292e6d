package all

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// TestEveryFolderWithProbesIsListed looks for packages that declare All.
func TestEveryFolderWithProbesIsListed(t *testing.T) {
	list, err := os.ReadFile("all.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(f))
		if name != "all" && strings.Contains(string(b), "func All() []probe.Probe") && !strings.Contains(string(list), name+".All()") {
			t.Errorf("%s has probes, but all.go does not list %s.All()", f, name)
		}
	}
}

func TestEveryProbeIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		switch {
		case p.Name == "" || seen[p.Name]:
			t.Errorf("probe %q: want a name of its own", p.Name)
		case len(p.Signals) == 0:
			t.Errorf("probe %s has no signals", p.Name)
		case p.Open == nil:
			t.Errorf("probe %s: want Open", p.Name)
		case p.Cost == "":
			t.Errorf("probe %s does not say what it costs", p.Name)
		}
		seen[p.Name] = true
	}
}

// ecosystem are the prefixes of names that others chose, which must be kept to
// the letter although a counter among them does not end in _total.
var ecosystem = []string{
	"node_netstat_", "node_nf_conntrack_stat_", "node_vmstat_", "haproxy_", "varnish_", "mysql_global_", "nginx_connections_", "pg_", "phpfpm_", "redis_",
}

func TestEverySignalIsDescribedAndNamedAsPrometheusWants(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)
	label := regexp.MustCompile(`^[a-z][a-z_]*$`)
	seen := map[string]bool{}
	for _, sig := range signals() {
		if !name.MatchString(sig.Name) || seen[sig.Name] {
			t.Errorf("signal %q: want a name of its own, of letters, digits and _", sig.Name)
		}
		seen[sig.Name] = true
		if sig.Help == "" || sig.Unit == "" || sig.Source == "" || sig.ByHand == "" {
			t.Errorf("signal %s: want help, unit, source and by-hand: %+v", sig.Name, sig)
		}
		if !strings.HasSuffix(sig.Help, ".") {
			t.Errorf("signal %s: help is no sentence: %q", sig.Name, sig.Help)
		}
		for _, l := range sig.Labels {
			if !label.MatchString(l) || l == "host" {
				t.Errorf("signal %s: label %q", sig.Name, l)
			}
		}
		checkSuffix(t, sig)
	}
}

func checkSuffix(t *testing.T, sig *model.Signal) {
	t.Helper()
	known := slices.ContainsFunc(ecosystem, func(p string) bool { return strings.HasPrefix(sig.Name, p) })
	total := strings.HasSuffix(sig.Name, "_total") || strings.HasSuffix(sig.Name, "_sum") || strings.HasSuffix(sig.Name, "_count")
	switch sig.Kind {
	case model.Counter:
		if !total && !known {
			t.Errorf("signal %s is a counter: want a name that ends in _total", sig.Name)
		}
	case model.Gauge:
		if strings.HasSuffix(sig.Name, "_total") && !known {
			t.Errorf("signal %s is a gauge: want a name that does not end in _total", sig.Name)
		}
	default:
		t.Errorf("signal %s: kind %q", sig.Name, sig.Kind)
	}
}

func signals() []*model.Signal {
	var list []*model.Signal
	for _, p := range All() {
		list = append(list, p.Signals...)
	}
	return list
}

package all

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// shared names the tracers that rest on the C of a folder together; what symbol has is attached to nothing.
var shared = map[string][]string{"sched": {"runqueue", "wait"}, "symbol": {}}

// TestEveryFolderWithATracerIsListed looks for folders with C in them.
func TestEveryFolderWithATracerIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, tr := range All() {
		listed[tr.Name] = true
	}
	sources, err := filepath.Glob("../*/*.bpf.c")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, path := range sources {
		folder := filepath.Base(filepath.Dir(path))
		names := shared[folder]
		if names == nil {
			names = []string{folder}
		}
		for _, name := range names {
			if !listed[name] {
				t.Errorf("%s is in no tracer of all.go", path)
			}
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("tracer %s has no C: no folder of its name, and none that it shares", name)
	}
}

func TestEveryTracerIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../bench/README.md")
	if err != nil {
		t.Fatal(err)
	}
	bench := strings.Split(string(text), "\n")
	for _, tr := range All() {
		if tr.Name == "" || tr.About == "" || tr.Short == "" || len(tr.Short) > 55 || tr.Long == "" || tr.Cost == "" || tr.ByHand == "" || len(tr.Blind) == 0 || tr.Start == nil ||
			len(tr.Signals) == 0 || tr.FirstKernel.Major == 0 {
			t.Errorf("tracer %q: something is not filled in: %+v", tr.Name, tr)
		}
		row := fmt.Sprintf("| %d | %s | %s |", tr.Paired.Pairs, tr.Paired.Replies, tr.Paired.CPU)
		if !slices.ContainsFunc(bench, func(line string) bool {
			return strings.HasPrefix(line, "| `"+tr.Name+"`") && strings.HasSuffix(line, row)
		}) {
			t.Errorf("bench/README.md has no row of `%s` that ends with %s", tr.Name, row)
		}
		page := readme(t, tr.Name)
		for _, want := range append([]string{"## Fields", "## Overhead", "## Blind spots", "## By hand", tr.Cost, tr.Paired.String(), tr.ByHand}, tr.Blind...) {
			if !strings.Contains(page, oneLine(want)) {
				t.Errorf("%s/README.md does not say: %s", tr.Name, want)
			}
		}
		for _, s := range tr.Signals {
			if !strings.Contains(page, "`"+s.Name+"`") {
				t.Errorf("%s/README.md does not name %s", tr.Name, s.Name)
			}
		}
	}
}

func readme(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return oneLine(string(text))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestSignalsAreDescribedAndNamedAsPrometheusWants(t *testing.T) {
	counter := regexp.MustCompile(`^plimsoll_[a-z_]+_(total|sum|count|bucket)$`)
	seen := map[string]bool{}
	for _, tr := range All() {
		for _, s := range tr.Signals {
			if seen[s.Name] || !strings.HasPrefix(s.Name, "plimsoll_"+tr.Name+"_") {
				t.Errorf("signal %s: want a name of its own, beginning with its tracer's", s.Name)
			}
			seen[s.Name] = true
			// A gauge is what there is at the moment: where there is none of it, nothing is put.
			if isCounter := s.Kind == model.Counter; isCounter != counter.MatchString(s.Name) || isCounter != s.StartsAtZero {
				t.Errorf("signal %s: a counter's name ends as one, and what a tracer counts begins at zero when it starts; a gauge's does not", s.Name)
			}
			if !strings.HasSuffix(s.Help, ".") || s.Unit == "" || s.Source == "" || s.ByHand == "" {
				t.Errorf("signal %s: want help, unit, source and by-hand: %+v", s.Name, s)
			}
		}
		if !seen["plimsoll_"+tr.Name+"_lost_total"] {
			t.Errorf("tracer %s does not say what it lost", tr.Name)
		}
	}
}

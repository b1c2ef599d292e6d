package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	cases "plimsoll/lab"
)

func TestACaseNeedsWhatItStarts(t *testing.T) {
	c := &Case{Needs: []Need{{"javac", "a-jdk"}}, Load: Load{URL: "http://10.77.0.2/"},
		Steps: []Step{{Nginx: &Service{Processes: "7"}}, {Process: &Process{Command: []string{"chrt", "/usr/bin/stress"}}}}}
	var packages []string
	for _, n := range c.needs(true) {
		packages = append(packages, n.Package)
	}
	if got := strings.Join(packages, " "); got != "a-jdk nginx-light util-linux stress wrk" {
		t.Errorf("needs %q", got)
	}
	for _, n := range c.needs(false) {
		if n.Package == "wrk" {
			t.Error("plimsoll run drives the load itself, and wrk is asked for")
		}
	}
}

func TestWhatIsMissingIsNamedByPackage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server-15"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	have := Need{filepath.Join(dir, "server-*"), "here"}
	if why := lacks([]Need{have, {"no-such-program", "b"}, {filepath.Join(dir, "client-*"), "a"}, {"none-such", "b"}}); !strings.HasSuffix(why, "apt-get install --no-install-recommends a b") {
		t.Errorf("it says %q", why)
	}
	if why := lacks([]Need{have}); why != "" {
		t.Errorf("nothing is missing, and it says %q", why)
	}
}

// A case whose program is missing is one of the results of a test, and the others go on.
func TestACaseThatLacksAProgramIsNotTried(t *testing.T) {
	data := strings.Replace(good, "vars:", "needs: [{find: no-such-program, package: p}]\nvars:", 1)
	c, err := parseCase([]byte(data), fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	turns := TestOptions{Cases: []*Case{c}, Times: 3}.turns()
	if len(turns) != 1 || !strings.HasSuffix(turns[0].t.Refused, "install --no-install-recommends p") {
		t.Errorf("%d trials, the first %+v; want one that says what is missing", len(turns), turns[0].t)
	}
}

// One script installs what the cases need.
func TestInstallDepsKnowsAllNeeds(t *testing.T) {
	script, err := os.ReadFile("../../scripts/install-deps")
	if err != nil {
		t.Fatal(err)
	}
	list, err := (&Lab{Cases: cases.FS}).List()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		for _, n := range c.needs(true) {
			if !strings.Contains(string(script), " "+n.Package+"\n") {
				t.Errorf("%s needs %s, which scripts/install-deps does not install", c.ID, n.Package)
			}
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/change"
	"plimsoll/internal/collect/pipe"
	"plimsoll/internal/model"
	"plimsoll/internal/session"
)

// A host that is none of the run's is not taken for this machine.
func TestTuneKnowsItsHosts(t *testing.T) {
	far := session.HostSpec{Name: "server", Spec: "netns:srv"}
	for _, c := range []struct {
		name  string
		hosts []session.HostSpec
		want  string // its spec, "" for an error
	}{
		{"local", nil, "local"},
		{"local", []session.HostSpec{{Name: "local", Spec: "local"}}, "local"},
		{"server", []session.HostSpec{far}, "netns:srv"},
		{"local", []session.HostSpec{far}, "local"}, // it is observed all the same
		{"local", []session.HostSpec{{Name: "web", Spec: "local"}}, ""},
		{"local", []session.HostSpec{{Name: "local", Spec: "pid:7"}}, "pid:7"},
		{"generator", []session.HostSpec{{Name: "local", Spec: "pid:7"}}, "local"},
		{"generator", []session.HostSpec{far}, ""},
		{"elsewhere", []session.HostSpec{far}, ""},
		{"", []session.HostSpec{far}, ""},
		{"", []session.HostSpec{{Name: "web", Spec: "local"}}, ""},
	} {
		got, err := hostNamed(c.name, c.hosts)
		if c.want == "" {
			if !errors.Is(err, change.ErrNotPossible) || !strings.Contains(err.Error(), "no host") {
				t.Errorf("%q of %v: %v, want an error", c.name, c.hosts, err)
			}
			continue
		}
		if err != nil || got.Spec != c.want {
			t.Errorf("%q of %v: %v, %v, want %s", c.name, c.hosts, got, err, c.want)
		}
	}
}

// It is a change that is not possible, as others are: the walk goes on.
func TestTunePreparesOnNoOtherHost(t *testing.T) {
	d := &driver{opt: session.Options{Hosts: []session.HostSpec{{Name: "web", Spec: "local"}}}}
	_, err := d.prepare(t.Context(), model.FixChange{Kind: model.ChangeSysctl, Name: "net.core.somaxconn", Value: "4096", Host: "elsewhere"})
	if !errors.Is(err, change.ErrNotPossible) {
		t.Errorf("%v, want that it is not possible", err)
	}
}

// What cannot be set is a matter of what was asked for, and no fault of Plimsoll's own.
func TestSweepSaysWhatCannotBeSet(t *testing.T) {
	d := &driver{plan: model.LoadPlan{URL: "http://127.0.0.1:9/"}}
	prepare := d.sweeper(t.Context())
	_, err := prepare(model.FixChange{Kind: model.ChangeNginx, Name: "user", Value: "x", Host: "local"})
	if codeOf(err) != exitUsage || !strings.Contains(err.Error(), "--set nginx:user=x") {
		t.Errorf("%v (%d)", err, codeOf(err))
	}
}

// What is misspelt would leave nothing out.
func TestTuneKnowsWhatItLeavesOut(t *testing.T) {
	set, err := ruleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"nginx": "", "net.": "", "net.listen.queue_full": "", "ngnix": "did you mean nginx?", "net": "is no rule", "nosuch.": "is no rule", "": "is no rule"} {
		f := tuneFlags{}
		f.opt.Never = []string{name}
		err := f.checkNames("plimsoll tune", set)
		if (err == nil) != (want == "") || err != nil && (codeOf(err) != exitUsage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// That there is no way to a machine is of a change on that machine alone, and of a door that is shut now.
func TestNoWayIsOfTheChangedMachine(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	d := &driver{opt: session.Options{Hosts: []session.HostSpec{{Name: "web", Spec: "local", Via: "ssh:web"}, {Name: "db", Spec: "local", Via: "ssh:db"}, {Name: "near", Spec: "netns:x"}}}}
	cut := fmt.Errorf("run 2: %w", pipe.DialError{Via: "ssh:web", Err: errors.New("it does not answer")})
	for name, c := range map[string]struct {
		err   error
		hosts []string
		exit  int // of ssh
		want  bool
	}{
		"its own machine":              {cut, []string{"near", "web"}, 255, true},
		"one that lets us in again":    {cut, []string{"web"}, 0, false},
		"another machine":              {cut, []string{"db", "near", "nobody"}, 255, false},
		"a run that failed of another": {errors.New("no reply"), []string{"web"}, 255, false},
	} {
		if err := os.WriteFile(filepath.Join(bin, "ssh"), fmt.Appendf(nil, "#!/bin/sh\nexit %d\n", c.exit), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := d.shut(t.Context(), c.err, c.hosts); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The exporter is not root any more: with StateDirectory=plimsoll, which its unit once told people to add, root's runs would become its user's.
func TestPackageWarnsOfTheOldStateDirectory(t *testing.T) {
	for line, warned := range map[string]bool{
		"StateDirectory=plimsoll":             true,
		"StateDirectory = other plimsoll":     true,
		"StateDirectory=plimsoll/runs":        true,
		"StateDirectory=plimsoll-exporter":    false,
		"#StateDirectory=plimsoll":            false,
		"Environment=StateDirectory=plimsoll": false,
		"":                                    false, // there is no such file
	} {
		root := t.TempDir()
		file := filepath.Join(root, "etc/systemd/system/plimsoll-exporter.service.d/override.conf")
		if line != "" {
			ok(t, os.MkdirAll(filepath.Dir(file), 0o700))
			ok(t, os.WriteFile(file, []byte("[Service]\n"+line+"\nMemoryMax=512M\n"), 0o600))
		}
		c := exec.Command("sh", "../../packaging/postinstall")
		c.Env = append(os.Environ(), "DPKG_ROOT="+root)
		said, err := c.CombinedOutput()
		ok(t, err)
		if says := strings.HasPrefix(string(said), "plimsoll: "+file+" has ") && strings.Contains(string(said), "StateDirectory=plimsoll-exporter"); says != warned || !warned && len(said) > 0 {
			t.Errorf("%q: it says %q", line, said)
		}
	}
	recipe, err := os.ReadFile("../../packaging/nfpm.yaml")
	ok(t, err)
	if !strings.Contains(string(recipe), "postinstall: packaging/postinstall\n") {
		t.Error("the packages do not run it")
	}
}

// Whoever removes the package has no unit left that starts a program that is gone; an upgrade stops nothing. Where no systemd runs,
// as in an image, there is nothing to stop.
func TestRemovalStopsTheUnits(t *testing.T) {
	tools, runs, none := t.TempDir(), t.TempDir(), t.TempDir()
	ok(t, os.WriteFile(filepath.Join(tools, "systemctl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700))
	ok(t, os.MkdirAll(filepath.Join(runs, "run/systemd/system"), 0o700))
	const units = "plimsoll-watch.service plimsoll-exporter.service\n"
	for _, tc := range []struct{ how, root, want string }{
		{"remove", runs, "disable --quiet --now " + units},
		{"0", runs, "disable --quiet --now " + units},
		{"remove", none, "disable --quiet " + units},
		{"upgrade", runs, ""},
		{"1", runs, ""},
		{"deconfigure", runs, ""},
	} {
		c := exec.Command("/bin/sh", "../../packaging/preremove", tc.how)
		c.Env = append(os.Environ(), "PATH="+tools, "DPKG_ROOT="+tc.root)
		said, err := c.CombinedOutput()
		ok(t, err)
		if string(said) != tc.want {
			t.Errorf("%s: it calls systemctl with %q, want %q", tc.how, said, tc.want)
		}
	}
	recipe, err := os.ReadFile("../../packaging/nfpm.yaml")
	ok(t, err)
	if !strings.Contains(string(recipe), "preremove: packaging/preremove\n") {
		t.Error("the packages do not run it")
	}
}

// systemd takes each unit as it is, and knows all that stands in it.
func TestUnitsAreSystemds(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	us, err := os.Executable()
	ok(t, err)
	units, err := filepath.Glob("../../packaging/*.service")
	ok(t, err)
	if len(units) < 2 {
		t.Fatalf("units: %q; want two at least", units)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		ok(t, err)
		path := filepath.Join(t.TempDir(), filepath.Base(unit))
		verify := func(text string) string {
			ok(t, os.WriteFile(path, []byte(text), 0o600))
			out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput() // an unknown key is only said
			if err != nil {
				return err.Error() + string(out)
			}
			return string(out)
		}
		whole := strings.ReplaceAll(string(text), "/usr/bin/plimsoll", us)
		if said := verify(whole); said != "" {
			t.Errorf("%s: %s", unit, said)
		}
		if said := verify(strings.Replace(whole, "[Service]", "[Service]\nNoNewPrivilegs=yes", 1)); !strings.Contains(said, "NoNewPrivilegs") {
			t.Errorf("%s: of a key that there is not it says %q", unit, said)
		}
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const kubernetes = "../../packaging/kubernetes"

// daemonSet is what is looked at of the manifest.
type daemonSet struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args            []string
					SecurityContext struct {
						MayGain      bool `yaml:"allowPrivilegeEscalation"`
						ReadOnly     bool `yaml:"readOnlyRootFilesystem"`
						Capabilities struct{ Drop, Add []string }
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

// The DaemonSet starts what there is, with the rights that the unit of the package has and no others.
func TestDaemonSet(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(kubernetes, "daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set daemonSet
	if err := yaml.Unmarshal(raw, &set); err != nil || len(set.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%v: want one container: %+v", err, set)
	}
	c := set.Spec.Template.Spec.Containers[0]
	w, _, _ := testWorld()
	root := newRoot(w)
	command, rest, err := root.Find(c.Args)
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if err != nil || command.Name() != "watch" || len(command.Flags().Args()) > 0 {
		t.Errorf("%q: %v", c.Args, err)
	}
	unit, err := os.ReadFile("../../packaging/plimsoll-exporter.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindStringSubmatch(string(unit))
	if !strings.Contains(string(unit), "\nDynamicUser=yes\nAmbientCapabilities="+line[1]+"\n") {
		t.Errorf("the unit's user has not these: %s", line[1])
	}
	want := strings.Fields(strings.ReplaceAll(line[1], "CAP_", ""))
	s := c.SecurityContext
	if !slices.Equal(s.Capabilities.Add, want) || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || s.MayGain || !s.ReadOnly {
		t.Errorf("its rights are %+v, want %q as in the unit", s, want)
	}
}

// The folder is what kustomize takes, once it says who may scrape, and nothing before that.
func TestKustomization(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not here")
	}
	folder := filepath.Join(t.TempDir(), "plimsoll")
	if err := os.CopyFS(folder, os.DirFS(kubernetes)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(kubectl, "kustomize", folder).CombinedOutput(); err == nil || !strings.Contains(string(out), "web.yml") {
		t.Errorf("without a web config: %v\n%s", err, out)
	}
	for _, name := range []string{"web.yml", "cert.pem", "key.pem"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(kubectl, "kustomize", folder).CombinedOutput()
	for _, want := range []string{"kind: DaemonSet", "kind: Namespace", "kind: Secret", "namespace: plimsoll", "secretName: plimsoll-web-"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("no %q in it: %v\n%s", want, err, out)
		}
	}
}

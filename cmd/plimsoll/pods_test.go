package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
)

// kubernetesFit says where an object of a manifest is none that the API of Kubernetes takes, "" for nowhere.
func kubernetesFit(t *testing.T, doc object) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/kubernetes-1.37.json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Defs object `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	version := fmt.Sprint(doc["apiVersion"])
	if !strings.Contains(version, "/") {
		version = "core/" + version
	}
	name := strings.ReplaceAll(version, "/", ".") + "." + fmt.Sprint(doc["kind"])
	of, ok := s.Defs[name].(object)
	if !ok {
		return "no " + name + " is known"
	}
	return fits(doc, of, s.Defs, name)
}

// documentsOf are the objects of a manifest, as JSON has them.
func documentsOf(t *testing.T, manifest []byte) (docs []object) {
	t.Helper()
	in := yaml.NewDecoder(bytes.NewReader(manifest))
	for {
		var v any
		err := in.Decode(&v)
		if errors.Is(err, io.EOF) {
			return docs
		}
		raw, err2 := json.Marshal(v)
		var doc object
		if err := errors.Join(err, err2, json.Unmarshal(raw, &doc)); err != nil {
			t.Fatalf("%v\n%s", err, manifest)
		}
		docs = append(docs, doc)
	}
}

// at walks down an object by names and numbers.
func at(v any, way ...any) any {
	for _, step := range way {
		switch step := step.(type) {
		case string:
			fields, _ := v.(object)
			v = fields[step]
		case int:
			if all := list(v); step < len(all) {
				v = all[step]
			} else {
				v = nil
			}
		}
	}
	return v
}

// cluster plays the pods of a manifest as a kubelet would: each a process in a root of its own that has the program, the Secret's
// files and the Service's name, which it cannot write to, as nobody and without a right. They have this machine's network.
type cluster struct {
	t    *testing.T
	dir  string
	docs []object
}

// clusterOf has load's arguments print a manifest, and looks at it as the API would.
func clusterOf(t *testing.T, args ...string) cluster {
	t.Helper()
	w, out, talk := testWorld(append([]string{"load"}, args...)...)
	if code := run(t.Context(), w); code != exitOK {
		t.Fatalf("exit code %d: %s", code, talk)
	}
	c := cluster{t, programs(t, "plimsoll"), documentsOf(t, out.Bytes())}
	for _, doc := range c.docs {
		if fault := kubernetesFit(t, doc); fault != "" {
			t.Error(fault)
		}
	}
	if len(c.docs) != 4 {
		t.Fatalf("%d objects, want a Secret, a Service and two Jobs:\n%s", len(c.docs), out)
	}
	if err := os.Mkdir(c.files(), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range at(c.docs[secretDoc], "stringData").(object) {
		if err := os.WriteFile(filepath.Join(c.files(), name), []byte(text.(string)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c cluster) files() string { return filepath.Join(c.dir, "files") }

const (
	secretDoc = iota
	serviceDoc
	leadDoc
	workerDoc
)

const playPod = `mkdir -p "$ROOT" && mount -t tmpfs pod "$ROOT" && mkdir -p "$ROOT/etc" "$ROOT/proc"
touch "$ROOT/plimsoll" && mount --bind "$PROGRAM" "$ROOT/plimsoll" && mount -t proc proc "$ROOT/proc"
cp -r "$FILES" "$ROOT$MOUNT" && chmod 755 "$ROOT" "$ROOT$MOUNT" && echo "127.0.0.1 $SERVICE" >"$ROOT/etc/hosts" && mount -o remount,ro "$ROOT"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin ${INDEX:+JOB_COMPLETION_INDEX=$INDEX} setpriv --no-new-privs chroot --userspec=65534:65534 "$ROOT" /plimsoll "$@"`

// pod starts a pod of a Job; index is "" or its completion index.
func (c cluster) pod(doc int, index string) (cmd *exec.Cmd, out, talk *bytes.Buffer) {
	c.t.Helper()
	spec := at(c.docs[doc], "spec", "template", "spec")
	container := at(spec, "containers", 0)
	if secret, name := at(spec, "volumes", 0, "secret", "secretName"), at(c.docs[secretDoc], "metadata", "name"); secret != name ||
		at(container, "volumeMounts", 0, "name") != at(spec, "volumes", 0, "name") {
		c.t.Fatalf("it mounts the Secret %v, and there is %v", secret, name)
	}
	words := []string{"--mount", "--propagation", "private", "sh", "-ec", playPod, "sh"}
	for _, word := range list(at(container, "args")) {
		words = append(words, word.(string))
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	c.t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, "unshare", words...)
	cmd.Env = append(os.Environ(), "ROOT="+filepath.Join(c.dir, "root"), "PROGRAM="+filepath.Join(c.dir, "plimsoll"), "FILES="+c.files(), "INDEX="+index,
		fmt.Sprint("MOUNT=", at(container, "volumeMounts", 0, "mountPath")), fmt.Sprint("SERVICE=", at(c.docs[serviceDoc], "metadata", "name")))
	out, talk = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, talk
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd, out, talk
}

// start starts the workers, in another order than theirs, and the pod that leads last; do gets the workers.
func (c cluster) start(do func(workers map[string]*exec.Cmd)) (code int, result loadDocument, said string) {
	c.t.Helper()
	workers, logs := map[string]*exec.Cmd{}, map[string]*bytes.Buffer{}
	for _, k := range []string{"2", "0", "1"} {
		workers[k], _, logs[k] = c.pod(workerDoc, k)
	}
	lead, out, talk := c.pod(leadDoc, "")
	do(workers)
	var exit *exec.ExitError
	if err := lead.Wait(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	for k, w := range workers {
		_ = w.Wait() // one may have been killed; what counts is what the lead tells
		c.t.Logf("worker %s: %s", k, logs[k])
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		c.t.Fatalf("%v: %s%s", err, out, talk)
	}
	return code, result, talk.String()
}

// canPlayPods skips where there can be no pods: their image has the program and nothing else.
func canPlayPods(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a pod's file system of its own takes root")
	}
	program, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if program.Section(".interp") != nil {
		t.Skip("a build with cgo needs more files than itself")
	}
}

// counting is a service that counts what it is asked with the header that the load sends.
func counting(t *testing.T) (url string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer \"sesame\"" {
			asked.Add(1)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// Pods listen on one port of this machine, so there is one cluster at a time.
func TestPods(t *testing.T) {
	t.Parallel()
	canPlayPods(t)
	t.Run("play one load", podsPlayOneLoad)
	t.Run("one is killed", podIsKilled)
}

// Three pods of the manifest play one schedule, and the sum is exact.
func podsPlayOneLoad(t *testing.T) {
	url, asked := counting(t)
	c := clusterOf(t, url, "-n", "1000", "-R", "1000", "-c", "7", "-H", `Authorization: Bearer "sesame"`, "--timeout", "1m", "--json", "--slo", "errors<1%", "--kubernetes", "3")
	code, got, said := c.start(func(map[string]*exec.Cmd) {})
	if code != exitOK || got.Load.Requests != 1000 || asked.Load() != 1000 || got.Load.Outcomes["2xx"] != 1000 || got.Load.Latency.Count != 1000 {
		t.Errorf("exit code %d, %d requests counted, %d asked, %v: %s", code, got.Load.Requests, asked.Load(), got.Load.Outcomes, said)
	}
	for k, want := range []int64{334, 333, 333} { // arrivals k, k+3, k+6 …
		if k >= len(got.Load.Workers) || got.Load.Workers[k].Requests != want || got.Load.Workers[k].Spec != fmt.Sprintf("pod:%d", k) {
			t.Fatalf("workers %+v", got.Load.Workers)
		}
	}
}

// A pod that is killed is told, what it did until then counts, and nobody takes its share over.
func podIsKilled(t *testing.T) {
	url, asked := counting(t)
	c := clusterOf(t, url, "-R", "300", "-d", "4s", "-c", "6", "-H", `Authorization: Bearer "sesame"`, "--timeout", "1m", "--json", "--kubernetes", "3")
	code, got, said := c.start(func(workers map[string]*exec.Cmd) {
		for deadline := time.Now().Add(time.Minute); asked.Load() < 700 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		if err := workers["1"].Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	var gone model.Worker
	for k, w := range got.Load.Workers {
		if k == 1 {
			gone = w
		} else if w.Requests != 400 || w.Gone != "" {
			t.Errorf("worker %d: %+v, want 400 requests", k, w)
		}
	}
	open := 800 + gone.Requests - got.Load.Requests // that it had begun when it was last heard, and not ended: one on each of its two connections
	if gone.Gone == "" || gone.Requests == 0 || gone.Requests >= 400 || open < 0 || open > 2 || asked.Load() < got.Load.Requests {
		t.Errorf("the killed one: %+v; %d requests counted, %d asked", gone, got.Load.Requests, asked.Load())
	}
	if code != exitNotPassed || !strings.Contains(said, "worker w1 (pod:1) is gone") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// What the manifest's objects say of one another is so.
func TestKubernetesManifest(t *testing.T) {
	c := clusterOf(t, "http://shop.example/\u00e9", "-n", "10", "-c", "4", "-H", "Authorization: Bearer s3same", "-H", "X: \u202e'#:{{\\\"", "--yes-i-may",
		"--format", "ab", "--kubernetes", "4", "--image", "registry.example/plimsoll:1")
	lead, worker := c.docs[leadDoc], c.docs[workerDoc]
	var plan model.LoadPlan
	if err := json.Unmarshal([]byte(at(c.docs[secretDoc], "stringData", planFile).(string)), &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Headers[1] != "X: \u202e'#:{{\\\"" || len(plan.From) != 4 || plan.From[3] != "w3=pod:3" || plan.URL != "http://shop.example/\u00e9" {
		t.Errorf("the plan %+v", plan)
	}
	for _, doc := range c.docs[serviceDoc:] {
		raw, err := json.Marshal(doc)
		if err != nil || bytes.Contains(raw, []byte("s3same")) {
			t.Errorf("what is secret is not in the Secret alone: %v", err)
		}
	}
	selector, labels := at(c.docs[serviceDoc], "spec", "selector").(object), at(lead, "spec", "template", "metadata", "labels").(object)
	for name, value := range selector {
		if labels[name] != value || name == "app.kubernetes.io/component" && at(worker, "spec", "template", "metadata", "labels", name) == value {
			t.Errorf("the Service finds %s=%v", name, value)
		}
	}
	port := at(c.docs[serviceDoc], "spec", "ports", 0, "port")
	if at(lead, "spec", "template", "spec", "containers", 0, "ports", 0, "containerPort") != port || fmt.Sprint(at(worker, "spec", "template", "spec", "containers", 0, "args", 2)) != fmt.Sprintf("plimsoll-load:%v", port) {
		t.Errorf("the port %v is not the same everywhere", port)
	}
	if at(worker, "spec", "completionMode") != "Indexed" || at(worker, "spec", "completions") != 4.0 || at(worker, "spec", "parallelism") != 4.0 {
		t.Errorf("the workers' Job: %v", at(worker, "spec"))
	}
	if got := fmt.Sprint(at(lead, "spec", "template", "spec", "containers", 0, "args")); got != "[load-lead /etc/plimsoll-load --format ab --yes-i-may]" {
		t.Errorf("the lead's words: %s", got)
	}
	at(lead, "spec", "template", "spec", "containers", 0).(object)["restartPolicy_"] = "Never"
	if fault := kubernetesFit(t, lead); !strings.Contains(fault, "restartPolicy_") {
		t.Errorf("a field that there is not passes: %q", fault)
	}
}

// What cannot be, or would do something else than it says, is refused.
func TestKubernetesRefuses(t *testing.T) {
	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{"--kubernetes", "0"}, "at least 1"},
		{[]string{"--kubernetes", "3", "-c", "2"}, "each needs one"},
		{[]string{"--kubernetes", "3", "--from", "a=local"}, "leave out one of both"},
		{[]string{"--kubernetes", "3", "-o", "x.csv"}, "where a pod's files end"},
		{[]string{"--kubernetes", "3", "--source", "127.0.0.1"}, "what one machine has"},
		{[]string{"--kubernetes", "3", "--slo", "p99<x"}, "--slo"},
		{[]string{"--kubernetes", "3", "-c", "9", "--body", strings.Repeat("x", 800_000)}, "a Secret has room for"},
		{[]string{"--image", "x"}, "--image is for --kubernetes"},
	} {
		w, out, talk := testWorld(append([]string{"load", "http://127.0.0.1:1/"}, one.args...)...)
		if code := run(t.Context(), w); code != exitUsage || !strings.Contains(talk.String(), one.want) || out.Len() > 0 {
			t.Errorf("%.60q: exit code %d, printed %d bytes: %s", one.args, code, out.Len(), talk)
		}
	}
	for _, one := range []struct{ args, index, want string }{
		{"load-engine pod 127.0.0.1:1 " + t.TempDir(), "", "completionMode: Indexed"},
		{"load-engine pod 127.0.0.1:1 " + t.TempDir(), "1", "the plan in"},
		{"load-lead " + t.TempDir(), "", "the plan in"},
	} {
		w, _, talk := testWorld(strings.Fields(one.args)...)
		w.env = func(string) string { return one.index }
		if code := run(t.Context(), w); code != exitUsage || !strings.Contains(talk.String(), one.want) {
			t.Errorf("%s: exit code %d: %s", one.args, code, talk)
		}
	}
}

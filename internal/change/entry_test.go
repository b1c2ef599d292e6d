package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every kind of change is written so that it is read again; PLIMSOLL_UPDATE=1
// records the entries for the fuzzing below.
func TestEntriesOfEveryKindAreReadAgain(t *testing.T) {
	w := startNginx(t)
	f := startFPM(t)
	j := open(t)
	cpu, choice := oneCPU(t)
	for _, c := range []Change{
		{Kind: Sysctl, Name: "net.core.somaxconn", To: "1000"},
		{Kind: Sysctl, Name: "net.ipv4.conf.lo.rp_filter", To: "1"},
		{Kind: Nginx, Name: "worker_connections", To: "100"},
		{Kind: Nginx, Name: "keepalive", To: "8"},
		{Kind: Nginx, Name: "backlog", To: "300", Listen: "127.0.0.1:8080"},
		{Kind: Backlog, To: "77", Listen: "127.0.0.1:8081"},
		{Kind: Limit, Name: "nofile", To: "500", PID: w.PID},
		{Kind: Limit, Name: "core", To: "unlimited", Process: "nginx"},
		{Kind: Affinity, To: cpu, Process: "nginx"},
		{Kind: Nice, To: "3", PID: w.PID},
		{Kind: Policy, To: "5", PID: w.PID},
		{Kind: RPS, Name: "lo", To: "0"},
		{Kind: TxQueue, Name: "lo", To: "33"},
	} {
		if c.Kind != Affinity || choice {
			must(t, j, w.Host, c)
		}
	}
	must(t, j, f.Host, Change{Kind: PHPFPM, Name: "pm.max_children", To: "7"})
	must(t, j, f.Host, Change{Kind: PHPFPM, Name: "listen.backlog", To: "70"})
	list, skipped, err := ReadEntries(j.dir.path)
	if err != nil || len(skipped) > 0 {
		t.Fatalf("%v, %v", skipped, err)
	}
	for i, e := range j.Entries() {
		a, _ := json.Marshal(e)
		b, _ := json.Marshal(list[i])
		if d := cmp.Diff(string(a), string(b)); d != "" {
			t.Errorf("entry %d (-written +read):\n%s", e.ID, d)
		}
		if os.Getenv("PLIMSOLL_UPDATE") != "" {
			raw := read(t, filepath.Join(j.dir.path, fileName(e.ID)))
			seed := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", raw)
			name := filepath.Join("testdata/fuzz/FuzzEntry", strings.NewReplacer(" ", "-", ":", "-", ".", "-").Replace(string(e.Change.Kind)+" "+e.Change.Name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(strings.TrimSuffix(name, "-"), []byte(seed), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	undoAll(t, j)
}

// FuzzEntry reads any entry and plans how it is taken back, with whatever there is
// now: it may name nothing but what a change of ours sets.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"id":1,"state":"done","change":{"kind":"sysctl","name":"net/../../../etc/shadow","to":"1"},"parts":[{"place":{"sort":"kernel","path":"/proc/sys/net/../../../etc/shadow"},"old":"MQ==","new":"Mg=="}]}`))
	f.Add([]byte(`{"id":1,"state":"pending","change":{"kind":"quota","cgroup":"/x","to":"max"},"parts":[{"place":{"sort":"kernel","path":"/etc/cpu.max","dir":7},"old":"MQ==","new":"Mg=="}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(b)
		if err != nil {
			return
		}
		for _, p := range e.Parts {
			harmless(t, e, p)
		}
		if e.Service != nil {
			if i := slices.IndexFunc(e.Service.Test, func(a string) bool { return a == "-s" || a == "-T" || a == "-q" }); i > 0 && i%2 == 1 {
				t.Errorf("the service is run with %q", e.Service.Test)
			}
		}
		for _, now := range []func(p target) (string, error){
			func(p target) (string, error) { return "", errGone },
			func(p target) (string, error) { return "another", nil },
			func(p target) (string, error) { return "", os.ErrPermission },
			func(p target) (string, error) { return old(e, p), nil },
		} {
			for _, rebooted := range []bool{true, false} {
				for _, force := range []bool{true, false} {
					planned(t, e, e.plan(now, rebooted, force), rebooted)
				}
			}
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseEntry(again); err != nil {
			t.Errorf("written and read again: %v", err)
		}
	})
}

func old(e Entry, p target) string {
	for _, q := range e.Parts {
		if q.Target == p {
			return string(q.Old)
		}
	}
	return ""
}

// harmless holds a place against what the kinds of change may touch, said in
// other words than the code says it.
func harmless(t *testing.T, e Entry, p part) {
	at := p.Target
	switch at.Kind {
	case inKernel:
		below := slices.ContainsFunc([]string{"/proc/sys/", "/proc/irq/", "/sys/class/net/"}, func(d string) bool { return strings.HasPrefix(at.Path, d) })
		group := e.Change.Kind == Quota && strings.HasPrefix(filepath.Base(at.Path), "cpu.") && at.Dir != 0
		bad := slices.ContainsFunc([]string{"core_pattern", "modprobe", "sysrq", "drop_caches"}, func(w string) bool { return strings.Contains(at.Path, w) })
		if !below && !group || bad && strings.HasPrefix(at.Path, "/proc/sys/") || slices.Contains(strings.Split(at.Path, "/"), "..") {
			t.Errorf("it writes to %q", at.Path)
		}
		if strings.Contains(string(p.Old), "\n") {
			t.Errorf("it writes %q", p.Old)
		}
	case inFile:
		if e.Change.Kind != Nginx && e.Change.Kind != PHPFPM || e.Service == nil || !filepath.IsAbs(at.Path) || strings.HasPrefix(filepath.Clean(at.Path), "/proc/") {
			t.Errorf("a change of %s writes the file %q", e.Change.Kind, at.Path)
		}
	case inSocket, inRing:
		if at.Net == nil {
			t.Errorf("%s of no namespace", at.Kind)
		}
	case inLimit, inCPUs, inNice, inPolicy:
		if at.Process == nil || at.Process.PID < 1 {
			t.Errorf("%s of no process", at.Kind)
		}
	default:
		t.Errorf("a target of kind %q", at.Kind)
	}
}

// planned says what is wrong with a plan.
func planned(t *testing.T, e Entry, p plan, rebooted bool) {
	if len(p.live)+len(p.gone)+len(p.errs) > len(e.Parts) {
		t.Errorf("%d parts, and %d to write, %d gone, %d refused", len(e.Parts), len(p.live), len(p.gone), len(p.errs))
	}
	todo := p.todo(e)
	for _, q := range todo.Parts {
		if rebooted && q.Target.Kind != inFile {
			t.Errorf("%s of an older boot would be written", q.Target)
		}
	}
	if rebooted && todo.Service != nil && todo.Service.PID != 0 {
		t.Error("a process of an older boot would be told to reload")
	}
}

// Whatever names a host for a change names one in the journal.
func TestAnEntryOfEachKindOfHost(t *testing.T) {
	for spec, want := range map[string]bool{
		"local": true, "netns:web": true, "pid:4711": true, "unit:nginx.service": true, "container:web": true,
		"": false, "netns:../x": false, "pid:x": false, "recorded": false, "container:": false,
	} {
		s := service{Kind: Nginx, process: process{PID: 7}, Conf: "/etc/nginx/nginx.conf", Test: []string{"-t"}, Net: netns{Spec: spec}}
		if err := s.checkShape(); (err == nil) != want {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

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
	t.Parallel()
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

// honest is an entry as Apply writes it, changed by hand.
func honest(t *testing.T, edit func(e *Entry)) []byte {
	t.Helper()
	e := Entry{ID: 1, State: Done, Change: Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1000"}, Host: "web", Spec: "netns:web", Old: "4096", New: "1000",
		Scope: Namespace, Restart: None, Boot: "82867b8a-43d5-4456-883f-79ab9de30b70",
		Parts: []part{{Target: target{Kind: inKernel, Path: "/proc/sys/net/core/somaxconn", Net: &netns{Inode: 7, Spec: "netns:web"}}, Old: []byte("4096"), New: []byte("1000")}}}
	edit(&e)
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// of makes the honest entry one of another kind: a target and its values.
func (e *Entry) of(c Change, at target, old, new string, between ...string) {
	e.Change, e.Parts = c, []part{{Target: at, Old: []byte(old), New: []byte(new), Between: between}}
}

// What no change of ours would have written is no entry: it would be closed as taken back
// while the value stays, or write what was never asked for.
func TestWhatNoChangeOfOursWouldHaveWritten(t *testing.T) {
	web, p := &netns{Inode: 7, Spec: "netns:web"}, &process{PID: 7, Start: 8}
	queue := target{Kind: inSocket, Listen: "0.0.0.0:80", Net: web}
	sysctl := func(name string) func(*Entry) {
		return func(e *Entry) {
			e.Scope = Machine
			e.of(Change{Kind: Sysctl, Name: name, To: "1"}, target{Kind: inKernel, Path: "/proc/sys/" + strings.ReplaceAll(name, ".", "/")}, "0", "1")
		}
	}
	for name, c := range map[string]struct {
		want string // "" where it is one
		edit func(e *Entry)
	}{
		"as it was written":                      {"", func(*Entry) {}},
		"no parts":                               {"it has 0 parts", func(e *Entry) { e.Parts = nil }},
		"empty parts":                            {"it has 0 parts", func(e *Entry) { e.Parts = []part{} }},
		"no scope":                               {"none that it can have", func(e *Entry) { e.Scope, e.Parts[0].Target.Net = "", nil }},
		"a part without place":                   {"sets nothing of kind", func(e *Entry) { e.Parts[0].Target = target{} }},
		"a part without old":                     {"one is missing", func(e *Entry) { e.Parts[0].Old = nil }},
		"a part without new":                     {"one is missing", func(e *Entry) { e.Parts[0].New = nil }},
		"an old of no bytes":                     {"", func(e *Entry) { e.Parts[0].Old = []byte{} }}, // ip_local_reserved_ports
		"no boot":                                {`boot ""`, func(e *Entry) { e.Boot = "" }},
		"a boot that is none":                    {`boot "yesterday"`, func(e *Entry) { e.Boot = "yesterday" }},
		"no namespace":                           {"one of a network namespace: true; it names one: false", func(e *Entry) { e.Parts[0].Target.Net = nil }},
		"another host's":                         {`host "local", want that of the change`, func(e *Entry) { e.Parts[0].Target.Net = &netns{Inode: 7, Spec: "local"} }},
		"a namespace of what the machine shares": {"one of a network namespace: false; it names one: true", func(e *Entry) { e.Scope = Machine }},
		"an interface's as the machine's":        {"none that it can have", sysctl("net.ipv4.conf.lo.rp_filter")},
		"the queue of an interface": {"", func(e *Entry) {
			e.of(Change{Kind: TxQueue, Name: "e"}, target{Kind: inKernel, Path: "/sys/class/net/e/tx_queue_len", Net: web}, "1000", "4294967295")
		}},
		"the queue of an interface of no namespace": {"it names one: false", func(e *Entry) {
			e.of(Change{Kind: TxQueue, Name: "e"}, target{Kind: inKernel, Path: "/sys/class/net/e/tx_queue_len"}, "1000", "33")
		}},
		"a queue below 0": {"no value of this setting", func(e *Entry) {
			e.of(Change{Kind: TxQueue, Name: "e"}, target{Kind: inKernel, Path: "/sys/class/net/e/tx_queue_len", Net: web}, "-1", "33")
		}},
		"no mask": {"no value of this setting", func(e *Entry) {
			e.of(Change{Kind: RPS, Name: "e"}, target{Kind: inKernel, Path: "/sys/class/net/e/queues/rx-0/rps_cpus", Net: web}, "0-3", "f")
		}},
		"a mask": {"", func(e *Entry) {
			e.of(Change{Kind: RPS, Name: "e"}, target{Kind: inKernel, Path: "/sys/class/net/e/queues/rx-0/rps_cpus", Net: web}, "1,00000000", "f")
		}},
		"no quota": {"no value of this setting", func(e *Entry) {
			e.of(Change{Kind: Quota, Cgroup: "/x"}, target{Kind: inKernel, Path: "/sys/fs/cgroup/x/cpu.max", Dir: 9}, "max", "max 100000")
		}},
		"a quota": {"", func(e *Entry) {
			e.of(Change{Kind: Quota, Cgroup: "/x"}, target{Kind: inKernel, Path: "/sys/fs/cgroup/x/cpu.max", Dir: 9}, "50000 100000", "max 100000")
		}},
		"a nice value of 4096": {"from -20 to 19", func(e *Entry) { e.of(Change{Kind: Nice}, target{Kind: inNice, Process: p}, "4096", "3") }},
		"one of a thread":      {"from -20 to 19", func(e *Entry) { e.of(Change{Kind: Nice}, target{Kind: inNice, Process: p}, "0;12=-21", "3") }},
		"nice values":          {"", func(e *Entry) { e.of(Change{Kind: Nice}, target{Kind: inNice, Process: p}, "-20;12=19", "3") }},
		"real time": {"none of real time", func(e *Entry) {
			e.of(Change{Kind: Policy}, target{Kind: inPolicy, Process: p}, "fifo+reset-on-fork", "other")
		}},
		"soft above hard": {"above the hard one", func(e *Entry) {
			e.of(Change{Kind: Limit, Name: "nofile"}, target{Kind: inLimit, Name: "nofile", Process: p}, "9:8", "9:9")
		}},
		"a listener below 0":            {"from 0 to", func(e *Entry) { e.of(Change{Kind: Backlog, Listen: "0.0.0.0:80"}, queue, "-1", "9") }},
		"what it asked for":             {"", func(e *Entry) { e.of(Change{Kind: Backlog, Listen: "0.0.0.0:80"}, queue, "5", "9", "-1", "5") }},
		"the kernel's poweroff command": {"none that we set", sysctl("kernel.poweroff_cmd")},
		"the machine's name":            {"none that we set", sysctl("kernel.hostname")},
		"programs by magic":             {"none that we set", sysctl("fs.binfmt_misc.register")},
		"who ctrl-alt-del is":           {"none that we set", sysctl("kernel.cad_pid")},
		"swappiness":                    {"", sysctl("vm.swappiness")},
	} {
		_, err := parseEntry(honest(t, c.edit))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A change that its own journal would not know again is not made.
func TestNothingIsMadeThatCouldNotBeTakenBack(t *testing.T) {
	s := sleeper(t)
	j := open(t)
	step, err := Prepare(s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	if err != nil {
		t.Fatal(err)
	}
	step.Scope = Machine
	if e, err := j.Apply(t.Context(), step); !errors.Is(err, ErrNotPossible) || e.ID != 0 || len(j.Entries()) > 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if now, err := step.parts[0].Target.get(); err != nil || now != step.Old {
		t.Errorf("it is %s, %v", now, err)
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

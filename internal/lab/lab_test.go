package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

const trackMax = "net.netfilter.nf_conntrack_max"

// tryCase is a small case with one of everything that has to be undone. Its
// program starts a child of its own, as a server starts workers.
const tryCase = `
id: try
title: t
symptom: s
what: w
vars: {limit: "17", track: "262007", rules: "ct state new accept;"}
steps:
  - sysctl: {host: server, name: net.core.somaxconn, value: "{{.limit}}"}
  - nft:
      host: server
      rules: |
        table inet lab {
          chain input { type filter hook input priority 0; {{.rules}} }
        }
  - file:
      path: bin/spin
      executable: true
      content: |
        #!/bin/sh
        sleep 1000 &
        echo $! > "{{.dir}}/worker"
        wait
  - disk_file: {path: some/data.bin, kilobytes: 4}
  - process: {host: server, name: spin, command: ["{{.dir}}/bin/spin"], nice: 1}
  - machine_sysctl: {name: net.netfilter.nf_conntrack_max, value: "{{.track}}"}
load: {url: http://10.77.0.2/, connections: 3, duration: 1s, no_keepalive: true}
truth: {answer: cause, root: [a.b], subject: {host: server}, mended: [healthy]}
mends:
  - {id: limit, title: t, rules: [a.b], set: {limit: "18"}}
  - {id: broken, title: t, rules: [x.y], set: {rules: "no such thing;"}}
seen: {with: w, faulty: f, mended: m}
`

// testLab is a lab with a prefix of its own; what an aborted test left is taken down first.
func testLab(t *testing.T) *Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	if why := lacks(always); why != "" && os.Getenv("CI") == "" {
		t.Skip(why)
	} else if why != "" {
		t.Fatal(why)
	}
	l := &Lab{Cases: fstest.MapFS{"try/case.yaml": {Data: []byte(tryCase)}}, Prefix: "plimsoll-labtest"}
	down := func() {
		if _, err := l.Down(""); err != nil {
			t.Error(err)
		}
	}
	down()
	t.Cleanup(down)
	if _, err := os.Stat(sysctlPath(trackMax)); err != nil {
		// The first rule with ct loads the module, and its settings stay: not a change of a case.
		if err := l.Up(t.Context(), "try"); err != nil {
			t.Fatal(err)
		}
		down()
	}
	return l
}

// fakeBinary is a plimsoll that notes what it was given and what it finds,
// then prints the file report.json beside it. A file "wait" makes it say that
// it is there and stay.
func fakeBinary(t *testing.T, report string) (binary string, saw func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
d=$(dirname "$0")
echo "$*" > $d/args
cat /proc/sys/net/netfilter/nf_conntrack_max > $d/track
ip netns identify > $d/where
ip netns exec plimsoll-labtest-server cat /proc/sys/net/core/somaxconn > $d/limit
echo talk >&2
if [ -e $d/wait ]; then echo ready; exec sleep 1000; fi
cat $d/report.json
exit 3
`
	binary = filepath.Join(dir, "plimsoll")
	for name, text := range map[string]string{binary: script, filepath.Join(dir, "report.json"): report} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return binary, func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(data))
	}
}

const rightReport = `{"verdict": {"answer": "cause", "root": [{"rule": "a.b", "subject": {"host": "server"}, "answer": "confirmed"}]},
 "load": {"good_rps": 12.5, "rps": 13, "good_share": 0.5, "waited_us": {"p50": 7, "p99": 8}}, "dir": "somewhere"}`

// machine holds the values that must be the same after whatever a test does.
type machine struct {
	Track      string
	Namespaces string
	Left       []string
}

func look(t *testing.T, l *Lab) machine {
	t.Helper()
	// Another test's lab may be at work just now: nobody changes the limit while it is claimed here.
	other := &Lab{Prefix: l.prefix() + "-look"}
	if err := other.claim(t.Context(), trackMax); err != nil {
		t.Fatal(err)
	}
	track, err := os.ReadFile(sysctlPath(trackMax))
	if err := errors.Join(err, other.release(trackMax)); err != nil {
		t.Fatal(err)
	}
	var m machine
	m.Track = strings.TrimSpace(string(track))
	for _, h := range hostNames {
		if _, err := os.Stat(netnsPath(l.netns(h))); err == nil {
			m.Namespaces += h
		}
	}
	for _, dir := range []string{l.stateDir(), l.diskDir(workName)} {
		if _, err := os.Stat(dir); err == nil {
			m.Left = append(m.Left, dir)
		}
	}
	return m
}

func worker(t *testing.T, l *Lab) int {
	t.Helper()
	path := filepath.Join(l.stateDir(), workName, "worker")
	for range 6000 {
		data, err := os.ReadFile(path)
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && bad == nil {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not appear", path)
	return 0
}

// alive says whether a process runs (a zombie does not).
func alive(pid int) bool {
	st, err := host.StatOf(pid)
	return err == nil && st.State != 'Z'
}

func TestRun(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	binary, saw := fakeBinary(t, rightReport)
	var talk bytes.Buffer
	res, err := l.Run(t.Context(), "try", Options{Binary: binary, Args: []string{"--extra"}, Talk: &talk})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Pass || res.GoodRPS != 12.5 || res.Dir != "somewhere" || res.Seconds <= 0 {
		t.Errorf("result is %+v", res)
	}
	want := map[string]string{
		"args":  "run http://10.77.0.2/ -c 3 -d 1s --no-keepalive --host client=local --host server=netns:plimsoll-labtest-server --json --extra",
		"track": "262007",
		"where": "plimsoll-labtest-client",
		"limit": "17",
	}
	for name, value := range want {
		if got := saw(name); got != value {
			t.Errorf("the binary saw %s %q, want %q", name, got, value)
		}
	}
	if talk.String() != "talk\n" {
		t.Errorf("talk is %q", talk.String())
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

// Who prepared the place of a case's files does not have root write elsewhere.
func TestFilesGoIntoNoPreparedDirectory(t *testing.T) {
	l := testLab(t)
	dir := l.diskDir(workName)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("kept"), 0o600), os.MkdirAll(filepath.Join(dir, "some"), 0o755),
		os.Symlink(victim, filepath.Join(dir, "some/data.bin")), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := l.Up(t.Context(), "try"); err == nil || !strings.Contains(err.Error(), "not the lab's own") {
		t.Errorf("%v, want that the directory is refused", err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
		t.Errorf("the file that a link led to holds %q now: %v", text, err)
	}
}

func TestUpStaysAndDownUndoes(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	if err := l.Up(t.Context(), "try"); err != nil {
		t.Fatal(err)
	}
	if file, err := os.Stat(filepath.Join(l.diskDir(workName), "some/data.bin")); err != nil || file.Size() != 4096 {
		t.Error("the file on the disk is not there, or not of 4 KiB:", err)
	}
	first := worker(t, l)
	if !alive(first) {
		t.Error("the worker does not run")
	}
	if err := l.Up(t.Context(), "try", "limit"); err != nil {
		t.Fatal("a second up:", err)
	}
	if alive(first) {
		t.Error("the second up left the first one's worker running")
	}
	if _, err := l.Down("other"); err == nil || !strings.Contains(err.Error(), "case try is up") {
		t.Errorf("down of another case: %v", err)
	}
	// Somebody mends the setting by hand: the machine gets its own value back all the same.
	if err := os.WriteFile(sysctlPath(trackMax), []byte("262009"), 0); err != nil {
		t.Fatal(err)
	}
	if id, err := l.Down("try"); id != "try" || err != nil {
		t.Errorf("Down: %q, %v", id, err)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
	if id, err := l.Down("try"); id != "" || err != nil {
		t.Errorf("Down of nothing: %q, %v", id, err)
	}
}

func TestDownEndsWorkersWhoseMasterWasKilled(t *testing.T) {
	l := testLab(t)
	if err := l.Up(t.Context(), "try"); err != nil {
		t.Fatal(err)
	}
	pid := worker(t, l)
	st, err := host.StatOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(st.Group, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Down(""); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the worker still runs")
	}
}

func TestRunUndoesWhenAStepFails(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	_, err := l.Run(t.Context(), "try", Options{Binary: "/bin/false", Mends: []string{"broken"}})
	if err == nil || !strings.Contains(err.Error(), "nft -f in plimsoll-labtest-server") {
		t.Errorf("error is %v", err)
	}
	_, err = l.Run(t.Context(), "try", Options{Binary: "/bin/true"})
	if err == nil || !strings.Contains(err.Error(), "not the one JSON document") {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

func TestRunUndoesWhenInterrupted(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	binary, saw := fakeBinary(t, rightReport)
	if err := os.WriteFile(filepath.Join(filepath.Dir(binary), "wait"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Its word on stderr says that the load runs: then the user presses ^C.
	_, err := l.Run(ctx, "try", Options{Binary: binary, Talk: writerFunc(func(p []byte) { cancel() })})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if got := saw("track"); got != "262007" {
		t.Errorf("the binary saw %s %s", trackMax, got)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// TestHelperKilled is no test: it is the lab that TestDownAfterKill kills.
func TestHelperKilled(t *testing.T) {
	binary := os.Getenv("PLIMSOLL_LABTEST_BINARY")
	if binary == "" {
		t.Skip("runs inside TestDownAfterKill")
	}
	l := &Lab{Cases: fstest.MapFS{"try/case.yaml": {Data: []byte(tryCase)}}, Prefix: "plimsoll-labtest"}
	_, err := l.Run(context.Background(), "try", Options{Binary: binary, Talk: os.Stdout})
	t.Fatal("the run ended:", err)
}

func TestDownAfterKill(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	binary, _ := fakeBinary(t, rightReport)
	if err := os.WriteFile(filepath.Join(filepath.Dir(binary), "wait"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	helper := exec.Command("/proc/self/exe", "-test.run=^TestHelperKilled$")
	helper.Env = append(os.Environ(), "PLIMSOLL_LABTEST_BINARY="+binary)
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan() && s.Text() != "talk"; {
	}
	pid := worker(t, l)
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	if !alive(pid) || !l.claimed(trackMax) {
		t.Error("a kill -9 left nothing behind: this test shows nothing")
	}
	// What the whole machine feels does not wait for Down: the heir takes it back.
	for {
		got, err := os.ReadFile(sysctlPath(trackMax))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != "262007\n" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if id, err := l.Down(""); id != "try" || err != nil {
		t.Errorf("Down: %q, %v", id, err)
	}
	if alive(pid) {
		t.Error("the worker still runs")
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

func TestOneLabAtATime(t *testing.T) {
	l := testLab(t)
	unlock, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := l.Up(t.Context(), "try"); err == nil || !strings.Contains(err.Error(), "another lab command is at work") {
		t.Errorf("error is %v", err)
	}
}

func TestMachineSettingIsOneLabsAtATime(t *testing.T) {
	l := testLab(t)
	if err := l.Up(t.Context(), "try"); err != nil {
		t.Fatal(err)
	}
	other := &Lab{Prefix: "plimsoll-labtest-other"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.claim(ctx, trackMax); err == nil || !strings.Contains(err.Error(), "another lab (plimsoll-labtest,") {
		t.Errorf("claim of a claimed setting: %v", err)
	}
	if err := other.restoreSysctl(entry{Name: trackMax, Old: "1"}); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(sysctlPath(trackMax)); err != nil || string(got) != "262007\n" {
		t.Errorf("%s is %q, %v: a lab without the claim changed it", trackMax, got, err)
	}
}

func TestUndoLeavesOthersAlone(t *testing.T) {
	l := testLab(t)
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	st, err := host.StatOf(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []entry{
		{Do: "process", Name: "x", PID: other.Process.Pid, Start: st.Start + 1, NetNS: "none"},
		{Do: "dir", Name: "x", Path: l.stateDir() + "/../../etc"},
		{Do: "dir", Name: "x", Path: l.diskDir("x") + "/../../../etc"},
		{Do: "machine_sysctl", Name: "kernel.panic", Old: "1"},
	} {
		if err := l.note(e); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	_, err = l.Down("")
	for _, want := range []string{"kernel.panic", "not below"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	if !alive(other.Process.Pid) {
		t.Error("a process with the pid but another start time was ended")
	}
	if err := os.Remove(l.journalPath()); err != nil {
		t.Error(err)
	}
}

func TestWalk(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	binary, saw := fakeBinary(t, rightReport)
	dir := filepath.Dir(binary)
	var steps []WalkStep
	got, err := l.Walk(t.Context(), "try", Options{Binary: binary}, func(s WalkStep) {
		steps = append(steps, s)
		// The next run finds nothing any more.
		if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(`{"verdict": {"answer": "healthy"}}`), 0o600); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []WalkStep{
		{Answer: model.AnswerCause, Root: "a.b", Subject: map[string]string{"host": "server"}, Mend: "limit",
			RPS: 13, GoodRPS: 12.5, GoodShare: 0.5, P50: 7, P99: 8, Dir: "somewhere"},
		{Answer: model.AnswerHealthy},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, steps); diff != "" {
		t.Errorf("steps handed out differ:\n%s", diff)
	}
	if limit := saw("limit"); limit != "18" {
		t.Errorf("the second run had limit %s; the mend sets 18", limit)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

// What prepares a case is waited for, and its failure is the case's.
func TestEndsIsWaitedFor(t *testing.T) {
	l := testLab(t)
	cases := l.Cases.(fstest.MapFS)
	with := func(command string) {
		step := `  - process: {host: server, name: make, ends: true, command: [/bin/sh, -c, "` + command + `"]}` + "\nload:"
		cases["try/case.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(tryCase, "load:", step, 1))}
	}
	made := filepath.Join(t.TempDir(), "made")
	with("sleep 0.3; echo 1 >" + made)
	if err := l.Up(t.Context(), "try"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Error("the case was up before what prepares it had ended:", err)
	}
	if _, err := l.Down(""); err != nil {
		t.Fatal(err)
	}
	with("echo no disk >&2; exit 3")
	if err := l.Up(t.Context(), "try"); err == nil || !strings.Contains(err.Error(), "no disk") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want what it said and its exit code", err)
	}
}

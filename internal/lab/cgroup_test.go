package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCgroupLimits(t *testing.T) {
	g := &Cgroup{Name: "web", CPUs: "{{.quota}}", Memory: "{{.memory}}", Processes: "{{.tasks}}"}
	got, err := g.limits(values{"quota": "0.25", "memory": "1048576"})
	if err != nil {
		t.Fatal(err)
	}
	want := []cgroupLimit{
		{"cpu", "cpu.cfs_quota_us", "cpu.max", "25000", "25000 100000"},
		{"memory", "memory.limit_in_bytes", "memory.max", "1048576", "1048576"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cgroupLimit{})); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"-1", "0", "half", "0.000001"} {
		if _, err := g.limits(values{"quota": bad}); err == nil || !strings.Contains(err.Error(), "number of CPUs") {
			t.Errorf("cpus %q: %v; want a refusal", bad, err)
		}
	}
	if err := (&Cgroup{Name: "../web"}).check(); err == nil {
		t.Error("a name with a path in it was accepted")
	}
}

func TestCgroupDisk(t *testing.T) {
	if _, err := diskNumber("/proc"); err == nil || !strings.Contains(err.Error(), "on one disk") {
		t.Errorf("the disk of /proc: %v; want a refusal", err)
	}
	disk, err := diskNumber(diskRoot)
	if err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/sys/dev/block/" + disk + "/queue"); err != nil {
		t.Errorf("%s is on disk %s, which is not a whole one: %v", diskRoot, disk, err)
	}
	got, err := (&Cgroup{Name: "web", Writes: "{{.rate}}"}).limits(values{"rate": "1048576"})
	if err != nil {
		t.Fatal(err)
	}
	want := []cgroupLimit{{ioController(), "blkio.throttle.write_bps_device", "io.max", disk + " 1048576", disk + " wbps=1048576"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cgroupLimit{})); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestCgroupIsEnteredAndRemoved(t *testing.T) {
	l := testLab(t)
	if err := os.MkdirAll(l.stateDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	g := &Cgroup{Name: "web", Processes: "100"}
	if err := l.makeCgroup(g, values{}); err != nil {
		t.Skip(err) // no such controller for us, as in a container
	}
	dir := l.cgroupDir("pids", "web")
	argv := l.enterCgroup("web", []string{"sleep", "1000"})
	if text := strings.Join(argv, " "); !strings.Contains(text, filepath.Join(dir, "cgroup.procs")) || !strings.HasSuffix(text, " sleep 1000") {
		t.Errorf("entered by %q", text)
	}
	if diff := cmp.Diff([]string{"sleep"}, l.enterCgroup("other", []string{"sleep"})); diff != "" {
		t.Errorf("a group without limits (-want +got):\n%s", diff)
	}
	if err := l.undo(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
	for _, path := range []string{"/sys/fs/cgroup/pids/system.slice", "/etc", cgroupRoot + "/pids/" + l.prefix() + ".x/../../y"} {
		if err := l.removeCgroup(entry{Path: path}); err == nil {
			t.Errorf("%s: want a refusal, it is not the lab's", path)
		}
	}
}

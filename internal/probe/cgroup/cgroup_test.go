package cgroup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

// The tree linux-6.18 is recorded (version 1, limits at two levels); unified
// has the same facts in the words of the kernel's cgroup-v2.rst.
func TestTreesGiveTheGoldenSeries(t *testing.T) {
	for _, tree := range []string{"linux-6.18", "unified"} {
		t.Run(tree, func(t *testing.T) {
			golden(t, filepath.Join("testdata", tree+".golden"), read(t, filepath.Join("testdata", tree)))
		})
	}
}

// read reads a tree once and returns everything as sorted lines.
func read(t *testing.T, root string) string {
	t.Helper()
	p := All()[0]
	h := host.Recorded("server", root)
	if err := p.CanRun(h); err != nil {
		t.Fatal(err)
	}
	r, err := p.Open(h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec := livetest.NewRecord()
	if err := r.Read(probe.NewOut(rec, "server", time.Unix(1, 0), time.Second)); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rec.Values)) {
		fmt.Fprintf(&b, "%s %v\n", name, rec.Values[name])
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("PLIMSOLL_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); PLIMSOLL_UPDATE=1 accepts it:\n%s", path, diff)
	}
}

func TestNoGroupsMountedIsAbsent(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(root+"/proc/self", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/proc/self/mountinfo", []byte("22 1 254:0 / / rw - ext4 /dev/vda rw\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := host.StatusOf(All()[0].CanRun(host.Recorded("server", root))).State; got != "absent" {
		t.Errorf("want absent, got %s", got)
	}
}

// "ip netns exec" gives its command a /sys without control groups; the shell that
// called it sees them.
func TestMountsOfAParentStandIn(t *testing.T) {
	root := t.TempDir()
	const rest = " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	for name, text := range map[string]string{
		"self/mountinfo": "22 1 254:0 / / rw - ext4 /dev/vda rw\n",
		"self/stat":      "7 (a) (b) S 5 7 7" + rest,
		"5/mountinfo":    "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"5/stat":         "5 (sh) S 0 5 5" + rest,
	} {
		path := filepath.Join(root, "proc", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := mounts(host.Recorded("server", root))
	if err != nil {
		t.Fatal(err)
	}
	if len(m) != 1 || m[0].dir != "/proc/5/root/sys/fs/cgroup" {
		t.Errorf("want the parent's mount, got %+v", m)
	}
}

// A container sees a part of the hierarchy as the whole.
func TestMountOfAPartOfTheHierarchy(t *testing.T) {
	m := parseMounts([]byte("36 35 0:31 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"))
	want := []mount{{dir: "/sys/fs/cgroup/cpu,cpuacct", root: "/docker/abc", controllers: []string{"cpu"}}}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(mount{})); diff != "" {
		t.Error(diff)
	}
}

func TestParsersRefuse(t *testing.T) {
	if _, err := parseMembership([]byte("nonsense\n")); err == nil {
		t.Error("a line without colons was accepted")
	}
	if _, _, err := parseQuota([]byte("20000 0\n")); err == nil {
		t.Error("a period of 0 was accepted")
	}
	if _, err := parseFields([]byte("nr_periods -3\n"), "nr_periods"); err == nil {
		t.Error("a negative counter was accepted")
	}
	if _, err := parseDevices([]byte("254:0 Read 1 2\n"), map[string]string{"Read": "rbps"}); err == nil {
		t.Error("four columns were accepted")
	}
}

// FuzzParsers gives any bytes to every parser: values or an error, and no panic.
func FuzzParsers(f *testing.F) {
	for _, tree := range []string{"testdata/linux-6.18", "testdata/unified"} {
		_ = filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if b, err := os.ReadFile(path); err == nil {
					f.Add(b)
				}
			}
			return err
		})
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		parseMounts(b)
		_, _ = parseMembership(b)
		_, _, _ = parseNumber(b)
		_, _, _ = parseQuota(b)
		_, _ = parseFields(b, "nr_periods", "oom_kill", "max")
		_, _ = parseNested(b, nestedLimits)
		_, _ = parseDevices(b, map[string]string{"": "rbps", "Read": "rbps"})
	})
}

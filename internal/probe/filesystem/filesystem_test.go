package filesystem

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
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

// Recorded on Linux 6.18: a virtual machine with one disk.
const recorded = `22 27 0:21 / /proc rw,relatime - proc proc rw
24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw,size=12334556k,nr_inodes=3083639,mode=755
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resv_strict,resuid=65534,resgid=65534
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
50 27 254:0 /srv /mnt/my\040files rw,relatime - ext4 /dev/vda rw
51 27 0:40 / /mnt/far rw - nfs4 server:/x rw
52 27 7:1 / /mnt/image ro,relatime - ext4 /dev/loop1 ro
`

func TestParseMounts(t *testing.T) {
	want := []mount{
		{device: "254:0", source: "/dev/vda", point: "/", kind: "ext4"},
		{device: "0:28", source: "tmpfs", point: "/sys/fs/cgroup", kind: "tmpfs"},
		{device: "7:1", source: "/dev/loop1", point: "/mnt/image", kind: "ext4", readOnly: true},
	}
	if diff := cmp.Diff(want, parseMounts([]byte(recorded)), cmp.AllowUnexported(mount{})); diff != "" {
		t.Error(diff)
	}
}

func TestLiveFileSystems(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r, err := All()[0].Open(h)
	if err != nil {
		t.Fatal(err)
	}
	rec := livetest.NewRecord()
	if err := r.Read(probe.NewOut(rec, "here", time.Unix(1, 0), time.Second)); err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil {
		t.Fatal(err)
	}
	for name, v := range rec.Values {
		if strings.HasPrefix(name, size.Name) && strings.HasSuffix(name, ",/}") {
			if want := float64(st.Blocks) * float64(st.Bsize); v != want {
				t.Errorf("%s: want %v, got %v", name, want, v)
			}
			return
		}
	}
	t.Errorf("want the size of /, got %v", slices.Sorted(maps.Keys(rec.Values)))
}

// A service with a mount namespace of its own is asked through its root directory.
func TestEveryMountNamespaceOnce(t *testing.T) {
	root := t.TempDir()
	for _, pid := range []string{"self", "5", "6", "7"} {
		dir := filepath.Join(root, "proc", pid, "ns")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"5": "self", "7": "6"} { // 5 is in ours, 6 and 7 share one
		if err := os.Remove(filepath.Join(root, "proc", from, "ns")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../"+to+"/ns", filepath.Join(root, "proc", from, "ns")); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range []string{"self", "6"} {
		if err := os.WriteFile(filepath.Join(root, "proc", pid, "ns/mnt"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{host: host.Recorded("server", root), known: map[int]space{}}
	r.list = func() ([]host.Proc, error) { return []host.Proc{{PID: 5}, {PID: 6}, {PID: 7}}, nil }
	if err := r.look(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"self", "6"}, r.pids); diff != "" {
		t.Error(diff)
	}
}

// counted is a record that knows how often each series was told of.
type counted struct {
	*livetest.Record
	size map[string][]float64
}

func (c counted) Sample(host string, t int64, s *model.Signal, v float64, labels ...string) {
	if s == size {
		c.size[labels[2]] = append(c.size[labels[2]], v)
	}
	c.Record.Sample(host, t, s, v, labels...)
}

// Containers have file systems of one name at one place: one series, of the fullest.
func TestFileSystemsOfOneName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	root := t.TempDir()
	for pid, full := range map[string]int{"self": 1 << 10, "6": 900 << 10, "7": 10 << 10} {
		data := filepath.Join(root, "proc", pid, "root/data")
		if pid == "self" {
			data = filepath.Join(root, "data")
		}
		for _, dir := range []string{data, filepath.Join(root, "proc", pid)} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		kilobytes := map[string]string{"self": "1024", "6": "2048", "7": "4096"}[pid]
		if err := unix.Mount("images", data, "tmpfs", 0, "size="+kilobytes+"k"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(data, 0) })
		if err := os.WriteFile(filepath.Join(data, "file"), make([]byte, full), 0o644); err != nil {
			t.Fatal(err)
		}
		line := "36 35 0:" + kilobytes + " / /data rw,relatime - tmpfs images rw\n"
		if err := os.WriteFile(filepath.Join(root, "proc", pid, "mountinfo"), []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{host: host.Recorded("server", root), pids: []string{"self", "6", "7"}, looked: time.Unix(1, 0)}
	rec := counted{livetest.NewRecord(), map[string][]float64{}}
	if err := r.Read(probe.NewOut(rec, "server", time.Unix(1, 0), time.Second)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]float64{"/data": {2048 << 10}}, rec.size); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add([]byte(recorded))
	f.Fuzz(func(_ *testing.T, b []byte) { parseMounts(b) })
}

// A deleted file that somebody has open keeps its blocks, and nobody finds it by its name.
func TestDeletedFilesThatAreOpen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("uploads", dir, "tmpfs", 0, "size=1024k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	f, err := os.Create(filepath.Join(dir, "journal.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 1000<<10)); err != nil {
		t.Fatal(err)
	}
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	full := fileSystem{mount: mount{point: "/uploads", device: fmt.Sprintf("%d:%d", st.Dev_major, st.Dev_minor)}}
	full.Blocks, full.Bavail = 256, 6
	roomy := full
	roomy.Bavail = 100
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	series := deletedOpen.Name + "{/uploads," + strings.TrimSpace(string(comm)) + ",journal.log,other}"
	other := full
	other.point, other.device = "/other", "0:0"
	r := &reader{host: h, told: probe.Told[deleted]{Most: maxDeleted}}
	for _, step := range []struct {
		what string
		at   fileSystem
		does func() error
		want map[string]float64
	}{
		{"there is room", roomy, nil, map[string]float64{}},
		{"full, and the file has its name", full, nil, map[string]float64{}},
		{"it was deleted", full, func() error { return os.Remove(f.Name()) }, map[string]float64{series: 1000 << 10}},
		{"there is room again, so that nobody searches", roomy, nil, map[string]float64{}},
		{"another is full", other, nil, map[string]float64{}},
		{"full again, and it is still open", full, nil, map[string]float64{series: 1000 << 10}},
		{"full, and the file was let go", full, f.Close, map[string]float64{series: 0}},
	} {
		if step.does != nil {
			if err := step.does(); err != nil {
				t.Fatal(err)
			}
		}
		rec := livetest.NewRecord()
		r.putDeleted(probe.NewOut(rec, "here", r.searched.Add(searchEvery), time.Second), fileSystems{step.at})
		if diff := cmp.Diff(step.want, rec.Values); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
	cutIsNoZero(t, r, full, series)
}

// cutIsNoZero lets this process have more descriptors than are looked at, a deleted file behind them.
func cutIsNoZero(t *testing.T, r *reader, full fileSystem, series string) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < maxOfProcess+100 {
		t.Skipf("want %d descriptors, have %d (%v)", maxOfProcess+100, limit.Cur, err)
	}
	for range maxOfProcess {
		fd, err := unix.Dup(0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	rec := livetest.NewRecord()
	r.putDeleted(probe.NewOut(rec, "here", r.searched.Add(searchEvery), time.Second), fileSystems{full})
	if v, told := rec.Values[series]; told {
		t.Errorf("%v is told of a process whose descriptors were not all looked at", v)
	}
}

func TestParseFdinfo(t *testing.T) {
	for text, want := range map[string]string{
		"pos:\t0\nflags:\t0102001\nmnt_id:\t27\nino:\t5\n": "27 append",
		"pos:\t0\nflags:\t0100002\nmnt_id:\t5000000000\n":  "5000000000 other",
		"pos:\t0\nflags:\t0102001\nmnt_id:\t2":             "",
		"pos:\t0\nflags:\t9\nmnt_id:\t27\n":                "",
		"":                                                 "",
	} {
		mount, mode, err := parseFdinfo([]byte(text))
		if got := fmt.Sprint(mount, " ", mode); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %s, %v; want %q", text, got, err, want)
		}
	}
	if diff := cmp.Diff(map[uint64]string{22: "0:21", 24: "0:6", 27: "254:0", 31: "0:28", 50: "254:0", 51: "0:40", 52: "7:1"}, mountDevices([]byte(recorded))); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseFdinfo(f *testing.F) {
	f.Add([]byte("pos:\t0\nflags:\t0102001\nmnt_id:\t27\n"))
	f.Add([]byte(recorded))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _, _ = parseFdinfo(b)
		mountDevices(b)
	})
}

package filelocks

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

const someLocks = `1: FLOCK  ADVISORY  WRITE 23553 fe:00:862525 0 EOF
1: -> FLOCK  ADVISORY  WRITE 31001 fe:00:862525 0 EOF
1:  -> FLOCK  ADVISORY  WRITE 3358 fe:00:862525 0 EOF
2: OFDLCK ADVISORY  READ -1 fe:00:871974 0 EOF
2: -> POSIX  ADVISORY  WRITE 77 fe:00:871974 128 191
3: LEASE  ACTIVE    READ 5 fe:00:9 0 EOF
`

func TestParse(t *testing.T) {
	got, err := parse([]byte(someLocks))
	want := []wait{{31001, 23553, "fe:00:862525"}, {3358, 23553, "fe:00:862525"}, {77, -1, "fe:00:871974"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"1: FLOCK\n", "1: -> FLOCK ADVISORY WRITE x fe:00:1 0 EOF\n"} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(someLocks))
	f.Fuzz(func(t *testing.T, b []byte) {
		waits, err := parse(b)
		if len(waits) > maxWaiters || err == nil && slices.ContainsFunc(waits, func(w wait) bool { return w.waiter <= 0 }) {
			t.Errorf("%d waits, %v", len(waits), err)
		}
	})
}

// Two file systems have inodes of the same number: it is the device that tells their files apart.
func TestIsFile(t *testing.T) {
	mountinfo := func() ([]byte, error) {
		return []byte("24 1 254:0 / / rw - ext4 /dev/vda rw\n31 24 0:49 / /run rw - tmpfs none rw\n"), nil
	}
	for info, want := range map[string]bool{
		"pos:\t0\nmnt_id:\t24\nino:\t7\n":                                   true,
		"pos:\t0\nmnt_id:\t31\nino:\t7\n":                                   false,
		"pos:\t0\nmnt_id:\t24\nino:\t8\n":                                   false,
		"pos:\t0\nmnt_id:\t99\nino:\t7\n":                                   false,
		"mnt_id:\t24\nlock:\t1: FLOCK  ADVISORY  WRITE 359 fe:00:7 0 EOF\n": true,
		"mnt_id:\t24\nlock:\t1: FLOCK  ADVISORY  WRITE 359 00:31:7 0 EOF\n": false,
		"": false,
	} {
		if got := isFile([]byte(info), "fe:00:7", mountinfo); got != want {
			t.Errorf("%q: %v, want %v", info, got, want)
		}
	}
}

// A look that the kernel keeps keeps nobody who closes.
func TestCloseDoesNotWait(t *testing.T) {
	r := &reader{stop: make(chan struct{}), done: make(chan struct{})}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Whoever waits, under however many names, there are no more sums than the bound and one.
func TestBound(t *testing.T) {
	r := &reader{sums: map[key]time.Duration{}}
	for i := range 3 * maxKeys {
		r.add(map[key]int{{group: "job" + strconv.Itoa(i), file: "/run/x.lock", holder: "rsync", doing: "disk"}: 1}, time.Second)
	}
	if rest := r.sums[key{"other", "other", "-", "-"}]; len(r.sums) != maxKeys+1 || rest != 2*maxKeys*time.Second {
		t.Errorf("%d sums, of others %v, want %d, %v", len(r.sums), rest, maxKeys+1, 2*maxKeys*time.Second)
	}
}

// Names are good for a moment, but not for one who did not wait when they were listed.
func TestNames(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	us, other := os.Getpid(), 1<<22
	old := map[int]string{us: "as it was"}
	r := &reader{host: h, comm: old, waiters: map[int]bool{us: true}}
	for _, c := range []struct {
		who  []wait
		anew bool
	}{{[]wait{{waiter: us}}, false}, {[]wait{{waiter: us}, {waiter: other}}, true}, {[]wait{{waiter: other}}, false}} {
		r.comm, r.listed = old, time.Now().Add(time.Hour)
		if comm, err := r.names(c.who); err != nil || (comm[us] != "as it was") != c.anew {
			t.Errorf("%v: we are %q, %v; anew: %v", c.who, comm[us], err, c.anew)
		}
		if !r.waiters[c.who[len(c.who)-1].waiter] {
			t.Errorf("%v: %v is not known to have waited", c.who, r.waiters)
		}
	}
}

// flock(1) waits for a lock that we hold in this process, which is reading a pipe meanwhile or not.
func TestLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turn.lock")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	waiter, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exec flock " + path + " true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = waiter.Wait() }()
	defer file.Close()
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r := &reader{host: h, sums: map[key]time.Duration{}}
	ours, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	holder := string(ours[:len(ours)-1])
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r.look(100 * time.Millisecond)
		if r.err != nil {
			t.Fatal(r.err)
		}
		for k, d := range r.sums {
			if k.group == "flock" && k.holder == holder && k.file == layout.WithoutIdentifiers(path) && k.doing != "" && d >= 100*time.Millisecond {
				rec := livetest.NewRecord()
				if err := r.Read(probe.NewOut(rec, "here", time.Now(), time.Second)); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("flock (process %d) was not seen waiting for %s of %s: %v", waiter.Pid, path, holder, r.sums)
		}
	}
}

package wait

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

// Who writes into a pipe that nobody reads is told with who has its other end; who goes on, or waits for something to
// read, is not.
func TestStuckWriters(t *testing.T) {
	tr := beginOn(t, newer(t))
	if tr.unfound != nil {
		t.Skip(tr.unfound)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	program := filepath.Join(t.TempDir(), "warn.sh")
	if err := os.WriteFile(program, []byte("while :; do echo a warning; done >&3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", program)
	c.ExtraFiles = []*os.File{w}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	var found writer
	tracetest.Eventually(t, "it stands in its write", func() bool {
		if _, err := tr.Snapshot(); err != nil {
			t.Fatal(err)
		}
		now, err := tr.stuck()
		if err != nil {
			t.Fatal(err)
		}
		for w, n := range now {
			if w.script == "warn.sh" && n == 1 {
				found = w
			}
		}
		return found.script != ""
	})
	if found.group != "sh" || found.reader != script(os.Getpid()) || found.does == unseen {
		t.Errorf("%+v; the pipe's other end is %s's", found, script(os.Getpid()))
	}
	if _, err := r.Read(make([]byte, 1<<16)); err != nil {
		t.Fatal(err)
	}
	tracetest.Eventually(t, "it went on", func() bool {
		if _, err := tr.Snapshot(); err != nil {
			t.Fatal(err)
		}
		now, err := tr.stuck()
		if err != nil {
			t.Fatal(err)
		}
		return now[found] == 0
	})
}

func TestForReading(t *testing.T) {
	for info, want := range map[string]bool{
		"pos:\t0\nflags:\t02000000\nmnt_id:\t15\n": true, "flags:\t0100000\n": true, "flags:\t01\n": false, "flags:\t02\n": false, "flags:\tx\n": false, "": false,
	} {
		if got := forReading([]byte(info)); got != want {
			t.Errorf("%q: %v, want %v", info, got, want)
		}
	}
}

// What an interpreter is given as its program, and what is given to that, is in no label.
func TestScriptIn(t *testing.T) {
	for args, want := range map[string]string{
		"python3\x00/srv/job.py\x00--once":   "job.py",
		"python3\x00-u\x00job.py":            "job.py",
		"python3\x00-m\x00tool\x00secret.py": "",
		"python3\x00-c\x00import x.py":       "",
		"python3\x00-uc\x00x.py":             "",
		"sh\x00-e\x00/x/warn.sh":             "",
		"python3":                            "",
		"":                                   "",
		"job.py":                             "",
		"python3\x00rm hunter2 && x.py":      "",
		"python3\x00hunter2;x.py":            "",
		"python3\x00" + strings.Repeat("a", 70) + ".py": strings.Repeat("a", 64),
	} {
		if got := scriptIn("python3.12", args); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	for args, want := range map[string]string{
		"sh\x00-c\x00tool hunter2 && sh x.sh": "", "sh\x00-ec\x00x.sh": "", "sh\x00-e\x00/x/warn.sh": "warn.sh", "sh\x00tool hunter2 && x.sh": "",
	} {
		if got := scriptIn("sh", args); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	for name, args := range map[string]string{"tool": "tool\x00x.py", "node": "node\x00--eval\x00x.js"} {
		if got := scriptIn(name, args); got != "" {
			t.Errorf("%q: %q", args, got)
		}
	}
}

// Beyond the bound all are one kind, and none is told as gone that was not told.
func TestManyWriters(t *testing.T) {
	w := writers{seen: map[writer]bool{}}
	for i := range 3 * maxWriters {
		sums := w.bounded(map[writer]int{{script: fmt.Sprint(i)}: 2})
		if n := len(sums); n > maxWriters+1 {
			t.Fatalf("%d kinds", n)
		}
		if i >= maxWriters && sums[others] != 2 {
			t.Fatalf("%d others", sums[others])
		}
	}
	if sums := w.bounded(nil); len(sums) != maxWriters+1 || sums[others] != 0 {
		t.Errorf("%d kinds, %d others when all went on", len(sums), sums[others])
	}
}

// Who should read is neither who writes nor who started him, where there is anybody else; of several it is nobody.
func TestChoose(t *testing.T) {
	c := exec.Command("/bin/sleep", "100")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	child, own, parent, nobody := c.Process.Pid, os.Getpid(), os.Getppid(), 1<<30
	for _, tc := range []struct {
		writer int
		ends   []int
		want   int
	}{
		{child, nil, 0},
		{child, []int{child}, child},
		{child, []int{own}, own},
		{child, []int{child, own}, own},
		{child, []int{own, parent}, 0},
		{child, []int{own, nobody, child}, nobody},
		{child, []int{nobody, nobody + 1, own}, 0},
		{own, []int{own, parent, child}, child},
	} {
		var list []end
		for _, pid := range tc.ends {
			list = append(list, end{pid, 3})
		}
		got := choose(list, "pipe:[1]", map[uint32]string{uint32(tc.writer): "pipe:[1]", uint32(nobody): "pipe:[2]"})
		if got.pid != tc.want {
			t.Errorf("%d writes, %v have the other end: %d, want %d", tc.writer, tc.ends, got.pid, tc.want)
		}
	}
}

// A pipe whose reader is not found is not searched for again and again.
func TestFindIsPaced(t *testing.T) {
	var w writers
	now := time.Now()
	pipes := map[uint32]string{1: "pipe:[1]"}
	w.find(pipes, now)
	s := w.readers["pipe:[1]"]
	if s == nil || s.pid != 0 || s.again.Sub(now) != scanEvery || s.wait != 2*scanEvery || w.again.Sub(now) < scanEvery {
		t.Fatalf("%+v, %+v", s, w)
	}
	w.find(pipes, now.Add(scanEvery-1))
	if s.wait != 2*scanEvery {
		t.Error("searched again too early")
	}
	w.again = now
	w.find(pipes, now.Add(scanEvery))
	if s.wait != 4*scanEvery || s.again.Sub(now) != 3*scanEvery {
		t.Errorf("%+v after the second search", s)
	}
	if w.find(nil, now.Add(time.Hour)); len(w.readers) > 0 {
		t.Error("a pipe that nobody writes to is kept")
	}
}

// Who writes to a pipe with a name stands in a write; who has ended, or does something else, does not.
func TestPipeOf(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for name, to := range map[string]*os.File{"": f, "pipe:": w} {
		c := exec.Command("/bin/sh", "-c", "while :; do echo a warning; done")
		c.Stdout = to
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		tracetest.Eventually(t, "it stands in its write", func() bool {
			pipe, stands, err := pipeOf(c.Process.Pid)
			if errors.Is(err, fs.ErrPermission) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			return stands && strings.HasPrefix(pipe, name) && (name != "" || pipe == "")
		})
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, tid := range []int{unix.Gettid(), 1 << 30} {
		if pipe, stands, err := pipeOf(tid); pipe != "" || stands || err != nil {
			t.Errorf("thread %d: %q, %v, %v", tid, pipe, stands, err)
		}
	}
}

package wait

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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

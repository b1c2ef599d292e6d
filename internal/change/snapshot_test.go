package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/host"
	"plimsoll/internal/host/unixdiag"
	"plimsoll/internal/probe/livetest"
)

// snapshot is all that a change could have touched: the namespace's settings,
// the files below a directory with their bytes, mode, owner and time, the
// limits, CPUs, nice values and policies of processes, the backlogs of listeners.
type snapshot map[string]string

func snap(t *testing.T, h *host.Host, dir string, pids ...int) snapshot {
	t.Helper()
	s := snapshot{}
	if err := h.Do(func() error { return s.settings("/proc/sys/net") }); err != nil {
		t.Fatal(err)
	}
	s.files(t, dir)
	for _, pid := range pids {
		p, err := processOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range map[string]setting{"CPUs": affinity(p), "nice": nice(p), "policy": policy(p), "nofile": limit{p, "nofile"}, "nproc": limit{p, "nproc"}} {
			v, err := x.get()
			if err != nil {
				t.Fatal(err)
			}
			s[fmt.Sprintf("%d %s", pid, name)] = v
		}
	}
	n, err := namespaceOf(h)
	if err != nil {
		t.Fatal(err)
	}
	var addrs map[string][]string
	var locals []unixdiag.Listener
	if err := h.Do(func() (err error) {
		locals, err = unixdiag.Listeners()
		return errors.Join(err, func() (err error) { addrs, err = listeners(); return err }())
	}); err != nil {
		t.Fatal(err)
	}
	for _, l := range locals {
		addrs[l.Listen] = nil
	}
	for a := range addrs {
		v, err := listener{n, a}.get()
		if err != nil {
			t.Fatal(err)
		}
		s["backlog "+a] = v
	}
	return s
}

// settings leaves out the number of tracked connections, which changes by itself,
// and their bound, which is the whole machine's and which other tests set.
func (s snapshot) settings(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "nf_conntrack_count") || strings.HasSuffix(path, "nf_conntrack_max") {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil {
			s[path] = string(b)
		}
		return nil
	})
}

// files leaves out what services write: logs, sockets and pid files.
func (s snapshot) files(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".log") || strings.HasSuffix(path, ".pid") || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		s[path] = fmt.Sprintf("%v %d %d %v\n%s", info.Mode(), st.Uid, st.Gid, info.ModTime(), b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// must make a change, which has to work. What h knows of its processes may be a
// second old.
func must(t *testing.T, j *Journal, h *host.Host, c Change) Entry {
	t.Helper()
	now, err := host.Open(h.Name, h.Spec)
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	step, err := Prepare(now, c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := j.Apply(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func open(t *testing.T) *Journal {
	t.Helper()
	dir := t.TempDir()
	j, err := Open(filepath.Join(dir, "changes"), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func undoAll(t *testing.T, j *Journal) []Result {
	t.Helper()
	results, err := j.UndoAll(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sleeper is a namespace with a process that does nothing.
func sleeper(t *testing.T) *livetest.Service { return livetest.Start(t, nil, "sleep", "600") }

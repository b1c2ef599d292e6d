package sockets

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
)

func TestStrangers(t *testing.T) {
	procs := []host.Proc{
		{PID: 1, Comm: "init"},
		{PID: 10, PPID: 1, Comm: "python3"},  // gunicorn's first process, which does not listen itself
		{PID: 11, PPID: 10, Comm: "python3"}, // it listens
		{PID: 12, PPID: 10, Comm: "python3"},
		{PID: 13, PPID: 12, Comm: "sh"},
		{PID: 14, PPID: 13, Comm: "python3"}, // a helper that a worker started
		{PID: 15, PPID: 1, Comm: "python3"},  // a worker whose parent is gone
		{PID: 16, PPID: 1, Comm: "python3"},  // an orphan of somebody else's
		{PID: 20, PPID: 1, Comm: "cron"},
		{PID: 21, PPID: 20, Comm: "python3"}, // a job
		{PID: 22, PPID: 21, Comm: "python3"}, // what it started
		{PID: 30, PPID: 999, Comm: "node"},   // its parent is on another host
		{PID: 31, PPID: 20, Comm: "node"},
		{PID: 40, PPID: 41, Comm: "java"}, // numbers that were used again
		{PID: 41, PPID: 40, Comm: "java"},
	}
	sessions := map[int]int{10: 10, 11: 10, 15: 10, 16: 16, 21: 20, 22: 20, 30: 30, 31: 20}
	got := strangers(procs, map[string][]int{"python3": {11}, "node": {30}, "java": {40}, "ruby": {50}}, func(pid int) int { return sessions[pid] })
	want := map[string][]int{"python3": {16, 21, 22}, "node": {31}, "java": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("strangers (-want +got):\n%s", diff)
	}
	if got := strangers(procs, map[string][]int{"python3": {11, 99}}, func(int) int { return 0 }); len(got) > 0 {
		t.Errorf("with a holder that is gone: %v, want nobody", got)
	}
}

// What those aside are about is counted by thread; where there are too many, a part stands for all.
func TestAsideThreads(t *testing.T) {
	root := t.TempDir()
	add := func(pid, threads int) {
		for i := range threads {
			dir := filepath.Join(root, "proc", fmt.Sprint(pid), "task", fmt.Sprint(pid+i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "syscall"), []byte("running\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := aside{host: host.Recorded("srv", root), sums: map[asideKey]float64{{"unknown", "lock"}: 3, {"python3", "lock"}: 2}}
	add(100, 3)
	add(200, 1)
	a.look(map[string][]int{"python3": {100, 200, 300}})                            // 300 is gone
	want := map[asideKey]float64{{"python3", "lock"}: 0, {"python3", "running"}: 4} // of whose family nothing is known there is no value
	if diff := cmp.Diff(want, a.sums); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	add(1000, maxAside)
	var many []int
	for range 4 {
		many = append(many, 1000)
	}
	a.look(map[string][]int{"java": many})
	if got := a.sums[asideKey{"java", "running"}]; got != 4*maxAside {
		t.Errorf("%v threads of 4 processes of %d, one looked at; want %d", got, maxAside, 4*maxAside)
	}
	if keys := slices.Collect(func(yield func(asideKey) bool) {
		for k, n := range a.sums {
			if n > 0 && !yield(k) {
				return
			}
		}
	}); len(keys) != 1 {
		t.Errorf("still counted: %v", keys)
	}
}

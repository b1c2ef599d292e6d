package procs

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A machine on which a service and a program of the idle class work: only where
// the scheduler weighs them against each other is the program's time left over.
func TestIdleClassIsLeftOver(t *testing.T) {
	const v1, v2 = "2:cpu,cpuacct:", "0::"
	for name, c := range map[string]struct {
		policy                int
		service, batch        string // control groups
		serviceAuto, autoFile string // autogroups
		autogroups            string
		want                  float64 // seconds; 0: no series
	}{
		"both in the root":                {5, v2 + "/", v2 + "/", "/autogroup-1 nice 0", "/autogroup-2 nice 0", "0", 0.5},
		"a normal program":                {0, v2 + "/", v2 + "/", "", "", "0", 0},
		"one control group, version 1":    {5, v1 + "/a", v1 + "/a", "", "", "0", 0.5},
		"two control groups, version 1":   {5, v1 + "/a", v1 + "/b", "", "", "0", 0},
		"below a group with a controller": {5, v2 + "/with/x", v2 + "/with/y", "", "", "1", 0.5},
		"another group with a controller": {5, v2 + "/with/x", v2 + "/y", "", "", "0", 0},
		"outside of what we see":          {5, v2 + "/../x", v2 + "/../x", "", "", "0", 0},
		"nothing is known":                {5, "", "", "", "", "0", 0},
		"one session":                     {5, v2 + "/", v2 + "/", "/autogroup-1 nice 0", "/autogroup-1 nice 5", "1", 0.5},
		"two sessions":                    {5, v2 + "/", v2 + "/", "/autogroup-1 nice 0", "/autogroup-2 nice 0", "1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			service := fakeProc{pid: 5, comm: "nginx", start: 100, cgroup: c.service, autogroup: c.serviceAuto}
			batch := fakeProc{pid: 6, comm: "batch", start: 100, policy: c.policy, cgroup: c.batch, autogroup: c.autoFile}
			us := fakeProc{pid: 7, comm: "plimsoll", start: 100}
			dir := fakeTree(t, service, batch, us)
			for file, text := range map[string]string{"sys/fs/cgroup/with/cpu.weight": "100\n", "proc/sys/kernel/sched_autogroup_enabled": c.autogroups + "\n"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			r, clock := openRecorded(t, dir)
			read(t, r, 1000)
			service.user, batch.user, us.user = 20, 50, 90
			for _, p := range []fakeProc{service, batch, us} {
				p.write(t, dir)
			}
			*clock = clock.Add(time.Second)
			got := read(t, r, 1001).values
			v, ok := got["plimsoll_process_idle_class_cpu_seconds_total{batch}"]
			if v != c.want || ok != (c.want > 0) {
				t.Errorf("%v s, %v; want %v", v, ok, c.want)
			}
			if cpu := got["namedprocess_namegroup_cpu_seconds_total{batch,user}"]; cpu != 0.5 {
				t.Errorf("CPU time %v s, want 0.5", cpu)
			}
			if _, ok := got["plimsoll_process_idle_class_cpu_seconds_total{nginx}"]; ok {
				t.Error("the service is in the normal class, and has a series")
			}
		})
	}
}

// Each thread has a policy of its own, and the time of each counts as its own.
func TestIdleClassOfThreads(t *testing.T) {
	service := fakeProc{pid: 5, comm: "nginx", start: 100, cgroup: "0::/"}
	batch := fakeProc{pid: 6, comm: "batch", start: 100, cgroup: "0::/"}
	dir := fakeTree(t, service, batch)
	r, clock := openRecorded(t, dir)
	for second, ticks := range []int{0, 50} {
		service.user = ticks
		service.write(t, dir)
		addThread(t, dir, batch, 7, ticks)
		idle := batch // the second thread alone
		idle.policy, idle.user = policyIdle, ticks
		other := idle
		other.policy = 0
		for name, p := range map[string]fakeProc{"6/stat": other, "6/task/7/stat": idle} {
			if err := os.WriteFile(filepath.Join(dir, "proc", name), []byte(p.stat(2)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := read(t, r, int64(1000+second)).values["plimsoll_process_idle_class_cpu_seconds_total{batch}"]
		if want := float64(ticks) / 100; got != want {
			t.Errorf("%v s, want %v", got, want)
		}
		*clock = clock.Add(time.Second)
	}
}

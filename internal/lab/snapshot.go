package lab

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// snapshot is the state of a case's hosts, by the name of each thing: settings
// of the kernel, files, limits of processes and control groups, queues of
// listeners and devices.
type snapshot map[string]string

// restless are settings that move by themselves.
var restless = []string{
	"fs/dentry-state", "fs/inode-nr", "fs/inode-state", "fs/file-nr", "fs/aio-nr", "kernel/ns_last_pid", "kernel/random/", "kernel/pty/nr",
	"net/netfilter/nf_conntrack_count", "kernel/perf_event_max_sample_rate", "kernel/tainted", "fs/quota/", "net/ipv4/tcp_fastopen_key",
}

// snapshot reads the state of the case that is up.
func (l *Lab) snapshot(ctx context.Context, c *Case, dir string) (snapshot, error) {
	s := snapshot{}
	if err := s.settings("machine", "/proc/sys"); err != nil {
		return nil, err
	}
	for _, host := range hostNames {
		err := inNetNS(l.netns(host), func() error {
			if err := s.settings(host, "/proc/sys/net"); err != nil {
				return err
			}
			return s.listeners(ctx, host)
		})
		if err == nil {
			err = s.devices(ctx, l.netns(host), host)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.cgroups(l); err != nil {
		return nil, err
	}
	if err := s.files(c, dir); err != nil {
		return nil, err
	}
	return s, s.processes(l)
}

func (s snapshot) settings(host, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "/proc/sys/")
		if err != nil || slices.ContainsFunc(restless, func(r string) bool { return strings.HasPrefix(name, r) }) {
			return nil // what cannot be listed cannot be changed either
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if text, err := os.ReadFile(path); err == nil { // some can only be written
			s["sysctl "+name+" on "+host] = string(text)
		}
		return nil
	})
}

// listeners notes the queue limit of each listener, which ss(8) shows as Send-Q.
func (s snapshot) listeners(ctx context.Context, host string) error {
	out, err := exec.CommandContext(ctx, "ss", "-ltxnH").Output()
	if err != nil {
		return fmt.Errorf("list the listeners of %s: %w", host, err)
	}
	for line := range strings.Lines(string(out)) {
		const limit, address = 3, 4
		if f := strings.Fields(line); len(f) > address {
			s["listener "+f[address]+" on "+host] = f[limit]
		}
	}
	return nil
}

// devices notes which CPUs take a device's packets, and how long its queue is.
// The namespace's own sysfs shows them, which ip-netns(8) mounts.
func (s snapshot) devices(ctx context.Context, netns, host string) error {
	files := "/sys/class/net/*/queues/rx-*/rps_cpus /sys/class/net/*/tx_queue_len"
	out, err := exec.CommandContext(ctx, "ip", "netns", "exec", netns, "sh", "-c", "grep -H . "+files).Output()
	if err != nil {
		return fmt.Errorf("read the queues of the devices of %s: %w", host, err)
	}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "/sys/class/net/"), ":")
		s["device "+name+" on "+host] = strings.TrimSpace(value)
	}
	return nil
}

// cgroups notes the limits of the case's control groups.
func (s snapshot) cgroups(l *Lab) error {
	for _, file := range []string{"cpu.max", "cpu.cfs_*_us", "memory.max", "memory.limit_in_bytes", "pids.max"} {
		for _, controller := range []string{"", "*"} {
			paths, err := filepath.Glob(filepath.Join(cgroupRoot, controller, l.prefix()+".*", file))
			if err != nil {
				return fmt.Errorf("snapshot: %w", err)
			}
			for _, path := range paths {
				text, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("snapshot: %w", err)
				}
				s["control group "+strings.TrimPrefix(path, cgroupRoot+"/")] = string(text)
			}
		}
	}
	return nil
}

// files notes what the case wrote, and which other files there are: an edit
// must leave nothing beside the file.
func (s snapshot) files(c *Case, dir string) error {
	for _, step := range c.Steps {
		if step.File == nil {
			continue
		}
		path := filepath.Join(dir, step.File.Path)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return fmt.Errorf("snapshot: %s: %w", path, err)
		}
		s["file "+step.File.Path] = fmt.Sprintf("%o %d:%d\n%s", st.Mode, st.Uid, st.Gid, text)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".log" && ext != ".out" && ext != ".pid" {
			names = append(names, e.Name())
		}
	}
	s["files of the case"] = strings.Join(names, " ")
	return nil
}

// processes notes limits, priority, policy and CPUs of all processes on the hosts, by
// name: workers come and go, but what they may is the same.
func (s snapshot) processes(l *Lab) error {
	inodes := map[uint64]string{}
	for _, host := range hostNames {
		var st unix.Stat_t
		if err := unix.Stat(netnsPath(l.netns(host)), &st); err != nil {
			return fmt.Errorf("snapshot: host %s: %w", host, err)
		}
		inodes[st.Ino] = host
	}
	found, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	kinds := map[string]map[string]bool{}
	for _, p := range found {
		pid, err := strconv.Atoi(p.Name())
		var st unix.Stat_t
		if err != nil || unix.Stat(filepath.Join("/proc", p.Name(), "ns/net"), &st) != nil || inodes[st.Ino] == "" {
			continue
		}
		name, text := processState(pid)
		name = "processes " + name + " on " + inodes[st.Ino]
		if kinds[name] == nil {
			kinds[name] = map[string]bool{}
		}
		kinds[name][text] = true
	}
	for name, texts := range kinds {
		s[name] = strings.Join(slices.Sorted(maps.Keys(texts)), "\n")
	}
	return nil
}

func processState(pid int) (name, text string) {
	read := func(file string) string {
		b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file)) // it may have ended
		return string(b)
	}
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, pid)
	policy, _, _ := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(pid), 0, 0)
	cpus := ""
	for line := range strings.Lines(read("status")) {
		if strings.HasPrefix(line, "Cpus_allowed_list:") {
			cpus = strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(read("comm")), fmt.Sprintf("nice %d, policy %d, %s\n%s", 20-nice, policy, cpus, read("limits"))
}

// diff lists what is not the same.
func (s snapshot) diff(now snapshot) []string {
	var list []string
	names := map[string]bool{}
	for n := range s {
		names[n] = true
	}
	for n := range now {
		names[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		before, was := s[n]
		after, is := now[n]
		switch {
		case !was:
			list = append(list, n+": was not there before")
		case !is:
			list = append(list, n+": is gone")
		case before != after:
			list = append(list, fmt.Sprintf("%s: was %q, is %q", n, short(lacking(before, after)), short(lacking(after, before))))
		}
	}
	return list
}

// lacking is s without the lines that other has, too; all of it, where only their order or number differs.
func lacking(s, other string) string {
	has := map[string]bool{}
	for line := range strings.Lines(other) {
		has[strings.TrimSpace(line)] = true
	}
	var list []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); !has[line] {
			list = append(list, line)
		}
	}
	if len(list) == 0 {
		return s
	}
	return strings.Join(list, "\n")
}

func short(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

package change

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/lazy"
)

// refused are kernel settings whose writing does something else as well, so
// that writing the old value does not take it back: vm.dirty_bytes sets dirty_ratio
// to 0, and cannot be set to 0 itself. What a journal says of one is never written.
var refused = lazy.Regexp(`^(net\.ipv4\.ip_forward|net\.ipv[46]\.conf\.all\..*|net\.ipv6\.conf\..*\.(forwarding|disable_ipv6|addr_gen_mode|stable_secret)|vm\.(drop_caches|compact_memory|dirty_(background_)?(ratio|bytes)|overcommit_(ratio|kbytes))|kernel\.(sysrq|panic.*|modprobe|core_pattern|kexec.*|modules_disabled|unprivileged_bpf_disabled|usermodehelper\..*|shm_rmid_forced)|.*\.flush)$`)

// takenBack are the kernel settings that are set here: one number, or a few, that
// the kernel looks at when it needs them, so that the old ones written again are all
// that there is to take back. Others delete addresses (disable_ipv6), can be set once
// (unprivileged_bpf_disabled) or begin something, and no list of those is ever whole.
var takenBack = lazy.Regexp(`^(` + strings.Join([]string{
	`net\.core\.(somaxconn|netdev_\w+|dev_weight\w*|[rw]mem_\w+|optmem_max|busy_(poll|read)|rps_sock_flow_entries|default_qdisc|message_\w+|flow_limit_table_len|high_order_alloc_disable|gro_normal_batch|max_skb_frags|tstamp_allow_data|txrehash|skb_defer_max)`,
	`net\.ipv4\.(tcp_\w+|udp_\w+|ip_\w+|ipfrag_\w+|icmp_\w+|igmp_\w+|inet_peer_\w+|fib_multipath_\w+|route\.(gc_\w+|max_size|error_\w+|min_\w+|mtu_\w+))`,
	`net\.ipv6\.(ip6frag_\w+|route\.(gc_\w+|max_size|min_\w+|mtu_\w+)|fib_multipath_\w+)`,
	`net\.ipv4\.conf\..+\.(rp_filter|arp_\w+|accept_\w+|send_redirects|secure_redirects|log_martians)`,
	`net\.ipv[46]\.neigh\..+\.\w+`,
	`net\.netfilter\.nf_conntrack_\w+`, `net\.nf_conntrack_max`, `net\.unix\.max_dgram_qlen`,
	`fs\.(file-max|nr_open|aio-max-nr|pipe-\S+|inotify\.max_\w+|epoll\.max_\w+|mqueue\.\w+)`,
	`vm\.(swappiness|vfs_cache_pressure|dirty_(expire|writeback)_centisecs|max_map_count|page-cluster|watermark_\w+|zone_reclaim_mode|overcommit_memory|stat_interval|compaction_proactiveness)`,
	`kernel\.(pid_max|threads-max|sched_\w+|numa_balancing|timer_migration|msgma[xn]\w*|msgmnb|msgmni|sem|shm(max|all|mni))`,
}, "|") + `)$`)

// settable says whether a kernel setting is one that is set here.
func settable(name string) bool { return takenBack().MatchString(name) && !refused().MatchString(name) }

// sysctlPath is the file of a setting: dots stand for slashes, or, when the
// first of the two is a slash, for themselves (sysctl.d(5)).
func sysctlPath(name string) (string, error) {
	p := name
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '.' {
		p = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	if p == "" || path.Clean("/"+p) != "/"+p {
		return "", fmt.Errorf("sysctl %q: want a name such as net.core.somaxconn", name)
	}
	return "/proc/sys/" + p, nil
}

// sysctlName is the name of a setting's file as sysctl(8) prints it: dots between
// its parts, a slash for a dot in one of them.
func sysctlName(file string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(strings.TrimPrefix(file, "/proc/sys/"))
}

// SysctlName is a kernel setting's one name, whichever way it is written. What is no
// setting's name stays as it is.
func SysctlName(name string) string {
	file, err := sysctlPath(name)
	if err != nil {
		return name
	}
	return sysctlName(file)
}

func prepareSysctl(h *host.Host, c Change, s *Step) error {
	file, err := sysctlPath(c.Name)
	if err != nil {
		return err
	}
	at := target{Kind: inKernel, Path: file, Net: &s.netns}
	s.Scope = Namespace
	perNamespace, err := namespaced(file)
	if err != nil {
		return err
	}
	if !perNamespace {
		at.Net, s.Scope = nil, Machine
		s.Notes = append(s.Notes, "the whole machine shares this setting")
	} else if own := *at.Net; own.Inode != 0 {
		at.Net = &own
	}
	if err := writable(at); err != nil {
		return fmt.Errorf("sysctl %s on %s: %w", c.Name, h.Name, err)
	}
	if !settable(sysctlName(file)) {
		return fmt.Errorf("sysctl %s: it is not known that writing it changes nothing else, which could not be taken back; set it by hand: %w", c.Name, ErrNotPossible)
	}
	return s.add(at, strings.Join(strings.Fields(c.To), " "))
}

// writable says why a kernel's file cannot be written, without writing it.
func writable(at target) error {
	in := machineWide(at.Path)
	if at.Net != nil {
		in = at.Net.do
	}
	return kernelFile{}.explain(in(func() error {
		if err := unix.Access(at.Path, unix.W_OK); err != nil {
			return &fs.PathError{Op: "write", Path: at.Path, Err: err}
		}
		return nil
	}))
}

// ofInterface says whether a setting is an interface's or a neighbour table's own.
func ofInterface(file string) bool {
	below, ok := strings.CutPrefix(file, "/proc/sys/net/")
	dir := strings.Split(below, "/")
	return ok && len(dir) > 2 && (dir[1] == "conf" || dir[1] == "neigh") && dir[2] != "default"
}

// namespaced says whether each network namespace has a setting for itself. A
// namespace made for the question tells: there such settings can be written;
// the machine's are missing, or can only be read. What is an interface's or a
// neighbour table's own is always the namespace's.
func namespaced(file string) (yes bool, err error) {
	if !strings.HasPrefix(file, "/proc/sys/net/") {
		return false, nil
	}
	if ofInterface(file) {
		return true, nil
	}
	err = host.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace to see whether %s is set for each; that needs root: %w", file, err)
		}
		yes = unix.Access(file, unix.W_OK) == nil
		return nil
	})
	return yes, err
}

// prepareQuota plans a change of a control group's CPU time.
func prepareQuota(h *host.Host, c Change, s *Step) error {
	f := strings.Fields(c.To)
	ok := len(f) == 1 && f[0] == "max" || len(f) == 2 && whole().MatchString(f[0]) && whole().MatchString(f[1])
	if !ok || (c.PID == 0) == (c.Cgroup == "") {
		return fmt.Errorf("quota: want a process or a control group, and max or two numbers (microseconds of CPU time, of which period), got %q", c.To)
	}
	var dir, note string
	var v1 bool
	at := target{Kind: inKernel}
	err := withGroups(func() (err error) {
		var group string
		if dir, group, v1, err = cpuGroup(c); err != nil {
			return err
		}
		at.Path = dir + "/cpu.max"
		if at.Dir = dirInode(at.Path); at.Dir != 0 { // else what reads it says that it is not there
			note, err = mayLift(dir, group)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.Scope = Cgroup
	if s.Notes = append(s.Notes, "it is the quota of all processes in "+dir); note != "" {
		s.Notes = append(s.Notes, note)
	}
	if !v1 {
		if f[0] == "max" { // the period stays what it is
			now, err := at.get()
			if err != nil {
				return explainGroup(dir, err)
			}
			_, per, _ := strings.Cut(now, " ")
			f = []string{"max", per}
		}
		if err := s.add(at, strings.Join(f, " ")); err != nil {
			return explainGroup(dir, err)
		}
		if _, per, _ := strings.Cut(s.Old, " "); per != f[1] {
			s.Notes = append(s.Notes, "its period, "+per+" µs, becomes "+f[1]+" µs until it is taken back")
		}
		return nil
	}
	quota := "-1"
	if f[0] != "max" {
		quota = f[0]
		at.Path = dir + "/cpu.cfs_period_us"
		if err := s.add(at, f[1]); err != nil {
			return explainGroup(dir, err)
		}
	}
	at.Path, s.Old = dir+"/cpu.cfs_quota_us", ""
	return explainGroup(dir, s.add(at, quota))
}

func explainGroup(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no CPU quota (the root group never has; else the cpu controller is not switched on there): %w", dir, err)
	}
	return err
}

var interfaceName = lazy.Regexp(`^[^/ \t.][^/ \t]{0,14}$`)

// prepareRPS plans which CPUs take an interface's packets.
func prepareRPS(h *host.Host, c Change, s *Step) error {
	if !interfaceName().MatchString(c.Name) {
		return fmt.Errorf("rps: want the name of an interface, got %q", c.Name)
	}
	mask := "0"
	if c.To != "" {
		set, err := wantedCPUs(c.To)
		if err != nil {
			return fmt.Errorf("rps: %w", err)
		}
		mask, s.New = cpuMask(set), cpuList(set)
	}
	var files []string
	err := s.netns.doSys(func() (err error) {
		files, err = filepath.Glob("/sys/class/net/" + c.Name + "/queues/rx-*/rps_cpus")
		return err
	})
	if err == nil && len(files) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("the receive queues of %s on %s: %w", c.Name, h.Name, err)
	}
	s.Scope = Namespace
	for _, f := range files {
		if err := s.add(target{Kind: inKernel, Path: f, Net: &s.netns}, mask); err != nil {
			return err
		}
	}
	return nil
}

func prepareIRQ(h *host.Host, c Change, s *Step) error {
	if !whole().MatchString(c.Name) {
		return fmt.Errorf("irq: want an interrupt's number, got %q", c.Name)
	}
	set, err := parseCPUs(c.To)
	if err != nil {
		return fmt.Errorf("irq: %w", err)
	}
	s.Scope = Machine
	at := target{Kind: inKernel, Path: "/proc/irq/" + strconv.Itoa(atoi(c.Name)) + "/smp_affinity_list"}
	if err := writable(at); err != nil {
		return fmt.Errorf("irq %s: %w", c.Name, err)
	}
	return s.add(at, cpuList(set))
}

func prepareTxQueue(h *host.Host, c Change, s *Step) error {
	if !interfaceName().MatchString(c.Name) || !whole().MatchString(c.To) {
		return fmt.Errorf("txqueue: want an interface and a whole number, got %q and %q", c.Name, c.To)
	}
	s.Scope = Namespace
	return s.add(target{Kind: inKernel, Path: "/sys/class/net/" + c.Name + "/tx_queue_len", Net: &s.netns}, strconv.Itoa(atoi(c.To)))
}

func prepareRing(h *host.Host, c Change, s *Step) error {
	name, which, _ := strings.Cut(c.Name, " ")
	if !interfaceName().MatchString(name) || which != "rx" && which != "tx" || !whole().MatchString(c.To) {
		return fmt.Errorf(`ring: want an interface with rx or tx ("eth0 rx") and a whole number, got %q and %q`, c.Name, c.To)
	}
	s.Scope = Namespace
	s.Notes = append(s.Notes, "most drivers take the interface down for a moment")
	return s.add(target{Kind: inRing, Name: c.Name, Net: &s.netns}, strconv.Itoa(atoi(c.To)))
}

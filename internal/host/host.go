package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/asked"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// netnsDir is where ip-netns(8) mounts named network namespaces.
const netnsDir = "/var/run/netns"

// Host is a machine, network namespace or container that is observed. A Host
// is safe for concurrent use; its owner closes it.
type Host struct {
	// Name is the value of the label "host"; Spec is how the user named it.
	Name, Spec string
	// Ours are the sockets on which this program listens, by inode; set before it is read.
	Ours []uint32
	// Program is the word for the one program that is asked about, "" for none; set before it is read.
	Program string
	command atomic.Int64 // see SetCommand
	asked   asked.Set

	root  string // "" on a live host, else the recorded tree
	ns    int    // descriptor of the network namespace; -1 when it is our own or recorded
	netns uint64 // inode of the network namespace
	pidns uint64 // membership goes by PID namespace when not 0
	// group is the control group whose processes alone are the host's, "" for no such
	// bound: a unit on the machine's own network is told apart by nothing else.
	group string
	// machine is set when the host's network namespace is that of the
	// machine's first process: it then owns the processes nobody else claims.
	machine bool
	// strays is set when no host of the run is the machine, and this is where
	// we run: those processes are counted here then.
	strays bool

	mu     sync.Mutex
	closed bool // ns is no descriptor of ours any more
	procs  *procTable
	owned  int // how many of them were ours the last time
	others []*Host
	marker Marker // nil: none, see SetMarker
}

// Open opens the host that spec names: "local" (where we run),
// "netns:NAME" (a namespace made by ip netns add) or "pid:N" (the namespaces
// of that process, so containers work). Another namespace than our own needs
// root; the error then matches fs.ErrPermission. A namespace or process that
// does not exist matches fs.ErrNotExist.
func Open(name, spec string) (*Host, error) {
	h := &Host{Name: name, Spec: spec, ns: -1, procs: newProcTable("/proc")}
	own, err := Inode("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("host %s: read our own network namespace; is /proc mounted? %w", name, err)
	}
	kind, arg, _ := strings.Cut(spec, ":")
	switch {
	case spec == "local":
		h.netns = own
	case kind == "netns" && arg != "" && !strings.Contains(arg, "/"):
		err = h.openNamed(arg, own)
	case kind == "pid" && arg != "":
		err = h.openPID(arg, own)
	case kind == "unit" && arg != "":
		err = h.openGroup(own, func() (group, error) { return unit("/proc", arg, TrustedGroup) })
	case kind == "container" && arg != "":
		err = h.openGroup(own, func() (group, error) { return container("/", arg, TrustedGroup) })
	default:
		err = fmt.Errorf("%q is none of local, netns:NAME, pid:N, unit:NAME, container:NAME", spec)
	}
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	h.machine = h.pidns == 0 && h.group == "" && h.isMachine(own)
	return h, nil
}

// isMachine says whether h's network namespace is the machine's; where that one
// cannot be seen it is taken to be our own.
func (h *Host) isMachine(own uint64) bool {
	if path, ok := machineNetNS(); ok {
		if ino, err := Inode(path); err == nil {
			return h.netns == ino
		}
	}
	return h.netns == own
}

func (h *Host) openNamed(name string, own uint64) error {
	path := filepath.Join(netnsDir, name)
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no network namespace %q; %s: %w", name, namespaces(), err)
	}
	if err != nil {
		return fmt.Errorf("look at network namespace %s: %w", path, err)
	}
	if st.Type != unix.NSFS_MAGIC {
		return fmt.Errorf("%s is left over from a namespace that is gone; ip netns delete %s, then make it again: %w", path, layout.Quote(name), fs.ErrNotExist)
	}
	return h.openNS(path, own)
}

// namespaces lists the named network namespaces, for an error sentence.
func namespaces() string {
	entries, err := os.ReadDir(netnsDir)
	if err != nil || len(entries) == 0 {
		return "this machine has no named ones (ip netns add makes one)"
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return "there are " + strings.Join(names, ", ")
}

func (h *Host) openPID(arg string, own uint64) error {
	pid, err := strconv.Atoi(arg)
	if err != nil || pid <= 0 {
		return fmt.Errorf("pid:%s: want the number of a running process", arg)
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("no process %d; ps -e lists those that run: %w", pid, err)
	}
	if err := h.openNS(filepath.Join(dir, "ns/net"), own); err != nil {
		return err
	}
	if h.netns != own {
		return nil
	}
	// A container with the machine's own network is told apart by its PID namespace.
	theirs, err := Inode(filepath.Join(dir, "ns/pid"))
	if err != nil {
		return fmt.Errorf("read the PID namespace of process %d: %w", pid, err)
	}
	ours, err := Inode("/proc/self/ns/pid")
	if err != nil {
		return fmt.Errorf("read our own PID namespace: %w", err)
	}
	if theirs == ours {
		return fmt.Errorf("process %d shares our network namespace and our PID namespace, so nothing tells it apart from the rest of this machine; use local", pid)
	}
	h.pidns = theirs
	return nil
}

// openGroup opens the namespaces of a control group's processes. Where their network is
// the machine's, or ours, they alone are the host's.
func (h *Host) openGroup(own uint64, find func() (group, error)) error {
	g, err := find()
	if err != nil {
		return err
	}
	if err := h.openNS(filepath.Join("/proc", strconv.Itoa(g.pid), "ns/net"), own); err != nil {
		return err
	}
	if h.netns == own || h.isMachine(own) {
		h.group, h.procs.grouped = g.path, true
	}
	return nil
}

// openNS keeps the namespace at path open and tries to enter it, so that a
// missing privilege shows here and not in the first round.
func (h *Host) openNS(path string, own uint64) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open network namespace %s; another namespace than our own needs root (CAP_SYS_PTRACE): %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return fmt.Errorf("stat network namespace %s: %w", path, err)
	}
	h.netns = st.Ino
	if h.netns == own {
		return unix.Close(fd)
	}
	h.ns = fd
	if err := h.Do(func() error { return nil }); err != nil {
		unix.Close(fd)
		return err
	}
	return nil
}

// Recorded is a host for tests: root holds a recorded tree (root/proc/stat
// and so on). It has no namespaces; Do runs in ours and Dial dials from ours.
func Recorded(name, root string) *Host {
	return &Host{Name: name, Spec: "recorded", root: root, ns: -1, machine: true,
		procs: newProcTable(filepath.Join(root, "proc"))}
}

// SetCommand names the root of the process tree of the command that plimsoll
// watch runs on this host. It may be called while the host is being sampled.
func (h *Host) SetCommand(pid int) { h.command.Store(int64(pid)) }

// Command is the pid that SetCommand was told, 0 when there is no command.
func (h *Host) Command() int { return int(h.command.Load()) }

// Asking marks a TCP connection as one over which we ask a service of h, until it is closed.
func (h *Host) Asking(c net.Conn) net.Conn { return h.asked.Add(c) }

// Asked are both ends of each such connection, ours first.
func (h *Host) Asked() [][2]netip.AddrPort { return h.asked.List() }

// Addresses are the IP addresses of h's interfaces.
func (h *Host) Addresses() (list []netip.Addr, err error) {
	err = h.Do(func() error {
		all, err := net.InterfaceAddrs()
		for _, a := range all {
			if p, e := netip.ParsePrefix(a.String()); e == nil {
				list = append(list, p.Addr().Unmap())
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", h.Name, err)
	}
	return list, nil
}

// Close releases the host's namespace. Connections made by Dial stay open; Do
// and Dial fail from then on.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ns < 0 || h.closed {
		return nil
	}
	h.closed = true
	return unix.Close(h.ns)
}

// Recorded says whether h is a recorded tree and no live host.
func (h *Host) Recorded() bool { return h.root != "" }

// Info describes the host for run.json.
func (h *Host) Info() (model.Host, error) {
	info := model.Host{Name: h.Name, Spec: h.Spec, NetNS: h.netns}
	boot, err := os.ReadFile(h.Path("proc/sys/kernel/random/boot_id"))
	if err != nil {
		return info, fmt.Errorf("host %s: read the boot id: %w", h.Name, err)
	}
	release, err := os.ReadFile(h.Path("proc/sys/kernel/osrelease"))
	if err != nil {
		return info, fmt.Errorf("host %s: read the kernel's release: %w", h.Name, err)
	}
	stat, err := os.ReadFile(h.Path("proc/stat"))
	if err != nil {
		return info, fmt.Errorf("host %s: count CPUs: %w", h.Name, err)
	}
	info.Machine = strings.TrimSpace(string(boot))
	info.Kernel = strings.TrimSpace(string(release))
	info.CPUs = countCPUs(stat)
	return info, nil
}

// countCPUs counts the lines "cpu0", "cpu1" … of /proc/stat: one per online CPU.
func countCPUs(stat []byte) int {
	n := 0
	for line := range bytes.Lines(stat) {
		if rest, ok := bytes.CutPrefix(line, []byte("cpu")); ok && len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
			n++
		}
	}
	return n
}

// Claims says whether what happened in a network namespace of this machine,
// named by its inode, belongs to h. What no host of a run claims belongs to the
// one that takes strays.
func (h *Host) Claims(netns uint64) bool { return h.root == "" && h.netns == netns }

// TakesStrays says whether h is the machine itself, or stands in for it.
func (h *Host) TakesStrays() bool { return h.machine || h.strays }

// IsMachine says whether h is the machine itself, with all namespaces that are no other host's.
func (h *Host) IsMachine() bool { return h.machine }

// Path is the name under which we open a file of the kernel's tree:
// h.Path("proc", "stat") or h.Path("proc/stat"). On a live host "proc/net"
// becomes /proc/thread-self/net, because /proc/net is that of the main
// thread, which is in another namespace; so such a file must be opened on the
// thread that reads (Reader's or Do's).
func (h *Host) Path(elem ...string) string {
	p := filepath.Join("/", filepath.Join(elem...))
	if h.root != "" {
		return filepath.Join(h.root, p)
	}
	if p == "/proc/net" || strings.HasPrefix(p, "/proc/net/") {
		return "/proc/thread-self" + strings.TrimPrefix(p, "/proc")
	}
	return p
}

// ServicePath is the name under which we open the file that process pid calls
// path, whatever its mount namespace or chroot. Needs the right to follow
// /proc/PID/root (root, or the same user).
func (h *Host) ServicePath(pid int, path string) string {
	if h.root != "" {
		return filepath.Join(h.root, filepath.Join("/", path))
	}
	return filepath.Join("/proc", strconv.Itoa(pid), "root", filepath.Join("/", path))
}

// Do runs fn on an OS thread of its own that is in h's network namespace, and
// throws that thread away afterwards. fn must do its work on its own
// goroutine. The error is fn's, or says why the namespace could not be entered.
func (h *Host) Do(fn func() error) error {
	if h.ns < 0 {
		return fn()
	}
	return Apart(func() error {
		if err := h.enter(); err != nil {
			return err
		}
		return fn()
	})
}

// Elsewhere says whether h is another network namespace than ours.
func (h *Host) Elsewhere() bool { return h.ns >= 0 }

// Thread runs fn on a new goroutine, locked for good to an OS thread in h's
// network namespace; the thread ends with fn. fn is told why the namespace could
// not be entered, or nil.
func (h *Host) Thread(fn func(error)) { apart(func() { fn(h.enter()) }) }

func (h *Host) enter() error {
	if h.ns < 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed { // a question to a service may outlive the run
		return fmt.Errorf("enter the network namespace of %s (%s): %w", h.Name, h.Spec, fs.ErrClosed)
	}
	if err := unix.Setns(h.ns, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace of %s (%s); that needs root (CAP_SYS_ADMIN): %w", h.Name, h.Spec, err)
	}
	return nil
}

// Dial connects from inside h's network namespace; the connection may then be
// used on any thread. network is "tcp" or "udp" with "IP:port" (names are not
// resolved: a namespace may see another DNS), or "unix" with a path as we see
// it (see ServicePath).
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "unix") {
		if _, err := netip.ParseAddrPort(address); err != nil {
			return nil, fmt.Errorf("dial %s on %s: want IP:port: %w", address, h.Name, err)
		}
	}
	var c net.Conn
	err := h.Do(func() (err error) {
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Join makes the hosts of one run know each other: the live ones share one
// scan of the machine's processes, and each process that no other host claims
// belongs to the host that is the machine itself (else to the one we run on).
func Join(hosts []*Host) {
	if !slices.ContainsFunc(hosts, func(h *Host) bool { return h.machine }) {
		if i := slices.IndexFunc(hosts, func(h *Host) bool { return h.Spec == "local" }); i >= 0 {
			hosts[i].strays = true
		}
	}
	var shared *procTable
	for _, h := range hosts {
		h.mu.Lock()
		h.others = slices.DeleteFunc(slices.Clone(hosts), func(o *Host) bool { return o == h || o.Recorded() != h.Recorded() })
		if h.root == "" {
			if shared == nil {
				shared = h.procs
			}
			shared.grouped = shared.grouped || h.group != ""
			h.procs = shared
		}
		h.mu.Unlock()
	}
}

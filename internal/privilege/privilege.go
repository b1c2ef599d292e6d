// Package privilege is which part of Plimsoll needs which of the kernel's
// capabilities (capabilities(7)): one table, from which doctor, the errors of what
// may not be done and docs/privileges.md are made. A test runs each part with
// exactly what stands here, and with one less.
package privilege

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Cap is one of the kernel's capabilities, by its number.
type Cap int

var names = map[Cap]string{
	unix.CAP_BPF: "CAP_BPF", unix.CAP_PERFMON: "CAP_PERFMON", unix.CAP_SYSLOG: "CAP_SYSLOG", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN",
	unix.CAP_SYS_PTRACE: "CAP_SYS_PTRACE", unix.CAP_CHECKPOINT_RESTORE: "CAP_CHECKPOINT_RESTORE", unix.CAP_DAC_READ_SEARCH: "CAP_DAC_READ_SEARCH", unix.CAP_DAC_OVERRIDE: "CAP_DAC_OVERRIDE",
	unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_NET_RAW: "CAP_NET_RAW", unix.CAP_SETUID: "CAP_SETUID", unix.CAP_SETGID: "CAP_SETGID",
}

func (c Cap) String() string { return names[c] }

// Set is some capabilities, a bit each.
type Set uint64

// Of makes a set.
func Of(caps ...Cap) (s Set) {
	for _, c := range caps {
		s |= 1 << c
	}
	return s
}

// Has says whether all of some are in the set. Where the kernel takes a wider one
// for a narrower, so does this.
func (s Set) Has(caps ...Cap) bool {
	for _, c := range caps {
		wide := map[Cap]Cap{unix.CAP_BPF: unix.CAP_SYS_ADMIN, unix.CAP_PERFMON: unix.CAP_SYS_ADMIN, unix.CAP_DAC_READ_SEARCH: unix.CAP_DAC_OVERRIDE}
		other, ok := wide[c]
		if s&(1<<c) == 0 && !(ok && s&(1<<other) != 0) {
			return false
		}
	}
	return true
}

// Ours are the effective capabilities of this process.
func Ours() (Set, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("ask for our capabilities: %w", err)
	}
	return Set(data[1].Effective)<<32 | Set(data[0].Effective), nil
}

// Need is what a part needs.
type Need struct {
	// Kind is tracer, probe, host or command.
	Kind string
	// Parts are the names of those that need the same.
	Parts []string
	Caps  []Cap
	// Why says what for.
	Why string
	// Without says what is left without them, or what else would do; "" where nothing is.
	Without string
}

// Table is all that needs anything. Parts that are not in it need nothing.
var Table = []Need{
	{Kind: "tracer", Parts: []string{"cpu", "disk", "drops", "exec", "refusals", "replies", "requests", "runqueue", "softirq", "syscalls", "tasks", "tcp", "unread", "wait"},
		Caps: []Cap{unix.CAP_BPF, unix.CAP_PERFMON}, Why: "to load BPF programs, and to let them read the kernel's memory",
		Without: "before Linux 5.11 CAP_SYS_RESOURCE besides. Functions of other users' programs have names, and who stands in a write to a full pipe is seen, only with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"},
	{Kind: "tracer", Parts: []string{"deepcpu", "offcpu"}, Caps: []Cap{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYSLOG},
		Why:     "the addresses of the kernel's functions (/proc/kallsyms) besides",
		Without: "CAP_SYSLOG is not needed where kernel.kptr_restrict is 0 and kernel.perf_event_paranoid at most 1"},
	{Kind: "probe", Parts: []string{"kernel_log"}, Caps: []Cap{unix.CAP_SYSLOG}, Why: "to read /dev/kmsg", Without: "nothing is needed where kernel.dmesg_restrict is 0"},
	{Kind: "probe", Parts: []string{"nftables"}, Caps: []Cap{unix.CAP_NET_ADMIN}, Why: "to list the rules of the packet filter"},
	{Kind: "probe", Parts: []string{"nfqueue"}, Caps: []Cap{unix.CAP_DAC_READ_SEARCH}, Why: "to read a file of /proc/net that is root's alone"},
	{Kind: "probe", Parts: []string{"nginx", "service_log"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH},
		Why: "to look into the processes of other users (binary, root, descriptors), and to read their configuration and logs", Without: "what belongs to our own user is seen"},
	{Kind: "probe", Parts: []string{"processes"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH},
		Why: "to read the block I/O of the processes of other users", Without: "all but their block I/O is read"},
	{Kind: "probe", Parts: []string{"phpfpm"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE, unix.CAP_CHECKPOINT_RESTORE},
		Why:     "as for nginx, and to connect to the pools' sockets",
		Without: "CAP_DAC_READ_SEARCH is enough where the sockets can be connected to by all, or are TCP. Without CAP_CHECKPOINT_RESTORE (before Linux 5.9 CAP_SYS_ADMIN) what OPcache says is not read"},
	{Kind: "probe", Parts: []string{"haproxy"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE},
		Why: "to read its configuration in its own root directory, and to connect to its stats socket", Without: "one of our own user is asked without any"},
	{Kind: "probe", Parts: []string{"varnish"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH},
		Why: "to see where it listens, and to read its shared memory in its working directory", Without: "one of our own user is read without any"},
	{Kind: "probe", Parts: []string{"memcached", "redis"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE},
		Why: "to see where it listens, and to connect to its Unix socket", Without: "one of our own user is asked without any; one that listens on TCP without CAP_DAC_OVERRIDE"},
	{Kind: "probe", Parts: []string{"postgres"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH, unix.CAP_SETUID, unix.CAP_SETGID},
		Why:     "to see where it listens, and to ask it as its own user, whom it lets in without a password",
		Without: "a PostgreSQL of our own user is asked without any"},
	{Kind: "probe", Parts: []string{"mysql"}, Caps: []Cap{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH, unix.CAP_SETUID, unix.CAP_SETGID},
		Why:     "to see where it listens, and to ask it as its own user; as root it is asked as root, and the last two are for a server that lets only its own user in",
		Without: "a MariaDB of our own user is asked without any"},
	{Kind: "host", Parts: []string{"netns:NAME"}, Caps: []Cap{unix.CAP_SYS_ADMIN}, Why: "to enter its network namespace"},
	{Kind: "command", Parts: []string{"capture -i"}, Caps: []Cap{unix.CAP_NET_RAW}, Why: "to open a packet socket, and a ring in it",
		Without: "files that somebody else recorded can be read by anybody"},
	{Kind: "host", Parts: []string{"pid:N", "unit:NAME", "container:NAME"}, Caps: []Cap{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE}, Why: "to find a process's namespaces, and to enter them"},
}

// For is what a part needs; nil where it needs nothing.
func For(kind, part string) []Cap {
	for _, n := range Table {
		for _, p := range n.Parts {
			if n.Kind == kind && p == part {
				return n.Caps
			}
		}
	}
	return nil
}

// Missing are those of some capabilities that this process lacks.
func Missing(caps []Cap) ([]Cap, error) {
	have, err := Ours()
	if err != nil {
		return nil, err
	}
	var missing []Cap
	for _, c := range caps {
		if !have.Has(c) {
			missing = append(missing, c)
		}
	}
	return missing, nil
}

// Check returns nil if a part has what it needs, else an error that says exactly
// what is missing, and matches fs.ErrPermission.
func Check(kind, part string) error {
	missing, err := Missing(For(kind, part))
	if err != nil || len(missing) == 0 {
		return err
	}
	if kind == "tracer" && len(missing) == 1 && missing[0] == unix.CAP_SYSLOG && addressesShown() {
		return nil
	}
	return fmt.Errorf("the %s %s lacks %s; run it as root, or give it %s: %w", kind, part, Join(missing), Join(For(kind, part)), fs.ErrPermission)
}

// Join lists capabilities as a sentence does.
func Join(caps []Cap) string {
	var words []string
	for _, c := range caps {
		words = append(words, c.String())
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// addressesShown says whether /proc/kallsyms shows this process more than zeros.
func addressesShown() bool {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return false
	}
	defer f.Close()
	line := make([]byte, 16)
	n, err := f.Read(line)
	return err == nil && len(bytes.Trim(line[:n], "0")) > 0
}

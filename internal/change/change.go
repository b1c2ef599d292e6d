// Package change makes changes to a host: typed, written into a journal before
// they are made, and taken back from it.
package change

import (
	"errors"
	"fmt"
	"strconv"

	"plimsoll/internal/lazy"
)

// Kind is what sort of setting a change is about.
type Kind string

// The kinds, with what Name and To mean.
const (
	// Sysctl is a kernel setting: Name is sysctl(8)'s, To its text.
	Sysctl Kind = "sysctl"
	// Nginx is a directive in the files of a running nginx: Name is the
	// directive, and "backlog" (a parameter of listen, see Change.Listen) or
	// "keepalive" (in the group Change.Upstream); To its arguments.
	Nginx Kind = "nginx"
	// PHPFPM is a setting of a pool of a running PHP-FPM: Name as in its file.
	PHPFPM Kind = "phpfpm"
	// Backlog is the accept queue's limit of the listener Change.Listen, in
	// connections, set on the open socket: no file, no restart. Name is empty.
	Backlog Kind = "backlog"
	// Limit is a resource limit of processes: Name as in prlimit(1) without the
	// dashes (nofile, nproc …), To a number or "unlimited". The soft limit, and
	// the hard one where it is lower.
	Limit Kind = "limit"
	// Affinity is the CPUs on which processes may run: To is a list ("0,2-3") or
	// "all" that are online.
	Affinity Kind = "affinity"
	// Nice is processes' nice value: To is a number from -20 to 19.
	Nice Kind = "nice"
	// Policy is how processes are scheduled, see sched(7): To is 5 for the idle
	// class (SCHED_IDLE: only the CPU time that nobody else wants), 0 for the
	// normal one (SCHED_OTHER). Nice values stay as they are.
	Policy Kind = "policy"
	// Quota is the CPU time of a control group: To is "max" or two numbers,
	// microseconds and of which period ("150000 100000"), as in cpu.max.
	Quota Kind = "quota"
	// RPS is receive packet steering: Name is the interface, To a list of CPUs
	// (or "all") for all its receive queues; "" switches it off.
	RPS Kind = "rps"
	// IRQ is where an interrupt is handled: Name is its number, To a list of CPUs.
	IRQ Kind = "irq"
	// TxQueue is an interface's queue of outgoing packets: Name is the
	// interface, To the number of packets (txqueuelen).
	TxQueue Kind = "txqueue"
	// Ring is the rings of a network card: Name is "eth0 rx" or "eth0 tx", To
	// the number of descriptors. Few virtual ones have any.
	Ring Kind = "ring"
)

// Change is one setting and the value that it is to have. Which of the fields
// after To are needed depends on Kind; what is not needed must be empty.
type Change struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	To   string `json:"to"`

	// PID is the process (Limit, Affinity, Nice, Policy, Quota), or the master (Nginx,
	// PHPFPM; 0 is the only one of the host).
	PID int `json:"pid,omitempty"`
	// Process is the kernel's name of processes (15 bytes at most), instead of
	// PID: all of the host that have it (Limit, Affinity, Nice, Policy).
	Process string `json:"process,omitempty"`
	// Pool is PHP-FPM's pool; "" is its only one.
	Pool string `json:"pool,omitempty"`
	// Listen is a listener as the socket signals write it: "0.0.0.0:80",
	// "[::]:80", "unix:/run/x"; "" is the only one (nginx's backlog).
	Listen string `json:"listen,omitempty"`
	// ListensAt says which service is meant where several run on a host (Nginx,
	// PHPFPM): one that listens there, or that a client reaches there.
	ListensAt string `json:"listens_at,omitempty"`
	// Upstream is nginx's group of servers; "" is the only one.
	Upstream string `json:"upstream,omitempty"`
	// Cgroup is a control group's path below its hierarchy, instead of PID (Quota).
	Cgroup string `json:"cgroup,omitempty"`
}

// String is the change in a few words: "sysctl net.core.somaxconn = 4096".
func (c Change) String() string {
	s := string(c.Kind)
	for _, w := range []string{c.Name, c.Pool, c.Upstream, c.Listen, c.Process, c.Cgroup} {
		if w != "" {
			s += " " + w
		}
	}
	if c.PID != 0 {
		s += fmt.Sprintf(" of process %d", c.PID)
	}
	return s + " = " + c.To
}

// Errors by which a caller decides. Each comes wrapped in a sentence.
var (
	// ErrAlready: the setting has that value.
	ErrAlready = errors.New("it is so already")
	// ErrNotPossible: this cannot be changed here, or not by us; a person has to.
	ErrNotPossible = errors.New("it cannot be changed from here")
	// ErrValue: the kernel says of a value that it is none of the setting's.
	ErrValue = errors.New("the kernel takes no such value")
	// ErrChanged: somebody else has changed the setting since.
	ErrChanged = errors.New("somebody else changed it since")
	// ErrLocked: another process holds the machine's lock, or the journal's.
	ErrLocked = errors.New("another plimsoll is changing this machine")
	// ErrRefused: the service did not take the new configuration; the old one
	// is back and the service goes on with it.
	ErrRefused = errors.New("the service refused it")
)

// errGone: the process, namespace or control group does not exist any more, and
// its settings have gone with it.
var errGone = errors.New("is gone")

// whole is how a change gives a whole number; atoi reads it.
var whole = lazy.Regexp(`^[0-9]{1,9}$`)

// Scope is how far a change reaches.
type Scope string

// The scopes.
const (
	Process   Scope = "process"   // some processes
	Service   Scope = "service"   // an nginx or a PHP-FPM
	Namespace Scope = "namespace" // a network namespace
	Cgroup    Scope = "cgroup"    // a control group
	Machine   Scope = "machine"   // all hosts on the machine feel it
)

// Restart is what a change needs before it is in effect.
type Restart string

// What a service has to do. Apply does a reload; nobody here does a restart:
// where one would be needed and cannot be avoided, Prepare says ErrNotPossible.
const (
	None   Restart = "none"
	Reload Restart = "reload"
)

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

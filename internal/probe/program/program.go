// Package program follows one program that the user asked about, with all that it starts, and adds up where its time goes:
// computing, waiting for a CPU, or blocked, by what for and by whom; so that the parts are all of its time.
package program

import (
	"fmt"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const source = "/proc/PID/task/TID/schedstat, syscall, wchan, fd; the peer of a socket by pidfd_getfd(2)"

var (
	seconds = &model.Signal{
		Name: "plimsoll_program_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help: "Where the time of the program that --of names went, as one course of time: what it did at each moment, or the likeliest part of that where several threads did several things. " +
			"The sum of all is the time that the program was there. doing is running, queued (runnable without a CPU), throttled (kept from its CPUs by a control group's limit), reclaim, terminal, unseen (we were held up ourselves), or a reason as of the wait tracer; " +
			"towards whom or what for: an address, a file, a pipe; call the system call, and thread the thread's name without its number.",
		Labels: []string{"doing", "towards", "call", "thread"}, Source: source, ByHand: "cat /proc/PID/task/*/schedstat /proc/PID/task/*/wchan; strace -c -w -f -p PID",
	}
	threadSeconds = &model.Signal{
		Name: "plimsoll_program_thread_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "What the threads of the program that --of names did, added up over these; its rate is how many did so at once.",
		Labels: []string{"doing"}, Source: source, ByHand: "cat /proc/PID/task/*/schedstat /proc/PID/task/*/wchan",
	}
	cpuSeconds = &model.Signal{
		Name: "plimsoll_program_cpu_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "CPU time that the program used that --of names, and its children that ended and were waited for.",
		Labels: []string{"mode"}, Source: "/proc/PID/stat", ByHand: "pidstat -p PID 1",
	}
	faults = &model.Signal{
		Name: "plimsoll_program_page_faults_total", Kind: model.Counter, Unit: "faults", StartsAtZero: true,
		Help:   "Pages that the program touched that were not there: minor ones were had without a disk.",
		Labels: []string{"kind"}, Source: "/proc/PID/stat", ByHand: "pidstat -r -p PID 1",
	}
	processes = &model.Signal{
		Name: "plimsoll_program_processes", Kind: model.Gauge, Unit: "processes",
		Help:   "Processes of the program that --of names, by their names.",
		Labels: []string{"groupname"}, Source: "/proc/PID/task/TID/children, /proc/PID/stat", ByHand: "pstree -p PID",
	}
	threads = &model.Signal{
		Name: "plimsoll_program_threads", Kind: model.Gauge, Unit: "threads",
		Help: "Threads of the program that --of names.", Source: "/proc/PID/task", ByHand: "ls /proc/PID/task",
	}
	looks = &model.Signal{
		Name: "plimsoll_program_looks_total", Kind: model.Counter, Unit: "looks", StartsAtZero: true,
		Help: "How often the program was looked at: a wait between two looks counts as what was seen at the second one.", Source: source, ByHand: "none: it is about our looking",
	}
)

// All returns the probe of one program.
func All() []probe.Probe {
	return []probe.Probe{{
		Name: "program", Scope: probe.PerHost, Signals: []*model.Signal{seconds, threadSeconds, cpuSeconds, faults, processes, threads, looks},
		Cost: "where a program is asked about, and else nothing: 1.2 to 1.9 % of a core for a program of one thread that wakes a thousand times a second (some 50 looks of 0.1 ms a second), and the same for one of a hundred threads, at which it looks 5 times a second (2 CPUs, Linux 6.18, in pairs)",
		Blind: []string{
			"how long it ran and waited for a CPU is exact; what it slept for is looked at some 50 times a second, and of many threads more rarely",
			"a wait that is over between two looks counts as what was seen at the next one, or as the wait before it",
			"where several threads are busy at different things, their time is shared out by how long each did them in the time between two looks; which one the others had to wait for is not known",
			"of an epoll with several peers it is not known for whom it waits; of io_uring nothing is",
			"whether a lock is waited for or work is, is not told apart: both are futex(2)",
			"of what came and went between two looks the CPU time alone is seen, once whoever started it has waited for it",
			"of what was stopped in a call that waits (sleep, poll, a lock) that it was stopped",
			"which file a path is that is looked up (open, stat), and whose page it is that was not there",
			"of a peer nothing is known before Linux 5.6, nor of what may not be traced",
			"the first 256 threads are looked at; what was started by a process that ended before it was seen is not the program's",
		},
		CanRun: func(h *host.Host) error {
			if h.Program == "" || h.Recorded() {
				return host.Absent("no program was asked about: plimsoll watch --of PROGRAM")
			}
			if _, err := host.ReadFile("/proc/self/schedstat"); err != nil {
				return fmt.Errorf("read how long threads ran; the kernel needs CONFIG_SCHED_INFO: %w", err)
			}
			return nil
		},
		Open: func(h *host.Host) (probe.Reader, error) { return open(h) },
	}}
}

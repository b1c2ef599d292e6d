// Package all lists every tracer there is. A tracer that is not listed here does
// not exist; nothing registers itself.
package all

import (
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/cpu"
	"plimsoll/internal/trace/disk"
	"plimsoll/internal/trace/drops"
	"plimsoll/internal/trace/exec"
	"plimsoll/internal/trace/offcpu"
	"plimsoll/internal/trace/refusals"
	"plimsoll/internal/trace/replies"
	"plimsoll/internal/trace/requests"
	"plimsoll/internal/trace/runqueue"
	"plimsoll/internal/trace/sched"
	"plimsoll/internal/trace/softirq"
	"plimsoll/internal/trace/syscalls"
	"plimsoll/internal/trace/tasks"
	"plimsoll/internal/trace/tcp"
	"plimsoll/internal/trace/unread"
	"plimsoll/internal/trace/wait"
)

// All returns all tracers, in the order of the handbook. Those of one list share what
// they can.
func All() []trace.Tracer {
	var atSwitches sched.Programs
	return []trace.Tracer{
		exec.Tracer(),
		runqueue.Tracer(&atSwitches),
		cpu.Tracer(),
		wait.Tracer(&atSwitches),
		offcpu.Tracer(),
		tasks.Tracer(),
		syscalls.Tracer(),
		refusals.Tracer(),
		disk.Tracer(),
		tcp.Tracer(),
		requests.Tracer(),
		replies.Tracer(),
		unread.Tracer(),
		drops.Tracer(),
		softirq.Tracer(),
	}
}

package refusals

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const atExit = "call_refused"

var (
	total = &model.Signal{
		Name: "plimsoll_refusals_total", Kind: model.Counter, Unit: "calls", StartsAtZero: true,
		Help: "System calls that failed because something had run out or was taken: ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, EROFS, ENOLCK, EADDRINUSE, EADDRNOTAVAIL, ENOBUFS; " +
			"and EAGAIN of calls that make a process, a timer or the like, or lock memory.",
		Labels: []string{"groupname", "syscall", "errno"}, Source: "BPF on the tracepoint sys_exit", ByHand: "strace -f -Z -p PID",
	}
	lost = trace.LostSignal("refusals", "calls", "Calls that are missing: of more kinds than there is room for (refusals), of 32-bit programs (compat).")
)

var signals = []*model.Signal{total, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{total: {atExit}, lost: nil}

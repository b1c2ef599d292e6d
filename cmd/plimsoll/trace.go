package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/all"
	"plimsoll/internal/trace/exec"
	"plimsoll/internal/trace/runqueue"
)

const traceLong = `Watches the kernel itself, through BPF programs on its tracepoints, for what no
counter shows. Everything is added up in the kernel; nothing is stopped or slowed
beyond what "plimsoll trace list" says of each tracer's cost. Plimsoll's own
process is left out. The programs are gone when the command ends, however it ends.

It needs root, or CAP_BPF and CAP_PERFMON, and a kernel with type information
(BTF).`

const traceExecLong = `Watches every process start and end on this machine, by command and ancestors:
how often, by whom, how it ended, how long it lived, and its CPU time. That finds
what is gone before top looks: a helper started for each request, one that fails
each time, a fork that never executes anything.

CPU time is that of processes that ended, as a share of all the machine's CPUs.
The arguments of the first process of each kind are shown as they are: they may
hold what is meant for no other eyes. ^C ends it early; what was seen is shown.`

const traceRunqueueLong = `Watches how long threads that could run wait for a CPU, by process, how often
they leave it because there is nothing to do (own) or although there is (forced),
and who takes the CPU from whom. "waiting" is how many of the threads waited at
once, on average. Times are counted by powers of two: 99 % < 4 ms means that it
lies between 2 and 4. ^C ends it early; what was seen is shown.`

func traceCommand(w *world) *cobra.Command {
	return withExits(group("trace", "watch the kernel for what no counter shows", traceLong,
		traceList(w), traceExec(w), traceRunqueue(w)), exitOK, exitUsage, exitMissing)
}

// traceListing is a tracer in trace list.
type traceListing struct {
	Name        string       `json:"name"`
	About       string       `json:"about"`
	CanRun      model.Status `json:"can_run"`
	FirstKernel string       `json:"first_kernel"`
	Cost        string       `json:"cost"`
	Blind       []string     `json:"blind"`
	ByHand      string       `json:"by_hand"`
	Signals     []string     `json:"signals"`
}

func traceList(w *world) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "the tracers, and whether they can run here", Args: noArguments,
		Long: "Lists every tracer: what it shows, whether it can run here and why not, what it\ncosts, what it cannot see, and the classic tool that shows the same."}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		var list []traceListing
		for _, t := range all.All() {
			l := traceListing{t.Name, t.About, trace.StatusOf(t.CanRun()), t.FirstKernel.String(), t.Cost, t.Blind, t.ByHand, nil}
			for _, s := range t.Signals {
				l.Signals = append(l.Signals, s.Name)
			}
			list = append(list, l)
		}
		if *asJSON {
			return printJSON(w.stdout, list)
		}
		for i, l := range list {
			if i > 0 {
				fmt.Fprintln(w.stdout)
			}
			fmt.Fprint(w.stdout, listingText(l, w.columns()))
		}
		return nil
	}
	return withExits(c, exitOK, exitUsage)
}

func traceExec(w *world) *cobra.Command {
	c := &cobra.Command{Use: "exec [-d DURATION]", Short: "process starts and ends, by command and ancestors", Args: noArguments,
		Long: traceExecLong, Example: "  plimsoll trace exec -d 10s\n  plimsoll trace exec --json | jq '.groups[0]'", DisableFlagsInUseLine: true}
	d := traceDuration(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		seen := execSeen{}
		err := traced(c, *d, exec.Tracer(), exec.Start, func(t *exec.Trace, elapsed time.Duration) (err error) {
			seen.Snapshot, err = t.Snapshot()
			seen.round(elapsed)
			return err
		}, &seen.traceSeen)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, seen)
		}
		_, err = fmt.Fprint(w.stdout, execText(seen, w.columns()))
		return err
	}
	return withExits(c, exitOK, exitUsage, exitMissing)
}

func traceRunqueue(w *world) *cobra.Command {
	c := &cobra.Command{Use: "runqueue [-d DURATION]", Short: "the wait for a CPU, and who takes it from whom", Args: noArguments,
		Long: traceRunqueueLong, Example: "  plimsoll trace runqueue -d 10s\n  plimsoll trace runqueue --json | jq '.pairs[:5]'", DisableFlagsInUseLine: true}
	d := traceDuration(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		seen := runqueueSeen{}
		err := traced(c, *d, runqueue.Tracer(), runqueue.Start, func(t *runqueue.Trace, elapsed time.Duration) (err error) {
			seen.Snapshot, err = t.Snapshot()
			seen.round(elapsed)
			return err
		}, &seen.traceSeen)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, seen)
		}
		_, err = fmt.Fprint(w.stdout, runqueueText(seen, w.columns()))
		return err
	}
	return withExits(c, exitOK, exitUsage, exitMissing)
}

func traceDuration(c *cobra.Command) *time.Duration {
	var d time.Duration
	durationFlag(c.Flags(), &d, "duration", "d", 10*time.Second, "how long to watch")
	return &d
}

// traceSeen is what all tracers' documents begin with.
type traceSeen struct {
	Tracer  string  `json:"tracer"`
	Seconds float64 `json:"seconds"`
	CPUs    int     `json:"cpus"`
	// Programs are the tracer's BPF programs; Blind is what it cannot see.
	Programs []traceProgram `json:"programs"`
	Blind    []string       `json:"blind"`
}

type traceProgram struct {
	Name       string       `json:"name"`
	Tracepoint string       `json:"tracepoint"`
	Status     model.Status `json:"status"`
}

// traced starts a tracer and looks at it every second, and once at the end.
func traced[T trace.Running](c *cobra.Command, d time.Duration, t trace.Tracer, start func() (T, error),
	look func(T, time.Duration) error, seen *traceSeen) (err error) {
	if d <= 0 {
		return usage(c.CommandPath(), "-d 0: want more than 0")
	}
	if err := t.CanRun(); err != nil {
		return fail(exitMissing, err)
	}
	cpus, err := trace.OnlineCPUs()
	if err != nil {
		return err
	}
	running, err := start()
	if err != nil {
		return fail(exitMissing, err)
	}
	defer func() {
		if e := running.Close(); err == nil {
			err = e
		}
	}()
	*seen = traceSeen{Tracer: t.Name, CPUs: cpus, Blind: t.Blind}
	for _, p := range running.Programs() {
		seen.Programs = append(seen.Programs, traceProgram{p.Name, p.Tracepoint, trace.StatusOf(p.Err)})
	}
	elapsed, err := everySecond(c.Context(), d, func(elapsed time.Duration) error { return look(running, elapsed) })
	seen.Seconds = elapsed.Seconds()
	return err
}

// everySecond calls fn each second until d is over or the context is done, and
// then once more. It returns when that was.
func everySecond(ctx context.Context, d time.Duration, fn func(elapsed time.Duration) error) (time.Duration, error) {
	begin := time.Now()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	end := time.NewTimer(d)
	defer end.Stop()
	for {
		over := false
		select {
		case <-second.C:
		case <-end.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		elapsed := time.Since(begin)
		if err := fn(elapsed); err != nil || over {
			return elapsed, err
		}
	}
}

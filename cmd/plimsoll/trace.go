package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
)

const traceLong = `Watches the kernel itself, through BPF programs on its tracepoints, for what no
counter shows. Everything is added up in the kernel; nothing is stopped or
slowed beyond what "plimsoll trace list" says of each tracer's cost. Plimsoll's
own process is left out. The programs are gone when the command ends, however it
ends.

It needs root, or CAP_BPF and CAP_PERFMON (deepcpu and offcpu CAP_SYSLOG
besides), and a kernel with type information (BTF). "plimsoll trace list" asks
the kernel what it can do; from Linux 5.15 on that is all of it
(docs/kernels.md).`

func traceCommand(w *world) *cobra.Command {
	commands := []*cobra.Command{traceList(w)}
	var at []string
	hosts := pflag.NewFlagSet("", pflag.ContinueOnError) // all tracers', since every start makes each command
	hosts.StringArrayVar(&at, "host", nil, "trace the machine of this host, as `NAME=ssh:HOST` (see plimsoll run); without it this one")
	for _, t := range allTracers(w) {
		c := traceOne(w, t, &at)
		c.Flags().AddFlagSet(hosts)
		commands = append(commands, c)
	}
	return withExits(group("trace", "watch the kernel for what no counter shows", traceLong, commands...), exitOK, exitUsage, exitMissing)
}

// traceListing is a tracer in trace list.
type traceListing struct {
	Name   string       `json:"name"`
	About  string       `json:"about"`
	Level  string       `json:"level"`
	CanRun model.Status `json:"can_run"`
	// Missing are those of its signals that cannot be read here, though it can run.
	Missing     map[string]model.Status `json:"missing,omitempty"`
	FirstKernel string                  `json:"first_kernel"`
	Cost        string                  `json:"cost"`
	Blind       []string                `json:"blind"`
	ByHand      string                  `json:"by_hand"`
	Signals     []string                `json:"signals"`
}

func traceList(w *world) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "the tracers, and whether they can run here", Args: noArguments,
		Long: "Lists every tracer, a line each: whether it can run here, and what it shows. -v\nsays of each also what it costs, what it cannot see, and the classic tool that\nshows the same."}
	var verbose bool
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "all that is known of each, not one line")
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		var list []traceListing
		for _, t := range allTracers(w) {
			list = append(list, listingOf(t))
		}
		trace.ForgetTypes()
		if *asJSON {
			return printJSON(w.stdout, tracerList{list})
		}
		if !verbose {
			printTracers(w, list)
			return nil
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

// listingOf asks the kernel whether it takes the tracer's programs.
func listingOf(t trace.Tracer) traceListing {
	l := traceListing{Name: t.Name, About: t.About, Level: t.Level.String(), CanRun: host.StatusOf(t.CanRun()),
		FirstKernel: t.FirstKernel.String(), Cost: t.Cost, Blind: t.Blind, ByHand: t.ByHand}
	for _, s := range t.Signals {
		l.Signals = append(l.Signals, s.Name)
	}
	if status, err := t.Try(); err == nil && l.CanRun.State == model.Read {
		maps.DeleteFunc(status, func(_ string, s model.Status) bool { return s.State == model.Read })
		l.Missing = status
	}
	return l
}

// tracerList is what trace list --json prints.
type tracerList struct {
	Tracers []traceListing `json:"tracers"`
}

// here says in a word whether a tracer can run.
func (l traceListing) here() string {
	switch {
	case l.CanRun.State != model.Read:
		return "no"
	case len(l.Missing) > 0:
		return "in part"
	}
	return "yes"
}

// printTracers writes a line for each tracer, and each reason why one cannot run once.
func printTracers(w *world, list []traceListing) {
	rows := [][]string{{"TRACER", "LEVEL", "HERE", "SHOWS"}}
	for _, l := range list {
		rows = append(rows, []string{l.Name, l.Level, l.here(), l.About})
	}
	w.table(rows)
	told := map[string]bool{}
	for _, l := range list {
		if why := l.CanRun.Why; l.here() == "no" && !told[why] {
			told[why] = true
			fmt.Fprintf(w.stdout, "\nno: %s\n", layout.Indent(layout.Wrap(why, w.columns()-4), "    "))
		}
	}
}

func listingText(l traceListing, width int) string {
	can := l.here()
	if can == "no" {
		can += ": " + l.CanRun.Why
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", l.Name)
	field := func(label, text string) {
		fmt.Fprintf(&b, "  %-9s %s\n", label, layout.Indent(layout.Wrap(text, width-12), strings.Repeat(" ", 12)))
	}
	field("shows", l.About)
	field("level", l.Level)
	field("can run", can)
	for _, name := range slices.Sorted(maps.Keys(l.Missing)) {
		field("not", name+": "+l.Missing[name].Why)
	}
	field("cost", l.Cost)
	for _, blind := range l.Blind {
		field("blind", blind)
	}
	field("by hand", l.ByHand)
	return b.String()
}

// traceOne is the command of one tracer.
func traceOne(w *world, t trace.Tracer, at *[]string) *cobra.Command {
	c := &cobra.Command{Use: t.Name + " [-d DURATION]", Short: t.Short, Args: noArguments,
		Long:    t.Long + "\n\n^C ends it early; what was seen is shown.",
		Example: "  plimsoll trace " + t.Name + " -d 10s\n  plimsoll trace " + t.Name + " --json | jq .seen", DisableFlagsInUseLine: true}
	d := 10 * time.Second
	durationFlag(c.Flags(), &d, "duration", "d", d, "how long to watch")
	asJSON := jsonFlag(c)
	var file string
	if t.Profile != "" {
		c.Flags().StringVarP(&file, "output", "o", "", "write the stacks to this `FILE`, as pprof (go tool pprof, speedscope and plimsoll flame open it)")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if d <= 0 {
			return usage(c.CommandPath(), "-d 0: want more than 0")
		}
		via, err := wholeMachine(*at)
		if err != nil {
			return usage(c.CommandPath(), "%v", err)
		}
		if via != "" {
			if file != "" {
				return usage(c.CommandPath(), "-o writes the stacks of this machine alone; leave --host out, or take --trace full in plimsoll watch, which keeps those of all")
			}
			return relay(c.Context(), w, via, "trace", t.Name, "-d", d.String(), "--json="+strconv.FormatBool(*asJSON))
		}
		seen, err := watchWith(c.Context(), t, d, file)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, seen)
		}
		_, err = fmt.Fprint(w.stdout, seen.Seen.Text(w.columns())+unattached(seen.Programs, w.columns()))
		return err
	}
	return withExits(c, exitOK, exitUsage, exitMissing, exitRunDir)
}

// traceSeen is the document of every tracer.
type traceSeen struct {
	Tracer  string  `json:"tracer"`
	Seconds float64 `json:"seconds"`
	// Programs are the tracer's BPF programs; Blind is what it cannot see.
	Programs []traceProgram `json:"programs"`
	Blind    []string       `json:"blind"`
	// Seen is what it saw; every tracer has its own.
	Seen trace.Report `json:"seen"`
}

type traceProgram struct {
	Name       string       `json:"name"`
	Tracepoint string       `json:"tracepoint"`
	Status     model.Status `json:"status"`
}

// watchWith starts a tracer and looks at it every second, and once at the end.
// Its stacks go to the file, if one is named.
func watchWith(ctx context.Context, t trace.Tracer, d time.Duration, file string) (seen traceSeen, err error) {
	if err := t.MayRun(); err != nil {
		return seen, fail(exitMissing, err)
	}
	running, err := t.Start()
	trace.ForgetTypes()
	if err != nil {
		return seen, fail(exitMissing, err)
	}
	defer func() {
		if e := running.Close(); err == nil {
			err = e
		}
	}()
	if err := t.Lacks(running.Programs()); err != nil {
		return seen, fail(exitMissing, err)
	}
	seen = traceSeen{Tracer: t.Name, Blind: t.Blind}
	for _, p := range running.Programs() {
		seen.Programs = append(seen.Programs, traceProgram{p.Name, p.Tracepoint, host.StatusOf(p.Err)})
	}
	elapsed, err := everySecond(ctx, d, func(elapsed time.Duration) (err error) {
		seen.Seen, err = running.Report(elapsed)
		return err
	})
	seen.Seconds = elapsed.Seconds()
	if err != nil || file == "" {
		return seen, err
	}
	return seen, writeProfile(running.(trace.Profiler), file)
}

func writeProfile(from trace.Profiler, file string) error {
	stacks, err := from.Profile()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := stacks.Write(&b); err != nil {
		return fmt.Errorf("write the stacks as pprof: %w", err)
	}
	return fail(exitRunDir, writer.File(file, b.Bytes()))
}

// unattached says which programs are missing, and why.
func unattached(programs []traceProgram, columns int) string {
	var b strings.Builder
	for _, p := range programs {
		if p.Status.State == model.Read {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n")
		}
		text := fmt.Sprintf("note: not seen: %s (%s)", p.Tracepoint, p.Status.Why)
		b.WriteString(layout.Indent(layout.Wrap(layout.Clean(text), columns-6), "      ") + "\n")
	}
	return b.String()
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
		// What could not be read once is read again: only how it ends counts.
		if err := fn(elapsed); over {
			return elapsed, err
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/session"
)

// loadOutput is what load prints and writes, and what it is held against.
type loadOutput struct {
	asJSON      bool
	limit, knee bool
	format      string
	files       []string
	gate        gateFlags
	note        string // what is told besides, "" for nothing
}

func (o *loadOutput) add(c *cobra.Command) {
	fs := c.Flags()
	fs.BoolVar(&o.asJSON, "json", false, "print one JSON document")
	o.gate.addGoals(c)
	o.gate.addOutput(c, "--slo")
	fs.StringVar(&o.format, "format", "text", "print the result as `TOOL` does, for scripts that read that: wrk or ab; lines of it for which there is no figure are left out")
	fs.StringArrayVarP(&o.files, "output", "o", nil, "write the numbers to this `FILE`, too: .csv (a line for each reading, once a second), .hlog (an HdrHistogram log of latencies) or .prom (the last readings in Prometheus' text format). May be given again")
	fs.BoolVar(&o.limit, "find-limit", false, "search for the highest rate that keeps --slo")
	fs.BoolVar(&o.knee, "find-knee", false, "search for the number of connections, up to -c, beyond which more of them add more waiting than throughput")
}

// check says what is wrong with the flags, before anything is sent.
func (o *loadOutput) check(command string) error {
	if err := checkFormat(command, o.format, o.asJSON || o.limit || o.knee); err != nil {
		return err
	}
	switch {
	case o.limit && o.knee:
		return usage(command, "--find-limit looks for a rate, --find-knee for a number of connections; leave out one of both")
	case o.knee && len(o.files) > 0:
		return usage(command, "-o is about one load, and --find-knee makes many; leave out one of both (--json has each number of connections)")
	case o.knee && (o.gate.slo != "" || o.gate.junit != "" || o.gate.github):
		return usage(command, "--slo, --junit and --github are about one load, and --find-knee makes many; leave them out, or search for the highest rate that keeps them (--find-limit)")
	case o.limit && o.gate.slo == "":
		return usage(command, "--find-limit needs --slo, what has to be kept, like 'p99<50ms,errors<0.1%%'")
	case o.limit && len(o.files) > 0:
		return usage(command, "-o is about one load, and --find-limit makes many; leave out one of both (--json has each rate)")
	case o.limit && (o.gate.junit != "" || o.gate.github):
		return usage(command, "--junit and --github tell whether --slo was kept, and --find-limit looks for where it is not; leave out one of both")
	}
	return nil
}

// around checks the flags around a load; held says that it is held against goals here.
func (o *loadOutput) around(c *cobra.Command, args []string, w *world, drive func(*cobra.Command, []string) error, held bool) error {
	if err := o.check(c.CommandPath()); err != nil {
		return err
	}
	if held && !o.limit { // which looks for where they are not kept
		return o.gate.around(w, drive)(c, args)
	}
	if err := o.gate.check(c); err != nil {
		return err
	}
	return drive(c, args)
}

// words are the flags for what is printed, as they are given to a pod.
func (o *loadOutput) words() (list []string) {
	if o.asJSON {
		list = append(list, "--json")
	}
	if o.limit {
		list = append(list, "--find-limit")
	}
	if o.gate.slo != "" {
		list = append(list, "--slo", o.gate.slo)
	}
	if o.format != "text" {
		list = append(list, "--format", o.format)
	}
	return list
}

// playLoad plays a plan, or searches with it for the limit or the knee.
func playLoad(c *cobra.Command, w *world, crew *crew, plan model.LoadPlan, out *loadOutput, may bool) error {
	if err := crew.ready(c.Context(), w, plan, may, false); err != nil {
		return err
	}
	if out.knee {
		return findKnee(c.Context(), w, plan, out.asJSON)
	}
	if out.limit {
		return findLimit(c.Context(), w, crew, plan, out.gate.goals, out.asJSON)
	}
	files, err := openLoadFiles(c.CommandPath(), out.files)
	if err != nil {
		return err
	}
	return loadOnce(c.Context(), w, crew, plan, out, files)
}

// loadOnce drives a plan and tells what came of it.
func loadOnce(ctx context.Context, w *world, crew *crew, plan model.LoadPlan, out *loadOutput, files loadFiles) error {
	line := w.progress()
	var show func(session.Progress)
	if line != nil {
		show = line.show
	}
	last, err := session.Load(ctx, crew.engines(w), plan, show, files.keep)
	line.end()
	if err != nil { // what was kept until then is not lost with it
		return errors.Join(err, files.close())
	}
	cancelled := last.Totals != nil && last.Totals.Cancelled
	got := loadOf(plan, last)
	why := explainAll(plan, got, crew.roomOf(ctx, plan))
	if out.note != "" {
		why = append(why, out.note)
	}
	switch {
	case out.format != "text":
		err = report.FormatOf(w.stdout, out.format, plan.WithoutSecrets(), got)
		for _, text := range why {
			fmt.Fprintln(w.stderr, "plimsoll:", text)
		}
	case out.asJSON:
		err = printJSON(w.stdout, loadDocument{plan.WithoutSecrets(), got, why, cancelled})
	default:
		if cancelled {
			why = append(why, "interrupted: the load was stopped before its plan was done")
		}
		err = report.LoadText(w.stdout, version, plan.WithoutSecrets(), got, why, report.TextOptions{Width: w.columns(), Color: w.color()})
	}
	if err = errors.Join(err, files.close()); cancelled {
		err = errors.Join(err, fail(exitInterrupted, errors.New("interrupted: the load was stopped before its plan was done")))
	}
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s good replies/s, %s of %s requests (%s)", layout.Rate(got.GoodRPS), layout.Count(got.Good()), layout.Count(got.Requests), plan.WithoutSecrets().URL)
	return out.gate.tell(w, out.gate.hold(&got, model.Verdict{}), said, fellShort(plan, got))
}

// checkFormat says what is wrong with --format; other means that something else was asked for that it does not go with.
func checkFormat(command, format string, other bool) error {
	switch {
	case format != "text" && format != "wrk" && format != "ab":
		return usage(command, "--format %s: want text, wrk or ab (--json is for all else)", format)
	case format != "text" && other:
		return usage(command, "--format %s goes with none of --json, --find-limit and --find-knee; leave out one of them", format)
	}
	return nil
}

// loadDocument is what load prints with --json.
type loadDocument struct {
	Plan         model.LoadPlan `json:"plan"`
	Load         model.Load     `json:"load"`
	Explanations []string       `json:"explanations"`
	// Interrupted says that the load was stopped before its plan was done.
	Interrupted bool `json:"interrupted"`
}

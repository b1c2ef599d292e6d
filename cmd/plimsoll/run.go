package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/model"
	"plimsoll/internal/session"
)

const runLong = `Drives HTTP load at URL from this host, watches this host and every --host the
requests pass through, and prints the verdict: what was offered and what came
back, the one cause that held it back, and how to mend it. -v adds the evidence,
-vv what was ruled out and what could not be seen.

The course: "baseline" (no load) shows what was so before; "calm" (one connection)
tells a slow application from a small pool; "ramp" opens the connections; "hold"
is the load that was asked for; "cool" watches it settle. Each can be lengthened,
or left out with 0. The verdict is about hold.

Without -R the load is a closed loop: each connection sends its next request when
it has the reply to the last one. With -R it is an open loop: requests are sent
when they are due, and latency counts from that moment, so a stall is not hidden.
A connection that never gets in counts as a failed request.

Run it as root: what belongs to other users' processes, and the kernel's own
tables, are denied to others, and the verdict then says what it could not see.
Take care whom you load: a service in use slows down, or fails, for its users.`

const runExample = `  plimsoll run http://127.0.0.1/ -c 200 -d 10s
  plimsoll run http://10.0.0.2/ -c 1000 --no-keepalive --host server=netns:srv
  plimsoll run http://172.17.0.2/api -R 500 --body @order.json \
      -H 'Content-Type: application/json' \
      --host app=pid:$(docker inspect -f '{{.State.Pid}}' app)
  plimsoll run http://127.0.0.1/ --json | jq -r '.verdict.root[].rule'`

const runFiles = `  TIME-ID/, where runs are kept (plimsoll runs); --dir puts it elsewhere. In it:
    run.json       plan, hosts, windows, and what became of each signal
    series/        a Prometheus TSDB
    latency.hlog   an HdrHistogram log
    events.jsonl   what happened, by time
    verdict.json   what --json prints`

func runCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "run URL", Short: "load a service, watch, and name what holds it back", Long: runLong, Example: runExample,
		Args: oneArgument("the URL of the service")}
	var what loadFlags
	var watch watchFlags
	what.add(c, 2*time.Second, time.Second)
	watch.add(c)
	var phases session.Phases
	addPhases(c.Flags(), &phases)
	repeat := 1
	c.Flags().IntVar(&repeat, "repeat", repeat, "make so many runs, in folders 1, 2, … of the run directory; plimsoll compare then knows how runs differ by themselves")
	from := fromFlag(c)
	page, at := reportFlag(c), liveFlag(c)
	var how printFlags
	how.add(c)
	var gate gateFlags
	gate.add(c, true)
	c.RunE = gate.around(w, func(c *cobra.Command, args []string) error {
		if repeat < 1 || repeat > maxRepeat {
			return usage(c.CommandPath(), "--repeat %d: want 1 to %d", repeat, maxRepeat)
		}
		plan, err := what.plan(c.CommandPath(), args[0], c.Flags().Changed)
		if err != nil {
			return err
		}
		what.tell(w)
		again := retyped(c, args)
		crew, err := crewOf(c, w, *from, watch.hosts, &plan)
		if err != nil {
			return err
		}
		defer crew.close()
		opt, err := crew.options(c, w, &watch, plan, what.may)
		if err != nil {
			return err
		}
		opt.CommandLine = again
		shown, err := liveStage(c.CommandPath(), w, *at)
		if err != nil {
			return err
		}
		defer shown.close()
		all := opt.Dir
		var short error
		var dirs []string
		for i := 1; i <= repeat; i++ {
			if repeat > 1 {
				opt.Dir = filepath.Join(all, strconv.Itoa(i))
				if err := gate.begin(fmt.Sprintf("run %d: ", i)); err != nil {
					return err
				}
			}
			err := runOnce(c.Context(), w, crew, opt, plan, phases, &watch.site, how, &gate, shown)
			if err != nil && codeOf(err) != exitNotPassed {
				return err
			}
			short = errors.Join(short, err)
			dirs = append(dirs, opt.Dir)
		}
		return cmp.Or(writePage(*page, dirs, &watch.site), short)
	})
	return withFiles(withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitRules, exitInterrupted), runFiles)
}

const maxRepeat = 1000

func runOnce(ctx context.Context, w *world, crew *crew, opt session.Options, plan model.LoadPlan, phases session.Phases, site *siteFlags, how printFlags, gate *gateFlags, shown *stage) error {
	end := w.follow(&opt, shown, site)
	err := session.Run(ctx, opt, plan, phases)
	end()
	if err != nil {
		return err
	}
	r, err := judgeAndKeep(opt.Dir, site)
	if err != nil {
		return err
	}
	shown.ended(r, opt.Dir)
	if err := w.print(r, how, w.nameOf(opt.Dir)); err != nil || ctx.Err() != nil {
		return err
	}
	if r.Load == nil {
		return gate.judge(w, r, nil)
	}
	for _, why := range explainAll(plan, *r.Load, crew.roomOf(ctx, plan)) {
		fmt.Fprintln(w.stderr, "plimsoll:", why)
	}
	return gate.judge(w, r, fellShort(plan, *r.Load))
}

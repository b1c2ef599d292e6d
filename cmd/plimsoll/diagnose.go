package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/capture"
	"plimsoll/internal/judge"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/remote"
	"plimsoll/internal/ruleset"
)

const diagnoseLong = `Judges a run directory again and prints the verdict. The verdict depends on the
directory and the rules alone: the same directory gives the same answer, to the
byte, on any machine. It only reads. A run that was cut off is judged up to its
last second. "plimsoll show" is the same command. A run is named by its path,
its ID or its age: see plimsoll runs.

What it prints fits a screen, and what to do stands last. -v adds the evidence,
-vv what was ruled out, and what could not be seen.

With capture files (pcap, pcapng) it judges what the wire alone can tell, by the
same rules: losses, resets and why, floods, refused connections, who made whom
wait. What happens inside the hosts is not on the wire, so "nothing found"
there is unclear, too. A file that is cut or broken is judged up to there; the
notes say so, and the exit code is 5. plimsoll capture shows the packets.

With --prometheus it judges what a Prometheus-compatible server has scraped
(node_exporter and its kin) in a window that ends at --at, by the same rules.
Hosts are told by the label host, else by instance, without the port. What
nobody scraped is unknown, never fine, and the verdict says what that was: so
"nothing found" there is unclear, and not healthy.

With --all besides it judges each host by itself, as it would be judged alone, and
prints a line of each, those whose users lose most first. The server is asked for
ten hosts at a time, four times at once, for fewer where it refuses so many, and
again after a pause where it has no time. A host that could not be judged is in
the table, too, and the exit code is 4.`

const diagnoseExample = `  plimsoll show last -v
  plimsoll diagnose 20260102T030405Z-9f3c
  plimsoll diagnose DIR --json | jq .verdict.root
  plimsoll diagnose case.pcapng
  plimsoll diagnose --prometheus http://prometheus:9090 --match host=web1 \
      --at 2026-01-02T15:04:05Z --window 5m
  plimsoll diagnose --prometheus http://prometheus:9090 --all --report fleet.html`

func diagnoseCommand(w *world) *cobra.Command {
	c := &cobra.Command{Aliases: []string{"show"}, Use: "diagnose RUN|FILE...|--prometheus URL", Short: "judge a run again, packet captures, a Prometheus (or: show)", Long: diagnoseLong, Example: diagnoseExample,
		DisableFlagsInUseLine: true}
	var site siteFlags
	site.add(c)
	c.Flags().Lookup("thresholds").Usage = "take a site's thresholds from `FILE`, and not those that were in force when the run was made"
	var far remoteFlags
	far.add(c)
	var last time.Duration
	durationFlag(c.Flags(), &last, "last", "", 0, "of a watch, judge the last part of this length alone")
	c.Flags().Lookup("last").DefValue = ""
	var how printFlags
	how.add(c)
	var gate gateFlags
	gate.add(c, true)
	c.Args = func(c *cobra.Command, args []string) error {
		if far.url != "" && c.Flags().Changed("last") {
			return usage(c.CommandPath(), "--last goes with a run; with --prometheus --window says how much is judged")
		}
		if far.url != "" {
			return noArguments(c, args)
		}
		for _, name := range remoteOnly {
			if c.Flags().Changed(name) {
				return usage(c.CommandPath(), "--%s goes with --prometheus URL", name)
			}
		}
		if c.Flags().Changed("last") && len(args) > 0 && isCapture(args[0]) {
			return usage(c.CommandPath(), "--last goes with a run, not with captures")
		}
		if len(args) > 1 && isCapture(args[0]) {
			return nil
		}
		return oneArgument("a run directory, or capture files")(c, args)
	}
	c.RunE = gate.around(w, func(c *cobra.Command, args []string) error {
		var r model.Report
		var err error
		var cut error // a capture may be judged up to where it ends too early
		switch {
		case far.url == "" && isCapture(args[0]):
			var reading *capture.Reading
			if r, reading, err = judgeCapture(c.Context(), w, args, &site); err == nil {
				cut = partial(reading)
			}
		case far.url == "":
			var dir string
			if dir, err = w.runNamed(args[0]); err == nil {
				r, err = judgePart(dir, &site, last)
			}
		default:
			var q remote.Query
			if q, err = far.query(c.CommandPath(), time.Now()); err != nil {
				return err
			}
			if far.all {
				return fleet(c.Context(), w, q, &site, how, far.page, &gate)
			}
			r, err = judgeRemote(c.Context(), w, q, &site)
		}
		if err != nil {
			return err
		}
		return errors.Join(w.print(r, how, w.nameOf(r.Dir)), cut, gate.judge(w, r, nil))
	})
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitRules)
}

// judgeDir makes the report of a run directory, by the rules that the site's flags say.
func judgeDir(dir string, site *siteFlags) (model.Report, error) {
	return judged(dir, site, nothingMore)
}

// useOfRun is what is done with a run that was judged by these rules, while it is open. What is asked of
// it as the rules were asks nothing twice.
type useOfRun func(*record.Run, *query.Run, ruleset.Rules, model.Report) error

// nothingMore is asked of a run that is judged alone.
func nothingMore(*record.Run, *query.Run, ruleset.Rules, model.Report) error { return nil }

// judgePart is judgeDir, or of its last part alone.
func judgePart(dir string, site *siteFlags, last time.Duration) (r model.Report, err error) {
	if last == 0 {
		return judgeDir(dir, site)
	}
	readsAnybodys()
	run, err := record.Open(dir)
	if err != nil {
		return r, fail(exitRunDir, err)
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if plan := run.Meta().Plan; plan.Mode != "watch" || len(plan.Command) > 0 {
		return r, fail(exitUsage, fmt.Errorf("--last: %s has windows of its own, those of its load; without --last it is judged by them", dir))
	}
	run.Last(last)
	return judgedRun(run, site, nothingMore)
}

// judged is judgeDir, and hands the run to then.
func judged(dir string, site *siteFlags, then useOfRun) (model.Report, error) {
	readsAnybodys()
	read := sync.OnceValues(site.extended)
	go read() //nolint:errcheck // the rules, while the run is opened; judgedBy asks again what it says
	run, err := record.Open(dir)
	if err != nil {
		return model.Report{}, fail(exitRunDir, err)
	}
	defer run.Close()
	return judgedBy(read, run, site, then)
}

// judgedRun is judged of a run that is open.
func judgedRun(run *record.Run, site *siteFlags, then useOfRun) (model.Report, error) {
	return judgedBy(site.extended, run, site, then)
}

// judgedBy is judgedRun where the site's rules are read so.
func judgedBy(rules func() (ruleset.Rules, error), run *record.Run, site *siteFlags, then useOfRun) (model.Report, error) {
	set, notes, err := site.setFor(run.Meta(), rules)
	if err != nil {
		return model.Report{}, err
	}
	q, err := query.Of(run)
	var r model.Report
	if err == nil {
		r, err = judge.Asked(q, run, set)
	}
	if err != nil {
		return model.Report{}, fail(exitRunDir, fmt.Errorf("judge %s: %w", run.Dir(), err))
	}
	r.Notes = slices.Concat(r.Notes, notes)
	return r, then(run, q, set, r)
}

// judgeAndKeep judges a run that was just made, and leaves the verdict in its directory.
func judgeAndKeep(dir string, site *siteFlags) (model.Report, error) {
	r, err := judgeDir(dir, site)
	if err != nil {
		return r, err
	}
	return r, fail(exitRunDir, judge.Keep(r))
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/session"
)

const loadLong = `Drives the load and says what came back, and nothing else: no host is watched, no
run directory is made, there is no verdict. The flags are those of "plimsoll run",
but nothing is sent beside what was asked for: --calm and --ramp are 0.`

func loadCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "load URL", Short: "the load alone", Long: loadLong, Args: oneArgument("the URL of the service"),
		Example: "  plimsoll load http://127.0.0.1/ -c 50 -d 5s\n  plimsoll load http://127.0.0.1/ -R 2000 --json"}
	var what loadFlags
	what.add(c, 0, 0)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		plan, err := what.plan(c.CommandPath(), args[0], c.Flags().Changed)
		if err != nil {
			return err
		}
		if err := reach(c.Context(), w, plan, what.may, false); err != nil {
			return err
		}
		line := w.progress()
		var show func(session.Progress)
		if line != nil {
			show = line.show
		}
		last, err := session.Load(c.Context(), engineCommand(w), plan, show)
		line.end()
		if err != nil {
			return err
		}
		if last.Totals != nil && last.Totals.Cancelled {
			fmt.Fprintln(w.stderr, "plimsoll: interrupted: the load was stopped before its plan was done")
		}
		got := loadOf(plan, last)
		why := explainAll(plan, got, roomFor(c.Context(), plan))
		if *asJSON {
			err = printJSON(w.stdout, map[string]any{"plan": plan.WithoutSecrets(), "load": got, "explanations": why})
		} else {
			err = report.LoadText(w.stdout, version, plan.WithoutSecrets(), got, why, report.TextOptions{Width: w.columns(), Color: w.color()})
		}
		if err != nil || last.Totals != nil && last.Totals.Cancelled {
			return err
		}
		return fellShort(plan, got)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitInterrupted)
}

// loadOf sums up the hold phase of the last record of a load.
func loadOf(plan model.LoadPlan, last load.Record) model.Load {
	l := model.Load{Outcomes: map[string]int64{}}
	for _, p := range last.Phases {
		switch p.Phase {
		case model.Hold:
			l.Outcomes, l.Attempts = p.Outcomes, p.Attempts
			l.Latency, l.Service, l.Connect, l.Waited, l.Lag = p.Response, p.Service, p.Connect, p.Waited, p.Lag
			l.FirstByte, l.Transfer = p.FirstByte, p.Transfer
			l.Seconds = time.Duration((p.End - p.Start) * int64(time.Millisecond)).Seconds()
		case model.Calm:
			l.Calm = p.Response
			fallthrough
		default:
			if l.OtherPhases == nil {
				l.OtherPhases = map[string]int64{}
			}
			l.OtherPhases[p.Phase] = p.Requests
		}
	}
	l.AddUp(plan.Rate > 0)
	if t := last.TLS; t != nil {
		l.TLS = &model.TLSLoad{Handshakes: t.Handshakes, Full: t.Full, Resumed: t.Resumed}
		if t.Crypto.Count > 0 {
			l.TLS.CryptoSeconds = t.Crypto.Seconds / float64(t.Crypto.Count)
		}
	}
	for _, t := range last.Targets {
		of := model.TargetLoad{Name: t.Name, Outcomes: t.Outcomes, Latency: t.Response}
		for _, n := range t.Outcomes {
			of.Requests += n
		}
		l.Targets = append(l.Targets, of)
	}
	l.Causes, l.DNSSeconds = last.Causes, last.DNS
	l.Missing = &model.MissingConnections{Failed: last.Connections.Failed, Untried: last.Connections.Untried}
	return l
}

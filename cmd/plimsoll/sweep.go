package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/change"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/session"
	"plimsoll/internal/tune"
)

const sweepLong = `Tries values of a setting: runs the same load with each of them, in random order,
draws what came of it with intervals, and says whether that is beyond chance.
With several --set it tries every combination. What was set before is restored
after each run, also after ^C; after kill -9 "plimsoll undo --all" does that.

KIND is sysctl, nginx, phpfpm, backlog (NAME is the listener's address), nice
or policy (NAME is a process), rps or txqueue (NAME is a network device).`

func sweepCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "sweep URL --set KIND:NAME=VALUE,VALUE...", Short: "try values of a setting, and draw what each brings", Long: sweepLong,
		Example: `  plimsoll sweep http://127.0.0.1/ --set nginx:worker_connections=256,1024,4096
  plimsoll sweep http://10.0.0.2/ --host server=netns:srv --on server \
      --set phpfpm:pm.max_children=8,16,32 --set backlog:127.0.0.1:9000=128,1024`,
		Args: oneArgument("the URL of the service")}
	var what loadFlags
	var watch watchFlags
	var phases session.Phases
	what.add(c, 2*time.Second, time.Second)
	watch.add(c)
	addPhases(c.Flags(), &phases)
	sets := c.Flags().StringArray("set", nil, "a setting and its values, as `KIND:NAME=VALUE,VALUE`; may be given again")
	on := c.Flags().String("on", "", "the `HOST` whose setting it is (default: the only --host, else local)")
	repeat := c.Flags().Int("repeat", 3, "run each `N` times")
	seed := c.Flags().Uint64("seed", 0, "seed of the random order (default: another each time)")
	var dir string
	addJournal(c.Flags(), w, &dir)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		settings, err := readSettings(c.CommandPath(), *sets, *repeat)
		if err != nil {
			return err
		}
		d, err := newDriver(c, w, &what, &watch, phases, args[0])
		if err != nil {
			return err
		}
		host, err := sweptHost(c.CommandPath(), *on, d.opt.Hosts)
		if err != nil {
			return err
		}
		if err := reach(c.Context(), w, d.plan, what.may, len(d.opt.Hosts) > 0); err != nil {
			return err
		}
		if *seed == 0 {
			*seed = rand.Uint64N(1_000_000) + 1
		}
		return d.sweep(c.Context(), host, settings, *repeat, *seed, dir, *asJSON)
	}
	return withFiles(withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitInterrupted),
		"  TIME-ID/1, 2, …   the runs, where runs are kept (plimsoll runs), or --dir\n  "+journalFiles)
}

func readSettings(command string, sets []string, repeat int) ([]tune.Setting, error) {
	if len(sets) == 0 {
		return nil, usage(command, "it needs --set, a setting with the values to try")
	}
	if repeat < 1 || repeat > maxRepeat {
		return nil, usage(command, "--repeat %d: want 1 to %d", repeat, maxRepeat)
	}
	var list []tune.Setting
	for _, text := range sets {
		s, err := tune.ParseSetting(text)
		if err != nil {
			return nil, usage(command, "--set %v", err)
		}
		list = append(list, s)
	}
	list, err := tune.Sweepable(list)
	if err != nil {
		return nil, usage(command, "--set %v", err)
	}
	return list, nil
}

// sweptHost is the host on which the settings are changed.
func sweptHost(command, on string, hosts []session.HostSpec) (string, error) {
	var names []string
	for _, h := range hosts {
		if h.Name == on {
			return on, nil
		}
		names = append(names, h.Name)
	}
	switch {
	case on == "" && len(names) == 0, on == "local" && len(names) == 0:
		return "local", nil
	case on == "" && len(names) == 1:
		return names[0], nil
	case on == "":
		return "", usage(command, "--on: say whose setting it is: %s", strings.Join(names, ", "))
	}
	return "", usage(command, "--on %s: no such --host%s", on, layout.Maybe(on, names))
}

// sweeper prepares settings of the command line: those of nginx are the ones of the
// nginx under load, and what cannot be set is a matter of what was asked for.
func (d *driver) sweeper(ctx context.Context) func(model.FixChange) (change.Step, error) {
	at := ""
	if target := targetOf(ctx, d.plan); target.IsValid() {
		at = target.String()
	}
	return func(x model.FixChange) (change.Step, error) {
		if x.Kind == model.ChangeNginx {
			x.ListensAt = at
		}
		step, err := d.prepare(ctx, x)
		if err != nil && codeOf(err) == exitInternal && !errors.Is(err, change.ErrAlready) {
			err = fail(exitUsage, fmt.Errorf("--set %s:%s=%s: %w", x.Kind, x.Name, x.Value, err))
		}
		return step, err
	}
}

func (d *driver) sweep(ctx context.Context, host string, settings []tune.Setting, repeat int, seed uint64, journalDir string, asJSON bool) error {
	w := d.w
	journals, err := openJournals(ctx, d.there, journalDir, d.opt.Hosts)
	if err != nil {
		return err
	}
	defer journals.close()
	tools := d.tools(ctx)
	tools.Prepare = d.sweeper(ctx)
	said := map[string]bool{}
	tools.Apply = func(ctx context.Context, s change.Step) (change.Entry, error) {
		for _, note := range s.Notes { // such as that the kernel takes less than was asked for
			if text := fmt.Sprintf("%s: %s", s.Change, note); !said[text] {
				fmt.Fprintln(w.stderr, "plimsoll:", layout.Line(text))
				said[text] = true
			}
		}
		e, err := journals.Apply(ctx, s)
		return e, asked(err)
	}
	shown := func(i, n int, p model.SweepPoint, load model.TuneLoad) {
		fmt.Fprintf(w.stderr, "%d of %d: %s: %s good/s, p99 %s\n", i, n, strings.Join(p.Settings, " "), layout.Rate(*load.GoodRPS), layout.Micros(*load.P99))
	}
	result, err := tune.Sweep(ctx, tools, host, settings, repeat, seed, journals.undo, shown)
	if errors.Is(err, tune.ErrNotRestored) {
		return fail(exitNotPassed, err)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(w.stdout, result)
	} else {
		err = report.Sweep(w.stdout, result, report.TextOptions{Width: w.columns(), Color: w.color()})
	}
	return cmp.Or(err, allFailed(result))
}

// asked makes an error of the command line of a value that was tried, refused and taken back.
func asked(err error) error {
	if isAny(err, change.ErrValue, change.ErrNotPossible, change.ErrRefused) {
		return fail(exitUsage, fmt.Errorf("--set: %w", err))
	}
	return err
}

// allFailed is the error of a sweep of which nothing succeeded, with any value.
func allFailed(s model.Sweep) error {
	runs := 0
	for _, p := range s.Points {
		if slices.ContainsFunc(p.Loads, func(l model.TuneLoad) bool { return !l.Failed() }) {
			return nil
		}
		runs += len(p.Loads)
	}
	return fail(exitNotPassed, fmt.Errorf("not one good reply in %d runs", runs))
}

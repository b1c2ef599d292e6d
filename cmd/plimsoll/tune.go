package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/change"
	"plimsoll/internal/collect/pipe"
	"plimsoll/internal/compare"
	"plimsoll/internal/diagnose"
	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/session"
	"plimsoll/internal/tune"
)

const tuneLong = `Finds what holds the service back, changes one thing, runs the same load again,
keeps what helped, and goes on: until nothing holds it back, the machine has no
more to give, the goals of --slo are met, or what is left is not for a program.

With CMD, your own load tool, it drives no load of Plimsoll's: each run is a watch
(see plimsoll watch) while CMD runs. What users get is not known then. So a change
is judged by its rule and by whether the same cause is named again, --slo has
nothing to go by, and the numbers of the load are dashes (null in JSON). CMD reads
nothing from this terminal, so that each of its runs is the same; where it ends
with an error, tune says so and goes on. --json sends its standard output to
standard error.

Without --apply it runs once, shows the first change it would make (what, from
which value to which, risk, costs, how it is undone), and stops.

With --apply each change is judged by the run after it. Kept is what did what its
rule promises ("accept") and made the result better beyond the noise. What did
what it should and does not pay yet is on trial, since limits stack: at the end it
is left out once, and stays only if it is missed. All else is taken back.

Nothing that it changes needs a restart: what is set takes effect in the running
process or with a reload, and a listener's queue is set on the open socket. A fix
that does need one is left to a person.

An nginx or PHP-FPM is changed by its own user alone: root's by root, another
user's by that user (sudo -u USER plimsoll tune …), and only if nobody else can
write its program or its configuration. Its own program tests a configuration,
with no more rights than the service has.

Each change is in a journal, on disk, before it is made, on the machine that is
changed: "plimsoll undo" takes changes back on any later day, also after kill -9
or a restart; on another machine with --host NAME=ssh:HOST. Where the way to
another machine is cut, what was changed there is taken back there. After ^C, or
when nobody reads its output any more (tune … | head), tune takes back all it
changed, since half a walk was never measured as a whole. Asked again, it still
does; only the third ^C ends it before.

Goals (--slo), set apart by commas, all have to hold: p50, p90, p95, p99, p999 or
max below a time (of what users waited, failed requests included), "errors" below
a share of what was tried, "good" above a number of good replies a second, "share"
above a share of requests; <= and >= keep the bound itself, too.`

const tuneExample = `  plimsoll tune http://10.0.0.2/ -c 200 --host server=netns:srv
  plimsoll tune http://10.0.0.2/ -c 200 --host server=netns:srv --apply
  plimsoll tune http://127.0.0.1/ --apply --slo 'p99<50ms,good>5000/s'
  plimsoll tune http://127.0.0.1/ --apply --max-risk low --never nginx
  plimsoll tune --apply -- wrk -t2 -c200 -d10 http://127.0.0.1/
  plimsoll tune --status`

type tuneFlags struct {
	load    loadFlags
	watch   watchFlags
	phases  session.Phases
	opt     tune.Options
	slo     string
	journal string
	status  bool
	report  *string
	ofLoad  []string // the names of the flags that are about a load of ours
}

func tuneCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "tune [flags] {URL | -- CMD...}", Short: "find, change, run again, keep or undo, until nothing holds it back", Long: tuneLong, Example: tuneExample,
		DisableFlagsInUseLine: true}
	f := &tuneFlags{}
	f.load.add(c, 2*time.Second, time.Second)
	addPhases(c.Flags(), &f.phases)
	c.Flags().VisitAll(func(one *pflag.Flag) { f.ofLoad = append(f.ofLoad, one.Name) })
	f.watch.add(c)
	f.add(c.Flags(), w)
	asJSON := jsonFlag(c)
	f.report = reportFlag(c)
	c.Args = func(c *cobra.Command, args []string) error {
		switch dash := c.ArgsLenAtDash(); {
		case f.status:
			return noArguments(c, args)
		case dash > 0:
			return usage(c.CommandPath(), "%q before the --, and a command after it: give the URL of the service or a command, not both", args[0])
		case dash == 0 && len(args) > 0:
			return f.checkCommand(c)
		}
		return oneArgument("the URL of the service (or -- and a command that is its load)")(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.status {
			return f.printStatus(c, w, *asJSON)
		}
		return f.tune(c, w, args, *asJSON)
	}
	return withFiles(withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitRules, exitInterrupted),
		"  TIME-ID/1, 2, …                 where runs are kept (plimsoll runs), or --dir:\n                                   the runs; what came of all is in tuning.json\n  "+journalFiles)
}

// serviceTest is the process that becomes a service's own program, with no more
// rights than the service has, to have it test a configuration.
func serviceTest() *cobra.Command {
	return &cobra.Command{Use: change.BenchName, Short: "test a service's configuration (Plimsoll's own child)", Hidden: true, Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return change.Bench() }}
}

const journalFiles = `/var/lib/plimsoll/changes        the journal of changes, root's
  ~/.local/state/plimsoll/changes  the same of other users; where XDG_STATE_HOME
                                   is set, in there
  /run/plimsoll/lock               held while root's plimsoll changes this machine`

func (f *tuneFlags) add(fs *pflag.FlagSet, w *world) {
	fs.BoolVar(&f.opt.Apply, "apply", false, "make the changes; without it the first is only shown")
	fs.StringVar(&f.slo, "slo", "", "what is good enough, like 'p99<50ms,good>5000/s,share>99.9%'; tune stops there")
	fs.StringVar(&f.opt.MaxRisk, "max-risk", "medium", "make no change of a higher `RISK`: low, medium or high")
	fs.StringArrayVar(&f.opt.Only, "only", nil, "make only changes of this `RULE` (net. means all beneath it) or kind (sysctl, nginx …); may be given again")
	fs.StringArrayVar(&f.opt.Never, "never", nil, "make no change of this `RULE` or kind; may be given again")
	fs.IntVar(&f.opt.MaxSteps, "max-steps", 12, "make at most `N` changes")
	fs.BoolVar(&f.status, "status", false, "list the changes that stand, and whether a tune is at work")
	addJournal(fs, w, &f.journal)
}

// check reads what the flags say about changing.
func (f *tuneFlags) check(command string) error {
	var err error
	switch {
	case !slices.Contains(tune.Risks(), f.opt.MaxRisk):
		return usage(command, "--max-risk %s: want low, medium or high", f.opt.MaxRisk)
	case f.opt.MaxSteps < 1:
		return usage(command, "--max-steps %d: want at least 1", f.opt.MaxSteps)
	case f.slo != "":
		if f.opt.Goals, err = tune.ParseGoals(f.slo); err != nil {
			return usage(command, "--slo: %v", err)
		}
	}
	return nil
}

// checkNames says which name of --only and --never is none: a change that was to be
// left out would be made.
func (f *tuneFlags) checkNames(command string, set ruleset.Rules) error {
	known := []string{model.ChangeSysctl, model.ChangeNginx, model.ChangePHPFPM, model.ChangeBacklog, model.ChangeLimit, model.ChangeNice, model.ChangePolicy,
		model.ChangeAffinity, model.ChangeQuota, model.ChangeRPS, model.ChangeTxQueue}
	for _, r := range set.List {
		known = append(known, r.ID)
	}
	for _, name := range slices.Concat(f.opt.Only, f.opt.Never) {
		beneath := func(id string) bool { return id == name || strings.HasSuffix(name, ".") && strings.HasPrefix(id, name) }
		if !slices.ContainsFunc(known, beneath) {
			return usage(command, "--only and --never: %q is no rule and no kind of change%s", name, layout.Maybe(name, known))
		}
	}
	return nil
}

// checkCommand says which flags have no meaning when the load is a command's.
func (f *tuneFlags) checkCommand(c *cobra.Command) error {
	for _, name := range f.ofLoad {
		if c.Flags().Changed(name) {
			return usage(c.CommandPath(), "--%s is about a load of Plimsoll's own; the command after -- is the load here, so leave one of them out", name)
		}
	}
	if f.slo != "" {
		return usage(c.CommandPath(), "--slo: what users get is known of a load of Plimsoll's own alone, not of a command's; leave it out, or give the URL of the service")
	}
	return nil
}

// driver makes what drives the load: Plimsoll's own, or a command.
func (f *tuneFlags) driver(c *cobra.Command, w *world, args []string, asJSON bool) (*driver, error) {
	if c.ArgsLenAtDash() == 0 {
		std := session.WatchIO{Stdout: w.commandOut, Stderr: w.commandErr}
		if asJSON {
			std.Stdout = w.commandErr
		}
		return commandDriver(c, w, &f.watch, args, std)
	}
	d, err := newDriver(c, w, &f.load, &f.watch, f.phases, args[0])
	if err != nil {
		return nil, err
	}
	return d, reach(c.Context(), w, d.plan, f.load.may, len(d.opt.Hosts) > 0)
}

func (f *tuneFlags) tune(c *cobra.Command, w *world, args []string, asJSON bool) error {
	if err := f.check(c.CommandPath()); err != nil {
		return err
	}
	d, err := f.driver(c, w, args, asJSON)
	if err == nil {
		err = f.checkNames(c.CommandPath(), d.rules)
	}
	if err != nil {
		return err
	}
	tools := d.tools(c.Context())
	if f.opt.Apply {
		journals, err := openJournals(c.Context(), d.there, f.journal, d.opt.Hosts)
		if err != nil {
			return err
		}
		defer journals.close()
		tools.Apply, tools.LeaveOut = journals.Apply, journals.LeaveOut
	}
	defer d.there.close()
	layoutOptions := report.TextOptions{Width: w.columns(), Color: w.color()}
	ctx, giveUp := context.WithCancelCause(c.Context())
	defer giveUp(nil)
	if !asJSON {
		said := func(err error) {
			if err != nil {
				giveUp(fmt.Errorf("%w (%w), so it ended as with ^C", errUnread, err))
			}
		}
		tools.Show = func(s model.TuneStep) { said(report.TuneStep(w.stdout, s, layoutOptions)) }
		tools.Judge = func(s model.TuneStep) { said(report.TuneJudged(w.stdout, s, layoutOptions)) }
	}
	result, walked := tune.Walk(ctx, tools, f.opt)
	if cause := context.Cause(ctx); walked != nil && errors.Is(cause, errUnread) {
		walked = fmt.Errorf("%w: %w", cause, walked)
	}
	result.Journal = f.journal
	if err := keepTuning(d.dir, result); err != nil && walked == nil {
		walked = err
	}
	if err := walkPage(*f.report, result, &f.watch.site); err != nil && walked == nil {
		walked = err
	}
	if asJSON {
		err = printJSON(w.stdout, result)
	} else if len(result.Steps) > 0 {
		err = report.Tuning(w.stdout, result, layoutOptions)
	}
	if errors.Is(walked, tune.ErrNotUndone) {
		return fail(exitNotPassed, walked)
	}
	if walked == nil && unread(err) {
		walked = fmt.Errorf("the walk is done, and what it kept stands (plimsoll tune --status), but %w: %w", errUnread, err)
	}
	if walked == nil && err == nil && result.End.Failed() {
		err = fail(exitNotPassed, fmt.Errorf("not one good reply in %s", result.End.Dir))
	}
	return cmp.Or(walked, err)
}

func keepTuning(dir string, result model.Tuning) error {
	if len(result.Steps) == 0 {
		return nil // there is not even a run
	}
	var doc bytes.Buffer
	if err := printJSON(&doc, result); err != nil {
		return err
	}
	return fail(exitRunDir, writer.File(filepath.Join(dir, tuningFile), doc.Bytes()))
}

// driver makes runs of one load, one after the other.
type driver struct {
	w      *world
	plan   model.LoadPlan
	phases session.Phases
	// command is the load in place of a plan; std is what it is connected to.
	command []string
	std     session.WatchIO
	opt     session.Options
	site    *siteFlags
	rules   ruleset.Rules
	there   *changesThere // on other machines
	dir     string        // of all runs
	made    int
}

func newDriver(c *cobra.Command, w *world, what *loadFlags, watch *watchFlags, phases session.Phases, url string) (*driver, error) {
	plan, err := what.plan(c.CommandPath(), url, c.Flags().Changed)
	if err != nil {
		return nil, err
	}
	what.tell(w)
	d, err := watchDriver(c, w, watch)
	if err != nil {
		return nil, err
	}
	d.plan, d.phases = plan, phases
	return d, nil
}

// commandDriver makes a driver whose load is a command.
func commandDriver(c *cobra.Command, w *world, watch *watchFlags, command []string, std session.WatchIO) (*driver, error) {
	d, err := watchDriver(c, w, watch)
	if err != nil {
		return nil, err
	}
	d.command, d.std = command, std
	return d, nil
}

// watchDriver is a driver without a load.
func watchDriver(c *cobra.Command, w *world, watch *watchFlags) (*driver, error) {
	opt, err := watch.options(c.CommandPath(), w, time.Now())
	if err != nil {
		return nil, err
	}
	set, err := watch.site.set(w)
	return &driver{w: w, opt: opt, site: &watch.site, rules: set, there: &changesThere{w: w}, dir: opt.Dir}, err
}

// tools are those of the loop, but for what changes something.
func (d *driver) tools(ctx context.Context) tune.Tools {
	prepare := func(x model.FixChange) (change.Step, error) { return d.prepare(ctx, x) }
	tools := tune.Tools{Run: d.run, Accepted: d.accepted, Compare: compareRuns, Prepare: prepare, Shut: d.shut}
	if len(d.command) > 0 {
		tools.Compare = nil
	}
	return tools
}

// shut says whether an error is that the machine of one of these hosts was not reached, and it lets nobody in now: a run
// fails of other machines, too, and of much else (another version there, too many logins at once).
func (d *driver) shut(ctx context.Context, err error, hosts []string) bool {
	var dial pipe.DialError
	if !errors.As(err, &dial) {
		return false
	}
	ofOne := func(name string) bool {
		spec, err := hostNamed(name, d.opt.Hosts)
		return err == nil && isFar(spec) && spec.Via == dial.Via
	}
	return slices.ContainsFunc(hosts, ofOne) && letsIn(ctx, dial.Via) != nil && ctx.Err() == nil
}

func (d *driver) run(ctx context.Context) (tune.Seen, error) {
	d.made++
	opt := d.opt
	opt.Dir = filepath.Join(d.dir, strconv.Itoa(d.made))
	exit, err := d.drive(ctx, opt)
	if err == nil {
		err = ctx.Err() // half a run is not worth a verdict here
	}
	if err != nil {
		return tune.Seen{}, err
	}
	r, err := judgeAndKeep(opt.Dir, d.site)
	return tune.Seen{Dir: opt.Dir, Verdict: r.Verdict, Load: r.Load, Exit: exit}, err
}

// drive makes one run, and returns how the command ended, if that is the load.
func (d *driver) drive(ctx context.Context, opt session.Options) (exit *int, err error) {
	if len(d.command) == 0 {
		end := d.w.follow(&opt, nil, d.site)
		defer end()
		return nil, session.Run(ctx, opt, d.plan, d.phases)
	}
	code, err := session.Watch(ctx, opt, 0, d.command, d.std)
	if err == nil && ctx.Err() == nil && code != 0 {
		fmt.Fprintf(d.w.stderr, "run %d: %s ended with %d; if it did not drive its load to the end, this run says little\n", d.made, d.command[0], code)
	}
	return &code, err
}

func (d *driver) accepted(dir, rule string, fix int, subject map[string]string) (model.Truth, error) {
	run, err := record.Open(dir)
	if err != nil {
		return model.Unknown, fail(exitRunDir, err)
	}
	defer run.Close()
	q, err := query.Of(run)
	if err != nil {
		return model.Unknown, err
	}
	return diagnose.Accepted(q, d.rules, rule, fix, subject)
}

func compareRuns(before, after string) (model.Comparison, error) {
	a, err := readSide(before)
	if err != nil {
		return model.Comparison{}, err
	}
	b, err := readSide(after)
	if err != nil {
		return model.Comparison{}, err
	}
	return compare.Compare(a, b), nil
}

// prepare looks at a change on the host of the run that has its name.
func (d *driver) prepare(ctx context.Context, x model.FixChange) (change.Step, error) {
	spec, err := hostNamed(x.Host, d.opt.Hosts)
	if err != nil {
		return change.Step{}, err
	}
	if isFar(spec) {
		there, err := d.there.at(ctx, spec.Via)
		if err != nil {
			return change.Step{}, err
		}
		return there.Prepare(spec.Name, spec.Spec, tune.ChangeOf(x))
	}
	h, err := host.Open(spec.Name, spec.Spec)
	if err != nil {
		return change.Step{}, err
	}
	defer h.Close()
	return change.Prepare(h, tune.ChangeOf(x))
}

// printStatus lists the changes that stand on the machine of the hosts.
func (f *tuneFlags) printStatus(c *cobra.Command, w *world, asJSON bool) error {
	via, err := wholeMachine(f.watch.hosts)
	if err != nil {
		return usage(c.CommandPath(), "--status: %v", err)
	}
	if via == "" {
		return printStatus(w, f.journal, asJSON)
	}
	return relay(c.Context(), w, via, "tune", "--status", "--json="+strconv.FormatBool(asJSON))
}

// printStatus lists the journal's open changes, and what in it could not be read:
// that may be a change that stands, too.
func printStatus(w *world, dir string, asJSON bool) error {
	if dir == "" {
		return errNoJournal
	}
	entries, skipped, err := change.ReadEntries(dir)
	if err != nil {
		return fail(exitMissing, err)
	}
	standing := []change.Entry{}
	for _, e := range entries {
		if e.Open() {
			standing = append(standing, e)
		}
	}
	busy := change.AtWork(w.locks)
	if asJSON {
		left := []string{}
		for _, e := range skipped {
			left = append(left, e.Error())
		}
		err = printJSON(w.stdout, changesDocument{dir, busy, standing, left})
	} else {
		printStanding(w, standing, len(skipped), busy)
	}
	return errors.Join(err, fail(exitNotPassed, errors.Join(skipped...)))
}

// changesDocument is what tune --status prints with --json.
type changesDocument struct {
	Journal  string         `json:"journal"`
	AtWork   bool           `json:"at_work"`
	Standing []change.Entry `json:"standing"`
	LeftOut  []string       `json:"left_out"`
}

func printStanding(w *world, standing []change.Entry, leftOut int, busy bool) {
	if busy {
		fmt.Fprintln(w.stdout, "A plimsoll is changing this machine now.")
	}
	switch {
	case len(standing) == 0 && leftOut > 0:
		fmt.Fprintln(w.stdout, "No change is known to stand; what was left out of the journal may be one.")
		return
	case len(standing) == 0:
		fmt.Fprintln(w.stdout, "No change stands.")
		return
	}
	rows := [][]string{{"ID", "MADE", "HOST", "CHANGE", "FROM", "TO"}}
	for _, e := range standing {
		to := e.New
		if e.State == change.Pending {
			to += " (not known to be whole)"
		}
		rows = append(rows, []string{strconv.Itoa(e.ID), e.Time.Local().Format("2006-01-02 15:04:05"),
			layout.Line(e.Host), layout.Line(tune.What(e.Change)), layout.Line(orDash(e.Old)), layout.Line(to)})
	}
	layout.Table(w.stdout, rows)
	fmt.Fprintf(w.stdout, "\nplimsoll undo --all takes %s back, plimsoll undo ID one of them.\n", map[bool]string{true: "it", false: "them"}[len(standing) == 1])
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}

package main

import (
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/capture/tally"
	"plimsoll/internal/load"
	"plimsoll/internal/remote"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/ruleset/alerts"
	"plimsoll/internal/trace"
)

const exportLong = `Prints the rules as alerts over the series of "plimsoll watch --listen".
--prometheus is a rule file, which "promtool check rules" takes as it is: an
alert for each rule that can be proved without a load of ours, with how long its
condition has to hold, and with least numbers of events; why the others are not
among them stands in its comments. --alertmanager says which alerts explain
which, so that one cause rings once. Thresholds of this site are in force.
With --node-exporter the alerts are over the series of node_exporter and its
kin instead.`

func rulesExport(w *world) *cobra.Command {
	c := &cobra.Command{Use: "export", Short: "the rules as alerts for Prometheus", Args: noArguments, Long: exportLong,
		Example: "  plimsoll rules export --prometheus > plimsoll.rules.yml\n  plimsoll rules export --alertmanager > alertmanager.yml"}
	opt := alertOptions
	var forPrometheus, forAlertmanager bool
	f := c.Flags()
	f.BoolVar(&forPrometheus, "prometheus", false, "a rule file of Prometheus (as without either)")
	f.BoolVar(&forAlertmanager, "alertmanager", false, "a configuration of the Alertmanager, with what explains what")
	f.BoolVar(&opt.Foreign, "node-exporter", false, "over the series of node_exporter and its kin")
	f.DurationVar(&opt.Window, "window", opt.Window, "over how long each rule is asked")
	f.DurationVar(&opt.Interval, "interval", opt.Interval, "the time between two scrapes")
	f.DurationVar(&opt.For, "for", opt.For, "how long a condition has to hold")
	f.DurationVar(&opt.Keep, "keep", opt.Keep, "how long an alert goes on when its condition does not")
	f.Float64Var(&opt.Least, "least", opt.Least, "how many events there have to be in the window for one that counts them")
	f.StringVar(&opt.Handbook, "handbook", "", "the address under which the pages of docs/rules are, for links to them")
	f.StringVar(&opt.Together, "together", "", "hosts with the same `LABEL` in the server's scrape_configs are one system: what one does to another is inhibited, too")
	var site siteFlags
	site.add(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if bad := checkTogether(opt); bad != "" {
			return usage(c.CommandPath(), "--together %s: %s", opt.Together, bad)
		}
		if opt.Window < 2*opt.Interval || opt.Interval < time.Second || opt.For < 0 || opt.Keep < 0 || opt.Least < 0 {
			return usage(c.CommandPath(), "want an --interval of a second or more, a --window of two of them at least, and nothing negative")
		}
		if forPrometheus && forAlertmanager {
			return usage(c.CommandPath(), "want --prometheus or --alertmanager, not both")
		}
		set, err := site.set(w)
		if err != nil {
			return err
		}
		all, err := alertsOf(w, set, opt)
		if err != nil {
			return err
		}
		format, write := "prometheus", all.Prometheus
		if forAlertmanager {
			format, write = "alertmanager", all.Alertmanager
		}
		doc, err := write()
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, exportedRules{format, string(doc)})
		}
		_, err = w.stdout.Write(doc)
		return err
	}
	return withExits(c, exitOK, exitUsage, exitRules)
}

// checkTogether says what is wrong with the label by which hosts belong together.
func checkTogether(opt alerts.Options) string {
	switch {
	case opt.Together == "":
	case opt.Foreign:
		return "it goes not with --node-exporter, which joins by instance"
	case !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(opt.Together):
		return "want a label's name, like system"
	case slices.Contains([]string{"host", "machine", "kernel", "cpus", "instance", "job"}, opt.Together):
		return "want a label of your own in scrape_configs, like system: this one has each host by itself, or is the exporter's"
	}
	return ""
}

// alertOptions are those of the alerts over an exporter's series, as they are without flags. The signals
// are not among them: to list these took every start, of whatever command, a tenth of its time.
var alertOptions = alerts.Options{
	Window: time.Minute, Interval: 5 * time.Second, For: 10 * time.Second, Keep: time.Minute, Least: 10,
}

// alertsOf are the rules as alerts, over the series that there are.
func alertsOf(w *world, set ruleset.Rules, opt alerts.Options) (alerts.Set, error) {
	opt.Signals, opt.Given = allSignals(w), inExporter(w)
	if opt.Foreign {
		opt.Given = remote.Collected
	}
	return alerts.Of(set, opt)
}

// inExporter tells which signals an exporter of ours has: what probes and light tracers read. It drives
// no load, reads no packets, and has no full tracers but for the moments of a snapshot.
func inExporter(w *world) func(string) bool {
	none := map[string]bool{}
	for _, s := range slices.Concat(load.Signals, tally.Signals) {
		none[s.Name] = true
	}
	for _, t := range allTracers(w) {
		for _, s := range t.Signals {
			if t.Level != trace.Light {
				none[s.Name] = true
			}
		}
	}
	given := map[string]bool{}
	for _, s := range allSignals(w) {
		given[s.Name] = !none[s.Name]
	}
	return func(signal string) bool { return given[signal] }
}

// exportedRules is what rules export prints with --json.
type exportedRules struct {
	Format   string `json:"format"`
	Document string `json:"document"` // the file itself
}

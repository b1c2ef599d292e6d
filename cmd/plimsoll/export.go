package main

import (
	"github.com/spf13/cobra"

	"plimsoll/internal/remote"
	"plimsoll/internal/ruleset/alerts"
)

const exportLong = `Prints the rules in another program's form. prometheus: a rule file with an alert
for each rule that can be proved from what node_exporter and its kin give, without
a load of ours; why the others are not among them stands in its comments.
"promtool check rules" takes it as it is. Thresholds of this site are in force.`

func rulesExport(w *world) *cobra.Command {
	c := &cobra.Command{Use: "export", Short: "the rules as alerts for Prometheus", Args: noArguments, Long: exportLong,
		Example: "  plimsoll rules export --format prometheus > plimsoll.rules.yml\n  promtool check rules plimsoll.rules.yml"}
	format := c.Flags().String("format", "prometheus", "the form: prometheus")
	var site siteFlags
	site.add(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *format != "prometheus" {
			return usage(c.CommandPath(), "--format %s: want prometheus", *format)
		}
		set, err := site.set(w)
		if err != nil {
			return err
		}
		doc, err := alerts.Prometheus(set, allSignals(w), remote.Collected)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, map[string]string{"format": *format, "document": string(doc)})
		}
		_, err = w.stdout.Write(doc)
		return err
	}
	return withExits(c, exitOK, exitUsage, exitRules)
}

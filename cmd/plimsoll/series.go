package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"plimsoll/internal/export"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

const seriesLong = `Writes all series of a run for other programs. --openmetrics is what Prometheus
reads, with type, unit, help and the time of every reading; --csv is a table with
a line for each reading: time_ms, name, host, labels, value. A value that was not
read is not there. Without -o it goes to standard output.

--grafana, without a run, writes a dashboard for Grafana (10 and later): what a
report draws of a host, of the series that a Prometheus scrapes from plimsoll
watch --listen, or that were put into it from --openmetrics.

The run directory itself is made of open formats, too: series/ is a Prometheus
TSDB, latency.hlog an HdrHistogram log, events.jsonl JSON lines.`

const seriesExample = `  plimsoll export last --csv -o run.csv
  plimsoll export last --openmetrics -o run.om
  promtool tsdb create-blocks-from openmetrics run.om prometheus-data/
  plimsoll export --grafana -o plimsoll-dashboard.json`

func exportCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "export RUN --csv|--openmetrics | --grafana", Short: "write a run's series as CSV or OpenMetrics, or a dashboard", Long: seriesLong, Example: seriesExample,
		DisableFlagsInUseLine: true}
	asCSV := c.Flags().Bool("csv", false, "a line for each reading, for spreadsheets and data frames")
	asMetrics := c.Flags().Bool("openmetrics", false, "OpenMetrics text, for Prometheus and what reads its formats")
	dashboard := c.Flags().Bool("grafana", false, "a dashboard for Grafana, of no run")
	file := c.Flags().StringP("output", "o", "", "write to this `FILE`")
	c.Args = func(c *cobra.Command, args []string) error {
		if !*dashboard {
			return oneArgument("a run")(c, args)
		}
		if len(args) > 0 || *asCSV || *asMetrics {
			return usage(c.CommandPath(), "--grafana is of no run, and stands alone")
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if *dashboard {
			doc, err := sheet.Grafana()
			if err != nil {
				return err
			}
			return w.exported(*file, func(out io.Writer) error { _, err := out.Write(doc); return err })
		}
		if *asCSV == *asMetrics {
			return usage(c.CommandPath(), "want one of --csv and --openmetrics")
		}
		dir, err := w.runNamed(args[0])
		if err != nil {
			return err
		}
		readsAnybodys()
		run, err := record.Open(dir)
		if err != nil {
			return fail(exitRunDir, err)
		}
		defer run.Close()
		write := func(out io.Writer) error { return export.CSV(out, run) }
		if *asMetrics {
			write = func(out io.Writer) error { return w.exportMetrics(out, run) }
		}
		return w.exported(*file, write)
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// exported has write fill a file, or standard output if that is "".
func (w *world) exported(file string, write func(io.Writer) error) error {
	if file == "" {
		return fail(exitRunDir, write(w.stdout))
	}
	return fail(exitRunDir, writer.Stream(file, write))
}

func (w *world) exportMetrics(out io.Writer, run *record.Run) error {
	left, err := export.OpenMetrics(out, run, allSignals(w))
	if left > 0 {
		fmt.Fprintf(w.stderr, "plimsoll: %d series are left out, since OpenMetrics has no way to write their names; --csv has them\n", left)
	}
	return err
}

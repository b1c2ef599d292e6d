package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/compare"
	"plimsoll/internal/lab"
	"plimsoll/internal/lab/baseline"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

// way is a way of judging, with how it did and what it said of each run.
type way struct {
	Name  string    `json:"name"`
	Score lab.Score `json:"score"`
	// Said holds run directory → what was said; empty for this program, whose
	// verdicts stand with the trials.
	Said map[string]baseline.Opinion `json:"said,omitempty"`
}

// clearly is by how much, at least, a measure must differ between a case and its
// twin, and clearShare what share of all replies.
const (
	clearly    = 1.1
	clearShare = 0.01
)

// moved compares a case's run with its healthy twin's.
func moved(c *lab.Case, faulty, twin string) (*lab.Moved, error) {
	if c.Twin != nil {
		return movedBy(*c.Twin, faulty, twin)
	}
	a, err := readSide(twin)
	if err != nil {
		return nil, fmt.Errorf("case %s: compare with its twin (its case.yaml may need twin.measure): %w", c.ID, err)
	}
	b, err := readSide(faulty)
	if err != nil {
		return nil, fmt.Errorf("case %s: compare with its twin: %w", c.ID, err)
	}
	m := &lab.Moved{}
	for _, d := range compare.Compare(a, b).Differences {
		if d.Name == "latency_p50" {
			continue // what the slowest see moves first
		}
		one := lab.Measure{Name: d.Name, Twin: d.A, Faulty: d.B, Worse: worse(d)}
		m.Measures = append(m.Measures, one)
		m.Yes = m.Yes || one.Worse
	}
	return m, nil
}

// worse tells whether b is worse than a, beyond chance and clearly. No good
// reply at all where there were some needs no statistics.
func worse(d model.Difference) bool {
	switch {
	case d.HigherIsBetter && d.A > 0 && d.B == 0:
		return true
	case d.Answer != model.Worse:
		return false
	case d.Name == "good_share":
		return d.A-d.B >= clearShare
	case d.HigherIsBetter:
		return d.A >= clearly*d.B
	}
	return d.B >= clearly*d.A
}

// movedBy compares by the case's own measure.
func movedBy(t lab.Twin, faulty, twin string) (*lab.Moved, error) {
	one := lab.Measure{Name: t.Measure}
	var err error
	if one.Twin, err = measured(twin, t.Measure); err != nil {
		return nil, err
	}
	if one.Faulty, err = measured(faulty, t.Measure); err != nil {
		return nil, err
	}
	one.Worse = one.Twin >= clearly*one.Faulty
	if t.LessIsBetter {
		one.Worse = one.Faulty >= clearly*one.Twin
	}
	return &lab.Moved{Yes: one.Worse, Measures: []lab.Measure{one}}, nil
}

// measured evaluates one expression over a run and wants one number.
func measured(dir, expr string) (float64, error) {
	r, err := record.Open(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	set, err := ruleSet(nil)
	if err != nil {
		return 0, err
	}
	ask, err := query.Of(r)
	if err != nil {
		return 0, err
	}
	list, err := ask.Samples(expr, set.Known())
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("want one number, got %d", len(list))
	}
	if err != nil {
		return 0, fmt.Errorf("%s: twin.measure %s: %w", dir, expr, err)
	}
	return list[0].Value, nil
}

// ways scores this program and the simple ways beside it on all runs of the trials.
func ways(w *world, dir string, trials []*lab.Trial) ([]way, error) {
	set, err := ruleSet(nil)
	if err != nil {
		return nil, err
	}
	ours := way{Name: "plimsoll"}
	largest := way{Name: "largest z-score", Said: map[string]baseline.Opinion{}}
	alerts := way{Name: "mixin alerts", Said: map[string]baseline.Opinion{}}
	eye := newOnlooker(w, set)
	for _, t := range trials {
		for _, s := range t.Shots() {
			ours.Score.Add(s, s.Answer == model.AnswerCause, s.Named)
			z, a, err := eye.look(filepath.Join(dir, s.Dir))
			if err != nil {
				return nil, fail(exitRunDir, err)
			}
			largest.Score.Add(s, z.Says != "", z.Rules)
			alerts.Score.Add(s, a.Says != "", a.Rules)
			largest.Said[s.Dir], alerts.Said[s.Dir] = z, a
		}
	}
	return []way{ours, largest, alerts}, nil
}

// onlooker judges runs in the simple ways.
type onlooker struct {
	set      ruleset.Rules
	causes   []string
	rulesOf  map[string][]string
	counters map[string]bool
}

func newOnlooker(w *world, set ruleset.Rules) *onlooker {
	o := &onlooker{set: set, rulesOf: map[string][]string{}, counters: map[string]bool{}}
	for _, s := range allSignals(w) {
		o.counters[s.Name] = s.Kind == model.Counter
	}
	for _, r := range set.List {
		if r.Kind != ruleset.Cause {
			continue
		}
		o.causes = append(o.causes, r.ID)
		for _, name := range r.Signals(model.Needs, model.Decides, model.Proves) {
			o.rulesOf[name] = append(o.rulesOf[name], r.ID)
		}
	}
	return o
}

func (o *onlooker) look(dir string) (largest, alerts baseline.Opinion, err error) {
	r, err := record.Open(dir)
	if err != nil {
		return largest, alerts, err
	}
	defer r.Close()
	if largest, err = baseline.LargestScore(r, o.rulesOf, o.counters); err != nil {
		return largest, alerts, err
	}
	ask, err := query.Of(r)
	if err != nil {
		return largest, alerts, err
	}
	known := o.set.Known()
	alerts, err = baseline.Alerts(func(expr string) (bool, error) {
		list, err := ask.Samples(expr, known)
		return len(list) > 0, err
	}, o.causes)
	return largest, alerts, err
}

// printLabTest writes what came of a test.
func printLabTest(w *world, doc labTestDoc, asJSON bool) error {
	if asJSON {
		return printJSON(w.stdout, doc)
	}
	if doc.Seed == 0 {
		for i, t := range doc.Trials {
			printTrial(w, fmt.Sprintf("%*d/%d", len(fmt.Sprint(len(doc.Trials))), i+1, len(doc.Trials)), t)
		}
	}
	fmt.Fprint(w.stdout, "\n")
	printMatrix(w, doc.Tally)
	printRuleScores(w, doc.Tally)
	printWays(w, doc.Ways)
	printModes(w, doc.Modes)
	printTotals(w, doc)
	return nil
}

func printMatrix(w *world, t lab.Tally) {
	layout.Table(w.stdout, append([][]string{{"TRUTH", "NAMED", "RUNS", ""}}, matrixRows(t)...))
	fmt.Fprintln(w.stdout)
}

// matrixRows is the confusion matrix without its zeros, each truth written once.
func matrixRows(t lab.Tally) [][]string {
	var rows [][]string
	before := ""
	for _, c := range t.Cells {
		row := []string{c.Truth, c.Named, fmt.Sprint(c.Runs), ""}
		if c.Truth == before {
			row[0] = ""
		}
		if !c.Right {
			row[3] = "WRONG"
		}
		before = c.Truth
		rows = append(rows, row)
	}
	return rows
}

func printRuleScores(w *world, t lab.Tally) {
	if rows := scoreRows(t); len(rows) > 0 {
		layout.Table(w.stdout, append([][]string{{"RULE", "TRUTH", "NAMED", "BOTH", "PRECISION", "RECALL"}}, rows...))
		fmt.Fprintln(w.stdout)
	}
}

func scoreRows(t lab.Tally) [][]string {
	var rows [][]string
	for _, r := range t.Rules {
		rows = append(rows, []string{r.Rule, fmt.Sprint(r.Truth), fmt.Sprint(r.Named), fmt.Sprint(r.Both), layout.OrDash(r.Precision, layout.Share), layout.OrDash(r.Recall, layout.Share)})
	}
	return rows
}

func printWays(w *world, list []way) {
	layout.Table(w.stdout, append([][]string{{"WAY", "CAUSE FOUND", "AND NO OTHER", "QUIET WHERE HEALTHY"}}, wayRows(list)...))
	fmt.Fprintln(w.stdout)
}

func wayRows(list []way) [][]string {
	var rows [][]string
	of := func(n, all int) string { return fmt.Sprintf("%d of %d", n, all) }
	for _, x := range list {
		rows = append(rows, []string{x.Name, of(x.Score.Right, x.Score.Causes), of(x.Score.Alone, x.Score.Causes), of(x.Score.Quiet, x.Score.Healthy)})
	}
	return rows
}

func printTotals(w *world, doc labTestDoc) {
	fmt.Fprintln(w.stdout, totals(doc.Tally))
	if v := doc.Tally.VerdictSeconds; len(v) > 0 {
		fmt.Fprintf(w.stdout, "From the last reading, a second after the load, to the verdict: median %.2f s,\nat most %.2f s.\n",
			v[len(v)/2], slices.Max(v))
	}
	fmt.Fprintln(w.stdout, whereKept(doc))
	if doc.Interrupted {
		fmt.Fprintln(w.stdout, notAllTrials)
	}
}

const notAllTrials = "Interrupted: not all trials were made."

// totals says in a sentence what came of all trials.
func totals(t lab.Tally) string {
	line := fmt.Sprintf("%d of %d trials right", t.Right, t.Trials)
	if t.Failed > 0 {
		line += fmt.Sprintf(", %d without a judgement", t.Failed)
	}
	if t.Compared > 0 {
		line += fmt.Sprintf("; the fault moved the service in %d of %d", t.Moved, t.Compared)
	}
	return line + "."
}

func whereKept(doc labTestDoc) string {
	line := "Wall time " + layout.Micros(1e6*doc.Seconds)
	if doc.Seed != 0 {
		line += fmt.Sprintf(", seed %d", doc.Seed)
	}
	return fmt.Sprintf("%s. Recordings: %s", line, doc.Dir)
}

// wrapped breaks a text into lines that begin indent columns in.
func wrapped(text string, width, indent int) string {
	return layout.Indent(layout.Wrap(text, width), strings.Repeat(" ", indent))
}

// labTestDoc is what lab test --json prints.
type labTestDoc struct {
	Seed uint64 `json:"seed,omitempty"`
	// Seconds is the wall time of running and judging.
	Seconds float64 `json:"seconds"`
	Dir     string  `json:"dir"`
	// Interrupted is true when not all trials were made.
	Interrupted bool         `json:"interrupted"`
	Trials      []*lab.Trial `json:"trials"`
	Tally       lab.Tally    `json:"tally"`
	// Modes holds the outcomes by mode; empty without --mode.
	Modes []lab.ModeScore `json:"modes"`
	// Ways are this program and the simple ways beside it.
	Ways []way `json:"ways"`
}

// printTrial writes a line for a trial, and one for each thing wrong with it.
func printTrial(w *world, now string, t *lab.Trial) {
	named, took := trialSaid(t)
	fmt.Fprintf(w.stdout, "%s\n", strings.TrimRight(fmt.Sprintf("%s  %-5s  %-24s %-36s %6s", now, outcomeWord(t), trialName(t), named, took), " "))
	for _, sentence := range trialWrong(t) {
		fmt.Fprintf(w.stdout, "%*s%s\n", len(now)+9, "", wrapped(sentence, w.columns()-len(now)-9, len(now)+9))
	}
}

// trialRow is a trial as a row of a table.
func trialRow(t *lab.Trial) []string {
	named, took := trialSaid(t)
	return []string{trialName(t), outcomeWord(t), named, took, wrongs(trialWrong(t))}
}

// wrongs are sentences in one cell of a table.
func wrongs(list []string) string { return strings.Join(list, "; ") }

// trialSaid is what was named in a trial, and how long that took.
func trialSaid(t *lab.Trial) (named, took string) {
	s := t.Faulty
	switch {
	case t.Refused != "":
		return "not driven", ""
	case s == nil:
		return "no verdict", ""
	case s.VerdictSeconds != nil:
		took = fmt.Sprintf("%.2f s", *s.VerdictSeconds)
	}
	if len(s.Named) > 0 {
		return strings.Join(s.Named, ", "), took
	}
	return string(s.Answer), took
}

// trialWrong are sentences on why a trial is not right.
func trialWrong(t *lab.Trial) []string {
	if t.Refused != "" {
		return []string{t.Refused}
	}
	if t.Mode != lab.ModeOwn && t.Outcome() == lab.Unclear {
		return append([]string{"it says: " + t.Faulty.Sentence}, t.Wrong()...)
	}
	return t.Wrong()
}

// outcomeWord is how a trial came out, in five letters at most. In a mode, what is vague or
// unclear is told from what is wrong.
func outcomeWord(t *lab.Trial) string {
	switch {
	case t.Refused != "":
		return "-"
	case len(t.Wrong()) == 0:
		return "right"
	case t.Mode != lab.ModeOwn && t.Outcome() == lab.Unclear:
		return "?"
	case t.Mode != lab.ModeOwn && t.Outcome() == lab.Vague:
		return "vague"
	}
	return "WRONG"
}

// trialName is a trial in a word or three.
func trialName(t *lab.Trial) string {
	if t.Mode == lab.ModeOwn {
		return fmt.Sprintf("%s %d", t.Case, t.Number)
	}
	return fmt.Sprintf("%s %s %d", t.Case, t.Mode, t.Number)
}

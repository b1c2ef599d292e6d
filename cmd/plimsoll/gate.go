package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/tune"
)

// gateFlags say what a run has to be like for exit code 0: for use in CI.
type gateFlags struct {
	slo, junit string
	failOn     []string
	github     bool
	goals      []tune.Goal
	// of is what is held now, in front of the names, such as "run 2: "; told is what was.
	of   string
	told []gateCheck
	// open says that what is held now has not been told of yet.
	open bool
}

// add adds the flags; without a load of ours nobody knows what users got, so --slo is
// for those with one.
func (f *gateFlags) add(c *cobra.Command, withLoad bool) {
	fs, of := c.Flags(), "--fail-on"
	if withLoad {
		f.addGoals(c)
		of = "--slo and --fail-on"
	}
	fs.StringSliceVar(&f.failOn, "fail-on", nil, "end with 1 if the verdict is one of these `WORDS`: cause, capacity, unclear")
	f.addOutput(c, of)
}

func (f *gateFlags) addGoals(c *cobra.Command) {
	c.Flags().StringVar(&f.slo, "slo", "", "end with 1 unless these `GOALS` are kept, like 'p95<50ms,errors<0.1%,good>5k/s'; there are p50, p90, p95, p99, p999, max (of what users waited), errors, share (the share of good replies) and good (such replies a second), with < or >, <= or >=")
}

// addOutput adds where it is told; of is what is told of.
func (f *gateFlags) addOutput(c *cobra.Command, of string) {
	c.Flags().StringVar(&f.junit, "junit", "", "write to this `FILE` how "+of+" came out, as JUnit's XML")
	c.Flags().BoolVar(&f.github, "github", false, "write it to standard error as annotations of GitHub's, too")
}

// check reads what the flags say, before anything is run. An empty one is a variable of
// somebody's that was not set: nothing would be held, and all would pass.
func (f *gateFlags) check(c *cobra.Command) (err error) {
	command := c.CommandPath()
	if c.Flags().Changed("fail-on") && len(f.failOn) == 0 {
		return usage(command, "--fail-on is empty: want cause, capacity or unclear")
	}
	for i, word := range f.failOn {
		f.failOn[i] = strings.TrimSpace(word)
		if !slices.Contains([]string{string(model.AnswerCause), string(model.AnswerCapacity), string(model.AnswerUnclear)}, f.failOn[i]) {
			return usage(command, "--fail-on %q: want cause, capacity or unclear, with commas between", word)
		}
	}
	if c.Flags().Changed("slo") {
		if f.goals, err = tune.ParseGoals(f.slo); err != nil {
			return usage(command, "--slo: %v", err)
		}
	}
	if (f.junit != "" || f.github) && len(f.goals)+len(f.failOn) == 0 {
		return usage(command, "--junit and --github tell of what is to be kept: give %s, too", holds(c))
	}
	return nil
}

// holds names the flags of a command that say what is to be kept.
func holds(c *cobra.Command) string {
	switch {
	case c.Flags().Lookup("fail-on") == nil:
		return "--slo"
	case c.Flags().Lookup("slo") == nil:
		return "--fail-on"
	}
	return "--slo or --fail-on"
}

// around has what keeps a command from being held be told as well: a file of an earlier run would
// say that all is well. What to run is told from the beginning, so that a killed run is told, too.
func (f *gateFlags) around(w *world, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := f.check(c); err != nil {
			return err
		}
		if err := f.begin(""); err != nil {
			return err
		}
		err := run(c, args)
		if len(f.goals)+len(f.failOn) == 0 || !f.open {
			return err
		}
		if err == nil {
			err = fail(exitInterrupted, fmt.Errorf("it was interrupted: what %s says was not held against it", holds(c)))
		}
		if f.github {
			f.annotate(w, gateCheck{name: "plimsoll", fault: err.Error()})
		}
		return errors.Join(err, f.write(f.unjudged(err.Error()), err.Error()))
	}
}

// begin begins what is held next; of goes in front of its names.
func (f *gateFlags) begin(of string) error {
	f.of, f.open = of, true
	return f.write(f.unjudged("it did not end"), "not judged yet")
}

// unjudged is all that was to be held, none of which was.
func (f *gateFlags) unjudged(why string) (list []gateCheck) {
	for _, c := range f.hold(nil, model.Verdict{}) {
		list = append(list, gateCheck{name: f.of + c.name, fault: why, unjudged: true})
	}
	return list
}

// gateCheck is one thing that had to be so.
type gateCheck struct {
	name, fault string // no fault: it was
	unjudged    bool   // nobody knows whether it was; fault says why
}

// hold holds a load and a verdict against what was asked for.
func (f *gateFlags) hold(l *model.Load, v model.Verdict) (list []gateCheck) {
	goals, _ := tune.Met(f.goals, l)
	for _, g := range goals {
		c := gateCheck{name: g.Goal}
		switch {
		case l == nil || l.Requests == 0:
			c.fault, c.unjudged = "there were no requests of ours to tell by", true
		case !g.Met && g.Value == 0 && isTime(g.Goal):
			c.fault, c.unjudged = "that was not recorded", true
		case !g.Met:
			c.fault = strings.TrimSuffix(fmt.Sprintf("it was %s; %s", goalValue(g), strings.TrimSuffix(v.Sentence, ".")), "; ")
		}
		list = append(list, c)
	}
	for _, word := range f.failOn {
		c := gateCheck{name: "verdict is not " + word}
		if string(v.Answer) == word {
			c.fault = v.Sentence
		}
		list = append(list, c)
	}
	return list
}

// isTime says whether a goal is one of a latency.
func isTime(goal string) bool { return goal[0] == 'p' || strings.HasPrefix(goal, "max") }

// goalValue is the value of a goal in the unit in which it is asked for.
func goalValue(g model.TuneGoal) string {
	switch {
	case strings.HasPrefix(g.Goal, "good"):
		return layout.Rate(g.Value) + "/s"
	case isTime(g.Goal):
		return layout.Micros(g.Value)
	}
	return layout.Share(g.Value)
}

// judge tells what was not kept, in all the ways that were asked for; short is the error of a load
// that was not what had been asked for.
func (f *gateFlags) judge(w *world, r model.Report, short error) error {
	return f.tell(w, f.hold(r.Load, r.Verdict), string(r.Verdict.Answer)+": "+r.Verdict.Sentence+" ("+r.Dir+")", short)
}

// tell tells which of these were not kept; said is a word about the whole.
func (f *gateFlags) tell(w *world, list []gateCheck, said string, short error) error {
	if f.open = false; len(list) == 0 {
		return short
	}
	var faults []error
	for i, c := range list {
		if list[i].name = f.of + c.name; c.fault != "" {
			faults = append(faults, fail(exitNotPassed, fmt.Errorf("not kept: %s: %s", list[i].name, c.fault)))
		}
	}
	if short != nil {
		list = append(list, gateCheck{name: f.of + "the load is what was asked for", fault: short.Error()})
	}
	f.annotate(w, list...)
	err := f.write(list, said)
	f.told = append(f.told, list...)
	return errors.Join(append([]error{err, short}, faults...)...)
}

// annotate writes what was not kept as annotations of GitHub's.
func (f *gateFlags) annotate(w *world, list ...gateCheck) {
	for _, c := range list {
		if f.github && c.fault != "" { // that it is not read does not matter, it is said again as the error
			_ = layout.Own(w.stderr, fmt.Sprintf("::error title=%s::%s\n", annotated(c.name, true), annotated(c.fault, false)))
		}
	}
}

// annotated is text cleaned for a workflow command of GitHub's, without what would end it, or
// a property in it.
func annotated(s string, property bool) string {
	s = layout.Line(strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s))
	if property {
		s = strings.NewReplacer(":", "%3A", ",", "%2C").Replace(s)
	}
	return s
}

// write writes what was told before and this to the file that was asked for, with a word about the whole.
func (f *gateFlags) write(list []gateCheck, said string) error {
	if f.junit == "" {
		return nil
	}
	doc, err := junit(slices.Concat(f.told, list), said)
	if err == nil {
		err = writer.File(f.junit, doc)
	}
	if err != nil {
		return fail(exitRunDir, fmt.Errorf("--junit %s: %w", f.junit, err))
	}
	return nil
}

// junit is the list as JUnit writes tests: what was not kept is a failure, what nobody knows an error.
func junit(list []gateCheck, said string) ([]byte, error) {
	type message struct {
		Message string `xml:"message,attr"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure,omitempty"`
		Error   *message `xml:"error,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Cases    []testcase `xml:"testcase"`
		Out      string     `xml:"system-out"`
	}{Name: "plimsoll", Tests: len(list), Out: layout.Line(said)}
	for _, c := range list {
		one := testcase{Class: "plimsoll", Name: c.name}
		switch {
		case c.unjudged:
			one.Error = &message{layout.Line(c.fault)}
			suite.Errors++
		case c.fault != "":
			one.Failure = &message{layout.Line(c.fault)}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, one)
	}
	doc, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(doc, '\n')...), err
}

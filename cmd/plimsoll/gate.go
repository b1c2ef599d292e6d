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
}

// add adds the flags; without a load of ours nobody knows what users got, so --slo is
// for those with one.
func (f *gateFlags) add(c *cobra.Command, withLoad bool) {
	fs := c.Flags()
	if withLoad {
		fs.StringVar(&f.slo, "slo", "", "end with 1 unless this is kept, like 'p99<50ms,errors<0.1%,good>5000/s'")
	}
	fs.StringSliceVar(&f.failOn, "fail-on", nil, "end with 1 if the verdict is one of these `WORDS`: cause, capacity, unclear")
	fs.StringVar(&f.junit, "junit", "", "write what --slo and --fail-on say to this `FILE`, as JUnit's XML")
	fs.BoolVar(&f.github, "github", false, "write it to standard error as annotations of GitHub's, too")
}

// check reads what the flags say, before anything is run.
func (f *gateFlags) check(command string) (err error) {
	for _, word := range f.failOn {
		if !slices.Contains([]string{string(model.AnswerCause), string(model.AnswerCapacity), string(model.AnswerUnclear)}, word) {
			return usage(command, "--fail-on %s: want cause, capacity or unclear", word)
		}
	}
	if f.slo != "" {
		if f.goals, err = tune.ParseGoals(f.slo); err != nil {
			return usage(command, "--slo: %v", err)
		}
	}
	if (f.junit != "" || f.github) && f.slo == "" && len(f.failOn) == 0 {
		return usage(command, "--junit and --github tell of --slo and --fail-on; give one of them")
	}
	return nil
}

// gateCheck is one thing that had to be so.
type gateCheck struct {
	name, fault string // no fault: it was
}

// hold holds a report against what was asked for.
func (f *gateFlags) hold(r model.Report) (list []gateCheck) {
	goals, _ := tune.Met(f.goals, r.Load)
	for _, g := range goals {
		c := gateCheck{name: g.Goal}
		switch {
		case r.Load == nil || r.Load.Requests == 0:
			c.fault = "there were no requests of ours to tell by"
		case !g.Met:
			c.fault = fmt.Sprintf("it was %s; %s", goalValue(g), strings.TrimSuffix(r.Verdict.Sentence, "."))
		}
		list = append(list, c)
	}
	for _, word := range f.failOn {
		c := gateCheck{name: "verdict is not " + word}
		if string(r.Verdict.Answer) == word {
			c.fault = r.Verdict.Sentence
		}
		list = append(list, c)
	}
	return list
}

// goalValue is the value of a goal in the unit in which it is asked for.
func goalValue(g model.TuneGoal) string {
	switch {
	case strings.HasPrefix(g.Goal, "good"):
		return layout.Rate(g.Value) + "/s"
	case strings.HasPrefix(g.Goal, "share"), strings.HasPrefix(g.Goal, "errors"):
		return layout.Share(g.Value)
	}
	return layout.Micros(g.Value)
}

// judge tells what was not kept, in all the ways that were asked for.
func (f *gateFlags) judge(w *world, r model.Report) error {
	return f.tell(w, f.hold(r), string(r.Verdict.Answer)+": "+r.Verdict.Sentence+" ("+r.Dir+")")
}

// tell tells which of these were not kept; said is a word about the whole.
func (f *gateFlags) tell(w *world, list []gateCheck, said string) error {
	var faults []error
	for _, c := range list {
		if c.fault != "" {
			faults = append(faults, fmt.Errorf("not kept: %s: %s", c.name, c.fault))
			if f.github {
				// That it is not read does not matter, it is said again below.
				_ = layout.Own(w.stderr, fmt.Sprintf("::error title=%s::%s\n", annotated(c.name, true), annotated(c.fault, false)))
			}
		}
	}
	if f.junit != "" {
		if err := writeJUnit(f.junit, list, said); err != nil {
			return err
		}
	}
	return fail(exitNotPassed, errors.Join(faults...))
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

// writeJUnit writes the list to a file, with a word about the whole.
func writeJUnit(file string, list []gateCheck, said string) error {
	doc, err := junit(list, said)
	if err == nil {
		err = writer.File(file, doc)
	}
	if err != nil {
		return fail(exitRunDir, fmt.Errorf("--junit %s: %w", file, err))
	}
	return nil
}

// junit is the list as JUnit writes tests.
func junit(list []gateCheck, said string) ([]byte, error) {
	type failure struct {
		Message string `xml:"message,attr"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
		Out      string     `xml:"system-out"`
	}{Name: "plimsoll", Tests: len(list), Out: layout.Line(said)}
	for _, c := range list {
		one := testcase{Class: "plimsoll", Name: c.name}
		if c.fault != "" {
			one.Failure = &failure{layout.Line(c.fault)}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, one)
	}
	doc, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(doc, '\n')...), err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/judge"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/remote"
	"plimsoll/internal/ruleset"
)

// fleet judges each host that a server knows, and prints a line of each.
func fleet(ctx context.Context, w *world, q remote.Query, site *siteFlags, how printFlags, page string, gate *gateFlags) error {
	if gate.slo != "" {
		return fail(exitUsage, errors.New("--slo goes not with --all: it is kept or not by a load of ours; want --fail-on"))
	}
	doc, err := judgeFleet(ctx, w, q, site)
	if err != nil {
		return err
	}
	if how.json {
		err = printJSON(w.stdout, doc)
	} else {
		printFleet(w, doc)
	}
	return errors.Join(err, writeSheet(page, fleetPage(doc)), gate.judgeFleet(w, doc), unjudged(doc))
}

// judgeFleet judges each host as it would be judged alone.
func judgeFleet(ctx context.Context, w *world, q remote.Query, site *siteFlags) (model.Fleet, error) {
	set, err := site.set(w)
	if err != nil {
		return model.Fleet{}, err
	}
	readsAnybodys()
	doc := model.Fleet{Hosts: []model.FleetHost{}, Counts: map[model.Answer]int{}, Notes: []string{}, RulesHash: set.Hash, Site: judge.SiteOf(set), Version: version,
		Remote: q.Plan()}
	shown := w.progress()
	defer shown.end()
	var mu sync.Mutex
	asked, err := remote.Fleet(ctx, q, signalsOf(w, set), func(h remote.Host, of int) {
		line := fleetLine(h, set)
		mu.Lock()
		defer mu.Unlock()
		doc.Hosts = append(doc.Hosts, line)
		doc.Counts[line.Answer]++
		if shown != nil {
			shown.say(fmt.Sprintf("judged %s of %s hosts", layout.Count(int64(len(doc.Hosts))), layout.Count(int64(of))))
		}
	})
	if err != nil {
		return doc, fail(exitUnreachable, err)
	}
	judge.Sort(doc.Hosts)
	doc.Queries, doc.Readings = asked.Queries, asked.Readings
	doc.Notes = append(doc.Notes, asked.Notes...)
	return doc, nil
}

// fleetLine judges one host.
func fleetLine(h remote.Host, set ruleset.Rules) model.FleetHost {
	err := h.Err
	if err == nil {
		var r model.Report
		if r, err = reportRemote(h.Run, set); err == nil {
			return judge.Line(h.Name, r)
		}
	}
	return model.FleetHost{Host: h.Name, Rules: []string{}, Notes: []string{}, Fault: err.Error()}
}

// judgeFleet is judge of each host of a fleet.
func (f *gateFlags) judgeFleet(w *world, doc model.Fleet) error {
	var list []gateCheck
	for _, word := range f.failOn {
		for _, h := range doc.Hosts {
			c := gateCheck{name: h.Host + ": verdict is not " + word}
			if string(h.Answer) == word {
				c.fault = h.Sentence
			}
			list = append(list, c)
		}
	}
	return f.tell(w, list, fleetSentence(doc), nil)
}

// unjudged is the error of a fleet of which not all hosts could be judged.
func unjudged(doc model.Fleet) error {
	n := doc.Counts[""]
	if n == 0 {
		return nil
	}
	return fail(exitUnreachable, fmt.Errorf("%d of %s could not be judged; --json says of each why", n, countedHosts(doc)))
}

// countedHosts says how many hosts there are.
func countedHosts(doc model.Fleet) string { return plural(len(doc.Hosts), "host") }

// fleetHead names the columns of a fleet's table.
var fleetHead = []string{"HOST", "VERDICT", "LOST", "WHAT"}

// longestName is how much of a host's name stands in the table: of a server's labels each may be as long as it likes.
const longestName = 253

// fleetRow is a host in the table.
func fleetRow(h model.FleetHost) []string {
	lost, answer, what := "?", string(h.Answer), h.Sentence
	if h.Impact != nil {
		lost = layout.Share(*h.Impact)
	}
	if h.Answer == "" {
		answer, what = "none", h.Fault
	}
	name := []rune(layout.Line(h.Host))
	if len(name) > longestName { // the whole column becomes so wide
		name = append(name[:longestName-1], '…')
	}
	return []string{string(name), answer, lost, layout.Line(what)}
}

func printFleet(w *world, doc model.Fleet) {
	rows := [][]string{fleetHead}
	for _, h := range doc.Hosts {
		rows = append(rows, fleetRow(h))
	}
	w.table(rows)
	fmt.Fprintf(w.stdout, "\n%s\n", layout.Wrap(fleetSentence(doc), w.columns()))
	for _, note := range fleetNotes(doc) {
		fmt.Fprintln(w.stdout, layout.Wrap(layout.Line(note), w.columns()))
	}
}

// fleetSentence says of how many hosts which verdict was given.
func fleetSentence(doc model.Fleet) string {
	var parts []string
	for _, a := range judge.Answers {
		name := string(a)
		if a == "" {
			name = "not judged"
		}
		if n := doc.Counts[a]; n > 0 {
			parts = append(parts, layout.Count(int64(n))+" "+name)
		}
	}
	part := "--window " + inMillis(doc.Remote.Window).String()
	if doc.Remote.Baseline > 0 {
		part += " --baseline " + inMillis(doc.Remote.Baseline).String()
	}
	return fmt.Sprintf("%s: %s. Lost is the largest share of requests that something confirmed loses or delays. One alone: plimsoll diagnose --prometheus %s --at %s %s --match host=NAME",
		countedHosts(doc), strings.Join(parts, ", "), layout.Quote(doc.Remote.URL), strconv.FormatFloat(float64(doc.Remote.At)/1e3, 'f', 3, 64), part)
}

func inMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// fleetNotes are the notes of a fleet, and those of its hosts, each once with how many have it.
func fleetNotes(doc model.Fleet) []string {
	notes := append([]string{}, doc.Notes...)
	hosts := map[string]int{}
	var order []string
	for _, h := range doc.Hosts {
		for _, n := range h.Notes {
			if hosts[n]++; hosts[n] == 1 {
				order = append(order, n)
			}
		}
	}
	for _, n := range order {
		notes = append(notes, fmt.Sprintf("%d of %s: %s", hosts[n], countedHosts(doc), n))
	}
	return notes
}

// fleetPage is a fleet's table as a page.
func fleetPage(doc model.Fleet) sheet.Page {
	table := sheet.Table{Title: "Hosts", Head: fleetHead, Alarms: map[int]bool{}}
	for i, h := range doc.Hosts {
		table.Rows = append(table.Rows, fleetRow(h))
		table.Alarms[i] = h.Answer == model.AnswerCause
	}
	return sheet.Page{Title: "Plimsoll: a fleet", Tested: &sheet.Tested{Sentence: fleetSentence(doc), Notes: fleetNotes(doc), Tables: []sheet.Table{table}}}
}

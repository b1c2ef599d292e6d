// Package page writes reports as one HTML file that opens anywhere: all that it says is
// plain HTML and SVG attributes, legible without scripts and without styles, and nothing
// is fetched. It words and draws what a run and its report hold; it judges nothing.
package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/style"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
)

// Run is what a page shows of one run.
type Run struct {
	model.Report
	Which     string // of several on a page, "" for the only one
	ID        string // what stands before the names of its parts
	Elsewhere bool   // no command here takes its Dir
	Started   string
	Target    string
	Offer     string
	Sure      string
	First     []report.Step // what to do first, and what that costs
	HostList  string
	Facts     []Fact
	Line      []Stage
	Evidence  []Finding
	Load      []Figure
	Breakdown Breakdown
	Asked     Asked
	Bill      Bill
	Hosts     []Host
	Flames    []Stacks
	Events    Events
	Tables    Tables
}

// Page is all of one file.
type Page struct {
	Title string
	// Tested are trials and Tuned is a walk, nil for none; Compared are comparisons; Runs
	// stand below them.
	Tested   *Tested
	Tuned    *Tuning
	Compared []*Comparison
	Runs     []*Run
	CSS      template.CSS
	// Script is what makes the page alive where scripts may run; the policy of the page names
	// it by its hash, and lets no other run.
	Script     template.JS
	ScriptHash string
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// pageJSHash is the script as a policy names it.
func pageJSHash() string {
	sum := sha256.Sum256([]byte(pageJS))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"line":    func(s string) string { return svg.Text(s, mostText) },
		"name":    func(s string) string { return svg.Text(s, mostName) },
		"percent": report.Percent,
		"mark":    func(size int) template.HTML { return drawn(svg.Mark(size, svg.Alarm)) },
		"join":    func(list []string) string { return svg.Text(strings.Join(list, ", "), mostText) },
		"initial": initial,
		"apart":   report.NoConsequence,
		"upper":   func(a model.Answer) string { return strings.ToUpper(string(a)) },
	}).Parse(pageHTML))
})

// Read takes from a run what a page shows of it. r is the report on the run by these
// rules; q is the run, as it was asked for that.
func Read(rec *record.Run, q *query.Run, r model.Report, set ruleset.Rules) (*Run, error) {
	d := &drawer{q: q, set: set}
	var err error
	if d.reader, err = newReader(rec); err != nil {
		return nil, err
	}
	out := &Run{Report: r, Started: time.UnixMilli(d.first).UTC().Format("2006-01-02 15:04:05 UTC")}
	out.Target, out.Offer, out.HostList = report.Target(r.Plan), report.Offered(r), report.Hosts(r.Hosts)
	out.Facts = facts(r)
	out.Sure, out.First = report.HowSure(r), report.FirstSteps(r)
	out.Line = d.line(r)
	out.Evidence = d.findings(r)
	out.Load = d.load(r.Load)
	out.Breakdown, out.Bill = breakdownOf(r.Breakdown), billOf(r.Verdict)
	out.Asked = askedOf(r)
	out.Hosts = d.hosts(serversFirst(r))
	out.Flames = stacks(rec, r)
	out.Events, err = d.events()
	out.Tables = d.tables(r)
	if err := cmp.Or(d.err, err); err != nil {
		return nil, fmt.Errorf("draw %s: %w", r.Dir, err)
	}
	return out, nil
}

// serversFirst lists the hosts with the one that the load comes from behind the others.
func serversFirst(r model.Report) []model.Host {
	list := slices.Clone(r.Hosts)
	slices.SortStableFunc(list, func(a, b model.Host) int {
		switch r.Plan.Generator {
		case a.Name:
			return 1
		case b.Name:
			return -1
		}
		return 0
	})
	return list
}

// Write writes a page as HTML.
func Write(w io.Writer, p Page) error {
	for i, r := range p.Runs {
		r.ID, r.Which = fmt.Sprintf("r%d-", i+1), which(i, p)
		of := map[string]int{}
		for k := range r.Evidence {
			f := &r.Evidence[k]
			f.ID = r.ID + f.Rule
			if of[f.Rule]++; of[f.Rule] > 1 { // of another subject
				f.ID += fmt.Sprintf("-%d", of[f.Rule])
			}
		}
	}
	p.CSS, p.Script, p.ScriptHash = template.CSS(style.Base+pageCSS), template.JS(pageJS), pageJSHash()
	return page().Execute(w, p)
}

// initial begins a sentence: what stands after a label in the text stands alone on a page.
func initial(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}

// which tells runs on one page apart.
func which(i int, p Page) string {
	switch n := len(p.Runs); {
	case n == 1:
		return ""
	case n == 2 && p.Tuned != nil:
		return []string{"the first run", "the last run"}[i]
	default:
		return fmt.Sprintf("run %d of %d", i+1, n)
	}
}

// facts are the numbers at the head of a run: those of the text report.
func facts(r model.Report) []Fact {
	list := []Fact{}
	if l := r.Load; l != nil {
		list = append(list, Fact{"good replies", layout.Rate(l.GoodRPS) + "/s", layout.Count(l.Good()) + " of " + layout.Count(l.Requests) + " requests sent"},
			Fact{"good", layout.Share(l.GoodShare), "of what was tried"})
		if l.Latency.Count > 0 {
			list = append(list, Fact{"latency p50", layout.Micros(l.Latency.P50), "of replies"},
				Fact{"latency p99", layout.Micros(l.Latency.P99), "at most " + layout.Micros(l.Latency.Max)})
		} else {
			list = append(list, Fact{"latency", "none", "no reply came"})
		}
		if l.Calm.Count > 0 {
			list = append(list, Fact{"alone, p50", layout.Micros(l.Calm.P50), "with one connection, before the load"})
		}
		if text := report.Failed(*l); text != "" {
			list = append(list, Fact{"failed", layout.Count(failures(l)), text})
		}
	}
	return list
}

// failures is how many outcomes were no good reply.
func failures(l *model.Load) (n int64) {
	for _, count := range l.Outcomes {
		n += count
	}
	return n - l.Good()
}

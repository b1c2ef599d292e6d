// Package breakdown says where the mean request's time went. It is a pure
// function of a recorded run.
//
// The generator's own parts are exact: it books every request's time as it
// passes. What remains is the time between the request's last byte sent and its
// reply's last byte received, and the server's part of that is put together
// from what was counted on the observed hosts in the hold window, divided by
// the requests that ended in it. The parts make a tree: what an upstream server
// did lies within the time that the one before it waited for it.
//
// Nothing is scaled to fit. What was not measured is a part without a number;
// what no part covers is "not attributed"; where parts exceed what contains
// them, a warning says so and they become estimates.
package breakdown

import (
	"cmp"
	"fmt"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

type part = model.BreakdownPart

const (
	outcomesSignal = "plimsoll_load_outcomes_total"
	waitsSignal    = "plimsoll_load_wait_seconds_total"
)

// Of computes the breakdown of a run; nil without an error when the run had no
// load of ours, or no request of it was held.
func Of(run *record.Run) (*model.Breakdown, error) {
	meta := run.Meta()
	hold, held := run.Window(model.Hold)
	if meta.Plan.Load == nil || !held || hold.End <= hold.Start {
		return nil, nil
	}
	first, last, err := run.Span()
	if err != nil {
		return nil, err
	}
	r := &reader{meta: meta, run: run, first: first, last: last, from: hold.Start, to: hold.End}
	b := r.breakdown()
	if r.failed != nil {
		return nil, fmt.Errorf("break the requests' time down: %w", r.failed)
	}
	return b, nil
}

func (r *reader) breakdown() *model.Breakdown {
	good, bad, replies := r.means()
	b := &model.Breakdown{Requests: good.Requests + bad.Requests}
	if b.Requests == 0 {
		return nil
	}
	b.MeanSeconds = (good.waits + bad.waits) / float64(b.Requests)
	b.Good, b.Bad = good.orNil(), bad.orNil()
	c := r.client(float64(b.Requests), float64(replies)/float64(b.Requests))
	parts, warnings := r.server(c.served, b)
	b.Parts = append(append(c.before, parts...), c.after...)
	b.Warnings = append(warnings, c.warnings...)
	finish(b)
	return b
}

// finish computes what follows from the parts alone.
func finish(b *model.Breakdown) {
	share(b.Parts, b.MeanSeconds)
	for i := range b.Parts {
		b.AttributedSeconds += attributed(&b.Parts[i])
	}
	b.AttributedSeconds = min(b.AttributedSeconds, b.MeanSeconds)
	if b.MeanSeconds > 0 {
		b.AttributedShare = b.AttributedSeconds / b.MeanSeconds
	}
	b.NotAttributedSeconds = b.MeanSeconds - b.AttributedSeconds
}

func share(parts []part, mean float64) {
	for i := range parts {
		p := &parts[i]
		if p.Seconds != nil && mean > 0 {
			s := min(*p.Seconds/mean, 1) // a part of all that passed at one time is no more than all
			p.Share = &s
		}
		share(p.Parts, mean)
	}
}

// attributed is the time of a part whose place is known: all of one that has
// no inside, else what its inside covers.
func attributed(p *part) float64 {
	if p.Seconds == nil {
		return 0
	}
	if len(p.Parts) == 0 {
		return *p.Seconds
	}
	sum := 0.0
	for i := range p.Parts {
		sum += attributed(&p.Parts[i])
	}
	return min(sum, *p.Seconds)
}

// total is the sum of those parts that have a number.
func total(parts []part) float64 {
	sum := 0.0
	for _, p := range parts {
		if p.Seconds != nil {
			sum += *p.Seconds
		}
	}
	return sum
}

// meanTime is a number of requests and the sum of their waits.
type meanTime struct {
	Requests int64
	waits    float64
}

func (m meanTime) orNil() *model.MeanTime {
	if m.Requests == 0 {
		return nil
	}
	return &model.MeanTime{Requests: m.Requests, Seconds: m.waits / float64(m.Requests)}
}

// means counts the requests that began in hold, whenever they ended, and those
// of them that had any reply.
func (r *reader) means() (good, bad meanTime, replies int64) {
	into := func(outcome string) *meanTime {
		if isReply(outcome) && outcome < "4xx" {
			return &good
		}
		return &bad
	}
	for _, l := range r.series(outcomesSignal, "phase", model.Hold) {
		outcome, n := l.Labels.Get("outcome"), int64(l.Last())
		into(outcome).Requests += n
		if isReply(outcome) {
			replies += n
		}
	}
	for _, l := range r.series(waitsSignal, "phase", model.Hold) {
		into(l.Labels.Get("outcome")).waits += l.Last()
	}
	return good, bad, replies
}

// isReply tells a status class ("2xx") from a failure ("read:timeout").
func isReply(outcome string) bool { return len(outcome) == 3 && outcome[1:] == "xx" }

// ended is how many requests of any phase ended in the hold window with such an outcome.
func (r *reader) ended(such func(outcome string) bool) float64 {
	n := 0.0
	for _, l := range r.series(outcomesSignal) {
		if such(l.Labels.Get("outcome")) {
			n += l.Increase(r.from, r.to)
		}
	}
	return n
}

func anyOutcome(string) bool { return true }

// wasSent says that a request had got as far as to be sent.
func wasSent(outcome string) bool {
	return !model.IsAttempt(outcome) && !strings.HasPrefix(outcome, "queue:")
}

// known makes a part of a number.
func known(name, text string, seconds float64, how model.How, signals ...string) part {
	return part{Name: name, Text: text, Seconds: &seconds, How: how, Signals: signals}
}

// fromMeasured makes a part of a number that may not be there.
func fromMeasured(name, text string, m measured, how model.How, signals ...string) part {
	if !m.known() {
		return part{Name: name, Text: text, Why: m.why, Signals: signals}
	}
	return known(name, text, m.value, how, signals...)
}

// at says where parts passed, unless they say so themselves.
func at(host, process string, parts ...part) []part {
	for i := range parts {
		p := &parts[i]
		p.Host, p.Process = cmp.Or(p.Host, host), cmp.Or(p.Process, process)
		at(host, process, p.Parts...)
	}
	return parts
}

// checkRoom warns when parts exceed the time that contains them by more than
// sampling does, and takes their claim to be exact away.
func checkRoom(what string, parts []part, room, mean float64) (warning string) {
	const ofRoom, ofMean = 0.05, 0.01
	sum := total(parts)
	if sum-room <= max(ofRoom*room, ofMean*mean) {
		return ""
	}
	for i := range parts {
		if parts[i].Seconds != nil {
			parts[i].How = model.Estimate
		}
	}
	return fmt.Sprintf("the parts of %s add up to %.3g ms a request and it took %.3g ms: some of them passed at the same time, or for no request of ours", what, sum*1e3, room*1e3)
}

// sentence joins reasons, each once.
func sentence(reasons ...string) string {
	var list []string
	for _, s := range reasons {
		if s != "" && !strings.Contains(strings.Join(list, "; "), s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, "; ")
}

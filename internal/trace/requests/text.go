package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most of each table; the JSON has all of it.
const (
	shownCrews = 12
	shownBad   = 12
)

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	return Seen{s, elapsed}, err
}

// Text lists the listeners with most requests, what is asked of others, and what
// was no request or got no reply.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var came, asked, waiting uint64
	for _, p := range s.Places {
		if p.Listen == "" {
			asked += p.Begun
			continue
		}
		came += p.Begun
		waiting += p.waiting()
	}
	text := fmt.Sprintf("%s: %s requests came to listeners (%s/s), %s wait for a reply now; %s were asked of others (%s/s).",
		trace.Span(s.Elapsed), trace.Number(came), trace.PerSecond(came, s.Elapsed), trace.Number(waiting),
		trace.Number(asked), trace.PerSecond(asked, s.Elapsed))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	var in trace.Spaces
	for _, p := range s.Places {
		in.Add(p.Netns)
	}
	s.listeners(&b, in, columns)
	s.upstreams(&b, in, columns)
	s.bad(&b, in, columns)
	return b.String() + in.Legend(columns) + s.estimates(columns) + trace.LostText(s.Lost, columns)
}

// waiting is how many requests have no reply.
func (p Place) waiting() uint64 {
	var n uint64
	if p.Unread != nil {
		n = *p.Unread
	}
	for _, c := range p.Groups {
		if c.Now != nil {
			n += *c.Now
		}
	}
	return n
}

// each calls do for all who answered at places of one side.
func (s Seen) each(listeners bool, do func(Place, Group)) {
	for _, p := range s.Places {
		for _, c := range p.Groups {
			if (p.Listen != "") == listeners && c.InHand.Buckets.Count() > 0 {
				do(p, c)
			}
		}
	}
}

func (s Seen) listeners(b *strings.Builder, in trace.Spaces, columns int) {
	rows := [][]string{{"listener", "process", "/s", "unread", "in hand", "99 % <", "last byte", "99 % <"}}
	s.each(true, func(p Place, c Group) {
		rows = append(rows, []string{layout.Clean(p.Listen), layout.Clean(c.Name), trace.PerSecond(c.InHand.Buckets.Count(), s.Elapsed),
			c.Unread.Mean(), c.InHand.Mean(), c.InHand.Buckets.Under(0.99), c.Served.Mean(), c.Served.Buckets.Under(0.99), in.Mark(p.Netns)})
	})
	table(b, rows, 0, shownCrews, columns)
}

func (s Seen) upstreams(b *strings.Builder, in trace.Spaces, columns int) {
	rows := [][]string{{"process", "asks", "/s", "waits", "99 % <", "last byte", "unread"}}
	s.each(false, func(p Place, c Group) {
		rows = append(rows, []string{layout.Clean(c.Name), layout.Clean(p.Destination), trace.PerSecond(c.InHand.Buckets.Count(), s.Elapsed),
			c.InHand.Mean(), c.InHand.Buckets.Under(0.99), c.Served.Mean(), c.Unread.Mean(), in.Mark(p.Netns)})
	})
	table(b, rows, 1, shownCrews, columns)
}

var words = map[string]string{
	"closed": "closed without a reply", "left": "the other end left first", "left_early": "the other end left at once", "reset": "reset by the other end", "aborted": "reset by this end",
	"timed_out": "given up by the kernel", "cut": "reset within the reply",
	"overlapped": "connections that take no turns", "one_way": "requests that went on and on", "streamed": "replies with pauses",
	"replied": "stood until a timer ended", "asked": "stood so, and others were asked only then",
	"tls": "handshakes and alerts of TLS", "farewell": "farewells",
}

// bad lists what got no reply, and what was no request.
func (s Seen) bad(b *strings.Builder, in trace.Spaces, columns int) {
	type row struct {
		n     uint64
		cells []string
	}
	var list []row
	put := func(p Place, name, what string, n uint64) {
		where := p.Listen
		if where == "" {
			where = "to " + p.Destination
		}
		if n > 0 {
			list = append(list, row{n, []string{trace.Number(n), what, layout.Clean(name), layout.Clean(where), in.Mark(p.Netns)}})
		}
	}
	for _, p := range s.Places {
		put(p, "", "connections that were closed unasked", p.Silent)
		put(p, "", "connections whose clients left unasked", p.LetBe)
		put(p, "", "connections that asked and got nothing", p.Unanswered)
		put(p, "", "connections that asked and were left at once", p.LeftEarly)
		for _, c := range p.Groups {
			for _, counts := range []map[string]uint64{c.Failed, c.Excluded, c.Timers} {
				for what, n := range counts {
					put(p, c.Name, words[what], n)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Or(cmp.Compare(b.n, a.n), slices.Compare(a.cells, b.cells)) })
	rows := [][]string{{"times", "what", "process", "where"}}
	for _, r := range list {
		rows = append(rows, r.cells)
	}
	table(b, rows, 3, shownBad, columns)
}

// table writes some of the rows, if there are any beneath their heads.
func table(b *strings.Builder, rows [][]string, long, shown, columns int) {
	if len(rows) == 1 {
		return
	}
	b.WriteString("\n")
	trace.Rows(b, rows, shown, long, columns)
}

// estimates says which numbers are not of all requests.
func (s Seen) estimates(columns int) string {
	var begun, followed uint64
	for _, p := range s.Places {
		begun, followed = begun+p.Begun, followed+p.Followed
	}
	if begun == followed {
		return ""
	}
	text := fmt.Sprintf("note: %s requests are estimated from %s that were followed", trace.Number(begun), trace.Number(followed))
	return "\n" + layout.Indent(layout.Wrap(text, columns-6), "      ") + "\n"
}

package replies

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most of each table; the JSON has all of it.
const shown = 15

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

// Text lists replies by their status, and answers by their code.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var in trace.Spaces
	var replies, failed, answers uint64
	for _, r := range s.HTTP {
		in.Add(r.Netns)
		replies += r.N
		if r.Status >= 500 {
			failed += r.N
		}
	}
	for _, c := range s.AMQP {
		in.Add(c.Netns)
	}
	for _, h := range s.Read {
		in.Add(h.Netns)
	}
	for _, a := range s.DNS {
		in.Add(a.Netns)
		answers += a.N
	}
	text := fmt.Sprintf("%s: %s replies over HTTP (%s/s), %s of them say that the service failed (5xx); %s answers of name servers.",
		trace.Span(s.Elapsed), trace.Number(replies), trace.PerSecond(replies, s.Elapsed), trace.Number(failed), trace.Number(answers))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	rows := [][]string{{"port", "status", "replies", "/s"}}
	for _, r := range s.HTTP {
		rows = append(rows, []string{":" + strconv.Itoa(int(r.Port)), strconv.Itoa(int(r.Status)), trace.Number(r.N), trace.PerSecond(r.N, s.Elapsed), in.Mark(r.Netns)})
	}
	table(&b, rows, columns)
	rows = [][]string{{"port", "says of a message", "replies", "/s"}}
	for _, c := range s.AMQP {
		rows = append(rows, []string{":" + strconv.Itoa(int(c.Port)), c.Says, trace.Number(c.N), trace.PerSecond(c.N, s.Elapsed), in.Mark(c.Netns)})
	}
	table(&b, rows, columns)
	rows = [][]string{{"process", "asks", "status", "replies", "/s"}}
	for _, h := range s.Read {
		rows = append(rows, []string{layout.Line(h.Name), h.Server, strconv.Itoa(int(h.Status)), trace.Number(h.N), trace.PerSecond(h.N, s.Elapsed), in.Mark(h.Netns)})
	}
	table(&b, rows, columns)
	rows = [][]string{{"process", "asks", "code", "answers", "/s"}}
	for _, a := range s.DNS {
		rows = append(rows, []string{layout.Line(a.Name), a.Server, a.Code, trace.Number(a.N), trace.PerSecond(a.N, s.Elapsed), in.Mark(a.Netns)})
	}
	table(&b, rows, columns)
	return b.String() + in.Legend(columns) + trace.LostText(s.Lost, columns)
}

// table writes some of the rows, if there are any beneath their heads.
func table(b *strings.Builder, rows [][]string, columns int) {
	if len(rows) == 1 {
		return
	}
	b.WriteString("\n")
	trace.Rows(b, rows, shown, 0, columns)
}

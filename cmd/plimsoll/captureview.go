package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/tcp"
	"plimsoll/internal/layout"
)

// counted counts what is read.
type counted struct{ n atomic.Int64 }

func (c *counted) by(r io.Reader) io.Reader { return countedReader{r, c} }

type countedReader struct {
	in io.Reader
	c  *counted
}

// Read reads, and counts that.
func (r countedReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.c.n.Add(int64(n))
	return n, err
}

// captureText writes the summary for people.
func captureText(out io.Writer, r *capture.Reading, width int) error {
	p := &page{width: width}
	p.verdict(r)
	p.traffic(r)
	p.connections(r)
	p.talkers(r)
	p.expert(r)
	p.resets(r)
	_, err := io.WriteString(out, p.b.String())
	return err
}

// page is the text under way.
type page struct {
	b     strings.Builder
	width int
}

// para writes a paragraph, its lines after the first set in.
func (p *page) para(text, indent string) {
	if strings.HasPrefix(text, "  ") {
		p.b.WriteString("  ")
	}
	p.b.WriteString(layout.Indent(layout.Wrap(layout.Line(text), p.width-len(indent)), indent))
	p.b.WriteByte('\n')
}

func (p *page) section(title string) { fmt.Fprintf(&p.b, "\n%s\n\n", title) }

func (p *page) table(rows [][]string) {
	var b strings.Builder
	layout.Table(&b, rows)
	for line := range strings.Lines(b.String()) {
		p.b.WriteString("  " + line)
	}
}

// maxFindings is how many are shown; --json has all.
const maxFindings = 8

func (p *page) verdict(r *capture.Reading) {
	if r.Partial {
		p.para("PARTIAL: not everything could be read.", "")
	}
	for _, n := range r.Notes {
		p.para("note: "+n, "  ")
	}
	if r.Partial || len(r.Notes) > 0 {
		p.b.WriteByte('\n')
	}
	if len(r.Findings) == 0 {
		p.para("Verdict: unclear. The wire shows nothing that is wrong; what a capture cannot see (a slow application, a loaded machine, what is dropped before or behind it) is not ruled out.", "  ")
		return
	}
	p.para("Verdict: "+r.Findings[0].Text+evidence(r.Findings[0].Evidence), "  ")
	if len(r.Findings) > 1 {
		p.section("ALSO")
	}
	for i, f := range r.Findings[1:] {
		if i == maxFindings {
			p.para(fmt.Sprintf("  ... and %d more; --json has all", len(r.Findings)-1-i), "    ")
			break
		}
		p.para("  "+f.Text+evidence(f.Evidence), "    ")
	}
}

// evidence words the frames that show something.
func evidence(frames []uint32) string {
	if len(frames) == 0 {
		return ""
	}
	words := make([]string, 0, 4)
	for i, n := range frames {
		if i == 4 {
			words = append(words, "...")
			break
		}
		words = append(words, strconv.Itoa(int(n)))
	}
	if len(frames) == 1 {
		return " [frame " + words[0] + "]"
	}
	return " [frames " + strings.Join(words, ", ") + "]"
}

func (p *page) traffic(r *capture.Reading) {
	p.section("TRAFFIC")
	d := r.Decoded
	length := float64(r.End-r.Start) / 1e3
	rows := [][]string{{"packets", fmt.Sprintf("%s, %s on the wire, in %s", layout.Count(r.Packets), layout.Bytes(r.Bytes), layout.Micros(length))}}
	if r.Packets > 0 {
		rows = append(rows, []string{"from", time.Unix(0, r.Start).UTC().Format("2006-01-02 15:04:05.000000 UTC")})
	}
	rows = append(rows, []string{"of them", fmt.Sprintf("TCP %s, UDP %s, ICMP %s, not IP %s", layout.Count(d.TCP), layout.Count(d.UDP), layout.Count(d.ICMP), layout.Count(d.NotIP))})
	odd := ""
	for _, c := range []struct {
		n    int64
		what string
	}{{d.Fragments, "fragments"}, {d.Tunnelled, "in tunnels"}, {d.Cut, "cut when captured"}, {d.Malformed, "malformed"},
		{d.UnknownLink, "of a link type that is not decoded"}, {r.WentBack, "earlier than the one before"}} {
		if c.n > 0 {
			odd += ", " + layout.Count(c.n) + " " + c.what
		}
	}
	if odd != "" {
		rows = append(rows, []string{"", odd[2:]})
	}
	if values := sparkOf(r.Rates.Packets, p.width-30); len(values) > 1 {
		rows = append(rows, []string{"over time", layout.Spark(values)})
	}
	rows = append(rows, []string{"sizes", sizes(r.Sizes)})
	for _, q := range []struct {
		name string
		q    *capture.Quantiles
	}{{"handshakes", r.Handshake}, {"data to ACK", r.RTT}} {
		if q.q != nil {
			rows = append(rows, []string{q.name, quantiles(q.q)})
		}
	}
	rows = append(rows, replies("HTTP", r.HTTP)...)
	rows = append(rows, replies("TLS", r.TLS)...)
	for i, row := range rows {
		rows[i][1] = layout.Indent(layout.Wrap(row[1], p.width-15), strings.Repeat(" ", 15))
	}
	for _, row := range rows {
		fmt.Fprintf(&p.b, "  %-12s %s\n", row[0], row[1])
	}
}

// sparkOf brings values down to at most n.
func sparkOf(values []int64, n int) []float64 {
	if len(values) == 0 {
		return nil
	}
	each := (len(values) + n - 1) / n
	var out []float64
	for part := range slices.Chunk(values, each) {
		sum := 0.0
		for _, v := range part {
			sum += float64(v)
		}
		out = append(out, sum)
	}
	return out
}

func sizes(list []capture.Size) string {
	var words []string
	for _, s := range list {
		if s.Packets == 0 {
			continue
		}
		what := fmt.Sprintf("%d to %d", s.Least, s.Most)
		if s.Most == 0 {
			what = fmt.Sprintf("from %d", s.Least)
		}
		words = append(words, fmt.Sprintf("%s: %s", what, layout.Count(s.Packets)))
	}
	return strings.Join(words, ", ")
}

func quantiles(q *capture.Quantiles) string {
	us := func(ns int64) string { return layout.Micros(float64(ns) / 1e3) }
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, at most %s (%s)", us(q.P50), us(q.P90), us(q.P99), us(q.Most), layout.Count(q.Count))
}

func replies(name string, r *capture.Replies) (rows [][]string) {
	if r == nil {
		return nil
	}
	text := fmt.Sprintf("%s requests, %.3g on a connection", layout.Count(r.Requests), r.Reused)
	if r.Unanswered > 0 {
		text += fmt.Sprintf(", %s without a reply", layout.Count(r.Unanswered))
	}
	rows = append(rows, []string{name, text})
	if r.FirstByte != nil {
		rows = append(rows, []string{"  first byte", quantiles(r.FirstByte)})
	}
	if r.LastByte != nil {
		rows = append(rows, []string{"  last byte", quantiles(r.LastByte)})
	}
	return rows
}

// maxRows is how many connections and resets are shown.
const maxRows = 10

func (p *page) connections(r *capture.Reading) {
	p.section(fmt.Sprintf("CONNECTIONS   %s, at most %s at once", layout.Count(r.Connections), layout.Count(r.MostOpen)))
	if r.Forgotten > 0 {
		p.para(fmt.Sprintf("  %s of them were forgotten for lack of room (--max-memory); they are in no table.", layout.Count(r.Forgotten)), "  ")
	}
	var top []capture.Connection
	r.TCP.Conns(func(c *tcp.Conn) {
		top = append(top, r.Connection(c))
		if len(top) >= 4096 {
			top = busiest(top)
		}
	})
	top = busiest(top)
	if len(top) == 0 {
		return
	}
	rows := [][]string{{"stream", "packets", "payload", "handshake", "resent", "end", ""}}
	for _, c := range top {
		handshake := "-"
		if c.IRTT > 0 {
			handshake = layout.Micros(float64(c.IRTT) / 1e3)
		}
		rows = append(rows, []string{strconv.Itoa(int(c.Stream)), layout.Count(int64(c.Packets[0] + c.Packets[1])), layout.Bytes(int64(c.Bytes[0] + c.Bytes[1])),
			handshake, layout.Count(int64(c.Resent[0] + c.Resent[1])), ended(c)})
	}
	p.rowsWith(rows, func(i int) string { return top[i].Client.String() + " > " + top[i].Server.String() })
	if more := r.Connections - r.Forgotten - int64(len(top)); more > 0 {
		fmt.Fprintf(&p.b, "  ... and %s more; --csv has all\n", layout.Count(more))
	}
}

// rowsWith writes a table, and below each of its rows a line that would be too
// wide for it.
func (p *page) rowsWith(rows [][]string, below func(i int) string) {
	var b strings.Builder
	layout.Table(&b, rows)
	i := -1
	for line := range strings.Lines(b.String()) {
		p.b.WriteString("  " + line)
		if i >= 0 {
			p.b.WriteString("      " + below(i) + "\n")
		}
		i++
	}
}

// busiest keeps the connections that are shown: those with most packets.
func busiest(list []capture.Connection) []capture.Connection {
	slices.SortStableFunc(list, func(a, b capture.Connection) int {
		return cmp.Or(cmp.Compare(b.Packets[0]+b.Packets[1], a.Packets[0]+a.Packets[1]), cmp.Compare(a.Stream, b.Stream))
	})
	return list[:min(len(list), maxRows)]
}

// talkers shows who sent most, where there are more than two sides.
func (p *page) talkers(r *capture.Reading) {
	if len(r.Talkers) < 3 {
		return
	}
	p.section("TALKERS   by packets sent over TCP")
	rows := [][]string{{"address", "packets", "payload", "connections"}}
	for _, t := range r.Talkers[:min(len(r.Talkers), maxRows)] {
		rows = append(rows, []string{t.Address.String(), layout.Count(t.Packets), layout.Bytes(t.Payload), layout.Count(t.Connections)})
	}
	p.table(rows)
}

func ended(c capture.Connection) string {
	switch {
	case c.Cause != "":
		return "RST: " + c.Cause
	case c.RSTs > 0:
		return "RST"
	case c.FirstFIN != "":
		return c.FirstFIN + " closed"
	}
	return "open"
}

func (p *page) expert(r *capture.Reading) {
	p.section("LABELS   as " + r.Rules + " gives them")
	type line struct {
		label tcp.Label
		n     int64
	}
	var list []line
	for i := range tcp.Labels {
		if l := tcp.Label(1 << i); r.Labels[l.String()] > 0 {
			list = append(list, line{l, r.Labels[l.String()]})
		}
	}
	slices.SortStableFunc(list, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.label.Severity(), a.label.Severity()), cmp.Compare(b.n, a.n))
	})
	var rows [][]string
	for _, l := range list {
		rows = append(rows, []string{l.label.Severity().String(), layout.Count(l.n), l.label.Words()})
	}
	p.table(rows)
	p.judgements(r)
}

func (p *page) judgements(r *capture.Reading) {
	var rows [][]string
	for i := cause.Attribution(1); i < cause.Attributions; i++ {
		if n := r.Judge.Attributed[i]; n.Count > 0 {
			rows = append(rows, []string{layout.Count(n.Count), i.Words() + evidence(n.Evidence)})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.section("OUR JUDGEMENT   of what is labelled as sent again, out of order or repeated")
	for _, row := range rows {
		text := layout.Indent(layout.Wrap(row[1], p.width-12), strings.Repeat(" ", 12))
		fmt.Fprintf(&p.b, "  %9s %s\n", row[0], text)
	}
}

func (p *page) resets(r *capture.Reading) {
	if len(r.Judge.Resets) == 0 {
		return
	}
	p.section("RESETS")
	var found []cause.Cause
	for i := range cause.Causes {
		if r.Judge.ByCause[i] > 0 {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b cause.Cause) int { return cmp.Compare(r.Judge.ByCause[b], r.Judge.ByCause[a]) })
	var rows [][]string
	for _, c := range found {
		rows = append(rows, []string{layout.Count(r.Judge.ByCause[c]), c.String(), ""})
	}
	p.table(rows)
	p.b.WriteByte('\n')
	rows = [][]string{{"frame", "stream", "by", "cause", "evidence"}}
	shown := r.Judge.Resets[:min(len(r.Judge.Resets), maxRows)]
	for _, one := range shown {
		rows = append(rows, []string{strconv.Itoa(int(one.Frame)), strconv.Itoa(int(one.Stream)), one.By, one.Cause, strings.Trim(evidence(one.Evidence), " []")})
	}
	p.rowsWith(rows, func(i int) string { return shown[i].Sender.String() + " > " + shown[i].Receiver.String() })
	if more := int64(len(r.Judge.Resets)-len(shown)) + r.Judge.ResetsMore; more > 0 {
		fmt.Fprintf(&p.b, "  ... and %s more; --json has them\n", layout.Count(more))
	}
}

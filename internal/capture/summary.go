package capture

import (
	"fmt"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/http"
	"plimsoll/internal/capture/pcap"
	"plimsoll/internal/capture/tcp"
)

// Summary is what a capture has, all connections together. Times are in ns.
type Summary struct {
	Rules       string                   `json:"labels_as"` // whose labels ours are equal to
	Files       []File                   `json:"files"`
	Partial     bool                     `json:"partial"` // not everything could be read; Notes say why
	Notes       []string                 `json:"notes,omitempty"`
	Packets     int64                    `json:"packets"`
	Bytes       int64                    `json:"bytes"` // on the wire
	Start       int64                    `json:"start_ns"`
	End         int64                    `json:"end_ns"`
	WentBack    int64                    `json:"clock_went_back"` // packets earlier than the one before them
	Decoded     decode.Counts            `json:"decoded"`
	DataPackets int64                    `json:"data_segments"` // segments with payload
	Tiny        int64                    `json:"tiny_segments"` // segments with less than 100 bytes of payload, or none
	Sizes       []Size                   `json:"sizes"`
	Rates       Rates                    `json:"rates"`
	Connections int64                    `json:"connection_count"`
	Forgotten   int64                    `json:"connections_forgotten"` // for lack of room; counted here, and in no table
	MostOpen    int64                    `json:"most_open_at_once"`
	Labels      map[string]int64         `json:"labels"`
	Attributed  map[string]cause.Counted `json:"attributed"`
	DSACKs      int64                    `json:"dsacks"` // segments whose receiver said that it had them already
	Completed   map[string]int64         `json:"completeness"`
	Handshake   *Quantiles               `json:"rtt_handshake,omitempty"`
	RTT         *Quantiles               `json:"rtt_data,omitempty"` // without segments that were sent again
	HTTP        *Replies                 `json:"http,omitempty"`
	TLS         *Replies                 `json:"tls,omitempty"`
	Causes      map[string]int64         `json:"reset_causes"`
	Talkers     []Talker                 `json:"talkers"` // who sent most over TCP
	Sources     []cause.Source           `json:"sources"` // who tried most to connect
	Findings    []cause.Finding          `json:"findings"`
}

// File is a capture that was read.
type File struct {
	Name    string `json:"name"`
	Packets int64  `json:"packets"`
	Dropped int64  `json:"dropped_by_capture,omitempty"` // as the file says
	Damage  string `json:"damage,omitempty"`             // why it was not read to its end
}

// Size is how many packets were of a size on the wire.
type Size struct {
	Least   int   `json:"least"`
	Most    int   `json:"most,omitempty"` // 0 for no bound
	Packets int64 `json:"packets"`
}

// Rates is the traffic over time.
type Rates struct {
	Step    int64   `json:"step_ns"` // of each value
	Packets []int64 `json:"packets"`
	Bytes   []int64 `json:"bytes"`
}

// Quantiles are those of a time, in ns.
type Quantiles struct {
	Count int64 `json:"count"`
	Least int64 `json:"min"`
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	Most  int64 `json:"max"`
}

// Replies is how long replies took.
type Replies struct {
	Requests   int64            `json:"requests"`
	Unanswered int64            `json:"unanswered"`
	FirstByte  *Quantiles       `json:"first_byte,omitempty"` // from the request's last byte to the reply's first
	LastByte   *Quantiles       `json:"last_byte,omitempty"`  // to its last
	Reused     float64          `json:"requests_per_connection"`
	Statuses   map[string]int64 `json:"statuses,omitempty"`
}

var sizeBounds = [...]int{64, 128, 256, 512, 1024, 1519, 9019}

// meter adds up what a summary is made of.
type meter struct {
	packets, bytes, start, end, last, wentBack int64
	data, tiny, open, mostOpen                 int64
	sizes                                      [len(sizeBounds) + 1]int64
	rates                                      Rates
	labels                                     [tcp.Labels]int64
	completed                                  [64]int64
	handshake, rtt                             *hdrhistogram.Histogram
	talkers                                    talkers
	replies                                    [http.TLS + 1]replies
}

type replies struct {
	requests, unanswered, connections int64
	first, last                       *hdrhistogram.Histogram
	statuses                          [6]int64
}

// The longest time that is told apart, and the digits: 1 µs to 1 h, two of them.
const longest = 3600_000_000

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 2) }

func newMeter() meter {
	m := meter{handshake: newHistogram(), rtt: newHistogram(), talkers: talkers{}}
	for i := range m.replies {
		m.replies[i].first, m.replies[i].last = newHistogram(), newHistogram()
	}
	m.rates.Step = firstStep
	return m
}

// note counts a time of ns.
func note(h *hdrhistogram.Histogram, ns int64) {
	if ns >= 0 {
		h.RecordValue(min(ns/1000, longest)) //nolint:errcheck // it is within the bounds
	}
}

func quantiles(h *hdrhistogram.Histogram) *Quantiles {
	if h.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) int64 { return h.ValueAtQuantile(q) * 1000 }
	return &Quantiles{h.TotalCount(), h.Min() * 1000, at(50), at(90), at(99), h.Max() * 1000}
}

func (m *meter) packet(k *pcap.Packet) {
	if m.packets == 0 {
		m.start, m.end = k.Time, k.Time
	}
	m.packets++
	m.bytes += int64(k.Wire)
	if k.Time < m.last {
		m.wentBack++
	}
	m.last, m.start, m.end = k.Time, min(m.start, k.Time), max(m.end, k.Time)
	i := 0
	for i < len(sizeBounds) && k.Wire >= sizeBounds[i] {
		i++
	}
	m.sizes[i]++
	m.rates.add(k.Time-m.start, int64(k.Wire))
}

// The traffic is kept in steps, which become longer with the capture.
const (
	firstStep = 10_000_000 // ns
	maxSteps  = 600
)

func (r *Rates) add(since, bytes int64) {
	i := since / r.Step
	for i >= maxSteps {
		r.widen()
		i = since / r.Step
	}
	for int64(len(r.Packets)) <= i {
		r.Packets, r.Bytes = append(r.Packets, 0), append(r.Bytes, 0)
	}
	r.Packets[i]++
	r.Bytes[i] += bytes
}

// widen makes each step twice as long.
func (r *Rates) widen() {
	half := func(v []int64) []int64 {
		for i := range v {
			if i%2 == 0 {
				v[i/2] = v[i]
			} else {
				v[i/2] += v[i]
			}
		}
		return v[:(len(v)+1)/2]
	}
	r.Step, r.Packets, r.Bytes = r.Step*2, half(r.Packets), half(r.Bytes)
}

// tinyPayload is the payload below which a segment is tiny.
const tinyPayload = 100

func (m *meter) segment(f *Frame) {
	r, s := &f.Result, &f.Segment
	if s.Len > 0 {
		m.data++
	}
	if s.Len < tinyPayload {
		m.tiny++
	}
	if r.Acks != 0 && r.Labels&(tcp.SYNACK|tcp.DuplicateACK) == 0 && r.Conn.Half[1-r.Side].Resent == 0 {
		note(m.rtt, r.RTT)
	}
	m.opened(r, s)
}

func (m *meter) labelled(l tcp.Label) {
	for ; l != 0; l &= l - 1 {
		m.labels[l.First()]++
	}
}

// opened keeps how many connections are open at once: from the handshake to the
// first reset, or the second FIN.
func (m *meter) opened(r *tcp.Result, s *decode.Segment) {
	c := r.Conn
	if c == nil || s.HeaderBad {
		return
	}
	if r.Opened {
		m.open++
		m.mostOpen = max(m.mostOpen, m.open)
	}
	if r.Ended {
		m.open--
	}
}

func (m *meter) conn(a *tcp.Analyzer, c *tcp.Conn) {
	m.talkers.add(a, c)
	m.completed[c.Completeness&63]++
	if c.Timed && c.Completeness&(tcp.SawSYN|tcp.SawSYNACK) == tcp.SawSYN|tcp.SawSYNACK {
		note(m.handshake, c.IRTT())
	}
}

func (m *meter) reply(e *http.Exchange) {
	p := &m.replies[e.Protocol]
	p.requests++
	if e.Number == 1 {
		p.connections++
	}
	if e.ReplyFirst.Frame == 0 {
		p.unanswered++
		return
	}
	note(p.first, e.FirstByte())
	if e.ReplyLast.Frame != 0 {
		note(p.last, e.LastByte())
	}
	p.statuses[min(e.Status/100, 5)]++
}

func (p *replies) summary() *Replies {
	if p.requests == 0 {
		return nil
	}
	out := &Replies{Requests: p.requests, Unanswered: p.unanswered, FirstByte: quantiles(p.first), LastByte: quantiles(p.last)}
	out.Reused = float64(p.requests) / float64(max(p.connections, 1))
	for class, n := range p.statuses {
		if n > 0 && class > 0 {
			if out.Statuses == nil {
				out.Statuses = map[string]int64{}
			}
			out.Statuses[fmt.Sprintf("%dxx", class)] = n
		}
	}
	return out
}

// finish makes the summary.
func (r *run) finish(m *merger) {
	s, t, v := &r.out.Summary, &r.meter, r.out.Judge
	s.Rules, s.Packets, s.Bytes, s.Start, s.End, s.WentBack = Rules, t.packets, t.bytes, t.start, t.end, t.wentBack
	s.Decoded, s.DataPackets, s.Tiny, s.Rates = r.decoder.Counts, t.data, t.tiny, t.rates
	s.Connections, s.Forgotten, s.MostOpen = int64(r.out.TCP.Streams()), r.out.TCP.Evicted, t.mostOpen
	for i, n := range t.sizes {
		size := Size{Packets: n}
		if i > 0 {
			size.Least = sizeBounds[i-1]
		}
		if i < len(sizeBounds) {
			size.Most = sizeBounds[i] - 1
		}
		s.Sizes = append(s.Sizes, size)
	}
	s.Labels, s.Completed, s.Causes, s.Attributed = map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]cause.Counted{}
	for i, n := range t.labels {
		if n > 0 {
			s.Labels[tcp.Label(1<<i).String()] = n
		}
	}
	for i, n := range t.completed {
		if n > 0 {
			s.Completed[Completeness(uint8(i))] += n
		}
	}
	for i, n := range v.ByCause {
		if n > 0 {
			s.Causes[cause.Cause(i).String()] = n
		}
	}
	for i, n := range v.Attributed {
		if n.Count > 0 {
			s.Attributed[cause.Attribution(i).String()] = n
		}
	}
	s.DSACKs = v.DSACKs
	s.Handshake, s.RTT = quantiles(t.handshake), quantiles(t.rtt)
	s.HTTP, s.TLS = t.replies[http.HTTP].summary(), t.replies[http.TLS].summary()
	s.Findings = v.Findings(cause.Traffic{Seconds: float64(t.end-t.start) / 1e9, TCP: s.Decoded.TCP, Data: t.data,
		Connections: s.Connections, TinySegments: t.tiny})
	top := t.talkers.top()
	s.Talkers, s.Sources = top[:min(len(top), showTalkers)], v.Sources(showTalkers)
	s.files(m)
}

func (s *Summary) files(m *merger) {
	for i, h := range m.heads {
		f := File{Name: m.names[i], Packets: h.packets, Dropped: h.reader.Dropped()}
		if h.damage != nil {
			f.Damage = h.damage.Error()
			s.note("%s: %s", f.Name, f.Damage)
		}
		if f.Dropped > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: the capture itself lost %d packets; what looks lost here may not be", f.Name, f.Dropped))
		}
		s.Files = append(s.Files, f)
	}
	if s.Decoded.Cut > 0 && s.HTTP == nil && s.TLS == nil && s.DataPackets > 0 {
		s.Notes = append(s.Notes, "packets were cut when captured: replies could not be timed")
	}
	slices.Sort(s.Notes)
}

// Completeness is Wireshark's word for how much of a connection was captured.
func Completeness(bits uint8) string {
	switch bits {
	case tcp.SawSYN:
		return "incomplete, SYN sent"
	case tcp.SawSYN | tcp.SawSYNACK:
		return "incomplete, client established"
	case 7:
		return "incomplete, established"
	case 15:
		return "incomplete, data"
	}
	if bits&(tcp.SawFIN|tcp.SawRST) != 0 {
		switch bits & 15 {
		case 15:
			return "complete, with data"
		case 7:
			return "complete, no data"
		}
	}
	return "incomplete"
}

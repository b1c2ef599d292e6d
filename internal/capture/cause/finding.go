package cause

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Finding is one thing that is wrong on the wire, in words, with frames that show it.
type Finding struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Count    int64    `json:"count"`
	Evidence []uint32 `json:"evidence,omitempty"`
	weight   float64
}

// Traffic is what findings are held against.
type Traffic struct {
	Seconds      float64 // from the first packet to the last
	TCP, Data    int64   // segments, and those with payload
	Handshaking  int64   // segments with SYN
	Connections  int64
	TinySegments int64 // segments with a payload below 100 bytes, or none
}

// affected weighs a finding by the share of connections that it befell.
func (t Traffic) affected(least float64, n int64) float64 {
	return least + 50*min(float64(n)/float64(max(t.Connections, 1)), 1)
}

// Findings names what the capture shows, what weighs most first.
func (j *Judge) Findings(t Traffic) []Finding {
	var list []Finding
	add := func(f Finding, weight float64) {
		f.weight = weight
		list = append(list, f)
	}
	servers := j.Servers()
	j.floods(servers, add)
	j.scans(add)
	idle := j.idleFindings(servers, t, add)
	j.resetFindings(t, idle, add)
	j.handshakeFindings(servers, t, add)
	j.lossFindings(t, add)
	j.stallFindings(t, add)
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(b.weight, a.weight) })
	return list
}

// What makes many attempts a flood, and many targets a scan.
const (
	floodLeast   = 100 // attempts that nobody completed
	floodPeak    = 50  // of them in one second
	floodPatient = 10  // of so many, at most one that asks again as a client does
	scanTargets  = 100
)

func (j *Judge) floods(servers []*Server, add func(Finding, float64)) {
	for _, v := range servers {
		n := v.failed[FailUnanswered] + v.failed[FailHalf] + v.again
		peak := int64(0)
		for _, s := range v.seconds {
			peak = max(peak, s)
		}
		if n < floodLeast || peak < floodPeak || n < v.Opened || v.patient*floodPatient >= n {
			continue
		}
		v.flooded = true
		answered := "its SYN-ACKs were never answered"
		if v.failed[FailUnanswered] > v.failed[FailHalf] {
			answered = "nothing answered them"
		}
		add(Finding{ID: "syn_flood", Count: n, Evidence: slices.Concat(v.evidence[FailHalf], v.evidence[FailUnanswered]),
			Text: fmt.Sprintf("SYN flood at %s: %d attempts that nobody completed, up to %d in a second, from %s; %s.", v.Address, n, peak, v.from(n), answered)}, 90)
	}
}

// from says whence a server's attempts came of which there are n, and names who sent a tenth of them or more.
func (v *Server) from(n int64) string {
	var most []netip.Addr
	for a, k := range v.sources {
		if k*10 >= n {
			most = append(most, a)
		}
	}
	slices.SortFunc(most, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(v.sources[b], v.sources[a]), a.Compare(b)) })
	if len(v.sources) == 1 && len(most) == 1 {
		return most[0].String() + " alone"
	}
	text := fmt.Sprintf("%d addresses", len(v.sources))
	if v.moreAddrs {
		text = fmt.Sprintf("more than %d addresses", maxSources)
	}
	for i, a := range most[:min(len(most), 3)] {
		text += fmt.Sprintf("%s %s (%d)", [...]string{", most from", " and"}[min(i, 1)], a, v.sources[a])
	}
	return text
}

func (j *Judge) scans(add func(Finding, float64)) {
	var addrs []netip.Addr
	for a, s := range j.opens.sources {
		if len(s.targets) >= scanTargets && s.failed*10 >= s.attempts*9 {
			addrs = append(addrs, a)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range addrs {
		s := j.opens.sources[a]
		many := fmt.Sprint(len(s.targets))
		if len(s.targets) == maxTargets {
			many += " or more"
		}
		add(Finding{ID: "port_scan", Count: s.failed,
			Text: fmt.Sprintf("Port scan by %s: %d attempts at %s addresses and ports, of which %d came to nothing.", a, s.attempts, many, s.failed)}, 95)
	}
}

// group is a kind of event at several servers.
type group struct {
	Counted
	at   map[netip.AddrPort]int64
	idle []int64 // for how long its connections had been idle, ns
}

func (g *group) add(frame uint32, at netip.AddrPort) {
	g.Counted.add(frame)
	if _, known := g.at[at]; known || len(g.at) < maxServers {
		g.at[at]++
	}
}

// where names the servers with most events.
func (g *group) where() string {
	var list []netip.AddrPort
	for at := range g.at {
		list = append(list, at)
	}
	slices.SortFunc(list, func(a, b netip.AddrPort) int { return cmp.Or(cmp.Compare(g.at[b], g.at[a]), a.Compare(b)) })
	switch {
	case len(list) == 1:
		return "at " + list[0].String()
	case len(list) > 2:
		return fmt.Sprintf("at %d servers, most at %s (%d) and %s (%d)", len(list), list[0], g.at[list[0]], list[1], g.at[list[1]])
	}
	return fmt.Sprintf("at %s (%d) and %s (%d)", list[0], g.at[list[0]], list[1], g.at[list[1]])
}

func (j *Judge) resetFindings(t Traffic, idle map[netip.AddrPort]bool, add func(Finding, float64)) {
	type kind struct {
		cause Cause
		by    string
	}
	groups := map[kind]*group{}
	var order []kind
	for i := range j.Resets {
		r := &j.Resets[i]
		if r.Twice || r.cause == IdleTimeout && idle[r.Sender] {
			continue
		}
		k, server := kind{r.cause, r.By}, r.Sender
		if r.By == "client" {
			server = r.Receiver
		}
		if groups[k] == nil {
			groups[k] = &group{at: map[netip.AddrPort]int64{}}
			order = append(order, k)
		}
		groups[k].add(r.Frame, server)
		if r.Idle > 0 {
			groups[k].idle = append(groups[k].idle, r.Idle)
		}
	}
	for _, k := range order {
		g, who := groups[k], "the "+k.by
		if k.by == "unknown" {
			who = "one side"
		}
		weight := t.affected(30, g.Count)
		if k.cause == Unclear || k.cause == Abandoned || k.cause == LateACK {
			weight /= 4
		}
		add(Finding{ID: "reset." + k.cause.String(), Count: g.Count, Evidence: g.Evidence,
			Text: fmt.Sprintf("%s by %s, %s: %s.%s", resets(g.Count), who, g.where(), k.cause.Words(), g.idled())}, weight)
	}
}

// idled says for how long the connections had been idle, where most of them had.
func (g *group) idled() string {
	if n := int64(len(g.idle)); n == 0 || n*2 < g.Count {
		return ""
	}
	return fmt.Sprintf(" Nobody had said anything for %s before: where a restart is not it, an idle timeout (of a load balancer, a firewall, a NAT) is shorter than that, and ends without a word; let the client's be shorter.",
		span(slices.Min(g.idle), slices.Max(g.idle)))
}

func resets(n int64) string {
	if n == 1 {
		return "A reset"
	}
	return fmt.Sprintf("%d resets", n)
}

// idleFindings infers idle timeouts: where a server closes idle connections after
// the same time, that time is its timeout.
func (j *Judge) idleFindings(servers []*Server, t Traffic, add func(Finding, float64)) map[netip.AddrPort]bool {
	named := map[netip.AddrPort]bool{}
	met := map[netip.AddrPort]*Counted{}
	for i := range j.Resets {
		if r := &j.Resets[i]; r.cause == IdleTimeout {
			if met[r.Sender] == nil {
				met[r.Sender] = &Counted{}
			}
			met[r.Sender].add(r.Frame)
		}
	}
	for _, v := range servers {
		least, most, ok := v.timeout()
		hit := met[v.Address]
		if !ok || hit == nil {
			continue
		}
		named[v.Address] = true
		add(Finding{ID: "idle_mismatch", Count: hit.Count, Evidence: hit.Evidence,
			Text: fmt.Sprintf("%s closes connections that were idle for %s, and its clients keep them longer: data met that close %s. Let the client's idle time be shorter than the server's.",
				v.Address, span(least, most), times(hit.Count))}, t.affected(35, hit.Count))
	}
	return named
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (v *Server) timeout() (least, most int64, ok bool) { return Agreed(v.idle) }

// Agreed sorts idle times after which a side closed, ns, and returns the middle of
// them, if they agree: half of them lie within a tenth of one another.
func Agreed(idle []int64) (least, most int64, ok bool) {
	if len(idle) == 0 {
		return 0, 0, false
	}
	slices.Sort(idle)
	least, most = idle[len(idle)/4], idle[len(idle)*3/4]
	return least, most, float64(most-least) <= 0.1*float64(most)+50e6
}

func span(least, most int64) string {
	a, b := fmt.Sprintf("%.3g s", float64(least)/1e9), fmt.Sprintf("%.3g s", float64(most)/1e9)
	if a == b {
		return a
	}
	return a + " to " + b
}

func (j *Judge) handshakeFindings(servers []*Server, t Traffic, add func(Finding, float64)) {
	for f := FailUnreachable; f < Failures; f++ {
		g := &group{at: map[netip.AddrPort]int64{}}
		attempts, opened := int64(0), false
		for _, v := range servers {
			n := v.failed[f]
			if n == 0 || f == FailAbandoned || v.flooded {
				continue
			}
			g.at[v.Address] = n
			g.Count += n
			g.Evidence = append(g.Evidence, v.evidence[f][:min(len(v.evidence[f]), maxEvidence-len(g.Evidence))]...)
			attempts += v.Opened + v.failures()
			opened = opened || v.Opened > 0
		}
		if g.Count == 0 || f == FailHalf && g.Count < 3 {
			continue
		}
		text := fmt.Sprintf("%d of %d attempts to connect failed, %s: %s.", g.Count, attempts, g.where(), f.Words())
		if f == FailUnanswered && opened {
			text += " Others were answered, so something is there: an accept queue is full, or packets are lost or filtered."
		}
		add(Finding{ID: "handshake." + f.String(), Count: g.Count, Evidence: g.Evidence, Text: text}, t.affected(33, g.Count))
	}
}

// lossLeast is the share of segments with payload below which sending again is no finding.
const lossLeast = 0.0005

func segments(n int64) string {
	if n == 1 {
		return "1 segment"
	}
	return fmt.Sprintf("%d segments", n)
}

func (j *Judge) lossFindings(t Traffic, add func(Finding, float64)) {
	for _, a := range []Attribution{LostBefore, LostAfter, Reordered, Needless, DelayedACK, ReceiverFull} {
		n := j.Attributed[a]
		share := float64(n.Count) / float64(max(t.Data, 1))
		if n.Count == 0 || share < lossLeast {
			continue
		}
		add(Finding{ID: "resent." + a.String(), Count: n.Count, Evidence: n.Evidence,
			Text: fmt.Sprintf("%s, %.2g for each hundred with payload: %s.", segments(int64(n.Count)), share*100, a.Words())}, 40*min(share*20, 1)+min(share, 1))
	}
	if n := j.Attributed[CapturedTwice]; n.Count > 0 {
		add(Finding{ID: "captured_twice", Count: n.Count, Evidence: n.Evidence,
			Text: fmt.Sprintf("%d packets were captured twice, and sent once: Wireshark's labels call them sent again. Capture on one interface, in one direction of the mirror.", n.Count)},
			70*float64(n.Count)/float64(max(t.TCP, 1)))
	}
	if n := j.Attributed[HandshakeAgain]; n.Count > 0 {
		add(Finding{ID: "resent.handshake", Count: n.Count, Evidence: n.Evidence,
			Text: fmt.Sprintf("%d SYNs or SYN-ACKs had to be sent again.", n.Count)}, 45*min(float64(n.Count)/float64(max(t.Connections, 1)), 1))
	}
}

// tinyLeast is the packet rate from which small segments are a load by themselves.
const tinyLeast = 10_000 // segments per second

func (j *Judge) stallFindings(t Traffic, add func(Finding, float64)) {
	seconds := max(t.Seconds, 1e-3) * float64(max(t.Connections, 1))
	if n := j.Nagle; n.Count >= 3 {
		add(Finding{ID: "nagle", Count: n.Count, Evidence: n.Evidence,
			Text: fmt.Sprintf("%d segments waited for an ACK that the receiver delayed, %.3g ms on average: Nagle's algorithm against delayed acknowledgement. Set TCP_NODELAY, or write once.", n.Count, float64(n.Total)/float64(n.Count)/1e6)},
			30+30*min(float64(n.Total)/1e9/seconds*5, 1))
	}
	if n := j.ReceiverFull; n.Count > 0 {
		add(Finding{ID: "receiver_stall", Count: n.Count, Evidence: n.Evidence,
			Text: fmt.Sprintf("A receiver closed its window %s, for %.3g s in all: its application does not read.", times(n.Count), float64(n.Total)/1e9)},
			30+40*min(float64(n.Total)/1e9/seconds, 1))
	}
	if rate := float64(t.TinySegments) / max(t.Seconds, 1e-3); t.Seconds >= 0.5 && rate >= tinyLeast && float64(t.TinySegments) > 0.9*float64(t.TCP) {
		add(Finding{ID: "small_packets", Count: t.TinySegments,
			Text: fmt.Sprintf("%.0f segments a second carry less than 100 bytes, or nothing: packets are the load here, not bytes.", rate)}, 35)
	}
}

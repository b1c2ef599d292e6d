package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// result writes what was asked for and what came of it.
func result(p *paper, r model.Report) {
	p.item("plimsoll", strings.TrimSpace(r.Version+" "+target(r.Plan)))
	if k := r.Plan.Capture; k != nil {
		p.item("captured", fmt.Sprintf("%s, %s in %s: %s", plural(int(k.Packets), "packet", "packets"),
			plural(int(k.Connections), "connection", "connections"), layout.Micros(watched(r.Windows)), strings.Join(k.Files, ", ")))
	} else {
		p.item("hosts", hosts(r.Hosts))
		p.item("offered", offered(r))
	}
	if !r.Closed {
		p.item("cut off", "the run was cut off and is judged up to its last second")
	}
	toolsSaid(p, r.ToolSummaries)
	if r.Load == nil {
		return
	}
	load(p, *r.Load, r.Plan.Load)
	timeline(p, r.Load.Course)
}

func target(plan model.Plan) string {
	switch {
	case plan.Remote != nil:
		return "the series of " + plan.Remote.URL
	case plan.Capture != nil:
		return "reading packets"
	case plan.Load != nil:
		at := plan.Load.URL
		if s := plan.Load.UnixSocket; s != "" {
			at += " by the Unix socket " + s
		}
		if v := plan.Load.Variables; v != nil {
			at += ", with " + plural(v.Rows, "row", "rows") + " of " + strings.Join(v.Names, ", ")
		}
		if r := plan.Load.Recorded; r != nil {
			return plural(r.Requests, "recorded request", "recorded requests") + " (" + r.From + ") at " + at
		}
		if n := len(plan.Load.Targets); n > 0 {
			return plural(n, "target", "targets") + " at " + at
		}
		return plan.Load.Method + " " + at
	case len(plan.Command) > 0:
		return "watching while this ran: " + strings.Join(plan.Command, " ")
	}
	return "watching"
}

func hosts(list []model.Host) string {
	parts := make([]string, 0, len(list))
	for _, h := range list {
		s := h.Name
		if h.Spec != h.Name {
			s += " = " + h.Spec
		}
		parts = append(parts, s+", "+plural(h.CPUs, "CPU", "CPUs"))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return layout.Count(int64(n)) + " " + many
}

// offered says in words what load the plan asks for.
func offered(r model.Report) string {
	l := r.Plan.Load
	if far := r.Plan.Remote; far != nil {
		return "no load of ours; judged are the " + span(far.Window) + " before " + moment(far.At)
	}
	if l == nil {
		return "no load of ours, for " + layout.Micros(watched(r.Windows))
	}
	s := plural(l.Connections, "connection", "connections")
	if l.HTTP2 {
		s += fmt.Sprintf(" of HTTP/2, %s each", plural(max(l.Streams, 1), "stream", "streams"))
	}
	if l.Pipeline > 1 {
		s += fmt.Sprintf(", %d requests in flight on each", l.Pipeline)
	}
	if l.Rate > 0 {
		loop := "open loop"
		if l.Arrivals == model.Poisson {
			loop += fmt.Sprintf(", Poisson arrivals of seed %d", l.ArrivalsSeed)
		}
		offers := rates(l) + " requests/s"
		if r := l.Recorded; r != nil && r.Speed > 0 {
			offers += " on average"
			loop += ", each when it was recorded, " + strconv.FormatFloat(r.Speed, 'g', 6, 64) + " times as fast"
		}
		over := " over at most "
		if l.MaxConnections > 0 {
			over = " over "
			s += ", up to " + layout.Count(int64(l.MaxConnections)) + " when all are busy"
		}
		s = offers + " (" + loop + ")" + over + s
	}
	if n := len(l.Sources); n > 0 {
		s += " from " + strings.Join(l.Sources, ", ")
	}
	if l.TLS != nil && l.TLS.Insecure { // first, so that no room is too small for it
		s = "certificates not checked (--insecure), " + s
	}
	if l.KeepAlive {
		s += ", keep-alive"
	} else {
		s += ", a new one for each request"
	}
	if l.Engine != "" {
		s += ", by " + l.Engine
	}
	if l.ConnectRate > 0 {
		s += ", opened at " + layout.Rate(l.ConnectRate) + "/s at most"
	}
	if l.TLS != nil && l.TLS.NeverResume {
		s += ", sessions never resumed"
	}
	if n := len(l.From); n > 0 {
		s += ", from " + plural(n, "worker", "workers")
	}
	if l.Requests > 0 {
		return s + ", " + layout.Count(l.Requests) + " requests"
	}
	return s + ", " + layout.Micros(float64(l.DurationMS)*1e3)
}

// watched returns the microseconds from the first window's start to the last one's end.
func watched(windows []model.Window) float64 {
	if len(windows) == 0 {
		return 0
	}
	last := windows[len(windows)-1]
	return float64(max(last.End-windows[0].Start, 0)) * 1e3
}

func load(p *paper, l model.Load, plan *model.LoadPlan) {
	good := layout.Count(l.Good()) + " of " + plural(int(l.Requests), "request was", "requests were") + " good"
	if attempted(l) {
		p.item("result", fmt.Sprintf("%s good replies/s; %s; with the attempts to connect that failed, %s of what was tried", layout.Rate(l.GoodRPS), good, layout.Share(l.GoodShare)))
	} else {
		p.item("result", fmt.Sprintf("%s good replies/s; %s (%s)", layout.Rate(l.GoodRPS), good, layout.Share(l.GoodShare)))
	}
	if text := statuses(l); text != "" {
		p.item("replies", text)
	}
	p.item("latency", latency(l))
	if l.Service.P50 > 0 && l.Lag.Count > 0 {
		p.item("service", fmt.Sprintf("p50 %s, p99 %s, at most %s, from when it was sent",
			layout.Micros(l.Service.P50), layout.Micros(l.Service.P99), layout.Micros(l.Service.Max)))
	}
	if l.Lag.Count > 0 {
		p.item("schedule", schedule(l))
	}
	if text := phases(l); text != "" {
		p.item("phases", text)
	}
	if l.ReceivedBytes+l.SentBytes > 0 && l.Seconds > 0 {
		p.item("bytes", fmt.Sprintf("received %s (%s/s), sent %s (%s/s)", layout.Bytes(l.ReceivedBytes), layout.Bytes(int64(float64(l.ReceivedBytes)/l.Seconds)),
			layout.Bytes(l.SentBytes), layout.Bytes(int64(float64(l.SentBytes)/l.Seconds))))
	}
	if l.Calm.Count > 0 {
		p.item("alone", "p50 "+layout.Micros(l.Calm.P50)+" with one connection, before the load")
	}
	if l.TLS != nil {
		p.item("TLS", overTLS(l))
	}
	if text := connects(l, plan); text != "" {
		p.item("connects", text)
	}
	workers(p, l.Workers)
	targets(p, l.Targets)
	stages(p, l.Stages)
	failed, n := failures(l.Outcomes, func(o string) bool { return !attempted(l) || !model.IsAttempt(o) })
	if n > 0 {
		p.item("failed", plural(int(n), "request: ", "requests: ")+failed)
	}
	if n+l.FailedAttempts > 0 && l.Waited.Count > 0 {
		p.item("waited", fmt.Sprintf("counting the failed ones: p50 %s, p99 %s, at most %s",
			layout.Micros(l.Waited.P50), layout.Micros(l.Waited.P99), layout.Micros(l.Waited.Max)))
	}
}

// mostStatuses is how many statuses are told one by one.
const mostStatuses = 8

// statuses says which exact statuses came how often, where that is more than that all was well.
func statuses(l model.Load) string {
	list := slices.SortedFunc(maps.Keys(l.Statuses), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.Statuses[b], l.Statuses[a]), cmp.Compare(a, b))
	})
	if len(list) == 0 || len(list) == 1 && list[0] == "200" {
		return ""
	}
	var parts []string
	for i, status := range list {
		if i == mostStatuses {
			parts = append(parts, fmt.Sprintf("and %d other statuses, which --json has", len(list)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s of status %s", layout.Count(l.Statuses[status]), status))
	}
	return strings.Join(parts, ", ")
}

// wire says what we ourselves sent over networks.
func wire(p *paper, r model.Report) {
	label := "wire"
	put := func(who string, sent, received int64) {
		if sent+received > 0 {
			p.item(label, who+": "+layout.Bytes(sent)+" there (with the program), "+layout.Bytes(received)+" back")
			label = ""
		}
	}
	for _, c := range r.Collectors {
		put(strings.Join(c.Hosts, ", "), c.SentBytes, c.ReceivedBytes)
	}
	if r.Load == nil {
		return
	}
	for _, w := range r.Load.Workers {
		put("worker "+w.Name, w.SentBytes, w.ReceivedBytes)
	}
}

// workers says how each of several fared.
func workers(p *paper, list []model.Worker) {
	label := "workers"
	for _, w := range list {
		text := fmt.Sprintf("%s (%s): %s, began %s after the moment (its clock is known to %s)", w.Name, w.Spec, plural(int(w.Requests), "request", "requests"),
			layout.Micros(w.LateMS*1e3), layout.Micros(w.Clock.UncertaintyMS*1e3))
		if w.Gone != "" {
			text = layout.Line(w.Name + ": " + layout.Count(w.Requests) + " requests; " + w.WithoutIt(len(list)))
		}
		p.item(label, text)
		label = ""
	}
}

// mostTargets is how many targets are told one by one.
const mostTargets = 10

// targets says what became of each target's requests, those with the most first.
func targets(p *paper, list []model.TargetLoad) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b model.TargetLoad) int { return cmp.Compare(b.Requests, a.Requests) })
	label := "targets"
	for i, t := range list {
		if i == mostTargets {
			p.item(label, fmt.Sprintf("and %d more, which --json has", len(list)-i))
			return
		}
		text := layout.Line(t.Name) + ": " + plural(int(t.Requests), "request", "requests")
		if t.Latency.Count > 0 {
			text += fmt.Sprintf(", p50 %s, p99 %s", layout.Micros(t.Latency.P50), layout.Micros(t.Latency.P99))
		}
		if failed, n := failures(t.Outcomes, func(string) bool { return true }); n > 0 {
			text += "; failed: " + failed
		}
		p.item(label, text)
		label = ""
	}
}

// phases says what a request's time went into, as far as it was measured: of one that found a connection
// the first byte and the transfer alone.
func phases(l model.Load) string {
	var parts []string
	if l.DNSSeconds != nil {
		parts = append(parts, "DNS "+layout.Micros(*l.DNSSeconds*1e6)+", once")
	}
	add := func(name string, q model.Quantiles) {
		if q.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s p50 %s, p99 %s", name, layout.Micros(q.P50), layout.Micros(q.P99)))
		}
	}
	add("connect", l.Connect)
	if l.TLS != nil {
		add("TLS in full", l.TLS.Full)
		add("TLS resumed", l.TLS.Resumed)
	}
	add("first byte", l.FirstByte)
	add("transfer", l.Transfer)
	return strings.Join(parts, "; ")
}

// schedule says how well the generator kept its own times.
func schedule(l model.Load) string {
	text := fmt.Sprintf("sent p50 %s, p99 %s, at most %s after it was due, a connection being free", layout.Micros(l.Lag.P50), layout.Micros(l.Lag.P99), layout.Micros(l.Lag.Max))
	if l.Lag.P99 >= behind {
		text = "the generator fell behind: " + text + "; latency counts from when it was due. Give it more threads (-t), or another machine"
	}
	if queued := l.Latency.P50 - l.Service.P50; queued >= noticed {
		text += fmt.Sprintf("; half waited %s or more for a free connection, so that the rate above is that of what was due, and was not kept up with", layout.Micros(queued))
	}
	return text
}

// noticed is from how many microseconds on somebody notices a wait (Nielsen, 1993).
const noticed = 100_000

// attempted says whether there were attempts to connect that failed and were no
// requests: the closed loop's, whose outcomes are not among its requests.
func attempted(l model.Load) bool {
	var all int64
	for _, n := range l.Outcomes {
		all += n
	}
	return l.FailedAttempts > 0 && l.Requests < all
}

// overTLS says what was agreed upon, how long handshakes took, and what TLS cost the generator.
func overTLS(l model.Load) string {
	kinds, held := map[string]int64{}, int64(0)
	for _, h := range l.TLS.Handshakes {
		kinds["TLS "+h.Version+" "+h.Cipher] += h.Count
		if h.Phase == model.Hold {
			held += h.Count
		}
	}
	text := strings.Join(slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[b], kinds[a]), cmp.Compare(a, b))
	}), ", ")
	for _, of := range []struct {
		name string
		took model.Quantiles
	}{{"full", l.TLS.Full}, {"resumed", l.TLS.Resumed}} {
		if of.took.Count > 0 {
			text += fmt.Sprintf("; %s, p50 %s, p99 %s", plural(int(of.took.Count), of.name+" handshake", of.name+" handshakes"), layout.Micros(of.took.P50), layout.Micros(of.took.P99))
		}
	}
	if held > 0 && l.Seconds > 0 {
		text += fmt.Sprintf("; %s handshakes/s under load", layout.Rate(float64(held)/l.Seconds))
	}
	if l.TLS.CryptoSeconds > 0 {
		text += fmt.Sprintf("; a request's sealing and opening, by crypto/tls, took %s of the generator", layout.Micros(l.TLS.CryptoSeconds*1e6))
	}
	return text
}

// connects tells of the connections that did not stand, "" when there is nothing to tell.
func connects(l model.Load, plan *model.LoadPlan) string {
	var parts []string
	if l.Stood > 0 && plan != nil {
		parts = append(parts, fmt.Sprintf("%s to begin with, %s were open at one time or another", layout.Count(int64(plan.Connections)), layout.Count(l.Stood)))
	}
	if attempted(l) {
		failed, n := failures(l.Outcomes, model.IsAttempt)
		text := plural(int(n), "attempt", "attempts") + " failed: " + failed
		if l.Attempts > 0 {
			text = "of " + plural(int(l.Attempts), "attempt ", "attempts ") + layout.Count(n) + " failed: " + failed
		}
		parts = append(parts, text)
	}
	if m := l.Missing; m != nil && plan != nil && m.Failed+m.Untried > 0 {
		of := " of " + plural(plan.Connections, "connection", "connections")
		if m.Failed > 0 {
			parts = append(parts, layout.Count(m.Failed)+of+" were never open")
			of = ""
		}
		if m.Untried > 0 {
			parts = append(parts, layout.Count(m.Untried)+of+" not tried for before the load was over")
		}
	}
	return strings.Join(parts, "; ")
}

func latency(l model.Load) string {
	if l.Latency.Count == 0 {
		return "no reply came, so there is none to tell"
	}
	return fmt.Sprintf("p50 %s, p99 %s, at most %s",
		layout.Micros(l.Latency.P50), layout.Micros(l.Latency.P99), layout.Micros(l.Latency.Max))
}

// foot writes what the observation cost, its notes, and where the run lies.
func foot(p *paper, r model.Report) {
	p.blank()
	switch {
	case r.Plan.Remote != nil:
		remoteFoot(p, r)
		return
	case r.Plan.Capture != nil:
		captureFoot(p, r)
		return
	}
	cost := fmt.Sprintf("%s of one core, %s at most", layout.Share(r.Cost.CPUShare), layout.Bytes(r.Cost.MaxRSS))
	if r.Cost.LoadCPUSeconds > 0 {
		cost += "; the load itself took " + layout.Micros(r.Cost.LoadCPUSeconds*1e6) + " of CPU time"
	}
	p.item("watching", cost)
	wire(p, r)
	if r.Tracing != nil {
		p.item("traced", traced(*r.Tracing))
	}
	siteItems(p, r.Site)
	for _, n := range r.Notes {
		p.item("note", n)
	}
	p.item("run", r.Dir)
	if ownCommand(r.Plan.CommandLine) {
		p.typed("measured", typedWords(r.Plan.CommandLine))
		if whose := fromTheRun(r.Plan.CommandLine); whose != "" {
			p.item("", whose)
		}
	}
	p.typed("judge", "plimsoll diagnose "+runWord(r.Dir))
	if r.Plan.Packets != "" {
		for _, h := range r.Hosts {
			p.typed("packets", "plimsoll capture "+runWord(filepath.Join(r.Dir, model.PacketsFile(h.Name))))
		}
	}
	if r.Tracing != nil && len(r.Tracing.Profiles) > 0 {
		p.typed("stacks", "plimsoll flame "+runWord(r.Dir)+" # "+strings.Join(r.Tracing.Profiles, ", "))
	}
}

// runWord is a run's directory on a command line, and never an option.
func runWord(dir string) string {
	if strings.HasPrefix(dir, "-") {
		dir = "./" + dir
	}
	return layout.Quote(dir)
}

// remoteFoot is the foot of a verdict on series that others collected.
func remoteFoot(p *paper, r model.Report) {
	far := r.Plan.Remote
	p.item("readings", span(r.Plan.Interval)+" apart")
	siteItems(p, r.Site)
	for _, n := range r.Notes {
		p.item("note", n)
	}
	again := "plimsoll diagnose --prometheus " + layout.Quote(far.URL) + " --at " + moment(far.At) + " --window " + span(far.Window)
	if far.Baseline > 0 {
		again += " --baseline " + span(far.Baseline)
	}
	for _, m := range far.Match {
		again += " --match " + layout.Quote(m)
	}
	p.typed("judge", again)
}

// captureFoot is the foot of a verdict on packets alone.
func captureFoot(p *paper, r model.Report) {
	siteItems(p, r.Site)
	for _, n := range r.Notes {
		p.item("note", n)
	}
	files := layout.CommandLine(ByHand{Plan: r.Plan}.files(""))
	p.typed("packets", "plimsoll capture "+files)
	p.typed("judge", "plimsoll diagnose "+files)
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

func span(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// siteItems says what a site changed about the rules.
func siteItems(p *paper, s *model.Site) {
	if s == nil {
		return
	}
	label := "site"
	add := func(text string) {
		p.item(label, text)
		label = ""
	}
	if len(s.Added) > 0 {
		add("rules of its own: " + strings.Join(s.Added, ", "))
	}
	if len(s.Replaced) > 0 {
		add("built-in rules replaced: " + strings.Join(s.Replaced, ", "))
	}
	for _, t := range s.Thresholds {
		text := "threshold " + t.Rule + " " + t.Clue + ": " + t.Is + " in the place of " + t.Was
		if t.Why != "" {
			text += " (" + t.Why + ")"
		}
		add(text)
	}
}

// traced says how the kernel was watched, and what of it is an estimate.
func traced(t model.Tracing) string {
	text := t.Level
	if len(t.Duty) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(t.Duty)) {
			parts = append(parts, name+" "+layout.Share(t.Duty[name]))
		}
		text += "; in bursts, so that their numbers are estimates: " + strings.Join(parts, ", ") + " of the hold window"
	}
	return text
}

// LoadText writes what a load alone gave, for a person, with sentences about what
// failed and why.
func LoadText(w io.Writer, version string, plan model.LoadPlan, l model.Load, why []string, o TextOptions) error {
	p := newPaper(o)
	r := model.Report{Version: version, Plan: model.Plan{Load: &plan}}
	p.item("plimsoll", strings.TrimSpace(r.Version+" "+target(r.Plan)))
	p.item("offered", offered(r))
	load(p, l, &plan)
	for _, text := range why {
		p.item("why", text)
	}
	return p.print(w)
}

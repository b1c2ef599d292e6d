// Package compare says whether one run, or one group of runs, was better than
// another beyond what chance explains, and what else was different. It only reads.
package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Side is one group of runs of the same thing.
type Side struct {
	runs []run
}

// run is what of a recorded run is compared.
type run struct {
	dir     string
	meta    model.Run
	load    *model.Load
	seconds []model.Second       // those that lie whole in the hold window
	latency *hdr.PackedHistogram // of the replies to requests that began in hold, in µs
	series  map[string]summary
	felt    float64   // the wait in which a user was found, in µs; 0 for none
	feltIn  []float64 // the same second by second, of replies
}

// ErrNotComparable says that two runs are of different things.
var ErrNotComparable = errors.New("not comparable")

// NewSide reads a group. Each must be a run with our own load that held it.
func NewSide(runs ...*record.Run) (Side, error) {
	var s Side
	for _, r := range runs {
		one, err := read(r)
		if err != nil {
			return Side{}, err
		}
		s.runs = append(s.runs, one)
	}
	return s, nil
}

func read(r *record.Run) (run, error) {
	one := run{dir: r.Dir(), meta: r.Meta()}
	hold, held := r.Window(model.Hold)
	var err error
	if one.load, err = r.Load(); err != nil {
		return one, err
	}
	if !held || one.load == nil {
		return one, fmt.Errorf("%s: %w: the run held no load of ours; plimsoll run makes those that do", r.Dir(), ErrNotComparable)
	}
	for _, s := range one.load.Course {
		if s.Time-1000 >= hold.Start && s.Time <= hold.End {
			one.seconds = append(one.seconds, s)
		}
	}
	if one.latency, err = r.Histogram("response", hold.Start, hold.End); err != nil {
		return one, err
	}
	if err := one.waited(r, hold); err != nil {
		return one, err
	}
	one.series, err = summaries(r, hold)
	return one, err
}

// Comparable returns nil, or an error matching ErrNotComparable whose text lists
// what is different: the load, or the machine.
func Comparable(a, b Side) error {
	first := a.runs[0]
	var why error
	for _, r := range append(slices.Clone(a.runs[1:]), b.runs...) {
		list := differences(first.meta, r.meta)
		if len(list) == 0 {
			continue
		}
		one := fmt.Errorf("%s and %s: %w: %s", first.dir, r.dir, ErrNotComparable, strings.Join(list, ", "))
		if why != nil {
			one = fmt.Errorf("%w; %w", why, one)
		}
		why = one
	}
	return why
}

// differences names what makes two runs runs of different things.
func differences(a, b model.Run) []string {
	var list []string
	differ := func(what string, x, y any) {
		if x != y {
			list = append(list, fmt.Sprintf("%s: %v and %v", what, x, y))
		}
	}
	p, q := a.Plan.Load, b.Plan.Load
	differ("URL", p.URL, q.URL)
	differ("Unix socket", p.UnixSocket, q.UnixSocket)
	differ("method", p.Method, q.Method)
	differ("size of the body", p.BodyBytes, q.BodyBytes)
	differ("connections", p.Connections, q.Connections)
	differ("most connections", p.MaxConnections, q.MaxConnections)
	differ("rate", p.Rate, q.Rate)
	differ("rate of connects", fmt.Sprint(p.ConnectRate), fmt.Sprint(q.ConnectRate))
	differ("source addresses", fmt.Sprint(p.Sources), fmt.Sprint(q.Sources))
	differ("stages", fmt.Sprint(p.Stages), fmt.Sprint(q.Stages))
	differ("recording", recordingOf(p), recordingOf(q))
	differ("variables", variablesOf(p), variablesOf(q))
	differ("keep-alive", p.KeepAlive, q.KeepAlive)
	differ("HTTP/2", p.HTTP2, q.HTTP2)
	differ("streams on a connection", max(p.Streams, 1), max(q.Streams, 1))
	differ("requests at once on a connection", max(p.Pipeline, 1), max(q.Pipeline, 1))
	differ("engine", p.Engine, q.Engine)
	differ("TLS", tlsOf(p), tlsOf(q))
	differ("timeout", milliseconds(p.TimeoutMS), milliseconds(q.TimeoutMS))
	differ("length", milliseconds(p.DurationMS), milliseconds(q.DurationMS))
	differ("number of requests", p.Requests, q.Requests)
	differ("hosts", namesOf(a.Hosts), namesOf(b.Hosts))
	for _, h := range a.Hosts {
		i := slices.IndexFunc(b.Hosts, func(k model.Host) bool { return k.Name == h.Name })
		if i < 0 {
			continue
		}
		k := b.Hosts[i]
		differ("kernel of "+h.Name, h.Kernel, k.Kernel)
		differ("CPUs of "+h.Name, h.CPUs, k.CPUs)
		differ("machine (boot id) of "+h.Name, h.Machine, k.Machine)
	}
	return list
}

// namesOf is the hosts' names, in an order that does not depend on which was named first.
func namesOf(hosts []model.Host) string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func milliseconds(n int64) string { return layout.Micros(float64(n) * 1e3) }

// tlsOf says how a load speaks TLS; what was left to defaults and what was not said are the same.
func tlsOf(p *model.LoadPlan) string {
	var t model.TLSPlan
	if p.TLS != nil {
		t = *p.TLS
	}
	return fmt.Sprintf("%+v", t)
}

// measures are what is compared; higher says whether more of it is better. Latency
// is what users waited, failed requests included; how it moves from second to second
// only the replies tell.
var measures = []struct {
	name, unit string
	higher     bool
	allowance  float64
	ofRun      func(run) float64
	ofSeconds  func(run) []float64
}{
	{"good_rps", "requests/s", true, allowance, func(r run) float64 { return r.load.GoodRPS }, each(func(s model.Second) (float64, bool) { return float64(s.Good), true })},
	{"good_share", "ratio", true, allowance, func(r run) float64 { return r.load.GoodShare }, each(goodShare)},
	{"latency_p50", "µs", false, latencyAllowance, func(r run) float64 { return r.load.Waited.P50 }, each(func(s model.Second) (float64, bool) { return s.P50, s.Replies > 0 })},
	{"latency_p99", "µs", false, latencyAllowance, func(r run) float64 { return r.load.Waited.P99 }, each(func(s model.Second) (float64, bool) { return s.P99, s.Replies > 0 })},
	{"wait", "µs", false, latencyAllowance, func(r run) float64 { return r.felt }, func(r run) []float64 { return r.feltIn }},
}

// each reads a measure of every second in which there was something to measure.
func each(of func(model.Second) (v float64, any bool)) func(run) []float64 {
	return func(r run) []float64 {
		var list []float64
		for _, s := range r.seconds {
			if v, any := of(s); any {
				list = append(list, v)
			}
		}
		return list
	}
}

func goodShare(s model.Second) (float64, bool) {
	all := s.Replies + s.Failed
	return float64(s.Good) / float64(max(all, 1)), all > 0
}

// Compare compares b with a. Confidence is 95 %.
func Compare(a, b Side) model.Comparison {
	c := model.Comparison{Runs: [2][]string{a.dirs(), b.dirs()}}
	repeated := len(a.runs) > 1 && len(b.runs) > 1
	if !repeated {
		c.Notes = append(c.Notes, fmt.Sprintf("one side is a single run, so how runs differ from one another is not known: "+
			"differences within %.0f %% (of a latency %.0f %%) count as none; plimsoll run --repeat tells more", 100*allowance, 100*latencyAllowance))
	}
	if p := a.runs[0].meta.Plan.Load; p != nil && p.Variables != nil {
		c.Notes = append(c.Notes, "a run does not keep the values of its variables (--vars), as they may give access: whether both sides had the same is not known")
	}
	for _, m := range measures {
		d := model.Difference{Name: m.name, Unit: m.unit, HigherIsBetter: m.higher}
		x, y := a.each(m.ofRun), b.each(m.ofRun)
		d.A, d.B = mean(x), mean(y)
		var i interval
		if repeated {
			i = byRuns(x, y)
		} else {
			i = bySeconds(math.Log(d.B/d.A), a.seconds(m.ofSeconds), b.seconds(m.ofSeconds))
			if m.name != "good_share" || !failuresMoved(d.A, d.B) {
				i = i.widened(m.allowance)
			}
		}
		i.into(&d)
		c.Differences = append(c.Differences, d)
	}
	c.Faster = superiority(a, b)
	c.Signals, c.Configuration = changes(a, b)
	return c
}

func (s Side) dirs() []string {
	var list []string
	for _, r := range s.runs {
		list = append(list, r.dir)
	}
	return list
}

func (s Side) each(of func(run) float64) []float64 {
	var list []float64
	for _, r := range s.runs {
		list = append(list, of(r))
	}
	return list
}

// seconds lists a measure second by second, a list for each run.
func (s Side) seconds(of func(run) []float64) [][]float64 {
	var list [][]float64
	for _, r := range s.runs {
		list = append(list, of(r))
	}
	return list
}

// superiority is the Mann-Whitney statistic over all pairs of replies, as a
// share: how likely a reply of b is faster than one of a (McGraw & Wong 1992, "A
// common language effect size statistic"). nil where one side has no reply.
func superiority(a, b Side) *float64 {
	x, y := a.merged(), b.merged()
	if x == nil || y == nil {
		return nil
	}
	var faster, below float64 // pairs; replies of a above
	bars := x.Distribution()
	total := float64(x.TotalCount())
	i := 0
	for _, bar := range y.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for ; i < len(bars) && bars[i].To < bar.To; i++ {
			below += float64(bars[i].Count)
		}
		tie := 0.0
		if i < len(bars) && bars[i].To == bar.To {
			tie = float64(bars[i].Count)
		}
		faster += float64(bar.Count) * (total - below - tie/2)
	}
	share := faster / total / float64(y.TotalCount())
	return &share
}

func (s Side) merged() *hdr.Histogram {
	sum := hdr.New(1, 3_600_000_000, 3)
	for _, r := range s.runs {
		if r.latency != nil {
			r.latency.MergeInto(sum)
		}
	}
	if sum.TotalCount() == 0 {
		return nil
	}
	return sum
}

// recordingOf says what was recorded and is sent, and at which pace.
func recordingOf(p *model.LoadPlan) string {
	if p.Recorded == nil {
		return "none"
	}
	return fmt.Sprintf("%d requests of an %s at speed %g", p.Recorded.Requests, p.Recorded.From, p.Recorded.Speed)
}

// variablesOf says which variables requests have, and from how many rows.
func variablesOf(p *model.LoadPlan) string {
	if p.Variables == nil {
		return "none"
	}
	return fmt.Sprintf("%d rows of %v", p.Variables.Rows, p.Variables.Names)
}

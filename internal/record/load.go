package record

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
)

// The series that the load is computed from; package load declares them.
const (
	outcomesSeries = "plimsoll_load_outcomes_total"
	repliesSeries  = "plimsoll_load_replies_total"
	latencySeries  = "plimsoll_load_latency_seconds"
	attemptsSeries = "plimsoll_load_connect_attempts_total"
	stoodSeries    = "plimsoll_load_connections_stood"
	receivedSeries = "plimsoll_load_received_bytes_total"
	sentSeries     = "plimsoll_load_sent_bytes_total"
	lagSeries      = "plimsoll_load_schedule_lag_seconds"
	missingSeries  = "plimsoll_load_connections_missing"
	targetsSeries  = "plimsoll_load_target_outcomes_total"
	stagesSeries   = "plimsoll_load_stage_outcomes_total"
	stageSeries    = "plimsoll_load_stage_latency_seconds"
	stageLagSeries = "plimsoll_load_stage_schedule_lag_seconds"
	dnsSeries      = "plimsoll_load_dns_seconds"
	targetSeries   = "plimsoll_load_target_latency_seconds"

	tlsHandshakesSeries  = "plimsoll_load_tls_handshakes_total"
	tlsHandshakeSeries   = "plimsoll_load_tls_handshake_seconds"
	tlsCryptoSumSeries   = "plimsoll_load_tls_crypto_seconds_sum"
	tlsCryptoCountSeries = "plimsoll_load_tls_crypto_seconds_count"
)

// Load computes what the load saw from the series recorded. nil without an
// error means that the run had no load of ours.
func (r *Run) Load() (*model.Load, error) {
	if r.meta.Plan.Load == nil || !r.sampled {
		return nil, nil
	}
	outcomes, err := r.loadSeries(outcomesSeries)
	if err != nil {
		return nil, err
	}
	latencies, err := r.loadSeries(latencySeries)
	if err != nil {
		return nil, err
	}
	l := &model.Load{Outcomes: map[string]int64{}, OtherPhases: map[string]int64{}, Workers: r.meta.Workers}
	if hold, ok := r.Window(model.Hold); ok {
		l.Seconds = float64(hold.End-hold.Start) / 1000
	}
	if r.meta.HeldMS > 0 {
		l.Seconds = float64(r.meta.HeldMS) / 1000
	}
	calm := countOutcomes(l, outcomes)
	all, replies := l.AddUp(r.meta.Plan.Load.Rate > 0)
	l.Latency.Count, l.Service.Count, l.Waited.Count = replies, replies, all
	if err := r.countAttempts(l); err != nil {
		return nil, err
	}
	if l.TLS, err = r.loadTLS(); err != nil {
		return nil, err
	}
	dns, err := r.loadSeries(dnsSeries)
	if err != nil {
		return nil, err
	}
	for _, s := range dns {
		took := s.Last()
		l.DNSSeconds = &took
	}
	stood, err := r.loadSeries(stoodSeries)
	if err != nil {
		return nil, err
	}
	for _, s := range stood {
		l.Stood += int64(s.Last()) // of each worker
	}
	if l.Targets, err = r.loadTargets(); err != nil {
		return nil, err
	}
	if err := r.loadStages(l); err != nil {
		return nil, err
	}
	latency(l, latencies, calm)
	return l, r.addLatencies(l, r.course(outcomes))
}

// loadSeries reads all series of that name.
func (r *Run) loadSeries(name string) ([]Series, error) {
	var list []Series
	for s, err := range r.Series(r.first, r.last, Match(name)...) {
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// countOutcomes fills in the outcomes of the hold phase, and returns how many
// replies the calm phase had.
func countOutcomes(l *model.Load, outcomes []Series) (calm int64) {
	for _, s := range outcomes {
		n := int64(s.Last())
		phase, outcome := s.Labels.Get("phase"), s.Labels.Get("outcome")
		if phase != model.Hold {
			l.OtherPhases[phase] += n
			if phase == model.Calm && model.IsReply(outcome) {
				calm += n
			}
		} else if n > 0 {
			l.Outcomes[outcome] += n
		}
	}
	return calm
}

// countAttempts fills in how the load fared with its connections, where that was recorded.
func (r *Run) countAttempts(l *model.Load) error {
	attempts, err := r.loadSeries(attemptsSeries)
	if err != nil {
		return err
	}
	for _, s := range attempts {
		if s.Labels.Get("phase") == model.Hold {
			l.Attempts += int64(s.Last())
		}
	}
	for name, bytes := range map[string]*int64{receivedSeries: &l.ReceivedBytes, sentSeries: &l.SentBytes} {
		list, err := r.loadSeries(name)
		if err != nil {
			return err
		}
		for _, s := range list {
			if s.Labels.Get("phase") == model.Hold {
				*bytes += int64(s.Last())
			}
		}
	}
	replies, err := r.loadSeries(repliesSeries)
	if err != nil {
		return err
	}
	for _, s := range replies {
		if n := int64(s.Last()); n > 0 && s.Labels.Get("phase") == model.Hold {
			if l.Statuses == nil {
				l.Statuses = map[string]int64{}
			}
			l.Statuses[s.Labels.Get("status")] += n
		}
	}
	lags, err := r.loadSeries(lagSeries)
	if err != nil {
		return err
	}
	for _, s := range lags {
		if s.Labels.Get("phase") == model.Hold {
			l.Lag.Count = l.Waited.Count - l.Outcomes["queue:timeout"] - l.Outcomes["queue:cancelled"]
			of := model.Quantiles{}
			setQuantile(&of, s.Labels.Get("quantile"), s.Last()*1e6)
			worse(&l.Lag, of)
		}
	}
	missing, err := r.loadSeries(missingSeries)
	if err != nil || len(missing) == 0 {
		return err
	}
	l.Missing = &model.MissingConnections{}
	for _, s := range missing {
		switch s.Labels.Get("why") {
		case "failed":
			l.Missing.Failed += int64(s.Last())
		case "untried":
			l.Missing.Untried += int64(s.Last())
		}
	}
	return nil
}

// loadTLS is what the load saw of TLS, nil where no handshake was done.
func (r *Run) loadTLS() (*model.TLSLoad, error) {
	done, err := r.loadSeries(tlsHandshakesSeries)
	if err != nil || len(done) == 0 {
		return nil, err
	}
	t := &model.TLSLoad{}
	for _, s := range done {
		h := model.TLSHandshakes{
			Phase: s.Labels.Get("phase"), Version: s.Labels.Get("tls_protocol_version"), Cipher: s.Labels.Get("tls_cipher"),
			Resumed: s.Labels.Get("tls_resumed") == "true", Count: int64(s.Last()),
		}
		took(t, h.Resumed).Count += h.Count
		same := func(o model.TLSHandshakes) bool { o.Count = h.Count; return o == h }
		if i := slices.IndexFunc(t.Handshakes, same); i >= 0 { // another worker's
			t.Handshakes[i].Count += h.Count
			continue
		}
		t.Handshakes = append(t.Handshakes, h)
	}
	times, err := r.loadSeries(tlsHandshakeSeries)
	if err != nil {
		return nil, err
	}
	for _, s := range times {
		setQuantile(took(t, s.Labels.Get("tls_resumed") == "true"), s.Labels.Get("quantile"), s.Last()*1e6)
	}
	crypto := map[string]float64{}
	for _, name := range []string{tlsCryptoSumSeries, tlsCryptoCountSeries} {
		list, err := r.loadSeries(name)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			crypto[name] += s.Last()
		}
	}
	if n := crypto[tlsCryptoCountSeries]; n > 0 {
		t.CryptoSeconds = crypto[tlsCryptoSumSeries] / n
	}
	return t, nil
}

// loadTargets are the plan's targets that had requests, in its order.
func (r *Run) loadTargets() ([]model.TargetLoad, error) {
	counts, err := r.loadSeries(targetsSeries)
	if err != nil || len(counts) == 0 {
		return nil, err
	}
	byName := map[string]*model.TargetLoad{}
	for _, s := range counts {
		name, outcome := s.Labels.Get("target"), s.Labels.Get("outcome")
		t := byName[name]
		if t == nil {
			t = &model.TargetLoad{Name: name, Outcomes: map[string]int64{}}
			byName[name] = t
		}
		n := int64(s.Last())
		t.Requests += n
		t.Outcomes[outcome] += n
		if model.IsReply(outcome) {
			t.Latency.Count += n
		}
	}
	times, err := r.loadSeries(targetSeries)
	if err != nil {
		return nil, err
	}
	for _, s := range times {
		if t := byName[s.Labels.Get("target")]; t != nil {
			setQuantile(&t.Latency, s.Labels.Get("quantile"), s.Last()*1e6)
		}
	}
	var list []model.TargetLoad
	for _, t := range r.meta.Plan.Load.Targets {
		if of := byName[t.Name]; of != nil {
			list = append(list, *of)
			delete(byName, t.Name)
		}
	}
	return list, nil
}

// loadStages tells of the plan's stages.
func (r *Run) loadStages(l *model.Load) error {
	if len(r.meta.Plan.Load.Stages) == 0 {
		return nil
	}
	counts, err := r.loadSeries(stagesSeries)
	if err != nil {
		return err
	}
	times, err := r.loadSeries(stageSeries)
	if err != nil {
		return err
	}
	lags, err := r.loadSeries(stageLagSeries)
	if err != nil {
		return err
	}
	known := map[int]model.StageLoad{}
	for _, s := range slices.Concat(counts, times, lags) {
		number, err := strconv.Atoi(s.Labels.Get("stage"))
		if err != nil {
			return fmt.Errorf("series of stage %q: want a number: %w", s.Labels.Get("stage"), err)
		}
		of := known[number]
		if outcome := s.Labels.Get("outcome"); outcome != "" {
			if of.Outcomes == nil {
				of.Outcomes = map[string]int64{}
			}
			n := int64(s.Last())
			of.Outcomes[outcome] += n
			if model.IsReply(outcome) {
				of.Latency.Count += n
			}
		} else if s.Labels.Get("__name__") == stageLagSeries {
			setQuantile(&of.Lag, s.Labels.Get("quantile"), s.Last()*1e6)
		} else {
			setQuantile(&of.Latency, s.Labels.Get("quantile"), s.Last()*1e6)
		}
		known[number] = of
	}
	l.AddStages(r.meta.Plan.Load, known)
	return nil
}

// took is where the time of such handshakes is told.
func took(t *model.TLSLoad, resumed bool) *model.Quantiles {
	if resumed {
		return &t.Resumed
	}
	return &t.Full
}

// latency fills in the quantiles, which the load records cumulatively, so that
// the last value is that of the whole phase.
func latency(l *model.Load, latencies []Series, calm int64) {
	l.Calm.Count = calm
	for _, s := range latencies {
		var into *model.Quantiles
		switch phase, kind := s.Labels.Get("phase"), s.Labels.Get("kind"); {
		case phase == model.Calm && kind == "response":
			into = &l.Calm
		case phase != model.Hold:
			continue
		case kind == "response":
			into = &l.Latency
		case kind == "waited":
			into = &l.Waited
		case kind == "service":
			into = &l.Service
		case kind == "connect":
			into = &l.Connect
			into.Count = max(into.Count, connects(l))
		case kind == "first_byte":
			into = &l.FirstByte
			into.Count = l.Latency.Count
		case kind == "transfer":
			into = &l.Transfer
			into.Count = l.Latency.Count
		default:
			continue
		}
		setQuantile(into, s.Labels.Get("quantile"), s.Last()*1e6)
	}
}

// connects is how many connects at least succeeded: what failed later than in
// connecting, and every reply, had a connection; with keep-alive many share one,
// so there is one for certain.
func connects(l *model.Load) int64 {
	for outcome, n := range l.Outcomes {
		if n > 0 && !model.IsAttempt(outcome) {
			return 1
		}
	}
	return 0
}

func setQuantile(q *model.Quantiles, quantile string, micros float64) {
	switch quantile {
	case "0.5":
		q.P50 = micros
	case "0.9":
		q.P90 = micros
	case "0.95":
		q.P95 = micros
	case "0.99":
		q.P99 = micros
	case "0.999":
		q.P999 = micros
	case "1":
		q.Max = micros
	}
}

// worse has each quantile be the larger one: that of the worker that was furthest behind.
func worse(q *model.Quantiles, o model.Quantiles) {
	q.P50, q.P90, q.P95, q.P99, q.P999, q.Max = max(q.P50, o.P50), max(q.P90, o.P90), max(q.P95, o.P95), max(q.P99, o.P99), max(q.P999, o.P999), max(q.Max, o.Max)
}

// mean is that of several histograms.
type mean struct {
	sum float64
	n   int64
}

func (m *mean) add(h *hdr.PackedHistogram) {
	m.sum += h.Mean() * float64(h.TotalCount())
	m.n += h.TotalCount()
}

func (m *mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}

// addLatencies fills in what the histograms tell: the means, and the course with the
// quantiles of each of its seconds.
func (r *Run) addLatencies(l *model.Load, course *Course) error {
	var response, service mean
	for i, err := range r.Intervals() {
		if err != nil {
			return err
		}
		switch i.Tag {
		case "response":
			response.add(i.Histogram)
			course.Latency(i)
		case "service":
			service.add(i.Histogram)
		}
	}
	l.Course = course.Seconds(r.meta.Windows)
	l.Latency.Mean, l.Service.Mean = response.value(), service.value()
	return nil
}

// course tells the load second by second; a load of more than a week has none.
func (r *Run) course(outcomes []Series) *Course {
	start, end := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range outcomes {
		for _, p := range s.Points {
			start, end = min(start, p.Time), max(end, p.Time)
		}
	}
	if len(outcomes) == 0 || start < r.first || end > r.last || end-start > maxCourse {
		return nil
	}
	c := NewCourse(start)
	for _, s := range outcomes {
		before, outcome := 0.0, s.Labels.Get("outcome")
		for _, p := range s.Points {
			c.Outcome(outcome, p.Time, int64(p.Value-before))
			before = p.Value
		}
	}
	return c
}

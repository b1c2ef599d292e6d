package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
)

const (
	defaultTimeoutMS = 2000
	maxThreads       = 1024
	maxWorkers       = 1000 // that play one load
	maxMillis        = 365 * 24 * 3600 * 1000
)

// Check says what is wrong with a plan, without touching the network.
func Check(plan model.LoadPlan) error {
	_, err := prepare(plan)
	return err
}

// job is a plan made ready: defaults filled in, the request built.
type job struct {
	plan     model.LoadPlan
	host     string // to be resolved
	port     uint16
	requests []request // what is asked for, at least one
	bounds   []float64 // of several requests: the sum of the weights up to each
	names    []string  // of the targets, none without
	sources  []netip.Addr
	rows     int         // of variables: so many times there are requests
	replayed []int32     // which of the requests each of a recording is that is replayed
	tls      *tls.Config // nil for http
	resumes  bool        // TLS sessions are used again
}

func prepare(plan model.LoadPlan) (*job, error) {
	if plan.Method == "" {
		plan.Method = "GET"
	}
	if plan.TimeoutMS == 0 {
		plan.TimeoutMS = defaultTimeoutMS
	}
	engine := checkEngine(plan) // before 0 threads, which a worker's machine is to say, become one
	plan.Threads = min(max(plan.Threads, 1), int(plan.Part.Of(int64(plan.Connections))))
	if err := checkNumbers(plan); err != nil {
		return nil, err
	}
	if engine != nil {
		return nil, engine
	}
	u, err := parseURL(plan.URL)
	if err != nil {
		return nil, err
	}
	j := &job{plan: plan, resumes: plan.TLS == nil || !plan.TLS.NeverResume}
	if j.sources, err = ParseSources(plan.Sources); err != nil {
		return nil, err
	}
	var port string
	if j.host, port, err = Address(plan); err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("url %q: port %q: want 1 to 65535", plan.URL, port)
	}
	j.port = uint16(n)
	switch {
	case u.Scheme == "https":
		if j.tls, err = tlsConfig(plan.TLS, j.host); err != nil {
			return nil, err
		}
	case plan.TLS != nil:
		return nil, fmt.Errorf("url %q: what is said about TLS is for https:// alone", plan.URL)
	}
	if plan.HTTP2 && j.tls != nil {
		j.tls.NextProtos = []string{"h2"}
	}
	if err := j.ask(); err != nil {
		return nil, err
	}
	return j, j.checkPipeline()
}

// brief says that a connection stays and has never more on its way than one request of a few segments, which any initial window holds. Congestion control then has
// nothing to decide, so Reno's, which every kernel allows to everybody, does in place of the host's: BBR keeps an account of each
// acknowledgement and a timer for each send, which a request pays for.
func (j *job) brief() bool {
	return j.plan.KeepAlive && !j.plan.HTTP2 && j.plan.Pipeline <= 1 && !slices.ContainsFunc(j.requests, func(r request) bool { return len(r.bytes) > quietSend })
}

// maxPipelined is how many bytes of requests may be on a connection at once.
const maxPipelined = 4 << 20

func (j *job) checkPipeline() error {
	for _, r := range j.requests {
		if n := j.plan.Pipeline; n > 1 && len(r.bytes) > maxPipelined/n {
			return fmt.Errorf("pipeline: %d requests of %d bytes: want at most %d bytes on a connection; ask for fewer at once", n, len(r.bytes), maxPipelined)
		}
	}
	return nil
}

// ask fills in what is asked for: the plan's targets, or its one request; with variables once for each row.
func (j *job) ask() error {
	if r := j.plan.Recorded; r != nil {
		j.replayed = r.Of
	}
	a := asked{j.plan, j.plan.Targets}
	v := j.plan.Variables
	if v == nil {
		return j.askFor(a)
	}
	if j.plan.Recorded != nil {
		return errors.New("variables: a recording has none; leave out one of both")
	}
	if err := cmp.Or(checkVariables(v), a.fits(v.Names)); err != nil {
		return err
	}
	const madeOf = 256 // what we need of each besides its bytes
	size := 0
	for i, values := range v.Values {
		if err := j.askFor(a.row(v.Names, values)); err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
		for _, r := range j.requests[i*len(j.requests)/(i+1):] {
			size += len(r.bytes) + madeOf
		}
		if size > maxRendered {
			return fmt.Errorf("row %d: the requests of the rows take more than %d bytes; take fewer rows", i+1, maxRendered)
		}
	}
	j.rows = len(v.Values)
	return nil
}

// askFor adds what is asked for.
func (j *job) askFor(a asked) error {
	u, err := parseURL(a.plan.URL)
	if err != nil {
		return err
	}
	if len(a.targets) == 0 {
		r := request{toHEAD: a.plan.Method == "HEAD"}
		err := r.form(a.plan, u)
		j.requests = append(j.requests, r)
		return err
	}
	if most := mostTargets(j.plan); len(a.targets) > most {
		return fmt.Errorf("%d targets: want at most %d", len(a.targets), most)
	}
	index := map[string]int32{}
	j.names, j.bounds = nil, nil
	sum := 0.0
	for i, t := range a.targets {
		r, err := targetRequest(a.plan, t, u)
		if err != nil {
			return fmt.Errorf("target %d of %d: %w", i+1, len(a.targets), err)
		}
		known := false
		if r.name, known = index[t.Name]; !known {
			r.name = int32(len(j.names))
			index[t.Name] = r.name
			j.names = append(j.names, t.Name)
		}
		sum += t.Weight
		j.requests, j.bounds = append(j.requests, r), append(j.bounds, sum)
	}
	if len(j.names) > maxTargetNames {
		return fmt.Errorf("%d different names of targets: want at most %d", len(j.names), maxTargetNames)
	}
	return nil
}

// choose is the request that a number of 64 random bits stands for, by the weights.
func (j *job) choose(random uint64) *request {
	return &j.requests[j.pick(random)]
}

// ofRow is the same of a row of variables.
func (j *job) ofRow(row int64, random uint64) *request {
	return &j.requests[row*int64(len(j.requests)/j.rows)+int64(j.pick(random))]
}

// pick is the same without rows: the number of a target.
func (j *job) pick(random uint64) int {
	if len(j.bounds) < 2 {
		return 0
	}
	const bits = 53 // as many as a float64 has
	at := float64(random>>(64-bits)) / (1 << bits) * j.bounds[len(j.bounds)-1]
	i, exact := slices.BinarySearch(j.bounds, at)
	if exact {
		i++ // a bound is the next one's
	}
	return min(i, len(j.bounds)-1)
}

func checkNumbers(p model.LoadPlan) error {
	switch {
	case p.Connections < 1 || p.Connections > maxConnections:
		return fmt.Errorf("connections: %d: want 1 to %d", p.Connections, maxConnections)
	case p.Part != nil && (p.Part.Worker < 0 || p.Part.Worker >= p.Part.All || p.Part.All > maxWorkers):
		return fmt.Errorf("worker %d of %d: want 0 to %d", p.Part.Worker, p.Part.All, maxWorkers-1)
	case p.Connections < p.Part.Workers():
		return fmt.Errorf("connections: %d for %d workers: each needs one", p.Connections, p.Part.Workers())
	case p.Threads > maxThreads:
		return fmt.Errorf("threads: %d: want 1 to %d", p.Threads, maxThreads)
	case p.Requests < 0 || p.DurationMS < 0 || p.CalmMS < 0 || p.RampMS < 0 || p.TimeoutMS < 0:
		return errors.New("requests, durations and timeout must not be negative")
	case max(p.DurationMS, p.CalmMS, p.RampMS, p.TimeoutMS) > maxMillis:
		return errors.New("durations and timeout must not be longer than a year")
	case p.Requests == 0 && p.DurationMS == 0:
		return errors.New("nothing ends the load: give a duration or a number of requests")
	case p.Streams > 1 && !p.HTTP2:
		return errors.New("streams: HTTP/1.1 has none; ask for HTTP/2 (--http2)")
	case p.Streams < 0 || int64(p.Streams)*int64(p.MostConnections()) > maxConnections:
		return fmt.Errorf("streams: %d on each of %d connections: want at least 1, and not more than %d in all", p.Streams, p.MostConnections(), maxConnections)
	case p.Pipeline > 1 && p.HTTP2:
		return errors.New("pipeline: HTTP/2 has streams in its place (--streams)")
	case p.Pipeline < 0 || int64(p.Pipeline)*int64(p.MostConnections()) > maxConnections:
		return fmt.Errorf("pipeline: %d requests on each of %d connections: want at least 1, and not more than %d in all", p.Pipeline, p.MostConnections(), maxConnections)
	case p.Pipeline > 1 && !p.KeepAlive:
		return errors.New("pipeline: a connection for each request has one; leave out one of both")
	case p.Streams > 1 && !p.KeepAlive:
		return errors.New("streams: a connection for each request has one; leave out one of both")
	case !(p.Rate >= 0 && p.Rate <= maxRate): // written so that NaN is refused
		return fmt.Errorf("rate: %g requests/s: want 0 to %g", p.Rate, maxRate)
	case p.Arrivals != "" && p.Arrivals != model.Poisson:
		return fmt.Errorf("arrivals %q: want %s, or nothing for constant ones", p.Arrivals, model.Poisson)
	case p.Arrivals != "" && p.Rate == 0:
		return errors.New("arrivals are those of an open loop: give a rate (-R)")
	}
	if err := checkSocket(p.UnixSocket); err != nil {
		return err
	}
	if err := checkConnects(p); err != nil {
		return err
	}
	if err := checkRecording(p); err != nil {
		return err
	}
	return checkStages(p)
}

// checkEngine says what io_uring is not for: where it is not tried, or does not know what has to be told.
func checkEngine(p model.LoadPlan) error {
	not, share := "", int(p.Part.Of(int64(p.Connections)))
	switch {
	case p.Engine == "":
		return nil
	case p.Engine != model.IOURing:
		return fmt.Errorf("engine %q: want epoll or %s", p.Engine, model.IOURing)
	case p.HTTP2 || p.Pipeline > 1 || strings.HasPrefix(p.URL, "https:"):
		not = "plain HTTP/1.1 alone, one request after another"
	case p.UnixSocket != "":
		not = "TCP alone; leave out --unix-socket"
	case p.KeepAlive:
		return nil
	case p.Rate > 0:
		not = "closed loops alone where each request has a new connection: a rate needs the kernel's time stamps; leave out -R or --no-keepalive"
	case len(p.Sources) > 0:
		not = "the address that the kernel chooses alone where each request has a new connection; leave out --source or --no-keepalive"
	case p.Part != nil && p.Threads == 0: // as many as its machine has CPUs: known there
		return nil
	case share > MostByIOURing(p) && p.Part != nil:
		not = fmt.Sprintf("up to %d connections a thread of each worker, whose share is %d for %d threads: ask for fewer (-c), for more threads (-t) or more workers (--from)", mostChains, share, max(p.Threads, 1))
	case share > MostByIOURing(p):
		not = fmt.Sprintf("up to %d connections a thread: ask for fewer (-c), or for more threads (-t)", mostChains)
	default:
		return nil
	}
	return errors.New("engine io_uring: it is for " + not)
}

// MostByIOURing is how many connections so many threads can have by io_uring, in one process.
func MostByIOURing(p model.LoadPlan) int { return mostChains * max(p.Threads, 1) }

// maxStages is how many changes of the rate a plan may have.
const maxStages = 100

func checkStages(p model.LoadPlan) error {
	if len(p.Stages) > maxStages {
		return fmt.Errorf("%d stages: want at most %d", len(p.Stages), maxStages)
	}
	before := int64(0)
	for _, s := range p.Stages {
		at := time.Duration(s.AtMS) * time.Millisecond
		switch {
		case p.Rate == 0:
			return errors.New("stages change the rate of an open loop: say how it begins (-R, or a stage at 0)")
		case s.AtMS <= before || s.AtMS > maxMillis:
			return fmt.Errorf("stage at %v: want each later than the one before it, and within a year", at)
		case p.DurationMS > 0 && s.AtMS >= p.DurationMS:
			return fmt.Errorf("stage at %v: the load is over by then, after %v: give it more time (-d)", at, time.Duration(p.DurationMS)*time.Millisecond)
		case !(s.Rate >= 0 && s.Rate <= maxRate):
			return fmt.Errorf("stage at %v: %g requests/s: want 0 to %g", at, s.Rate, maxRate)
		}
		before = s.AtMS
	}
	if n := len(p.Stages); n > 0 && p.DurationMS == 0 && p.Stages[n-1].Rate == 0 {
		return errors.New("the last stage offers nothing, so that a number of requests would never be done: give a duration (-d)")
	}
	return nil
}

// Address is the host and the port of a plan's URL: the scheme's port if it names none.
func Address(plan model.LoadPlan) (host, port string, err error) {
	u, err := url.Parse(plan.URL)
	if err != nil {
		return "", "", err
	}
	return u.Hostname(), portOf(u), nil
}

// resolve finds the one address that the whole load goes to: the first IPv4
// address of the host, else its first IPv6 address; and how many seconds that took, nil where the
// host is an address.
func (j *job) resolve(ctx context.Context) (netip.AddrPort, *float64, error) {
	if given, err := netip.ParseAddr(j.host); err == nil {
		return netip.AddrPortFrom(given.Unmap(), j.port), nil, nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", j.host)
	if err != nil || len(found) == 0 {
		return netip.AddrPort{}, nil, fmt.Errorf("resolve %q: %s: check the name, or give an address: %w", j.host, resolveClass(err), err)
	}
	best := found[0].Unmap()
	for _, a := range found {
		if a.Unmap().Is4() {
			best = a.Unmap()
			break
		}
	}
	took := time.Since(began).Seconds()
	return netip.AddrPortFrom(best, j.port), &took, nil
}

// resolveClass is what went wrong with a name, in the form of an outcome.
func resolveClass(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && dns.IsNotFound:
		return "dns:not_found"
	case ok && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "dns:timeout"
	case ok && dns.IsTemporary:
		return "dns:temporary"
	}
	return "dns:failed"
}

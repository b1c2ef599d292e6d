package model

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/secret"
)

// The names of windows. A run with our load has them all (switched-off ones
// excepted); watch has Baseline when a command follows, and Hold.
const (
	Baseline = "baseline" // before any load
	Calm     = "calm"     // one connection, one request after the other
	Ramp     = "ramp"     // connections are being opened
	Hold     = "hold"     // the load that was asked for
	Cool     = "cool"     // after the last request
)

// Window is a named part of a run. Start and End are the times of sampling
// rounds, so a counter's difference over a window is the difference of two readings.
type Window struct {
	Name  string `json:"name"`
	Start int64  `json:"start_ms"` // Unix milliseconds
	End   int64  `json:"end_ms"`   // Unix milliseconds; 0 while open
}

// Host is an observed host as the run recorded it.
type Host struct {
	Name string `json:"name"`
	// Spec is how the user named it: "local", "netns:srv", "pid:1234", "unit:nginx",
	// "container:web"; "ssh:web1" or "ssh:web1/unit:nginx" is on another machine.
	Spec string `json:"spec"`
	// Machine is the kernel's boot id; hosts with the same Machine share
	// CPUs, disks and memory, so their machine-wide series are the same numbers.
	Machine string `json:"machine"`
	Kernel  string `json:"kernel"` // uname -r
	NetNS   uint64 `json:"netns"`  // inode of the network namespace
	CPUs    int    `json:"cpus"`
}

// Plan is what the user asked for.
type Plan struct {
	// Mode is "run" (our own load), "watch", "prometheus" (see Remote) or "capture" (see Capture).
	Mode string `json:"mode"`
	// Generator is the host from which the load comes, "" when watch has no command.
	Generator string `json:"generator,omitempty"`
	// Generators are all hosts from which it comes, where those are several; the first is Generator, and what
	// is one number of the whole load stands there.
	Generators []string `json:"generators,omitempty"`
	// CommandLine are the words that make such a run again, without those that say where to put it and how to print; what gives
	// access is masked. Nil where nobody typed one.
	CommandLine []string `json:"command_line,omitempty"`
	// Command is the user's own load tool under watch, what gives access masked.
	Command  []string  `json:"command,omitempty"`
	Interval int64     `json:"interval_ms"`
	Load     *LoadPlan `json:"load,omitempty"`
	// Remote is set when the series come from a Prometheus-compatible server.
	Remote *RemotePlan `json:"remote,omitempty"`
	// Capture is set when packets are all that there is.
	Capture *CapturePlan `json:"capture,omitempty"`
	// Snapshot says why a run was made of the last minutes of a watch that stays: asked, cause, killed; "" of another.
	Snapshot string `json:"snapshot,omitempty"`
	// Packets is the interface whose packets are captured during the run, "" for none.
	Packets string `json:"packets,omitempty"`
	// Program is the one program of the first host that was asked about: a PID, a NAME, unit:NAME, container:NAME, or
	// "command" for that of Command; "" where none was.
	Program string `json:"program,omitempty"`
}

// ProgramCommand is the word for the command of a watch as the program that is asked about.
const ProgramCommand = "command"

// From are the hosts from which the load comes.
func (p *Plan) From() []string {
	if len(p.Generators) == 0 && p.Generator != "" {
		return []string{p.Generator}
	}
	return p.Generators
}

// CapturePlan says which packet captures were read, and what they have.
type CapturePlan struct {
	Files       []string `json:"files"`
	Packets     int64    `json:"packets"`
	Connections int64    `json:"connections"`
	Shows       []string `json:"shows,omitempty"` // what is wrong on the wire, in sentences, what weighs most first
}

// PacketsFile is the name of the file in a run's directory with the packets of a host.
func PacketsFile(host string) string {
	var b strings.Builder
	for _, c := range []byte(host) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return "packets-" + b.String() + ".pcapng"
}

// RemotePlan says which series of a Prometheus-compatible server were taken.
type RemotePlan struct {
	URL      string   `json:"url"`   // without a password
	At       int64    `json:"at_ms"` // Unix milliseconds, the window's end
	Window   int64    `json:"window_ms"`
	Baseline int64    `json:"baseline_ms,omitempty"`
	Match    []string `json:"match,omitempty"` // label matchers
}

// Poisson is the LoadPlan.Arrivals of users who do not know of each other: as many requests as the rate asks
// for, at times that are independent of one another.
const Poisson = "poisson"

// IOURing is the LoadPlan.Engine that hands calls to the kernel by io_uring.
const IOURing = "io_uring"

// LoadPlan is the load of a run.
type LoadPlan struct {
	URL string `json:"url"` // see WithoutSecrets
	// UnixSocket is the file, or "@" and the abstract name, of the Unix socket that the load connects to in place
	// of the URL's address; "" for none.
	UnixSocket  string   `json:"unix_socket,omitempty"`
	Method      string   `json:"method"`
	Headers     []string `json:"headers,omitempty"` // "Name: value"
	Body        []byte   `json:"body,omitempty"`
	BodyBytes   int      `json:"body_bytes,omitempty"` // see WithoutSecrets
	Connections int      `json:"connections"`
	// MaxConnections is up to how many an open loop opens when all are busy and a request is due; 0 is no more than Connections.
	MaxConnections int `json:"max_connections,omitempty"`
	Threads        int `json:"threads"`
	// Requests ends the hold phase after so many requests; 0 means DurationMS ends it.
	Requests   int64 `json:"requests,omitempty"`
	DurationMS int64 `json:"duration_ms,omitempty"`
	// Rate is the open loop's requests per second; 0 is a closed loop. With Stages it is so until the first of them.
	Rate float64 `json:"rate,omitempty"`
	// Stages are the moments of the hold phase at which the rate becomes another one at once, by time.
	Stages []Stage `json:"stages,omitempty"`
	// Arrivals says when an open loop's requests are due: "" at constant distances, Poisson at random.
	// Those with the same ArrivalsSeed are due at the same times.
	Arrivals     string `json:"arrivals,omitempty"`
	ArrivalsSeed uint64 `json:"arrivals_seed,omitempty"`

	// ConnectRate is how often a second a connection may be tried for at most; 0 is as often as one is wanted.
	ConnectRate float64 `json:"connect_rate,omitempty"`
	// Sources are the local addresses, and prefixes of them, that connections come from in turn; none leaves it to the kernel.
	Sources []string `json:"sources,omitempty"`

	KeepAlive bool  `json:"keep_alive"`
	TimeoutMS int64 `json:"timeout_ms"`
	// CalmMS and RampMS are the lengths of those phases; 0 leaves them out.
	CalmMS int64 `json:"calm_ms"`
	RampMS int64 `json:"ramp_ms"`
	// Targets are the requests of the load, in place of the one that Method, URL and Body make.
	Targets []Target `json:"targets,omitempty"`
	// Recorded is where the targets were recorded, nil where somebody wrote them.
	Recorded *Recording `json:"recorded,omitempty"`
	// Variables are put in the places of their names, {NAME}, in paths, headers and bodies; each request takes the next row.
	Variables *Variables `json:"variables,omitempty"`
	// HTTP2 is HTTP/2: over TLS by ALPN (h2), else with prior knowledge (h2c). Streams is how many
	// requests a connection then has in flight at most; 0 is 1.
	HTTP2 bool `json:"http2,omitempty"`
	// Pipeline is how many requests an HTTP/1.1 connection has in flight at most; 0 is 1.
	Pipeline int `json:"pipeline,omitempty"`
	Streams  int `json:"streams,omitempty"`
	// Engine is how the generator waits for the network: "" is epoll, else IOURing.
	Engine string `json:"engine,omitempty"`
	// TLS is how an https URL is spoken to; nil is the same as all its zero values.
	TLS *TLSPlan `json:"tls,omitempty"`
	// From are the workers that play the load, NAME=SPEC; none is this machine alone.
	From []string `json:"from,omitempty"`
	// Part is what one of them is told to do.
	Part *Part `json:"part,omitempty"`
}

// Part is what one of several workers does of a load: of the requests of an open loop every so manyth, and its share of the
// connections and of a number of requests.
type Part struct {
	Worker int `json:"worker"` // from 0
	All    int `json:"all"`
}

// Workers is how many there are; nil is a load of one.
func (p *Part) Workers() int {
	if p == nil {
		return 1
	}
	return max(p.All, 1)
}

// Of is the worker's share of n.
func (p *Part) Of(n int64) int64 {
	if p == nil {
		return n
	}
	all := int64(p.Workers())
	return max((n-int64(p.Worker)+all-1)/all, 0)
}

// Worker is one of several processes that play one load together.
type Worker struct {
	Name string `json:"name"`
	Spec string `json:"spec"` // as the user named it: "local", "netns:g1", "ssh:gen1"
	// Host is the name under which its host is observed.
	Host string `json:"host,omitempty"`
	// Requests began there in the hold phase.
	Requests int64 `json:"requests"`
	// Clock is how its clock compared with ours before the load; LateMS is by how much its load began after the agreed
	// moment, by its own clock.
	Clock  Clock   `json:"clock"`
	LateMS float64 `json:"late_ms"`
	// SentBytes and ReceivedBytes are as those of a Collector.
	SentBytes     int64 `json:"sent_bytes,omitempty"`
	ReceivedBytes int64 `json:"received_bytes,omitempty"`
	// GoneMS is from when on its share was missing, Unix milliseconds, and Gone why; of one that saw the load's end
	// they are empty.
	GoneMS int64  `json:"gone_ms,omitempty"`
	Gone   string `json:"gone,omitempty"`
}

// WithoutIt says what a worker that is gone, one of so many, left out.
func (w *Worker) WithoutIt(all int) string {
	return fmt.Sprintf("worker %s (%s) is gone since %s: %s; from then on the load is short by its share, 1 of %d, which nobody took over; what it told until then counts",
		w.Name, w.Spec, time.UnixMilli(w.GoneMS).UTC().Format("15:04:05.000"), w.Gone, all)
}

// Stage is a rate, and the moment of the hold phase from which on it is offered.
type Stage struct {
	AtMS int64   `json:"at_ms"`
	Rate float64 `json:"rate"`
}

// MostConnections is how many connections the load may have at once.
func (p *LoadPlan) MostConnections() int { return max(p.Connections, p.MaxConnections) }

// AllStages are the stages of a load whose rate changes, the one before the first change included; none where
// it does not.
func (p *LoadPlan) AllStages() []Stage {
	if len(p.Stages) == 0 {
		return nil
	}
	return append([]Stage{{Rate: p.Rate}}, p.Stages...)
}

// Recording is about requests that somebody's users sent.
type Recording struct {
	// From is "access log" or "HAR export", Requests how many requests of it are sent.
	From     string `json:"from"`
	Requests int    `json:"requests"`
	// Speed is how much faster than they were recorded requests are sent, each when its time has come. 0: they are drawn by
	// how often they were recorded.
	Speed float64 `json:"speed,omitempty"`
	// AtMicros is when each is due, since the hold phase began, and Of which of the targets it is. See WithoutSecrets.
	AtMicros []int64 `json:"at_us,omitempty"`
	Of       []int32 `json:"of,omitempty"`
}

// Variables have a value of each in each row.
type Variables struct {
	Names  []string   `json:"names"`
	Rows   int        `json:"rows"`             // how many there are
	Values [][]string `json:"values,omitempty"` // see WithoutSecrets
}

// Target is one of several requests that a load makes.
type Target struct {
	// Name is what it is counted under; those with the same name are counted together.
	Name   string `json:"name"`
	Method string `json:"method"`
	Path   string `json:"path"` // with the query
	// Headers ("Name: value") go beside those of the plan, and in place of those of the same name.
	Headers   []string `json:"headers,omitempty"`
	Body      []byte   `json:"body,omitempty"`
	BodyBytes int      `json:"body_bytes,omitempty"` // see WithoutSecrets
	// Weight is its part of the requests, beside the others' weights.
	Weight float64 `json:"weight"`
	// Expect are the statuses that are right; none means those below 400.
	Expect []int `json:"expect,omitempty"`
	// Check is what has to be in the body as it is sent, "" for nothing.
	Check string `json:"check,omitempty"`
	// LengthBytes is how long the body has to be as it is sent, nil for any length.
	LengthBytes *int64 `json:"length_bytes,omitempty"`
}

// TLSPlan says how a load speaks TLS. Files are named, not kept, since one of them is
// a private key.
type TLSPlan struct {
	// CACert is a file of certificates (PEM) that are trusted in place of the system's.
	CACert string `json:"ca_cert,omitempty"`
	// Cert and Key are the files (PEM) of the client's certificate and its private key.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// ServerName is asked for by SNI and must be in the certificate; "" is the URL's host.
	ServerName string `json:"server_name,omitempty"`
	// MinVersion and MaxVersion are "1.0" to "1.3"; "" is 1.2 and 1.3.
	MinVersion string `json:"min_version,omitempty"`
	MaxVersion string `json:"max_version,omitempty"`
	// Ciphers are IANA's names of those offered up to TLS 1.2; none is Go's choice.
	Ciphers []string `json:"ciphers,omitempty"`
	// Insecure takes any certificate.
	Insecure bool `json:"insecure,omitempty"`
	// NeverResume makes each handshake a full one.
	NeverResume bool `json:"never_resume,omitempty"`
}

// WithoutSecrets returns the plan as a record keeps it, which people show to
// others: what gives access is masked in the URL, so are the values of headers,
// and the body is left out, its size (BodyBytes) told instead.
func (p LoadPlan) WithoutSecrets() LoadPlan {
	headers := p.Headers
	p.Headers = nil
	for _, h := range headers {
		p.Headers = append(p.Headers, secret.Header(h))
	}
	p.URL = secret.Text(p.URL)
	p.BodyBytes, p.Body = len(p.Body), nil
	if v := p.Variables; v != nil {
		p.Variables = &Variables{Names: v.Names, Rows: max(v.Rows, len(v.Values))}
	}
	targets := p.Targets
	p.Targets = nil
	if p.Recorded != nil {
		p.Recorded = &Recording{From: p.Recorded.From, Requests: p.Recorded.Requests, Speed: p.Recorded.Speed}
		p.Targets = byName(targets)
		return p
	}
	for _, t := range targets {
		masked := Target{Name: secret.Text(t.Name), Method: t.Method, Path: secret.Text(t.Path), BodyBytes: len(t.Body), Weight: t.Weight, Expect: t.Expect, Check: secret.Text(t.Check), LengthBytes: t.LengthBytes}
		for _, h := range t.Headers {
			masked.Headers = append(masked.Headers, secret.Header(h))
		}
		p.Targets = append(p.Targets, masked)
	}
	return p
}

// byName are recorded targets as a run keeps them: what was recorded may be anybody's, and is a lot. So no more than the
// names stays, with their weights.
func byName(targets []Target) (list []Target) {
	at := map[string]int{}
	for _, t := range targets {
		i, known := at[t.Name]
		if !known {
			i = len(list)
			at[t.Name] = i
			list = append(list, Target{Name: secret.Text(t.Name)})
		}
		list[i].Weight += t.Weight
	}
	return list
}

// Run is run.json: everything about a run that is no series, event or histogram.
type Run struct {
	Format  int      `json:"format"`  // layout version of the run directory
	Version string   `json:"version"` // of the Plimsoll that made it
	Started int64    `json:"started_ms"`
	Plan    Plan     `json:"plan"`
	Hosts   []Host   `json:"hosts"`
	Windows []Window `json:"windows"`
	// HeldMS is for how long the load was held by its engine's own clock, in milliseconds; 0 where no load of ours was held to its end.
	// The window begins when it was read, which on a machine that is short of CPU time is later.
	HeldMS int64 `json:"held_ms,omitempty"`
	// Status holds host → signal name → status. A signal that is not in it was never tried.
	Status map[string]map[string]Status `json:"status"`
	Cost   Cost                         `json:"cost"`
	// Tracing is nil in a run that was not traced.
	Tracing *Tracing `json:"tracing,omitempty"`
	// ToolSummaries are what load tools in the watched command printed of their runs, oldest
	// first: their word.
	ToolSummaries []ToolSummary `json:"tool_summaries,omitempty"`
	// Workers are those that played the load, where it came from several.
	Workers []Worker `json:"workers,omitempty"`
	// Collectors are those that observed hosts, nil in older runs.
	Collectors []Collector `json:"collectors,omitempty"`
	// Notes are sentences about the observation itself (sampled less often, …).
	Notes []string `json:"notes,omitempty"`
	// Site is what the site changed about the rules when the run was made, nil
	// for nothing.
	Site *Site `json:"site,omitempty"`
	// Closed is false in a run that was cut off.
	Closed bool `json:"closed"`
}

// Collector is one that observed hosts.
type Collector struct {
	// Hosts are the names of those that it observed.
	Hosts []string `json:"hosts"`
	// Via is how the user named the way to it, "" if it was in the process that recorded
	// the run. The rest of it is of others alone.
	Via     string `json:"via,omitempty"`
	Version string `json:"version,omitempty"` // of its Plimsoll
	// SentBytes and ReceivedBytes went over the network to it and from it, the program itself included, as they are
	// before they are encrypted; 0 where it is on this machine.
	SentBytes     int64 `json:"sent_bytes,omitempty"`
	ReceivedBytes int64 `json:"received_bytes,omitempty"`
	// Rounds is the number of the newest one that came whole.
	Rounds int `json:"rounds"`
	// DroppedSamples did not come, since the pipe was full.
	DroppedSamples int64 `json:"dropped_samples,omitempty"`
	// Cut says why the pipe to it ended before the run, "" if it did not.
	Cut string `json:"cut,omitempty"`
	// Clock is what was measured at the edges of windows, at most of the first 1,000.
	Clock []Clock `json:"clock,omitempty"`
	// CPUSeconds and MaxRSS are its part of the run's Cost, as of the last edge.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	MaxRSS     int64   `json:"max_rss_bytes,omitempty"`
}

// Clock is how a collector's clock compared with that of the run, which all that is
// recorded follows, in milliseconds.
type Clock struct {
	Time          int64   `json:"t_ms"`           // Unix milliseconds
	OffsetMS      float64 `json:"offset_ms"`      // it was ahead by so much
	UncertaintyMS float64 `json:"uncertainty_ms"` // half of the way there and back
	// Followed says that its samples are corrected by this from then on.
	Followed bool `json:"followed,omitempty"`
}

// Tracing is how the kernel was watched through BPF programs.
type Tracing struct {
	// Level is "light", "auto" or "full".
	Level string `json:"level"`
	// Duty is, by tracer, the share of the hold window in which one that was
	// switched on in bursts was on. What it counted was divided by that: its
	// signals are estimates.
	Duty map[string]float64 `json:"duty,omitempty"`
	// Profiles are the names of the stacks that the run holds ("cpu").
	Profiles []string `json:"profiles,omitempty"`
}

// Cost is what watching cost, measured by the watcher about itself.
type Cost struct {
	CPUSeconds  float64 `json:"cpu_seconds"` // user + system, the sampling process alone
	WallSeconds float64 `json:"wall_seconds"`
	CPUShare    float64 `json:"cpu_share_of_one_core"` // ratio
	MaxRSS      int64   `json:"max_rss_bytes"`
	// LoadCPUSeconds is the generator's own user + system time, 0 without our load.
	LoadCPUSeconds float64 `json:"load_cpu_seconds,omitempty"`
}

// Load is what the load saw: the requests that began in the hold window, each
// with exactly one outcome. It is computed from the recorded series.
type Load struct {
	// Requests is how many began. In a closed loop an attempt to connect that
	// failed was none: it is in FailedAttempts alone. In an open loop each request
	// was planned, so one whose attempt failed is in both.
	Requests int64 `json:"requests"`
	// Attempts is how often a connection was tried for, 0 in a run that did not
	// record it; FailedAttempts is how many tries ended in the connect.
	Attempts       int64 `json:"attempts,omitempty"`
	FailedAttempts int64 `json:"failed_attempts"`
	// ReceivedBytes and SentBytes are those of heads, bodies and frames, over TLS before it is sealed; 0 in a run that did not record them.
	ReceivedBytes int64 `json:"received_bytes,omitempty"`
	SentBytes     int64 `json:"sent_bytes,omitempty"`
	// Stood is how many connections stood at one time or another, told where the plan lets them become more.
	Stood int64 `json:"connections_stood,omitempty"`
	// Missing is nil in a run that did not record it.
	Missing *MissingConnections `json:"missing_connections,omitempty"`
	// RPS is replies of any status per second in which the load was held; GoodRPS those below 400.
	RPS     float64 `json:"rps"`
	GoodRPS float64 `json:"good_rps"`
	// GoodShare is good replies over all that was tried: the sum of Outcomes.
	GoodShare float64 `json:"good_share"`
	// Outcomes: "2xx" … "5xx", "connect:ECONNREFUSED", "connect:timeout",
	// "read:ECONNRESET", "protocol:bad_status_line" … They add up to Requests and,
	// in a closed loop, FailedAttempts.
	Outcomes map[string]int64 `json:"outcomes"`
	// Statuses are the replies by their exact status, those that a target did not expect included; empty in a run that
	// did not record it.
	Statuses map[string]int64 `json:"statuses,omitempty"`
	// Latency is what the user waited for a reply, connect time included and,
	// in an open loop, from the intended send time. Microseconds, replies only.
	Latency Quantiles `json:"latency_us"`
	// Waited is the same over all requests, failed ones with the time they took to fail.
	Waited Quantiles `json:"waited_us"`
	// Service is from the actual start of the request.
	Service Quantiles `json:"service_us"`
	Connect Quantiles `json:"connect_us"`
	// FirstByte is, of replies, from when the request was sent to their first bytes; Transfer from
	// there to their last. Empty in a run that did not record it.
	FirstByte Quantiles `json:"first_byte_us,omitzero"`
	Transfer  Quantiles `json:"transfer_us,omitzero"`
	// DNSSeconds is how long the name's resolution took, once, before the load; nil where the URL has an address.
	DNSSeconds *float64 `json:"dns_seconds,omitempty"`
	// TLS is nil where no handshake was done.
	TLS *TLSLoad `json:"tls,omitempty"`
	// Targets are those of the plan that had requests, in its order; none where it has none.
	Targets []TargetLoad `json:"targets,omitempty"`
	// Stages are those of the plan that began, by time; none where the rate was always the same.
	Stages []StageLoad `json:"stages,omitempty"`
	// Workers are those that played it, where it came from several.
	Workers []Worker `json:"workers,omitempty"`
	// StoodStill is for how long the generator's process did not run though it was to: it was stopped, or its machine was.
	// Seconds; told by "plimsoll load", of several workers the longest.
	StoodStill float64 `json:"stood_still_seconds,omitempty"`
	// Causes are what the first of each outcome said of itself, where that is more than its name.
	Causes map[string]string `json:"causes,omitempty"`
	// Lag is by how much the generator was behind its own schedule when it sent
	// (open loop); empty in a closed loop.
	Lag Quantiles `json:"schedule_lag_us,omitzero"`
	// Calm is the latency with a single connection, before the load.
	Calm    Quantiles `json:"calm_us"`
	Seconds float64   `json:"seconds"`
	// OtherPhases counts requests begun outside the hold window, by phase.
	OtherPhases map[string]int64 `json:"other_phases,omitempty"`
	Course      []Second         `json:"course,omitempty"`
}

// TargetLoad is what became of a target's requests. All targets' outcomes are the load's Outcomes.
type TargetLoad struct {
	Name     string           `json:"name"`
	Requests int64            `json:"requests"` // the sum of Outcomes
	Outcomes map[string]int64 `json:"outcomes"`
	// Latency is that of Load, within 1 %.
	Latency Quantiles `json:"latency_us,omitzero"`
}

// StageLoad is what became of the requests that were due in a stage. All stages' outcomes are the load's Outcomes.
type StageLoad struct {
	Stage
	Seconds  float64          `json:"seconds"`  // how long it lasted
	Requests int64            `json:"requests"` // the sum of Outcomes
	Outcomes map[string]int64 `json:"outcomes"`
	// GoodRPS is good replies per second of the stage, whenever they came.
	GoodRPS float64 `json:"good_rps"`
	// Latency is that of Load, within 1 %.
	Latency Quantiles `json:"latency_us,omitzero"`
	// Lag is that of Load, within 1 %.
	Lag Quantiles `json:"schedule_lag_us,omitzero"`
}

// AddStages computes Stages from the plan, from how long the load was held and, by the number of the stage, from
// what is known of it: Outcomes and Latency.
func (l *Load) AddStages(plan *LoadPlan, known map[int]StageLoad) {
	all := plan.AllStages()
	for i, s := range all {
		end := l.Seconds
		if i+1 < len(all) {
			end = min(end, float64(all[i+1].AtMS)/1000)
		}
		of := known[i]
		of.Stage, of.Seconds = s, end-float64(s.AtMS)/1000
		if of.Seconds <= 0 {
			return
		}
		for _, n := range of.Outcomes {
			of.Requests += n
		}
		of.GoodRPS = float64(good(of.Outcomes)) / of.Seconds
		l.Stages = append(l.Stages, of)
	}
}

// Good is how many of the outcomes were good replies.
func (t *TargetLoad) Good() int64 { return good(t.Outcomes) }

// TLSLoad is what a load over TLS saw of it, from its begin to its end: with keep-alive
// most handshakes are done before the hold phase.
type TLSLoad struct {
	// Handshakes are those that were done, by phase and what was agreed upon.
	Handshakes []TLSHandshakes `json:"handshakes"`
	// Full and Resumed are how long they took, from the connection's standing to their
	// end: two or three packets' ways, the server's work, and our own.
	Full    Quantiles `json:"full_us"`
	Resumed Quantiles `json:"resumed_us"`
	// CryptoSeconds is what sealing a request and opening its reply took of the generator's
	// own time, on average; 0 where it was not measured.
	CryptoSeconds float64 `json:"crypto_seconds_per_request,omitempty"`
}

// TLSHandshakes are handshakes of one kind.
type TLSHandshakes struct {
	Phase   string `json:"phase"`
	Version string `json:"version"` // "1.3"
	Cipher  string `json:"cipher"`  // IANA's name
	Resumed bool   `json:"resumed"`
	Count   int64  `json:"count"`
}

// MissingConnections are those of the plan that never stood, from the load's
// begin to its end. In an open loop, which opens what it needs, only those that
// were tried for.
type MissingConnections struct {
	Failed  int64 `json:"failed"`  // each attempt at them failed
	Untried int64 `json:"untried"` // the load was over before their turn came
}

// expected begins the outcome of a reply from 400 on that its target expects ("expected:4xx").
const expected = "expected:"

// IsReply tells a status class ("2xx", "expected:4xx") from a failure ("read:timeout", "check:body").
func IsReply(outcome string) bool {
	outcome = strings.TrimPrefix(outcome, expected)
	return len(outcome) == 3 && '1' <= outcome[0] && outcome[0] <= '5' && outcome[1:] == "xx"
}

// IsAttempt says whether an outcome is that of an attempt to connect: it failed before
// the connection stood, over TLS before its handshake was done, so that no request was sent.
func IsAttempt(outcome string) bool {
	return strings.HasPrefix(outcome, "connect:") || strings.HasPrefix(outcome, "tls:")
}

// IsGood says whether an outcome is a reply below 400, or one that was expected.
func IsGood(outcome string) bool {
	return IsReply(outcome) && (outcome < "4xx" || strings.HasPrefix(outcome, expected))
}

// Good is how many of the outcomes were good replies.
func (l *Load) Good() int64 { return good(l.Outcomes) }

func good(outcomes map[string]int64) (sum int64) {
	for outcome, n := range outcomes {
		if IsGood(outcome) {
			sum += n
		}
	}
	return sum
}

// AddUp computes from Outcomes and Seconds the counts, rates and the share that
// follow from them, and returns how many outcomes and replies there are.
func (l *Load) AddUp(openLoop bool) (all, replies int64) {
	l.FailedAttempts = 0
	for outcome, n := range l.Outcomes {
		all += n
		if IsReply(outcome) {
			replies += n
		}
		if IsAttempt(outcome) {
			l.FailedAttempts += n
		}
	}
	l.Requests = all
	if !openLoop {
		l.Requests -= l.FailedAttempts
	}
	good := l.Good()
	if l.Seconds > 0 {
		l.RPS, l.GoodRPS = float64(replies)/l.Seconds, float64(good)/l.Seconds
	}
	if all > 0 {
		l.GoodShare = float64(good) / float64(all)
	}
	return all, replies
}

// Second is one second of a run's course: what ended in it.
type Second struct {
	Time    int64   `json:"t"` // Unix milliseconds, its end
	Phase   string  `json:"phase"`
	Replies int64   `json:"replies"`
	Good    int64   `json:"good"`
	Failed  int64   `json:"failed"`           // no reply at all
	P50     float64 `json:"p50_us,omitempty"` // of the replies to requests that began in hold
	P99     float64 `json:"p99_us,omitempty"`
}

// Quantiles of a histogram, in microseconds; Count 0 means there is nothing to tell.
type Quantiles struct {
	Count int64 `json:"count"`
	// Mean is left out where only quantiles were recorded.
	Mean float64 `json:"mean,omitempty"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	// P95 is left out where it was not recorded, as by an older Plimsoll.
	P95  float64 `json:"p95,omitempty"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

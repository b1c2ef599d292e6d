package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/capture/live"
	"plimsoll/internal/collect"
	"plimsoll/internal/host"
	"plimsoll/internal/input"
	"plimsoll/internal/lazy"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/session"
)

// durationFlag adds a flag of that kind.
func durationFlag(fs *pflag.FlagSet, p *time.Duration, name, short string, value time.Duration, help string) {
	*p = value
	fs.VarP((*seconds)(p), name, short, help)
}

// maxThreads is how many threads drive the load when nobody says: beyond that
// a machine with many CPUs would have most of them idle.
const maxThreads = 8

// loadFlags are those that say what to send.
type loadFlags struct {
	connections, threads int
	maxConnections       int
	duration             time.Duration
	requests             int64
	rate                 float64
	stages               []string
	connectRate          float64
	sources              []string
	noKeepAlive          bool
	http2                bool
	engine               string
	streams, pipeline    int
	method, body         string
	targets, speed, vars string
	notes                []string // what there is to say of the plan, for the user
	headers              []string
	socket               string
	timeout              time.Duration
	calm, ramp           time.Duration
	tls                  model.TLSPlan
	resume               string
	arrivals             string
	may                  bool
}

// tlsFlags are those that are for https alone.
var tlsFlags = []string{"cacert", "insecure", "cert", "key", "server-name", "tls-min", "tls-max", "ciphers", "tls-resume"}

// paceFlags are those that say when requests are due, as --speed does.
var paceFlags = []string{"rate", "stage", "arrivals", "max-requests"}

// add adds the flags; calm and ramp are the lengths of those phases when nobody says.
func (f *loadFlags) add(c *cobra.Command, calm, ramp time.Duration) {
	fs := c.Flags()
	fs.SetNormalizeFunc(firstNames)
	f.connections = 100
	fs.VarP(quantity[int]{&f.connections}, "connections", "c", "keep `N` connections open at once; 10k are 10,000")
	fs.Var(quantity[int]{&f.maxConnections}, "max-connections", "with -R: open more connections than -c, up to `N`, when all are busy and a request is due (without it, it waits for one that becomes free)")
	fs.IntVarP(&f.threads, "threads", "t", 0, "drive them with `N` threads (default: one for each CPU, at most 8; more where a process may not open as many files as there are connections)")
	durationFlag(fs, &f.duration, "duration", "d", 10*time.Second, "how long to hold the load")
	fs.VarP(quantity[int64]{&f.requests}, "max-requests", "n", "hold the load until `N` requests are done, in place of -d")
	fs.VarP(quantity[float64]{&f.rate}, "rate", "R", "offer `N` requests per second (open loop); without it each connection sends its next request when it has the reply to the last (closed loop)")
	fs.StringArrayVar(&f.stages, "stage", nil, "from this moment of -d on offer that rate, as `AT:RATE`; the rate changes at once (steps; for a slope give several). -R, or a stage at 0, says how it begins: --stage 0:100/s --stage 30s:2k/s -d 1m. May be given again")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "`WHEN` the requests of -R are due: constant (at equal distances), poisson (at random, like those of users who do not know of each other), or poisson:SEED, the same ones again")
	fs.StringVar(&f.socket, "unix-socket", "", "connect to the Unix socket at `PATH` (@NAME: an abstract one); the URL gives Host and path, like http://localhost/")
	fs.Var(rate{&f.connectRate}, "connect-rate", "open at most `N` connections a second, so that the load's own beginning does not overflow the listener's queue; without --ramp the ramp lasts as long as that takes for all of -c")
	fs.StringSliceVar(&f.sources, "source", nil, "connect from these addresses of this machine in turn, as a `LIST` with commas between or a prefix (10.0.0.0/24), since from each there are only some 28,000 local ports to one target; on loopback any of 127.0.0.0/8 will do")
	fs.BoolVar(&f.noKeepAlive, "no-keepalive", false, "a new connection for each request")
	fs.StringVar(&f.engine, "engine", "", "how the generator waits for the network, `NAME`: epoll, or io_uring, which takes less CPU (plain HTTP/1.1 over TCP without --pipeline; with --no-keepalive in a closed loop, where it does not tell how long connect() took). Without it, \"plimsoll load\" chooses io_uring there, where the kernel lets it; all else is epoll")
	fs.BoolVar(&f.http2, "http2", false, "speak HTTP/2: over TLS by ALPN (h2), else with prior knowledge (h2c)")
	fs.IntVar(&f.streams, "streams", 1, "HTTP/2: keep `N` requests in flight on each connection, or as many as the server allows")
	fs.IntVar(&f.pipeline, "pipeline", 1, "HTTP/1.1: keep `N` requests in flight on each connection, sent before the replies to those before them have come")
	fs.StringVarP(&f.method, "method", "X", "", "request `METHOD` (default GET, with a body POST)")
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "a header line, `\"NAME: VALUE\"`; may be given again")
	fs.StringVar(&f.body, "body", "", "request body; `TEXT` that begins with @ names a file")
	fs.StringVar(&f.targets, "targets", "", "in place of one request, those in `FILE`, one a line as JSON: {\"path\": \"/a?b=1\", \"method\": \"PUT\", \"headers\": {\"Accept\": \"text/html\"}, \"body\": \"x\", \"weight\": 3, \"name\": \"a\", \"expect\": [200, 404], \"check\": \"in the body\", \"length\": 612}; only path (or url) is needed, and those with the same name are counted together. Or an access log (common or combined, of nginx or Apache), or a HAR export: what was recorded is sent to URL, as often as it is there, or at its own pace (--speed)")
	fs.StringVar(&f.speed, "speed", "", "with an access log or a HAR export as --targets: send each request when it was recorded, `N`x as fast (2x, 0.5x; 1x is as it was), in place of -R")
	fs.StringVar(&f.vars, "vars", "", "put the values of a CSV `FILE` in the place of {NAME} in the path, in headers and in the body (of URL, -H and --body, or of --targets); its first line has the names, and each request takes the next row")
	durationFlag(fs, &f.timeout, "timeout", "", 2*time.Second, "how long to wait for a reply, connecting included")
	fs.StringVar(&f.tls.CACert, "cacert", "", "https: trust the certificates (PEM) in `FILE` in place of the system's")
	fs.BoolVarP(&f.tls.Insecure, "insecure", "k", false, "https: take any certificate")
	fs.StringVar(&f.tls.Cert, "cert", "", "https: the client's certificate (PEM), from `FILE`")
	fs.StringVar(&f.tls.Key, "key", "", "https: its private key (PEM), from `FILE`")
	fs.StringVar(&f.tls.ServerName, "server-name", "", "https: ask for `NAME` (SNI), which must be in the certificate (default: the URL's host)")
	fs.StringVar(&f.tls.MinVersion, "tls-min", "", "https: the lowest `VERSION` of TLS, 1.0 to 1.3 (default 1.2)")
	fs.StringVar(&f.tls.MaxVersion, "tls-max", "", "https: the highest `VERSION` (default 1.3)")
	fs.StringSliceVar(&f.tls.Ciphers, "ciphers", nil, "https: offer these up to TLS 1.2, IANA's `NAMES` with commas between; those of 1.3 are fixed")
	fs.StringVar(&f.resume, "tls-resume", "always", "https: `WHEN` a connection resumes the session of the one before it: always (if the server lets it) or never")
	fs.BoolVar(&f.may, "yes-i-may", false, "load an address that is neither this machine's nor a private one")
	durationFlag(fs, &f.calm, "calm", "", calm, "how long to send with one connection first; 0 leaves it out")
	durationFlag(fs, &f.ramp, "ramp", "", ramp, "how long to take for opening the connections; 0 opens all at once")
}

// firstNames has a flag be known by the name that it had first, too.
func firstNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "requests" {
		name = "max-requests"
	}
	return pflag.NormalizedName(name)
}

// wrong says what is wrong with the flags by themselves.
func (f *loadFlags) wrong(target string, asked func(string) bool) error {
	switch {
	case socketMeant(target) != "":
		return fmt.Errorf("%q: the path of a Unix socket is no part of the URL, which gives Host and path; did you mean http://localhost/ --unix-socket %s?", target, socketMeant(target))
	case !strings.Contains(target, "://"):
		return fmt.Errorf("%q has no scheme; did you mean %s?", target, urlMeant(target))
	case asked("threads") && f.threads < 1:
		return fmt.Errorf("-t %d: want at least 1 thread", f.threads)
	case asked("rate") && !(f.rate > 0):
		return fmt.Errorf("-R %v: want more than 0 requests per second", f.rate)
	case asked("connect-rate") && !(f.connectRate > 0):
		return fmt.Errorf("--connect-rate %v: want more than 0 connections per second", f.connectRate)
	case asked("max-requests") && f.requests < 1:
		return fmt.Errorf("-n %d: want at least 1 request", f.requests)
	case f.streams < 1 || asked("streams") && !f.http2:
		return fmt.Errorf("--streams %d: want at least 1, and --http2 beside it", f.streams)
	case f.pipeline < 1:
		return fmt.Errorf("--pipeline %d: want at least 1", f.pipeline)
	case f.speed != "" && slices.ContainsFunc(paceFlags, asked):
		return fmt.Errorf("--speed: the recording says when requests are due; leave out --%s", paceFlags[slices.IndexFunc(paceFlags, asked)])
	case asked("max-requests") && asked("duration"):
		return fmt.Errorf("-n and -d both say when to end; give one of them")
	case f.resume != "always" && f.resume != "never":
		return fmt.Errorf("--tls-resume %s: want always or never", f.resume)
	case f.duration <= 0 || f.timeout <= 0:
		return fmt.Errorf("-d and --timeout: want more than 0")
	}
	return nil
}

// plan checks the flags and makes the plan of them; load.Check has the last
// word. asked says which flags the user gave.
func (f *loadFlags) plan(command, target string, asked func(string) bool) (model.LoadPlan, error) {
	no := func(format string, args ...any) (model.LoadPlan, error) {
		return model.LoadPlan{}, usage(command, format, args...)
	}
	if err := f.wrong(target, asked); err != nil {
		return no("%v", err)
	}
	plan := model.LoadPlan{
		URL: target, UnixSocket: wholePath(f.socket), Method: strings.ToUpper(f.method), Headers: f.headers, Connections: f.connections, MaxConnections: f.maxConnections, Threads: f.threads,
		Requests: f.requests, DurationMS: f.duration.Milliseconds(), Rate: f.rate, KeepAlive: !f.noKeepAlive,
		ConnectRate: f.connectRate, Sources: f.sources, TimeoutMS: f.timeout.Milliseconds(), CalmMS: f.calm.Milliseconds(), RampMS: f.ramp.Milliseconds(),
	}
	if f.requests > 0 {
		plan.DurationMS = 0
	}
	if f.pipeline > 1 {
		plan.Pipeline = f.pipeline
	}
	if f.engine != "epoll" {
		plan.Engine = f.engine
	}
	if plan.HTTP2 = f.http2; f.http2 {
		plan.Streams = f.streams
	}
	if slices.ContainsFunc(tlsFlags, asked) {
		plan.TLS = &f.tls
		plan.TLS.NeverResume = f.resume == "never"
	}
	if plan.ConnectRate > 0 && !asked("ramp") && !asked("max-requests") {
		plan.RampMS = max(plan.RampMS, opening(plan))
	}
	if plan.Threads == 0 {
		plan.Threads = min(runtime.NumCPU(), maxThreads, max(plan.Connections, 1))
	}
	if err := addCourse(&plan, f.arrivals, f.stages); err != nil {
		return no("%v", err)
	}
	body, err := readBody(f.body)
	if err != nil {
		return no("%v", err)
	}
	plan.Body = body
	if plan.Method == "" {
		plan.Method = "GET"
		if len(body) > 0 {
			plan.Method = "POST"
		}
	}
	first := plan
	if f.speed != "" {
		first.MaxConnections = 0 // it goes with a rate, which the recording gives: replay checks it
	}
	if err := load.Check(first); err != nil {
		return no("%v", err)
	}
	if plan.Variables, err = readVariables(f.vars); err != nil {
		return no("--vars %s: %v", f.vars, err)
	}
	if plan, f.notes, err = addTargets(plan, f.targets, f.speed, asked); err != nil {
		return no("%v", err)
	}
	plan, said := spread(plan)
	f.notes = append(f.notes, said...)
	return plan, nil
}

// tell says what there is to say of the plan.
func (f *loadFlags) tell(w *world) {
	for _, note := range f.notes {
		fmt.Fprintln(w.stderr, "plimsoll:", note)
	}
}

// opening is how many milliseconds it takes to open a plan's connections at its rate of connects.
func opening(plan model.LoadPlan) int64 {
	const most = 1 << 40 // which load.Check refuses in its own words
	return int64(min(math.Ceil(float64(plan.Connections)/plan.ConnectRate*1e3), most))
}

// mistyped is a scheme with something else behind it than "://".
var mistyped = lazy.Regexp(`^(?i)(https?)(?::/?|;//?|/{1,3}|\.//?)([^:/].*)$`)

// urlMeant is the URL that somebody had in mind who left the scheme out, or part of it.
func urlMeant(target string) string {
	if m := mistyped().FindStringSubmatch(target); m != nil {
		return strings.ToLower(m[1]) + "://" + m[2]
	}
	if strings.HasPrefix(target, ":") {
		return "http://localhost" + target
	}
	return "http://" + strings.TrimLeft(target, "/")
}

// wholePath is the path of a Unix socket as listeners are told of.
func wholePath(socket string) string {
	if socket == "" || socket[0] == '@' {
		return socket
	}
	if path, err := filepath.Abs(socket); err == nil {
		return path
	}
	return socket
}

// socketURL is how other programs write a Unix socket into a URL.
var socketURL = lazy.Regexp(`^(?i)(?:http\+unix://|https?\+unix:|https?://unix:|unix:(?://)?)([/@%.].*)$`)

// socketMeant is the path of the Unix socket that somebody wrote in place of a URL, "" where none is meant.
func socketMeant(target string) string {
	m := socketURL().FindStringSubmatch(target)
	if m == nil {
		return ""
	}
	path, _, _ := strings.Cut(m[1], ":") // nginx: unix:/run/app.sock:/path
	if path[0] == '%' {                  // the slashes of a socket's path are escaped there; what comes after one is the URL's
		path, _, _ = strings.Cut(path, "/")
	}
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// readBody returns what --body stands for.
func readBody(text string) ([]byte, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return []byte(text), nil
	}
	data, err := input.Read(path, maxBody)
	if err != nil {
		return nil, fmt.Errorf("--body %s: %w", text, err)
	}
	return data, nil
}

// watchFlags are those that say what to observe, and where to put the run.
type watchFlags struct {
	hosts    []string
	file     string
	interval time.Duration
	dir      string
	trace    string
	capture  string
	site     siteFlags
}

func (f *watchFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringArrayVar(&f.hosts, "host", nil, "observe this host, as `NAME=SPEC`; SPEC is local, netns:NAME (a network namespace), unit:NAME (of systemd), container:NAME or :ID (docker, podman, containerd, CRI-O) or pid:N (the namespaces of a process). ssh:[USER@]HOST[:PORT] is another machine, and ssh:HOST/SPEC a part of it: your ssh takes this program there for as long as it runs (docs/elsewhere.md). process/SPEC has it observed by a process of its own. May be given again; without it the host is local=local")
	fs.StringVar(&f.file, "hosts", "", "observe the hosts of this `FILE`, too: YAML, \"hosts:\" and beneath it lines NAME: SPEC. @GROUP are those of a group of your Ansible inventory, FILE@GROUP of that one (docs/elsewhere.md)")
	durationFlag(fs, &f.interval, "interval", "", time.Second, "time between two readings, at least 100ms")
	fs.StringVar(&f.trace, "trace", string(collect.TraceAuto), "watch the kernel through BPF programs at this `LEVEL`: off, light (what is nearly free), auto (these and, where scripts run, which of their functions compute: PHP, Python, Node, Ruby, Java …), or full (dear tracers too, in short bursts; their numbers are estimates)")
	fs.StringVar(&f.capture, "capture", "", "capture the packets that pass this `INTERFACE` of each host meanwhile, cut to headers, keep them in the run directory, and let the rules read them (any, if none is named)")
	fs.Lookup("capture").NoOptDefVal = live.Any
	f.site.add(c)
	fs.StringVar(&f.dir, "dir", "", "run directory to make (default TIME-ID where runs are kept; see plimsoll runs)")
}

// options checks the flags and makes a session's options of them.
func (f *watchFlags) options(command string, w *world, now time.Time) (session.Options, error) {
	values := f.hosts
	if f.file != "" {
		named, err := w.hostsNamed(f.file)
		if err != nil {
			return session.Options{}, usage(command, "%v", err)
		}
		values = append(named, values...)
	}
	hosts, err := parseWatched(values)
	if err != nil {
		return session.Options{}, usage(command, "%v", err)
	}
	if err := areThere(hosts); err != nil {
		return session.Options{}, err
	}
	if f.interval < 100*time.Millisecond || f.interval > time.Minute {
		return session.Options{}, usage(command, "--interval %v: want 100ms to 1m", f.interval)
	}
	level := collect.TraceLevel(f.trace)
	if !slices.Contains(collect.TraceLevels, level) {
		return session.Options{}, usage(command, "--trace %s: want off, light, auto or full", f.trace)
	}
	if err := roomToWatch(load.FileLimit(), level != collect.TraceOff && os.Geteuid() == 0); err != nil {
		return session.Options{}, err
	}
	if f.capture != "" {
		if why := mayCapture(); why != nil {
			return session.Options{}, why
		}
	}
	site, err := f.site.changes(w)
	if err != nil {
		return session.Options{}, err
	}
	dir := f.dir
	if dir == "" {
		dir = w.newRun(now)
	}
	return session.Options{Hosts: hosts, Interval: f.interval, Dir: dir, Trace: level, Packets: f.capture, Tracers: allTracers(w), Version: version, Engine: collect.OneProcess(engineCommand(w)), Holder: holderCommand(w), Reach: reachCollector(w), Site: site}, nil
}

// areThere says of the hosts on this machine whether they can be watched, before a load is tried: a
// service that cannot be reached is often in the very host whose name is wrong.
func areThere(hosts []session.HostSpec) error {
	for _, spec := range hosts {
		if isFar(spec) {
			continue
		}
		h, err := host.Open(spec.Name, spec.Spec)
		switch {
		case err == nil:
			h.Close()
		case !errors.Is(err, fs.ErrPermission): // what may not be looked into may be there
			return err
		}
	}
	return nil
}

// addPhases adds the flags for the phases without load.
func addPhases(fs *pflag.FlagSet, p *session.Phases) {
	durationFlag(fs, &p.Baseline, "baseline", "", 2*time.Second, "how long to watch before the load; 0 leaves it out")
	durationFlag(fs, &p.Cool, "cool", "", time.Second, "how long to watch after the load; 0 leaves it out")
}

package nginx

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nginx's defaults, from ngx_event.c, ngx_http_core_module.c and ngx_connection.h.
const (
	defaultWorkerConnections = 512
	defaultKeepaliveTimeout  = 75
	defaultKeepaliveRequests = 1000
	oldKeepaliveRequests     = 100 // before 1.19.10
	keepaliveRequestsRaised  = 1019010
	defaultBacklog           = 511 // NGX_LISTEN_BACKLOG on Linux
	defaultUpstreamKeepalive = 32  // of an upstream block, since 1.29.7; before: none
	upstreamKeepaliveRaised  = 1029007
)

// effective is what a configuration means in numbers.
type effective struct {
	workerProcesses   int // 0 is auto
	workerConnections int
	// keepaliveTimeout (seconds) and keepaliveRequests are the smallest of all servers.
	keepaliveTimeout  float64
	keepaliveRequests int
	backlogs          map[string]int // by listening address, as the socket signals write it
	keepalives        map[string]int // upstream connections kept idle, by upstream address
	accessLogs        []accessLog    // one for each place where requests are logged
	errorLogs         []errorLog
	status            *statusPage // nil when none is configured
}

// accessLog is one access_log directive in effect.
type accessLog struct {
	path     string
	format   *lineFormat
	buffered bool
	partial  bool // if=: not every request is written
	implied  bool // the compiled default: unused where every server has its own
	unread   string
}

// errorLog is one error_log directive in effect.
type errorLog struct {
	path   string
	level  int // as in levels
	unread string
}

// statusPage is where stub_status answers.
type statusPage struct {
	network, address string // "tcp" with IP:port, "unix" with the service's path
	host, uri        string
}

// levels are nginx's, the most severe first; an error_log writes its own and those before it.
var levels = []string{"stderr", "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"}

const (
	levelError = 4
	levelWarn  = 5
)

// scope is what a block inherits from those around it.
type scope struct {
	keepaliveTimeout  float64
	keepaliveRequests int
	names             []string // server_name
	listens           []string // addresses of the server that speak plain HTTP
	ssl               bool
}

type effectiveBuilder struct {
	out     *effective
	prefix  string
	formats map[string]*lineFormat
	// groups are upstream blocks; their servers' addresses carry the group's keepalive.
	groups   map[string]bool
	timeouts []float64
	requests []int
	build    buildInfo
}

// newEffective reads the numbers from a configuration with its includes in
// place. prefix is the directory against which relative names of logs stand.
// Directives that make no sense are passed over: nginx has judged them already.
func newEffective(list []*directive, prefix string, build buildInfo) *effective {
	b := &effectiveBuilder{
		out:    &effective{workerProcesses: 1, workerConnections: defaultWorkerConnections, backlogs: map[string]int{}, keepalives: map[string]int{}},
		prefix: prefix, formats: map[string]*lineFormat{"combined": combinedFormat()}, groups: map[string]bool{}, build: build,
	}
	for _, d := range list {
		switch {
		case d.name == "worker_processes" && len(d.args) == 1:
			b.out.workerProcesses = atoi(d.args[0], 0)
		case d.name == "events":
			for _, e := range d.block {
				if e.name == "worker_connections" && len(e.args) == 1 {
					b.out.workerConnections = atoi(e.args[0], b.out.workerConnections)
				}
			}
		}
	}
	b.errorLogs(list)
	for _, d := range list {
		if d.name == "http" || d.name == "stream" || d.name == "mail" {
			b.top(d)
		}
	}
	if len(b.timeouts) > 0 {
		b.out.keepaliveTimeout = slices.Min(b.timeouts)
		b.out.keepaliveRequests = slices.Min(b.requests)
	}
	return b.out
}

// errorLogs collects error_log directives wherever they stand.
func (b *effectiveBuilder) errorLogs(list []*directive) {
	for _, d := range list {
		b.errorLogs(d.block)
		if d.name != "error_log" || len(d.args) == 0 {
			continue
		}
		log := errorLog{path: d.args[0], level: levelError}
		for _, a := range d.args[1:] {
			if i := slices.Index(levels, a); i > 0 {
				log.level = i
			} else if strings.HasPrefix(a, "debug") {
				log.level = len(levels) - 1
			}
		}
		log.path, log.unread = b.logPath(log.path)
		if !slices.Contains(b.out.errorLogs, log) {
			b.out.errorLogs = append(b.out.errorLogs, log)
		}
	}
}

// logPath makes a log's name absolute, or says why it is no file to follow.
func (b *effectiveBuilder) logPath(name string) (abs, unread string) {
	switch {
	case name == "stderr":
		return name, ""
	case strings.HasPrefix(name, "syslog:"):
		return name, "goes to syslog"
	case strings.HasPrefix(name, "memory:"):
		return name, "is kept in nginx's memory"
	case strings.HasPrefix(name, "|"):
		return name, "goes to a program"
	case strings.Contains(name, "$"):
		return name, "has variables in its name"
	}
	return absolute(b.prefix, name), ""
}

// top walks one of the blocks http, stream, mail.
func (b *effectiveBuilder) top(http *directive) {
	for _, d := range http.block {
		switch {
		case d.name == "log_format" && len(d.args) > 1 && http.name == "http":
			b.formats[d.args[0]] = parseLogFormat(d.args[1:])
		case d.name == "upstream" && len(d.args) == 1:
			b.upstream(d)
		}
	}
	requests := defaultKeepaliveRequests
	if b.build.version > 0 && b.build.version < keepaliveRequestsRaised {
		requests = oldKeepaliveRequests
	}
	s := scope{keepaliveTimeout: defaultKeepaliveTimeout, keepaliveRequests: requests}.with(http.block)
	if http.name == "http" {
		b.accessLogs(http, b.build.accessLog)
	}
	for _, d := range http.block {
		if d.name == "server" && d.isBlock {
			b.server(d, s, http.name == "http")
		}
	}
}

// with applies the keep-alive settings of a block.
func (s scope) with(block []*directive) scope {
	for _, d := range block {
		if len(d.args) == 0 {
			continue
		}
		switch d.name {
		case "keepalive_timeout":
			s.keepaliveTimeout = seconds(d.args[0], s.keepaliveTimeout)
		case "keepalive_requests":
			s.keepaliveRequests = atoi(d.args[0], s.keepaliveRequests)
		}
	}
	return s
}

func (b *effectiveBuilder) server(d *directive, s scope, http bool) {
	s = s.with(d.block)
	listened := false
	for _, e := range d.block {
		switch {
		case e.name == "listen" && len(e.args) > 0:
			listened = true
			s.listens = append(s.listens, b.listen(e.args)...)
		case e.name == "server_name":
			s.names = e.args
		case e.name == "ssl" && len(e.args) == 1:
			s.ssl = e.args[0] == "on"
		}
	}
	if !http {
		b.walk(d.block, s)
		return
	}
	if !listened {
		s.listens = b.listen([]string{"80"})
	}
	b.timeouts = append(b.timeouts, s.keepaliveTimeout)
	b.requests = append(b.requests, s.keepaliveRequests)
	b.accessLogs(d, "")
	b.walk(d.block, s)
}

// listen notes the backlog of a listen directive's addresses and returns those that speak plain HTTP.
func (b *effectiveBuilder) listen(args []string) (plain []string) {
	backlog, ssl := 0, false
	for _, a := range args[1:] {
		if v, ok := strings.CutPrefix(a, "backlog="); ok {
			backlog = atoi(v, 0)
		}
		switch a {
		case "ssl", "proxy_protocol":
			ssl = true
		case "udp", "quic":
			return nil
		}
	}
	for _, addr := range listenAddresses(args[0]) {
		if backlog != 0 || b.out.backlogs[addr] == 0 {
			b.out.backlogs[addr] = max(backlog, 0)
			if backlog <= 0 { // not given, or -1, which nginx passes on as the default
				b.out.backlogs[addr] = defaultBacklog
			}
		}
		if !ssl {
			plain = append(plain, addr)
		}
	}
	return plain
}

// listenAddresses writes a listen directive's address as the socket signals do.
// A name other than localhost stays a name.
func listenAddresses(s string) []string {
	if strings.HasPrefix(s, "unix:") {
		return []string{s}
	}
	host, ports := "", s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, ports = s[:i], s[i+1:]
	} else if strings.Trim(s, "0123456789-") != "" {
		host, ports = s, "80"
	}
	switch host {
	case "", "*":
		host = "0.0.0.0"
	case "localhost":
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		host = ip.String()
		if ip.Is6() {
			host = "[" + host + "]"
		}
	}
	from, to, isRange := strings.Cut(ports, "-")
	first, last := atoi(from, 0), atoi(to, 0)
	if !isRange || last < first || last-first > 1000 {
		last = first
	}
	var list []string
	for p := first; p <= last; p++ {
		list = append(list, host+":"+strconv.Itoa(p))
	}
	return list
}

// upstream notes how many idle connections a group keeps to each of its servers.
func (b *effectiveBuilder) upstream(d *directive) {
	b.groups[d.args[0]] = true
	keep := 0
	if b.build.version >= upstreamKeepaliveRaised {
		keep = defaultUpstreamKeepalive
	}
	var servers []string
	for _, e := range d.block {
		switch {
		case e.name == "keepalive" && len(e.args) > 0:
			keep = atoi(e.args[0], 0)
		case e.name == "server" && len(e.args) > 0:
			servers = append(servers, serverAddress(e.args[0], "80"))
		}
	}
	for _, s := range servers {
		b.out.keepalives[s] = max(b.out.keepalives[s], keep)
	}
}

// serverAddress writes an upstream server's address as the socket signals do.
func serverAddress(s, port string) string {
	if strings.HasPrefix(s, "unix:") {
		return strings.TrimSuffix(s, ":")
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.String()
	}
	if host, p, ok := strings.Cut(s, ":"); ok && !strings.HasPrefix(s, "[") {
		if host == "localhost" {
			host = "127.0.0.1"
		}
		return host + ":" + p
	}
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil && ip.Is6() {
		return "[" + ip.String() + "]:" + port
	}
	return s + ":" + port
}

// walk looks into the locations (and if blocks) of a server.
func (b *effectiveBuilder) walk(block []*directive, s scope) {
	for _, d := range block {
		switch {
		case strings.HasSuffix(d.name, "_pass") && len(d.args) == 1:
			b.pass(d)
		case d.name == "location" || d.name == "if" || d.name == "limit_except":
			b.accessLogs(d, "")
			for _, e := range d.block {
				if e.name == "stub_status" && d.name == "location" && b.out.status == nil {
					b.out.status = stubStatus(d.args, s)
				}
			}
			b.walk(d.block, s)
		}
	}
}

// pass notes that no connection is kept to a server which is passed to by
// address and not as a group.
func (b *effectiveBuilder) pass(d *directive) {
	if b.build.version >= upstreamKeepaliveRaised {
		return // what happens there now depends on more than the address
	}
	target := d.args[0]
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		scheme, rest = "", target
	}
	port := "80"
	if scheme == "https" || scheme == "grpcs" {
		port = "443"
	}
	if !strings.HasPrefix(rest, "unix:") {
		rest, _, _ = strings.Cut(rest, "/")
	} else if ok {
		rest = unixPath(rest)
	}
	if rest == "" || strings.Contains(rest, "$") || b.groups[rest] {
		return
	}
	addr := serverAddress(rest, port)
	if _, known := b.out.keepalives[addr]; !known {
		b.out.keepalives[addr] = 0
	}
}

// unixPath cuts the URI off "unix:/path:/uri".
func unixPath(s string) string {
	p, _, _ := strings.Cut(s[len("unix:"):], ":")
	return "unix:" + p
}

// stubStatus says how to ask the status page in a location; nil when its URI
// or its server's addresses cannot be asked.
func stubStatus(args []string, s scope) *statusPage {
	if s.ssl || len(args) == 0 {
		return nil
	}
	uri := args[len(args)-1]
	if len(args) == 2 && args[0] != "=" && args[0] != "^~" || !strings.HasPrefix(uri, "/") {
		return nil
	}
	page := &statusPage{uri: uri, host: "localhost"}
	for _, n := range s.names {
		if n != "" && n != "_" && !strings.ContainsAny(n, "*~$") {
			page.host = strings.TrimPrefix(n, ".")
			break
		}
	}
	for _, l := range s.listens {
		if p, ok := strings.CutPrefix(l, "unix:"); ok {
			page.network, page.address = "unix", p
			return page
		}
		ap, err := netip.ParseAddrPort(l)
		if err != nil {
			continue
		}
		if ap.Addr().IsUnspecified() {
			loop := netip.AddrFrom4([4]byte{127, 0, 0, 1})
			if ap.Addr().Is6() {
				loop = netip.IPv6Loopback()
			}
			ap = netip.AddrPortFrom(loop, ap.Port())
		}
		page.network, page.address = "tcp", ap.String()
		return page
	}
	return nil
}

// accessLogs notes where a block's requests are logged. A request that is
// logged to several files is to be counted in one of them: the one that tells most.
func (b *effectiveBuilder) accessLogs(block *directive, fallback string) {
	var best *accessLog
	set := false
	for _, d := range block.block {
		if d.name != "access_log" || len(d.args) == 0 {
			continue
		}
		set = true
		if d.args[0] == "off" {
			continue
		}
		if log := b.accessLog(d.args); best == nil || log.worth() > best.worth() {
			best = &log
		}
	}
	if !set && fallback != "" {
		best = &accessLog{path: absolute(b.prefix, fallback), format: b.formats["combined"], implied: true}
	}
	if best != nil && !slices.ContainsFunc(b.out.accessLogs, func(l accessLog) bool { return l.path == best.path }) {
		b.out.accessLogs = append(b.out.accessLogs, *best)
	}
}

func (b *effectiveBuilder) accessLog(args []string) accessLog {
	log := accessLog{format: b.formats["combined"]}
	for i, a := range args[1:] {
		key, value, option := strings.Cut(a, "=")
		switch {
		case option && key == "if":
			log.partial = true
		case option && key == "buffer":
			log.buffered = true
		case key == "gzip":
			log.buffered = true
			log.unread = "is written compressed (gzip" + strings.TrimPrefix("="+value, "=") + ")"
		case option && key == "flush":
		case i == 0:
			log.format = b.formats[a]
		}
	}
	path, unread := b.logPath(args[0])
	log.path = path
	if unread != "" {
		log.unread = unread
	}
	if log.format == nil || !log.format.hasStatus {
		log.unread = "has a log_format in which no $status can be found"
	}
	return log
}

// worth orders the logs of one block by how much they tell.
func (l accessLog) worth() int {
	n := 0
	if l.unread == "" {
		n += 8
	}
	if !l.partial {
		n += 4
	}
	if l.format != nil && l.format.hasUpstream {
		n += 2
	}
	if l.format != nil && l.format.hasRequest {
		n++
	}
	return n
}

// buffered says whether every access log that is a file is written through a
// buffer; known is false when there is none.
func (e *effective) buffered() (all, known bool) {
	all = true
	for _, l := range e.accessLogs {
		if path.IsAbs(l.path) && !(l.implied && len(e.accessLogs) > 1) {
			known = true
			all = all && l.buffered
		}
	}
	return all && known, known
}

// sortedKeys lists a map's keys in order, for output that does not jump about.
func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }

func atoi(s string, otherwise int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return otherwise
	}
	return n
}

// seconds reads nginx's notation of time: "75", "75s", "1m30s", "500ms".
func seconds(s string, otherwise float64) float64 {
	units := map[string]time.Duration{
		"": time.Second, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "M": 30 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
	}
	total := 0.0
	for s != "" {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		rest := s[digits:]
		letters := len(rest) - len(strings.TrimLeft(rest, "smhdwMy"))
		n, err := strconv.Atoi(s[:digits])
		unit, ok := units[rest[:letters]]
		if err != nil || !ok {
			return otherwise
		}
		total += float64(n) * unit.Seconds()
		s = strings.TrimLeft(rest[letters:], " ")
	}
	return total
}

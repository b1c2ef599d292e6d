package nginx

import (
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

// Settings is what a configuration means in numbers and places.
type Settings struct {
	WorkerProcesses   int // 0 is auto
	WorkerConnections int
	// KeepaliveTimeout (seconds) and KeepaliveRequests are the smallest of all servers.
	KeepaliveTimeout  float64
	KeepaliveRequests int
	Backlogs          map[string]int // by listening address, as the socket signals write it
	Keepalives        map[string]int // upstream connections kept idle, by upstream address
	MaxConns          map[string]int // of those servers of upstream blocks that have a bound, by address; 0: marked down
	MaxFails          map[string]int // of those that are not marked down, after how many failures one is left out; 0: never
	Weights           map[Server]int // of those that get requests as long as all is well: neither down nor a backup
	Passes            map[Pass]int   // places from which requests are passed on; one that passes to a group counts for each of its servers
	AccessLogs        []AccessLog    // one for each place where requests are logged
	ErrorLogs         []ErrorLog
	Status            *StatusPage // nil when none is configured
	// RemembersMissing is for how many seconds a failed open of a file is remembered (open_file_cache_errors); 0: not at all.
	RemembersMissing float64
	// PlainRoot is the only root of an nginx that does nothing but serve the files below it; "" of any other.
	PlainRoot string
}

// Server is one of an upstream block.
type Server struct{ Block, Address string }

// AccessLog is one access_log directive in effect.
type AccessLog struct {
	Path     string
	Format   *LineFormat // nil where its log_format is not there
	Buffered bool
	Implied  bool   // the compiled default: unused where every server has its own
	Unread   string // why it cannot be read, "" where it can
	Partial  bool   // if=: not every request is written
}

// ErrorLog is one error_log directive in effect.
type ErrorLog struct {
	Path   string
	Level  int    // as in Levels
	Unread string // why it cannot be read, "" where it can
}

// StatusPage is where stub_status answers.
type StatusPage struct {
	Network, Address string // "tcp" with IP:port, "unix" with the service's path
	Host, URI        string
}

// Levels are nginx's, the most severe first; an error_log writes its own and those before it.
var Levels = []string{"stderr", "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"}

// Places in Levels.
const (
	LevelError = 4
	LevelWarn  = 5
)

// scope is what a block inherits from those around it.
type scope struct {
	keepaliveTimeout  float64
	keepaliveRequests int
	names             []string // server_name
	listens           []string // addresses of the server that speak plain HTTP
	ssl               bool
}

type builder struct {
	out     *Settings
	prefix  string
	formats map[string]*LineFormat
	// groups are upstream blocks, with their servers' addresses, which carry the group's keepalive.
	groups     map[string][]string
	timeouts   []float64
	requests   []int
	defaultLog string // the compiled default
	version    int    // of nginx, see buildInfo
}

// newSettings reads the numbers from a configuration with its includes in
// place. prefix is the directory against which relative names of logs stand.
// Directives that make no sense are passed over: nginx has judged them already.
func newSettings(list []*Directive, prefix, accessLog string, version int) *Settings {
	b := &builder{
		out: &Settings{WorkerProcesses: 1, WorkerConnections: defaultWorkerConnections, Backlogs: map[string]int{}, Keepalives: map[string]int{},
			MaxConns: map[string]int{}, MaxFails: map[string]int{}, Weights: map[Server]int{}, Passes: map[Pass]int{}},
		prefix: prefix, formats: map[string]*LineFormat{"combined": CombinedFormat()}, groups: map[string][]string{}, defaultLog: accessLog, version: version,
	}
	for _, d := range list {
		switch {
		case d.Name == "worker_processes" && len(d.Args) == 1:
			b.out.WorkerProcesses = atoi(d.Args[0], 0)
		case d.Name == "events":
			for _, e := range d.Block {
				if e.Name == "worker_connections" && len(e.Args) == 1 {
					b.out.WorkerConnections = atoi(e.Args[0], b.out.WorkerConnections)
				}
			}
		}
	}
	b.errorLogs(list)
	b.out.RemembersMissing = remembersMissing(list)
	b.out.PlainRoot = plainRoot(list, prefix)
	for _, d := range list {
		if d.Name == "http" || d.Name == "stream" || d.Name == "mail" {
			b.top(d)
		}
	}
	if len(b.timeouts) > 0 {
		b.out.KeepaliveTimeout = slices.Min(b.timeouts)
		b.out.KeepaliveRequests = slices.Min(b.requests)
	}
	return b.out
}

// errorLogs collects error_log directives wherever they stand.
func (b *builder) errorLogs(list []*Directive) {
	for _, d := range list {
		b.errorLogs(d.Block)
		if d.Name != "error_log" || len(d.Args) == 0 {
			continue
		}
		log := ErrorLog{Path: d.Args[0], Level: LevelError}
		for _, a := range d.Args[1:] {
			if i := slices.Index(Levels, a); i > 0 {
				log.Level = i
			} else if strings.HasPrefix(a, "debug") {
				log.Level = len(Levels) - 1
			}
		}
		log.Path, log.Unread = b.logPath(log.Path)
		if !slices.Contains(b.out.ErrorLogs, log) {
			b.out.ErrorLogs = append(b.out.ErrorLogs, log)
		}
	}
}

// logPath makes a log's name absolute, or says why it is no file to follow.
func (b *builder) logPath(name string) (abs, unread string) {
	switch {
	case name == "stderr":
		return name, ""
	case strings.HasPrefix(name, "syslog:"):
		return name, "goes to syslog"
	case strings.HasPrefix(name, "memory:"):
		return name, "is kept in nginx's memory"
	case strings.HasPrefix(name, "|"):
		return name, "goes to a program"
	}
	return absolute(b.prefix, name), ""
}

// top walks one of the blocks http, stream, mail.
func (b *builder) top(http *Directive) {
	for _, d := range http.Block {
		switch {
		case d.Name == "log_format" && len(d.Args) > 1 && http.Name == "http":
			b.formats[d.Args[0]] = ParseLogFormat(d.Args[1:])
		case d.Name == "upstream" && len(d.Args) == 1:
			b.upstream(d)
		}
	}
	requests := defaultKeepaliveRequests
	if b.version > 0 && b.version < keepaliveRequestsRaised {
		requests = oldKeepaliveRequests
	}
	s := scope{keepaliveTimeout: defaultKeepaliveTimeout, keepaliveRequests: requests}.with(http.Block)
	if http.Name == "http" {
		b.accessLogs(http, b.defaultLog)
	}
	b.passes(http.Block, map[string]cacheScope{})
	for _, d := range http.Block {
		if d.Name == "server" && d.IsBlock {
			b.server(d, s, http.Name == "http")
		}
	}
}

// with applies the keep-alive settings of a block.
func (s scope) with(block []*Directive) scope {
	for _, d := range block {
		if len(d.Args) == 0 {
			continue
		}
		switch d.Name {
		case "keepalive_timeout":
			s.keepaliveTimeout = seconds(d.Args[0], s.keepaliveTimeout)
		case "keepalive_requests":
			s.keepaliveRequests = atoi(d.Args[0], s.keepaliveRequests)
		}
	}
	return s
}

func (b *builder) server(d *Directive, s scope, http bool) {
	s = s.with(d.Block)
	listened := false
	for _, e := range d.Block {
		switch {
		case e.Name == "listen" && len(e.Args) > 0:
			listened = true
			s.listens = append(s.listens, b.listen(e.Args)...)
		case e.Name == "server_name":
			s.names = e.Args
		case e.Name == "ssl" && len(e.Args) == 1:
			s.ssl = e.Args[0] == "on"
		}
	}
	if !http {
		b.walk(d.Block, s)
		return
	}
	if !listened {
		s.listens = b.listen([]string{"80"})
	}
	b.timeouts = append(b.timeouts, s.keepaliveTimeout)
	b.requests = append(b.requests, s.keepaliveRequests)
	b.accessLogs(d, "")
	b.walk(d.Block, s)
}

// listen notes the backlog of a listen directive's addresses and returns those that speak plain HTTP.
func (b *builder) listen(args []string) (plain []string) {
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
	for _, addr := range ListenAddresses(args[0]) {
		if backlog != 0 || b.out.Backlogs[addr] == 0 {
			b.out.Backlogs[addr] = max(backlog, 0)
			if backlog <= 0 { // not given, or -1, which nginx passes on as the default
				b.out.Backlogs[addr] = defaultBacklog
			}
		}
		if !ssl {
			plain = append(plain, addr)
		}
	}
	return plain
}

// ListenAddresses writes a listen directive's address as the socket signals do.
// A name other than localhost stays a name.
func ListenAddresses(s string) []string {
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
func (b *builder) upstream(d *Directive) {
	keep := 0
	if b.version >= upstreamKeepaliveRaised {
		keep = defaultUpstreamKeepalive
	}
	var servers []string
	for _, e := range d.Block {
		switch {
		case e.Name == "keepalive" && len(e.Args) > 0:
			keep = atoi(e.Args[0], 0)
		case e.Name == "server" && len(e.Args) > 0:
			addr := serverAddress(e.Args[0], "80")
			servers = append(servers, addr)
			b.limits(Server{d.Args[0], addr}, e.Args[1:])
		}
	}
	b.groups[d.Args[0]] = servers
	for _, s := range servers {
		b.out.Keepalives[s] = max(b.out.Keepalives[s], keep)
	}
}

// limits notes how much a server of an upstream block gets, and when nginx leaves it out.
func (b *builder) limits(s Server, args []string) {
	if slices.Contains(args, "down") {
		b.out.MaxConns[s.Address] = 0
		return
	}
	if n := parameter(args, "max_conns", 0); n > 0 {
		b.out.MaxConns[s.Address] = n
	}
	b.out.MaxFails[s.Address] = parameter(args, "max_fails", 1)
	if !slices.Contains(args, "backup") {
		b.out.Weights[s] = parameter(args, "weight", 1)
	}
}

// parameter is the number in NAME=NUMBER among a directive's arguments.
func parameter(args []string, name string, otherwise int) int {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return atoi(v, otherwise)
		}
	}
	return otherwise
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
func (b *builder) walk(block []*Directive, s scope) {
	for _, d := range block {
		switch {
		case strings.HasSuffix(d.Name, "_pass") && len(d.Args) == 1:
			b.pass(d)
		case d.Name == "location" || d.Name == "if" || d.Name == "limit_except":
			b.accessLogs(d, "")
			for _, e := range d.Block {
				if e.Name == "stub_status" && d.Name == "location" && b.out.Status == nil {
					b.out.Status = stubStatus(d.Args, s)
				}
			}
			b.walk(d.Block, s)
		}
	}
}

// pass notes that no connection is kept to a server which is passed to by
// address and not as a group.
func (b *builder) pass(d *Directive) {
	if b.version >= upstreamKeepaliveRaised {
		return // what happens there now depends on more than the address
	}
	for _, address := range b.addresses(d.Args[0]) {
		if _, known := b.out.Keepalives[address]; !known {
			b.out.Keepalives[address] = 0
		}
	}
}

// addresses are where the argument of a directive like proxy_pass leads: the servers of
// a group, or itself; none where variables say it.
func (b *builder) addresses(target string) []string {
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
		rest = UnixPath(rest)
	}
	if servers, ok := b.groups[rest]; ok {
		return servers
	}
	if rest == "" || strings.Contains(rest, "$") {
		return nil
	}
	return []string{serverAddress(rest, port)}
}

// UnixPath cuts the URI off "unix:/path:/uri".
func UnixPath(s string) string {
	p, _, _ := strings.Cut(s[len("unix:"):], ":")
	return "unix:" + p
}

// oneWord says whether a text can stand in a request's line, or in a header, without ending it:
// a configuration may have line ends within quotes.
func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// stubStatus says how to ask the status page in a location; nil when its URI
// or its server's addresses cannot be asked.
func stubStatus(args []string, s scope) *StatusPage {
	if s.ssl || len(args) == 0 {
		return nil
	}
	uri := args[len(args)-1]
	if len(args) == 2 && args[0] != "=" && args[0] != "^~" || !strings.HasPrefix(uri, "/") || !oneWord(uri) {
		return nil
	}
	page := &StatusPage{URI: uri, Host: "localhost"}
	for _, n := range s.names {
		if n != "" && n != "_" && !strings.ContainsAny(n, "*~$") && oneWord(n) {
			page.Host = strings.TrimPrefix(n, ".")
			break
		}
	}
	for _, l := range s.listens {
		if p, ok := strings.CutPrefix(l, "unix:"); ok {
			page.Network, page.Address = "unix", p
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
		page.Network, page.Address = "tcp", ap.String()
		return page
	}
	return nil
}

// accessLogs notes where a block's requests are logged. A request that is
// logged to several files is to be counted in one of them: the one that tells most.
func (b *builder) accessLogs(block *Directive, fallback string) {
	var best *AccessLog
	set := false
	for _, d := range block.Block {
		if d.Name != "access_log" || len(d.Args) == 0 {
			continue
		}
		set = true
		if d.Args[0] == "off" {
			continue
		}
		if log := b.accessLog(d.Args); best == nil || log.worth() > best.worth() {
			best = &log
		}
	}
	if !set && fallback != "" {
		best = &AccessLog{Path: absolute(b.prefix, fallback), Format: b.formats["combined"], Implied: true}
	}
	if best != nil && !slices.ContainsFunc(b.out.AccessLogs, func(l AccessLog) bool { return l.Path == best.Path }) {
		b.out.AccessLogs = append(b.out.AccessLogs, *best)
	}
}

func (b *builder) accessLog(args []string) AccessLog {
	log := AccessLog{Format: b.formats["combined"]}
	for i, a := range args[1:] {
		key, value, option := strings.Cut(a, "=")
		switch {
		case option && key == "if":
			log.Partial = true
		case option && key == "buffer":
			log.Buffered = true
		case key == "gzip":
			log.Buffered = true
			log.Unread = "is written compressed (gzip" + strings.TrimPrefix("="+value, "=") + ")"
		case option && key == "flush":
		case i == 0:
			log.Format = b.formats[a]
		}
	}
	path, unread := b.logPath(args[0])
	if unread == "" && strings.Contains(args[0], "$") { // an error_log has none: there it is a letter
		path, unread = args[0], "has variables in its name"
	}
	log.Path = path
	if unread != "" {
		log.Unread = unread
	}
	if log.Format == nil || !log.Format.HasStatus {
		log.Unread = "has a log_format in which no $status can be found"
	}
	return log
}

// worth orders the logs of one block by how much they tell.
func (l AccessLog) worth() int {
	n := 0
	if l.Unread == "" {
		n += 8
	}
	if !l.Partial {
		n += 4
	}
	if l.Format != nil && l.Format.HasUpstream {
		n += 2
	}
	if l.Format != nil && l.Format.HasRequest {
		n++
	}
	return n
}

// LogsBuffered says whether every access log that is a file is written through a
// buffer; known is false when there is none.
func (e *Settings) LogsBuffered() (all, known bool) {
	all = true
	for _, l := range e.AccessLogs {
		if path.IsAbs(l.Path) && !(l.Implied && len(e.AccessLogs) > 1) {
			known = true
			all = all && l.Buffered
		}
	}
	return all && known, known
}

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

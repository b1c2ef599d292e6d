package phpfpm

import (
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
)

const (
	maxConfFile  = 4 << 20
	maxConfFiles = 10_000   // of one configuration, and includes in it
	maxConfBytes = 64 << 20 // of one configuration
	maxDepth     = 5        // FPM's own limit of includes inside each other is 5
	maxPools     = 1000
)

// Span is a piece of a file: the bytes from Begin up to End.
type Span struct{ Begin, End int }

// Entry is one "key = value" of a configuration, or a section's heading (Key is
// ""), and where it stands.
type Entry struct {
	Section, Key, Value string
	File                string // as PHP-FPM names it
	Line                int    // from 1
	// Whole is the line with its end, Text the value with its quotes.
	Whole, Text Span
	// Joined says that the value has several parts, which PHP puts together.
	Joined   bool
	doubtful bool // PHP makes more of the value than is known here
}

// StandsIn says whether the entry is where it was in a text of its file.
func (e *Entry) StandsIn(src []byte) bool {
	if e.Whole.End > len(src) || e.Text.End > len(src) {
		return false
	}
	now, err := Parse(src[e.Whole.Begin:e.Whole.End], e.File)
	return err == nil && len(now) == 1 && now[0].Key == e.Key && now[0].Value == e.Value && (e.Key != "" || now[0].Section == e.Section)
}

// Parse parses one file of FPM's configuration: sections in brackets, key =
// value, comments after ; (and # at a line's start), values with or without quotes.
// Includes stay what they are.
func Parse(src []byte, file string) ([]Entry, error) {
	return parseIn(src, file, "")
}

// parseIn is Parse for a file included in the middle of a section.
func parseIn(src []byte, file, section string) ([]Entry, error) {
	var list []Entry
	n, end := 0, 0
	for raw := range strings.Lines(string(src)) {
		n++
		begin := end
		end += len(raw)
		line := strings.TrimSpace(raw)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		e := Entry{Section: section, File: file, Line: n, Whole: Span{begin, end}}
		if line[0] == '[' {
			name, rest, ok := strings.Cut(line[1:], "]")
			rest = strings.TrimSpace(rest)
			if !ok || rest != "" && rest[0] != ';' {
				return nil, fmt.Errorf("parse %s: line %d: want [section], got %q", file, n, line)
			}
			section = strings.TrimSpace(name)
			e.Section = section
			list = append(list, e)
			continue
		}
		key, value, ok := strings.Cut(raw, "=")
		e.Key = strings.TrimSpace(key)
		if !ok || e.Key == "" {
			return nil, fmt.Errorf("parse %s: line %d: want key = value, got %q", file, n, line)
		}
		e.readValue(value, begin+len(key)+1)
		list = append(list, e)
	}
	return list, nil
}

// readValue reads what stands behind the "=", up to and with the end of the line: a
// quoted text or a word, and perhaps a comment. at is where it begins in the file.
func (e *Entry) readValue(s string, at int) {
	s = strings.TrimRight(s, "\r\n")
	from := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	s, at = strings.TrimSpace(s), at+from
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if in, after, ok := strings.Cut(s[1:], s[:1]); ok {
			after = strings.TrimSpace(after)
			e.Value, e.Text = in, Span{at, at + len(in) + 2}
			e.Joined = after != "" && after[0] != ';'
			e.doubtful = e.Joined || strings.Contains(in, "${")
			return
		}
		e.doubtful = strings.Contains(s, "${")
	} else {
		word, _, _ := strings.Cut(s, ";")
		e.doubtful = strings.ContainsAny(word, "\"'$")
	}
	s, _, _ = strings.Cut(s, ";")
	e.Value = strings.TrimSpace(s)
	e.Text = Span{at, at + len(e.Value)}
}

// loader reads a configuration with all it includes.
type loader struct {
	root string // the service's root directory, as we see it
	main string // the main file, as the service calls it
	// files are those read, as the service calls them, and dirs those where
	// includes were looked for, see rooted.Glob.
	files, dirs []string

	bytes, includes int
	doubt           error // why there may be more to it than these files say; nil if there is no reason
	// instead is what a file would hold, for who wants to know what that would mean; nil for what it holds.
	instead func(fs.FileInfo) ([]byte, bool)
}

func (l *loader) load(file, section string, depth int) ([]Entry, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("include %s: want at most %d files inside each other", file, maxDepth)
	}
	src, info, err := rooted.ReadFile(l.root, file, maxConfFile)
	if err != nil {
		return nil, err
	}
	if l.instead != nil {
		if other, ok := l.instead(info); ok {
			src = other
		}
	}
	l.files = append(l.files, file)
	if l.bytes += len(src); len(l.files) > maxConfFiles || l.bytes > maxConfBytes {
		return nil, fmt.Errorf("include %s: want at most %d files and %d bytes in all", file, maxConfFiles, maxConfBytes)
	}
	list, err := parseIn(src, file, section)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, e := range list {
		if strings.Contains(e.Value, "${") {
			l.doubt = fmt.Errorf("%s: line %d: the value of %s comes from the environment that PHP-FPM was started with, which a test of the file does not have", e.File, e.Line, e.Key)
		}
		if e.Key != "include" {
			all = append(all, e)
			continue
		}
		if l.includes++; l.includes > maxConfFiles {
			return nil, fmt.Errorf("%s: line %d: include: want at most %d", e.File, e.Line, maxConfFiles)
		}
		if e.doubtful || !path.IsAbs(e.Value) {
			l.doubt = fmt.Errorf("%s: line %d: which files PHP includes there depends on its environment, -p or how it was built; give the whole path", e.File, e.Line)
		}
		files, err := l.glob(e.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: include: %w", e.File, e.Line, err)
		}
		for _, f := range files {
			inner, err := l.load(f, e.Section, depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: include: %w", e.File, e.Line, err)
			}
			all = append(all, inner...)
		}
	}
	return all, nil
}

// glob lists the files of an include. A relative one is meant against the
// compiled prefix, which the binary does not tell: it is one of the directories
// above the main file (/usr/local for /usr/local/etc/php-fpm.conf).
func (l *loader) glob(pattern string) ([]string, error) {
	if path.IsAbs(pattern) {
		files, dirs, err := rooted.Glob(l.root, pattern)
		l.dirs = append(l.dirs, dirs...)
		return files, err
	}
	for dir := path.Dir(l.main); ; dir = path.Dir(dir) {
		files, dirs, err := rooted.Glob(l.root, path.Join(dir, pattern))
		if err != nil || len(files) > 0 || dir == "/" {
			l.dirs = append(l.dirs, dirs...)
			return files, err
		}
	}
}

// Config is what FPM is set to.
type Config struct {
	ErrorLog string // "" where the compiled default is in effect
	Pools    []Pool
}

// Pool is one pool of workers.
type Pool struct {
	Name         string
	Listen       string // as configured
	PM           string
	MaxChildren  int // 0 is not given
	StartServers int // 0 is not given
	MaxSpare     int // pm.max_spare_servers; 0 is not given
	StatusPath   string
	StatusListen string
	SlowTimeout  bool // request_slowlog_timeout is not 0
	backlog      int  // as configured; see hasBacklog
	hasBacklog   bool // else the default, which depends on the version
}

// NewConfig reads the settings from entries. Later ones override earlier ones.
func NewConfig(entries []Entry) (*Config, error) {
	c := &Config{}
	for _, e := range entries {
		if e.Section == "" || e.Section == "global" {
			if e.Key == "error_log" {
				c.ErrorLog = e.Value
			}
			continue
		}
		i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == e.Section })
		if i < 0 {
			if len(c.Pools) == maxPools {
				return nil, fmt.Errorf("%s: line %d: want at most %d pools", e.File, e.Line, maxPools)
			}
			c.Pools = append(c.Pools, Pool{Name: e.Section})
			i = len(c.Pools) - 1
		}
		c.Pools[i].set(e.Key, strings.ReplaceAll(e.Value, "$pool", e.Section))
	}
	if len(c.Pools) == 0 {
		return nil, host.Absent("no pool in it")
	}
	return c, nil
}

func (p *Pool) set(key, value string) {
	switch key {
	case "listen":
		p.Listen = value
	case "pm":
		p.PM = value
	case "pm.max_children":
		number(&p.MaxChildren, value)
	case "pm.start_servers":
		number(&p.StartServers, value)
	case "pm.max_spare_servers":
		number(&p.MaxSpare, value)
	case "listen.backlog":
		if n, err := strconv.Atoi(value); err == nil {
			p.backlog, p.hasBacklog = n, true
		}
	case "pm.status_path":
		p.StatusPath = value
	case "pm.status_listen":
		p.StatusListen = value
	case "request_slowlog_timeout":
		p.SlowTimeout = strings.Trim(value, "0smhd") != ""
	}
}

// number sets n to a value that is one.
func number(n *int, value string) {
	if v, err := strconv.Atoi(value); err == nil {
		*n = v
	}
}

// ListenAddress writes a listen setting as the socket signals do:
// "127.0.0.1:9000", "[::]:9000", "unix:/run/x.sock". A port alone listens on all
// addresses of both families if the kernel has IPv6, else of IPv4.
func ListenAddress(s string, ipv6 bool) string {
	if strings.HasPrefix(s, "/") || s == "" {
		return "unix:" + s
	}
	if strings.Trim(s, "0123456789") == "" {
		if ipv6 {
			return "[::]:" + s
		}
		return "0.0.0.0:" + s
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.String()
	}
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return "unix:" + s
	}
	switch host {
	case "*", "":
		return ListenAddress(port, ipv6)
	case "localhost":
		return "127.0.0.1:" + port
	}
	return s
}

// BacklogIn is the backlog that FPM asks for. version is PHP's in thousandths
// of its parts (8002035 is 8.2.35), somaxconn what the kernel makes of -1. ok is
// false when the default of an unknown version would have to be guessed.
func (p *Pool) BacklogIn(version, somaxconn int) (n int, ok bool) {
	const (
		oldDefault       = 511
		defaultIsMaximum = 8002000 // since 8.2 the default on Linux is -1
	)
	n = p.backlog
	switch {
	case p.hasBacklog && (p.PM != "ondemand" || n < 0):
	case version == 0:
		return 0, false
	case version >= defaultIsMaximum && !p.hasBacklog:
		n = -1
	case version < defaultIsMaximum && n < oldDefault: // ondemand is not let go below it
		n = oldDefault
	}
	if n < 0 {
		return somaxconn, somaxconn > 0
	}
	return n, true
}

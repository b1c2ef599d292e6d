package phpfpm

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

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

// entry is one "key = value" of an FPM configuration and where it stands.
type entry struct {
	section, key, value string
	file                string
	line                int
	doubtful            bool // PHP makes more of the value than is known here
}

// parseIni parses one file of FPM's configuration: sections in brackets, key =
// value, comments after ; (and # at a line's start), values with or without quotes.
func parseIni(src []byte, file string) ([]entry, error) {
	return parseIniIn(src, file, "")
}

// parseIniIn is parseIni for a file included in the middle of a section.
func parseIniIn(src []byte, file, section string) ([]entry, error) {
	var list []entry
	n := 0
	for line := range strings.Lines(string(src)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			name, rest, ok := strings.Cut(line[1:], "]")
			rest = strings.TrimSpace(rest)
			if !ok || rest != "" && rest[0] != ';' {
				return nil, fmt.Errorf("parse %s: line %d: want [section], got %q", file, n, line)
			}
			section = strings.TrimSpace(name)
			list = append(list, entry{section: section, file: file, line: n})
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, fmt.Errorf("parse %s: line %d: want key = value, got %q", file, n, line)
		}
		list = append(list, entry{section, key, iniValue(value), file, n, doubtful(value)})
	}
	return list, nil
}

// iniValue takes quotes and a comment off a value.
func iniValue(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	if q := s[0]; q == '"' || q == '\'' {
		if v, _, ok := strings.Cut(s[1:], string(rune(q))); ok {
			return v
		}
	}
	s, _, _ = strings.Cut(s, ";")
	return strings.TrimSpace(s)
}

// doubtful says whether a value is more than one word or one quoted text: PHP puts
// variables of its environment and constants in, and joins the parts.
func doubtful(s string) bool {
	s = strings.TrimSpace(s)
	if s == "" {
		return false
	}
	if q := s[0]; q == '"' || q == '\'' {
		in, after, _ := strings.Cut(s[1:], string(rune(q)))
		after = strings.TrimSpace(after)
		return strings.Contains(in, "${") || after != "" && after[0] != ';'
	}
	s, _, _ = strings.Cut(s, ";")
	return strings.ContainsAny(s, "\"'$")
}

// loader reads a configuration with all it includes.
type loader struct {
	root string // the service's root directory, as we see it
	main string // the main file, as the service calls it
	// files are those read, as the service calls them, and dirs those where
	// includes were looked for, see rooted.Glob.
	files, dirs []string

	bytes, includes int
	doubt           error // why there may be other files than these; nil if there is no reason
}

func (l *loader) load(file, section string, depth int) ([]entry, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("include %s: want at most %d files inside each other", file, maxDepth)
	}
	src, _, err := rooted.ReadFile(l.root, file, maxConfFile)
	if err != nil {
		return nil, err
	}
	l.files = append(l.files, file)
	if l.bytes += len(src); len(l.files) > maxConfFiles || l.bytes > maxConfBytes {
		return nil, fmt.Errorf("include %s: want at most %d files and %d bytes in all", file, maxConfFiles, maxConfBytes)
	}
	list, err := parseIniIn(src, file, section)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, e := range list {
		if e.key != "include" {
			all = append(all, e)
			continue
		}
		if l.includes++; l.includes > maxConfFiles {
			return nil, fmt.Errorf("%s: line %d: include: want at most %d", e.file, e.line, maxConfFiles)
		}
		if e.doubtful || !path.IsAbs(e.value) {
			l.doubt = fmt.Errorf("%s: line %d: which files PHP includes there depends on its environment, -p or how it was built; give the whole path", e.file, e.line)
		}
		files, err := l.glob(e.value)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: include: %w", e.file, e.line, err)
		}
		for _, f := range files {
			inner, err := l.load(f, e.section, depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: include: %w", e.file, e.line, err)
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

// config is what FPM is set to.
type config struct {
	errorLog string // "" where the compiled default is in effect
	pools    []pool
}

// pool is one pool of workers.
type pool struct {
	name         string
	listen       string // as configured
	pm           string
	maxChildren  int  // 0 is not given
	backlog      int  // as configured; see hasBacklog
	hasBacklog   bool // else the default, which depends on the version
	statusPath   string
	statusListen string
	slowTimeout  bool // request_slowlog_timeout is not 0
}

// newConfig reads the settings from entries. Later ones override earlier ones.
func newConfig(entries []entry) (*config, error) {
	c := &config{}
	for _, e := range entries {
		if e.section == "" || e.section == "global" {
			if e.key == "error_log" {
				c.errorLog = e.value
			}
			continue
		}
		i := slices.IndexFunc(c.pools, func(p pool) bool { return p.name == e.section })
		if i < 0 {
			if len(c.pools) == maxPools {
				return nil, fmt.Errorf("%s: line %d: want at most %d pools", e.file, e.line, maxPools)
			}
			c.pools = append(c.pools, pool{name: e.section})
			i = len(c.pools) - 1
		}
		c.pools[i].set(e.key, strings.ReplaceAll(e.value, "$pool", e.section))
	}
	if len(c.pools) == 0 {
		return nil, host.Absent("no pool in it")
	}
	return c, nil
}

func (p *pool) set(key, value string) {
	switch key {
	case "listen":
		p.listen = value
	case "pm":
		p.pm = value
	case "pm.max_children":
		if n, err := strconv.Atoi(value); err == nil {
			p.maxChildren = n
		}
	case "listen.backlog":
		if n, err := strconv.Atoi(value); err == nil {
			p.backlog, p.hasBacklog = n, true
		}
	case "pm.status_path":
		p.statusPath = value
	case "pm.status_listen":
		p.statusListen = value
	case "request_slowlog_timeout":
		p.slowTimeout = strings.Trim(value, "0smhd") != ""
	}
}

// listenAddress writes a listen setting as the socket signals do:
// "127.0.0.1:9000", "[::]:9000", "unix:/run/x.sock". A port alone listens on all
// addresses of both families if the kernel has IPv6, else of IPv4.
func listenAddress(s string, ipv6 bool) string {
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
		return listenAddress(port, ipv6)
	case "localhost":
		return "127.0.0.1:" + port
	}
	return s
}

// backlogIn is the backlog that FPM asks for. version is PHP's in thousandths
// of its parts (8002035 is 8.2.35), somaxconn what the kernel makes of -1. ok is
// false when the default of an unknown version would have to be guessed.
func (p *pool) backlogIn(version, somaxconn int) (n int, ok bool) {
	const (
		oldDefault       = 511
		defaultIsMaximum = 8002000 // since 8.2 the default on Linux is -1
	)
	n = p.backlog
	switch {
	case p.hasBacklog && (p.pm != "ondemand" || n < 0):
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

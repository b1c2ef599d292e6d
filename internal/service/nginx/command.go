package nginx

import (
	"bytes"
	"path"
	"strings"

	"plimsoll/internal/host/rooted"
)

// masterTitle begins the command line of a master process; the arguments it
// was started with follow, with their quotes lost.
const masterTitle = "nginx: master process "

// options are the command line options that decide which configuration is in effect.
type options struct {
	conf, prefix, errorLog string // -c, -p, -e
	directives             string // -g
}

// parseTitle reads the title of a master process. The value of -g goes on to
// its last semicolon, or to the next option that stands after one.
func parseTitle(title string) options {
	var o options
	words := strings.Fields(strings.TrimPrefix(title, masterTitle))
	for i := 1; i < len(words); i++ {
		w := words[i]
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		value := w[2:]
		if value == "" && i+1 < len(words) && strings.IndexByte("cpeg", w[1]) >= 0 {
			i++
			value = words[i]
		}
		switch w[1] {
		case 'c':
			o.conf = value
		case 'p':
			o.prefix = value
		case 'e':
			o.errorLog = value
		case 'g':
			for i+1 < len(words) && !(strings.HasSuffix(value, ";") && strings.HasPrefix(words[i+1], "-")) {
				i++
				value += " " + words[i]
			}
			o.directives = value
		}
	}
	return o
}

// buildInfo is what was compiled into an nginx binary (nginx -V).
type buildInfo struct {
	prefix, conf, errorLog, accessLog string
	// version is that of nginx in thousandths of its parts: 1022001 is 1.22.1; 0 is unknown.
	version int
}

const (
	// maxBinary bounds what is read of an nginx binary in search of its build options.
	maxBinary     = 64 << 20
	versionMark   = "nginx version: nginx/"
	argumentsMark = "configure arguments: "
)

// readBuildInfo looks the options up in the binary itself, which carries its
// configure arguments as text. What is not there is as nginx.org's sources have it.
func readBuildInfo(exe string) (buildInfo, error) {
	var b []byte
	for _, mark := range []string{versionMark, argumentsMark} {
		text, err := rooted.TextAfter(exe, mark, 16<<10, maxBinary)
		if err != nil {
			return buildInfo{}, err
		}
		b = append(append(b, text...), 0)
	}
	return parseBuildInfo(b), nil
}

func parseBuildInfo(b []byte) buildInfo {
	info := buildInfo{prefix: "/usr/local/nginx", conf: "conf/nginx.conf", errorLog: "logs/error.log", accessLog: "logs/access.log"}
	arguments := b
	if i := bytes.Index(b, []byte(argumentsMark)); i >= 0 {
		arguments = b[i:]
	}
	for option, value := range map[string]*string{
		"--prefix=": &info.prefix, "--conf-path=": &info.conf,
		"--error-log-path=": &info.errorLog, "--http-log-path=": &info.accessLog,
	} {
		if s, ok := textAfter(arguments, option); ok {
			*value = s
		}
	}
	if v, ok := textAfter(b, versionMark); ok {
		info.version = parseVersion(v)
	}
	return info
}

// textAfter returns the printable text that follows mark, up to a blank.
func textAfter(b []byte, mark string) (string, bool) {
	i := bytes.Index(b, []byte(mark))
	if i < 0 {
		return "", false
	}
	rest := b[i+len(mark):]
	end := bytes.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' || r == '\'' })
	if end <= 0 || end > 4096 {
		return "", false
	}
	return string(rest[:end]), true
}

// parseVersion turns "1.22.1" into 1022001; 0 when it is no version.
func parseVersion(s string) int {
	n, part, parts := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] >= '0' && s[i] <= '9' && part < 1000 {
			part = part*10 + int(s[i]-'0')
			continue
		}
		n, part, parts = n*1000+part, 0, parts+1
		if i == len(s) || s[i] != '.' || parts == 3 {
			break
		}
	}
	if parts != 3 {
		return 0
	}
	return n
}

// paths are an instance's files by name, all absolute as the service sees them.
type paths struct {
	conf, confDir, prefix string
	errorLog, accessLog   string // the compiled or -e default; "stderr" is possible
}

// resolve applies the options to what was compiled in; cwd is the directory
// the master stands in, against which a relative -p is meant.
func (o options) resolve(b buildInfo, cwd string) paths {
	p := paths{prefix: b.prefix, conf: b.conf, errorLog: b.errorLog, accessLog: b.accessLog}
	if o.prefix != "" {
		p.prefix = absolute(cwd, o.prefix)
	}
	if o.conf != "" {
		p.conf = o.conf
	}
	if o.errorLog != "" {
		p.errorLog = o.errorLog
	}
	p.conf = absolute(p.prefix, p.conf)
	p.confDir = path.Dir(p.conf)
	if p.errorLog != "stderr" {
		p.errorLog = absolute(p.prefix, p.errorLog)
	}
	p.accessLog = absolute(p.prefix, p.accessLog)
	return p
}

func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

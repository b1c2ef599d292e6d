// Package secret masks what gives access to something, in texts that people
// keep and show to others: URLs, arguments of commands, lines of logs. It goes by
// well-known names ("token=", "--password") and by what looks like a key. That
// something was masked is seen; what it was is not. It can miss a secret that has
// neither the name nor the looks of one.
package secret

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
)

// mask stands in the place of a secret.
const mask = "(masked)"

// Text returns s with what looks like a secret masked. Masking twice is as
// masking once.
func Text(s string) string {
	if len(s) < shortest {
		return s
	}
	// Most texts have none, and there are many: each search has to be worth it.
	lower := strings.ToLower(s)
	if strings.Contains(lower, "private key") {
		s = privateKey().ReplaceAllString(s, "(masked private key)")
	}
	if strings.Contains(s, "@") {
		s = userinfo().ReplaceAllString(s, "$1"+mask+"@")
		s = replaceParts(account(), s, func(p []string) string {
			if user, ok := strings.CutPrefix(p[0], "ssh:"); ok && !strings.Contains(user, ":") { // a host of ours, which has no password
				return p[0]
			}
			return mask + "@" + p[1]
		})
	}
	if strings.ContainsAny(s, "=:") && (containsAny(inOne.Replace(lower), tellingParts) || containsAny(lower, tellingWords)) {
		s = wholeLine().ReplaceAllString(s, "$1$2"+mask)
		s = namedValues(s)
	}
	if containsAny(lower, []string{"bearer", "basic"}) {
		s = replaceParts(bearer(), s, func(p []string) string {
			if strings.ContainsAny(p[3], "0123456789") {
				return p[1] + p[2] + mask
			}
			return p[0]
		})
	}
	if strings.Contains(s, "-") && strings.ContainsAny(s, " \t\n") {
		s = flagsOf(s)
	}
	if len(s) < shortestKey {
		return s
	}
	if containsAny(s, []string{"eyJ", "AKIA", "ASIA", "gh", "glpat-", "xox", "_live_", "_test_", "sk-", "AIza"}) {
		s = issued().ReplaceAllString(s, mask)
	}
	if !hasLongWord(s) {
		return s
	}
	return replaceParts(long(), s, func(p []string) string {
		name := strings.Contains("/.:", p[1]) && p[1] != "" && hex().MatchString(p[2]) // of a container, an image, a file
		if looksRandom(p[2]) && !name {
			return p[1] + mask
		}
		return p[0]
	})
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// hasLongWord says whether there is anything in s for which long has to be searched.
func hasLongWord(s string) bool {
	n := 0
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '+' || c == '-' {
			if n++; n == longWord {
				return true
			}
		} else {
			n = 0
		}
	}
	return false
}

// shortest is the length of the shortest text that can name a secret and have it.
const shortest = 5

// shortestKey is that of the shortest key that is told by its looks alone, and
// longWord how long a word of which nothing else is known has to be for that.
const (
	shortestKey = 15
	longWord    = 24
)

// Args returns the arguments of a command, its name first, masked.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	var programs []string // what is called by what ("sudo mysql"), the innermost first
	next := false
	for i, arg := range argv {
		base := path.Base(arg)
		switch {
		case next && !aFlag().MatchString(arg):
			out[i], next = value(argv[i-1], arg), false
		case programFlags[base] != nil:
			programs = append([]string{base}, programs...)
			out[i], next = Text(arg), false
		default:
			out[i], next = flag(programs, Text(arg))
			if name, _, ok := strings.Cut(out[i], "="); ok && strings.HasPrefix(name, "-") && secretName(strings.TrimLeft(name, "-")) {
				out[i] = name + "=" + mask // to the argument's end, whatever is in it
			}
		}
	}
	return out
}

// publicHeaders are those whose values are shown; what is not known to be
// harmless may be a password.
var publicHeaders = []string{
	"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
	"content-encoding", "content-language", "content-type", "expect", "host", "pragma", "range", "te", "user-agent",
}

// Header returns a header line "NAME: VALUE" with its value masked, unless its
// name says that it is harmless.
func Header(line string) string {
	name, _, _ := strings.Cut(line, ":")
	if slices.Contains(publicHeaders, strings.ToLower(strings.TrimSpace(name))) {
		return line
	}
	return name + ": " + mask
}

var (
	privateKey = lazy.Regexp(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	// wholeLine are headers whose value has blanks in it.
	wholeLine = lazy.Regexp(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*:\s*["']?)[^\r\n"']+`)
	userinfo  = lazy.Regexp(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>]+@`)
	// account is user:password@host without a scheme, as drivers of databases take it.
	account = lazy.Regexp(`\b[\w.%+-]+:[^\s/"'()]+@(\w)`)
	named   = lazy.Regexp(`([A-Za-z_][\w.-]*)(["']?\s*[=:]\s*)("(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|[^\s&;,"'<>]+)`)
	bearer  = lazy.Regexp(`(?i)\b(bearer|basic)(\s+)([A-Za-z0-9._~+/=-]{8,})`)
	// issued are keys that say themselves what they are.
	issued = lazy.Regexp(`\b(eyJ[\w-]{6,}\.[\w-]+(\.[\w-]*)?|(AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|[sr]k_(live|test)_\w{10,}|sk-[\w-]{20,}|AIza[\w-]{30,})`)
	long   = lazy.Regexp(`(^|[^\w+-])([\w+-]{24,}={0,2})`)
	hex    = lazy.Regexp(`^([0-9a-f]{32,}|[0-9A-F]{32,})$`)
	word   = lazy.Regexp(`\S+`)
)

// replaceParts replaces each match by what fn makes of it and its groups.
func replaceParts(re *regexp.Regexp, s string, fn func(parts []string) string) string {
	matches := re.FindAllStringSubmatchIndex(s, -1)
	if matches == nil {
		return s
	}
	var b strings.Builder
	at := 0
	for _, m := range matches {
		parts := make([]string, len(m)/2)
		for i := range parts {
			if m[2*i] >= 0 {
				parts[i] = s[m[2*i]:m[2*i+1]]
			}
		}
		b.WriteString(s[at:m[0]])
		b.WriteString(fn(parts))
		at = m[1]
	}
	return b.String() + s[at:]
}

// namedValues masks the values of what has the name of a secret: NAME=VALUE,
// "NAME": "VALUE". The value of another name is looked through in its turn.
func namedValues(s string) string {
	var b strings.Builder
	at := 0
	for {
		m := named().FindStringSubmatchIndex(s[at:])
		if m == nil {
			return b.String() + s[at:]
		}
		name, value, end := s[at+m[2]:at+m[3]], s[at+m[6]:at+m[7]], at+m[6]
		b.WriteString(s[at:end])
		// "open /etc/passwd: not a directory" is about a file.
		ofFile := at+m[2] > 0 && s[at+m[2]-1] == '/' && strings.Contains(s[at+m[4]:at+m[5]], ":")
		if secretName(name) && !isHome(name, value) && !ofFile {
			b.WriteString(inQuotes(value))
			end = at + m[7]
		}
		at = end
	}
}

// inQuotes is the mask, between the quotes that the value stood in.
func inQuotes(value string) string {
	switch value {
	case `""`, `''`, `"`, `'`:
		return value
	}
	if q := value[:1]; q == `"` || q == `'` {
		return q + mask + q
	}
	return mask
}

// isHome tells the variables of a shell's folder from passwords.
func isHome(name, value string) bool {
	return (name == "PWD" || name == "OLDPWD") && strings.HasPrefix(value, "/")
}

// tellingParts make a name that of a secret wherever they stand in it.
var tellingParts = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "credential",
	"authorization", "cookie", "signature", "sessionid", "sessid"}

// inOne writes a name of several words as one.
var inOne = strings.NewReplacer("_", "", "-", "", ".", "")

// tellingWords do so as a word of their own: "sig" is one in "x-sig", and not in "signal".
var tellingWords = []string{"auth", "bearer", "jwt", "pass", "pwd", "session", "sid", "sig"}

// aboutWords end a name that is about a secret, and is not that of one: "token_file".
var aboutWords = []string{"file", "path", "dir", "type", "name", "count", "length", "expires", "timeout"}

// secretName says whether what has this name is a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(words) > 1 && slices.Contains(aboutWords, words[len(words)-1]) {
		return false
	}
	if containsAny(inOne.Replace(name), tellingParts) {
		return true
	}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(tellingWords, w) })
}

// programFlags are the flags of well-known programs that take a secret, and whose
// names do not tell.
var programFlags = map[string][]string{
	"mysql": {"-p"}, "mysqladmin": {"-p"}, "mysqlbinlog": {"-p"}, "mysqlcheck": {"-p"}, "mysqldump": {"-p"}, "mysqlimport": {"-p"},
	"mysqlpump": {"-p"}, "mysqlsh": {"-p"}, "mysqlshow": {"-p"}, "mysqlslap": {"-p"}, "mysql_upgrade": {"-p"},
	"mariadb": {"-p"}, "mariadb-admin": {"-p"}, "mariadb-backup": {"-p"}, "mariadb-binlog": {"-p"}, "mariadb-check": {"-p"}, "mariadb-dump": {"-p"},
	"mariadb-import": {"-p"}, "mariadb-show": {"-p"}, "mariadb-slap": {"-p"}, "mariadb-upgrade": {"-p"}, "mariabackup": {"-p"},
	"sshpass": {"-p"}, "mongo": {"-p"}, "mongosh": {"-p"}, "redis-cli": {"-a"}, "redis-benchmark": {"-a"}, "ldapsearch": {"-w"},
	"curl": {"-u", "--user", "-U", "--proxy-user", "-b", "-H", "--header"}, "wget": {"--header"}, "ab": {"-A", "-P", "-C", "-H"},
	"wrk": {"-H", "--header"}, "wrk2": {"-H", "--header"}, "hey": {"-a", "-H"}, "vegeta": {"-header"}, "http": {"-a", "--auth"}, "https": {"-a", "--auth"},
	"plimsoll": {"-H", "--header", "--body"},
}

// headerFlags take a header line.
var headerFlags = []string{"-H", "--header", "-header"}

// flag masks one argument; next says that the argument after it is a secret.
func flag(programs []string, arg string) (masked string, next bool) {
	for _, program := range programs {
		for _, f := range programFlags[program] {
			rest, ok := strings.CutPrefix(arg, f)
			switch {
			case !ok:
			case rest == "":
				return arg, f != "-p" || !asksForPassword(program)
			case strings.HasPrefix(f, "--") && rest[0] != '=':
			case slices.Contains(headerFlags, f):
				return f + Header(rest), false
			case strings.HasPrefix(f, "--"):
				return f + "=" + mask, false
			case len(f) == 2:
				return f + mask, false
			}
		}
	}
	name := strings.TrimLeft(arg, "-")
	if name == arg || strings.ContainsAny(arg, "=: ") {
		return arg, false
	}
	return arg, secretName(name)
}

// asksForPassword says whether a program takes -p without a value, and asks then.
func asksForPassword(program string) bool {
	return strings.HasPrefix(program, "mysql") || strings.HasPrefix(program, "maria")
}

// value masks the argument after a flag that takes a secret.
func value(flag, arg string) string {
	if slices.Contains(headerFlags, flag) {
		return Header(arg)
	}
	return mask
}

// aFlag are arguments that are none's value: "-v", "--verbose", "--". A secret may begin
// with a dash, too.
var aFlag = lazy.Regexp(`^(--?|-[A-Za-z]|--[a-z][a-z-]*(=.*)?)$`)

// flagsOf masks the arguments of commands that stand within a text.
func flagsOf(s string) string {
	var b strings.Builder
	var programs []string
	next, at := false, 0
	for _, m := range word().FindAllStringIndex(s, -1) {
		w := s[m[0]:m[1]]
		masked := w
		base := path.Base(strings.Trim(w, `"'(`))
		switch {
		case next && !aFlag().MatchString(w):
			masked, next = mask, false
		case programFlags[base] != nil:
			programs, next = append([]string{base}, programs...), false
		case slices.ContainsFunc(headerFlags, func(f string) bool { return strings.HasPrefix(w, f) }): // its name tells
			next = false
		case strings.HasPrefix(w, "-"):
			masked, next = flag(programs, w)
		case strings.ContainsAny(w, ";|&"):
			programs = nil
		}
		b.WriteString(s[at:m[0]])
		b.WriteString(masked)
		at = m[1]
	}
	return b.String() + s[at:]
}

// looksRandom tells a key from a long name: capitals, small letters and digits are
// mixed in it as dice would, or it is all hexadecimal.
func looksRandom(s string) bool {
	if hex().MatchString(s) {
		return strings.ContainsAny(s, "0123456789") && strings.ContainsAny(s, "abcdefABCDEF")
	}
	if strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "_R") { // a mangled function
		return false
	}
	var seen [3]bool
	changes, letters, before := 0, 0, -1
	for _, r := range s {
		class := -1
		switch {
		case r >= 'a' && r <= 'z':
			class = 0
		case r >= 'A' && r <= 'Z':
			class = 1
		case r >= '0' && r <= '9':
			class = 2
		}
		if class < 0 {
			before = -1
			continue
		}
		seen[class] = true
		letters++
		if before >= 0 && class != before {
			changes++
		}
		before = class
	}
	return seen[0] && seen[1] && seen[2] && letters >= 20 && changes*3 > letters
}

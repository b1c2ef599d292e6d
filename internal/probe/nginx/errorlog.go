package nginx

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/service/nginx"
)

// errorLine is what a line of an error log says, as far as rules ask.
type errorLine struct {
	level string
	// class is one of the classes of plimsoll_nginx_errors_total, "" for a line
	// that is no error (level notice, info, debug) or is about an upstream alone.
	class string
	// upstream is set when a request failed towards an upstream server: its
	// address as the socket signals write it, or the name of a group. phase and
	// errno are then set too.
	upstream, phase, errno string
	// missing is the file that could not be opened since it was not there (ENOENT).
	missing string
	// limited is the client whose request limit_req refused or held back.
	limited string
}

// parseErrorLine reads one line of an error log:
//
//	2024/01/31 12:00:00 [error] 12#12: *34 message, client: …, upstream: "fastcgi://127.0.0.1:9000", …
//
// ok is false for anything else. The number in brackets names the system's
// error; its text is never looked at.
func parseErrorLine(line []byte) (e errorLine, ok bool) {
	const stamp = len("2024/01/31 12:00:00 ")
	if len(line) < stamp+3 || line[4] != '/' || line[7] != '/' || line[13] != ':' || line[stamp] != '[' {
		return e, false
	}
	rest := line[stamp+1:]
	end := bytes.IndexByte(rest, ']')
	if end < 0 {
		return e, false
	}
	e.level = levelName(rest[:end])
	message := bytes.Index(rest, []byte(": "))
	if e.level == "" || message < 0 {
		return e, false
	}
	msg := rest[message+2:]
	if len(msg) > 0 && msg[0] == '*' { // the connection's number
		if i := bytes.IndexByte(msg, ' '); i >= 0 {
			msg = msg[i+1:]
		}
	}
	switch e.level {
	case "notice", "info", "debug":
		return e, true
	}
	e.classify(msg)
	return e, true
}

func levelName(b []byte) string {
	for _, l := range nginx.Levels {
		if string(b) == l {
			return l
		}
	}
	return ""
}

// classify reads the message. nginx ends its own words, and begins those about
// the request, with ", client: ".
func (e *errorLine) classify(msg []byte) {
	said, about, _ := bytes.Cut(msg, []byte(", client: "))
	number := errnoIn(said)
	if aboutCertificate(said) {
		number = 0 // it is OpenSSL's
	}
	if phase := upstreamPhase(said); phase != "" {
		e.upstreamError(said, about, phase, number)
	}
	e.class = classOf(said, number)
	if e.class == "not_found" {
		e.missing = openedFile(said)
	}
	if e.class == "limit_req" || e.class == "limit_req_delay" {
		client, _, _ := bytes.Cut(about, []byte(","))
		e.limited = string(client)
	}
	if e.upstream != "" && (e.class == "other" || e.class == "upstream_protocol") {
		e.class = ""
	}
}

// upstreamPhase says at what a request was towards its upstream server; "" when
// the message is about something else.
func upstreamPhase(said []byte) string {
	i := bytes.LastIndex(said, []byte(" while "))
	if i < 0 {
		return ""
	}
	doing := said[i+len(" while "):]
	for _, p := range [...]struct{ doing, phase string }{
		{"connecting to upstream", "connect"},
		{"SSL handshaking to upstream", "connect"},
		{"sending request to upstream", "send"},
		{"sending to upstream", "send"},
		{"proxying and sending to upstream", "send"},
		{"reading response header from upstream", "read"},
		{"reading upstream", "read"},
		{"reading from upstream", "read"},
		{"proxying and reading from upstream", "read"},
		{"proxying upgraded connection", "read"},
		{"proxying connection", "read"},
	} {
		if bytes.HasPrefix(doing, []byte(p.doing)) {
			return p.phase
		}
	}
	return ""
}

// upstreamError fills in the upstream's part, if the line says that talking to
// it failed, or that nginx gave up what it answered.
func (e *errorLine) upstreamError(said, about []byte, phase string, number int) {
	switch {
	case bytes.HasPrefix(said, []byte("upstream timed out")):
		e.errno = "timeout" // nginx's own timer ran out; the number is always ETIMEDOUT's
	case bytes.HasPrefix(said, []byte("no live upstreams")):
		e.errno = "no_live_upstreams"
	case bytes.HasPrefix(said, []byte("upstream server temporarily disabled")):
		e.errno = "disabled"
	case aboutCertificate(said):
		e.errno = "certificate: " + refusal(said)
	case number > 0:
		e.errno = errnoName(number)
	case bytes.HasPrefix(said, []byte("upstream prematurely closed")):
		e.errno = "eof"
	case bytes.HasPrefix(said, []byte("upstream sent too big header")):
		e.errno = "header_too_big"
	case bytes.HasPrefix(said, []byte("upstream rejected request with error ")):
		e.errno = "rejected"
	case invalidReply(e.level, said):
		e.errno = "invalid_reply"
	default:
		return
	}
	e.phase = phase
	e.upstream = upstreamOf(said, about)
	if e.upstream == "" {
		e.upstream = "unknown"
	}
}

// upstreamOf finds the server's address: in the field upstream, or, when nginx
// cut the line off before it, in "connect() to ADDRESS failed".
func upstreamOf(said, about []byte) string {
	if _, field, ok := bytes.Cut(about, []byte(`, upstream: "`)); ok {
		if url, _, ok := bytes.Cut(field, []byte(`"`)); ok {
			return upstreamAddress(string(url))
		}
	}
	if rest, ok := bytes.CutPrefix(said, []byte("connect() to ")); ok {
		if addr, _, ok := bytes.Cut(rest, []byte(" failed")); ok {
			return upstreamAddress(string(addr))
		}
	}
	return ""
}

// upstreamAddress takes scheme and URI off: "http://127.0.0.1:80/x" and
// "fastcgi://unix:/run/x.sock:" become "127.0.0.1:80" and "unix:/run/x.sock".
func upstreamAddress(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if strings.HasPrefix(url, "unix:") {
		return nginx.UnixPath(url)
	}
	addr, _, _ := strings.Cut(url, "/")
	return addr
}

// openedFile is the name in `open() "/srv/x" failed (2: No such file or directory)`.
func openedFile(said []byte) string {
	rest, ok := bytes.CutPrefix(said, []byte(`open() "`))
	end := bytes.LastIndex(rest, []byte(`" failed (`))
	if !ok || end < 0 {
		return ""
	}
	return string(rest[:end])
}

// errnoIn finds the number in "connect() failed (99: Cannot assign …)"; 0 when
// there is none. The last one counts: a file's name may look like one, too.
func errnoIn(said []byte) int {
	mark := []byte(" failed (")
	i := bytes.LastIndex(said, mark)
	if i < 0 || bytes.HasPrefix(said, []byte("FastCGI sent in stderr")) {
		return 0
	}
	rest := said[i+len(mark):]
	n, digits := 0, 0
	for digits < len(rest) && digits < 5 && rest[digits] >= '0' && rest[digits] <= '9' {
		n = n*10 + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits == len(rest) || rest[digits] != ':' {
		return 0
	}
	return n
}

// errnoName is the symbol of an error number, "99" style where it has none.
func errnoName(n int) string {
	if name := unix.ErrnoName(unix.Errno(n)); name != "" {
		return name
	}
	return strconv.Itoa(n)
}

// invalidReply tells of what nginx gives an upstream's reply up for: of what begins so all that is more than a warning (src/http of
// nginx 1.31). With a warning it goes on, a header left out or the surplus cut off; what has no header at all it takes for HTTP/0.9.
func invalidReply(level string, said []byte) bool {
	if level == "warn" || bytes.HasPrefix(said, []byte("upstream sent no valid HTTP/1.0 header")) {
		return false
	}
	for _, begin := range [...]string{"upstream sent ", "upstream prematurely sent response", "memcached sent invalid "} {
		if bytes.HasPrefix(said, []byte(begin)) {
			return true
		}
	}
	return false
}

func aboutCertificate(said []byte) bool {
	return bytes.HasPrefix(said, []byte("upstream SSL certificate "))
}

// refusal is why nginx refused its upstream's certificate: OpenSSL's own words, as
// in "verify error: (10:certificate has expired)", of which there are some eighty.
func refusal(said []byte) string {
	if bytes.HasPrefix(said, []byte("upstream SSL certificate does not match ")) {
		return "another name"
	}
	_, reason, found := bytes.Cut(said, []byte("verify error: ("))
	reason, _, closed := bytes.Cut(reason, []byte(")"))
	_, reason, numbered := bytes.Cut(reason, []byte(":"))
	if !found || !closed || !numbered || len(reason) == 0 || len(reason) > 64 || bytes.ContainsFunc(reason, notOfOpenSSL) {
		return "other"
	}
	return string(reason)
}

// notOfOpenSSL tells of what stands in none of OpenSSL's reasons.
func notOfOpenSSL(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" -'/", r))
}

// classOf names what went wrong beside upstream errors.
func classOf(said []byte, number int) string {
	begins := func(s string) bool { return bytes.HasPrefix(said, []byte(s)) }
	if number == int(unix.EMFILE) || number == int(unix.ENFILE) {
		switch {
		case begins("accept"):
			return "accept_emfile"
		case begins("socket()"):
			return "socket_emfile"
		}
		return "open_emfile"
	}
	switch {
	case bytes.Contains(said, []byte(" worker_connections are not enough")):
		return "worker_connections"
	case begins("limiting requests"):
		return "limit_req"
	case begins("delaying request"):
		return "limit_req_delay"
	case begins("limiting connections"):
		return "limit_conn"
	case begins("SSL_"):
		return "ssl"
	case begins("FastCGI sent in stderr"):
		return "fastcgi_stderr"
	case begins("an upstream response is buffered"), begins("a client request body is buffered"):
		return "buffered_to_disk"
	case begins("upstream sent "):
		return "upstream_protocol"
	case begins("open() ") && number == int(unix.ENOENT):
		return "not_found"
	case begins("bind() to "):
		return "bind"
	}
	return "other"
}

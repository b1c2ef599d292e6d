package load

import (
	"fmt"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// headerLines makes the lines of the request's head of a plan's headers; given are
// their names in lower case. What would make two requests of one, or none, on the
// wire is refused: where a request ends is ours to say.
func headerLines(headers []string, body []byte) (lines string, given map[string]bool, err error) {
	given = map[string]bool{}
	var b strings.Builder
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || !isToken(name) {
			return "", nil, fmt.Errorf("header %q: want \"Name: value\"", h)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return "", nil, fmt.Errorf("header %q: want a value without line ends and other control characters", h)
		}
		value = strings.Trim(value, " \t")
		lower := strings.ToLower(name)
		switch {
		case lower == "transfer-encoding":
			return "", nil, fmt.Errorf("header %q: the body is sent as it is, in one piece; leave the header out", h)
		case lower == "content-length" && value != strconv.Itoa(len(body)):
			return "", nil, fmt.Errorf("header %q: the body has %d bytes; leave the header out, it is set where it is needed", h, len(body))
		case given[lower] && (lower == "host" || lower == "content-length"):
			return "", nil, fmt.Errorf("header %q: it was given before, and servers refuse two of it", h)
		}
		given[lower] = true
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	return b.String(), given, nil
}

// isToken says whether s is an RFC 9110 token (a method or a header's name).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// hostHeader is the URL's host and port, without an IPv6 zone: that means
// something on this machine only.
func hostHeader(u *url.URL) string {
	if before, after, ok := strings.Cut(u.Host, "%"); ok && strings.HasPrefix(before, "[") {
		_, port, _ := strings.Cut(after, "]")
		return before + "]" + port
	}
	return u.Host
}

// version is read once: to read it takes longer than all else of a request's making.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()")
	}
	return "devel"
})

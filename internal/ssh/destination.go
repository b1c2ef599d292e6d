package ssh

import (
	"fmt"
	"strings"

	"plimsoll/internal/lazy"
)

// Destination is a machine as the user's ssh knows it.
type Destination struct {
	Name string // HOST or USER@HOST, HOST a name of the user's configuration as well
	Port string // "" leaves it to the configuration
}

var (
	// Neither ssh nor its configuration takes any of these for something else: no blank, no
	// quote, nothing a shell knows (ProxyCommand has one), and no "-" where an option begins.
	userName = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._+-]*[$]?$`)
	hostName = lazy.Regexp(`^([A-Za-z0-9_][A-Za-z0-9._-]*|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?)$`)
	portName = lazy.Regexp(`^[0-9]{1,5}$`)
)

// maxName is the most bytes of a destination.
const maxName = 300

// ParseDestination reads [USER@]HOST[:PORT]; an IPv6 address with a port stands in brackets.
func ParseDestination(text string) (Destination, error) {
	bad := func(why string) (Destination, error) {
		return Destination{}, fmt.Errorf("ssh:%s: %s; want ssh:HOST, ssh:USER@HOST or ssh:HOST:PORT, as you name it to ssh", text, why)
	}
	if len(text) > maxName {
		return bad("longer than any name")
	}
	user, host, hasUser := "", text, false
	if i := strings.LastIndex(text, "@"); i >= 0 {
		user, host, hasUser = text[:i], text[i+1:], true
	}
	var port string
	if rest, ok := strings.CutPrefix(host, "["); ok {
		var after string
		if host, after, ok = strings.Cut(rest, "]"); !ok || after != "" && !strings.HasPrefix(after, ":") {
			return bad("the brackets are not closed")
		}
		port = strings.TrimPrefix(after, ":")
	} else if strings.Count(host, ":") == 1 {
		host, port, _ = strings.Cut(host, ":")
		if port == "" {
			return bad("no port after the colon")
		}
	}
	switch {
	case strings.HasPrefix(text, "-") || strings.HasPrefix(host, "-"):
		return bad("a name that begins with - is an option to ssh")
	case !hostName().MatchString(host) || hasUser && !userName().MatchString(user):
		return bad("no name of a machine")
	case port != "" && !portName().MatchString(port):
		return bad("no number of a port")
	}
	if hasUser {
		host = user + "@" + host
	}
	return Destination{host, port}, nil
}

// String is how a person types it behind ssh.
func (d Destination) String() string {
	if d.Port != "" {
		return "-p " + d.Port + " " + d.Name
	}
	return d.Name
}

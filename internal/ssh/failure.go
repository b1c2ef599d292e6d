package ssh

import (
	"errors"
	"fmt"
	"strings"

	"plimsoll/internal/layout"
)

// refusal is what ssh says, and what that means. The first that fits counts.
type refusal struct{ said, means string }

var refusals = []refusal{
	{"IDENTIFICATION HAS CHANGED", "its host key is another one than your known_hosts has; if you know why it changed, remove the old one (ssh-keygen -R), else somebody may stand in between"},
	{"Host key verification failed", "its host key is not known here yet; log in by hand once, and compare the key"},
	{"Permission denied (", "it lets you in by none of your keys; no password is asked for, so that ssh must work without one (an agent, a key)"},
	{"Too many authentication failures", "it refused after too many keys; name the right one in your ssh configuration (IdentityFile, IdentitiesOnly)"},
	{"Could not resolve hostname", "no machine of that name is known"},
	{"Connection refused", "nothing listens there; does its sshd run, on that port?"},
	{"Connection timed out", "it does not answer; is it up, and does a packet filter stand in between?"},
	{"Operation timed out", "it does not answer; is it up, and does a packet filter stand in between?"},
	{"No route to host", "there is no way to it from here"},
	{"Network is unreachable", "there is no way to it from here"},
	{"Not allowed at this time", "it takes no more logins now (MaxStartups of its sshd); try again, or name fewer of its hosts"},
	{"Exceeded MaxStartups", "it takes no more logins now (MaxStartups of its sshd); try again, or name fewer of its hosts"},
	{"kex_exchange_identification", closedEarly},
	{"session request failed", "its sshd opens no session (MaxSessions)"},
	{"open failed: administratively prohibited", "its sshd opens no session (MaxSessions)"},
	{"open failed: connect failed", "its sshd opens no session (MaxSessions)"},
	{"Bad owner or permissions", "your own ssh refuses its configuration"},
	{"Bad configuration option", "your own ssh does not know an option; OpenSSH 7.6 or newer is needed"},
	{"Connection closed by", closedEarly}, // all that OpenSSH 10 says of it
}

const closedEarly = "it closed the connection before it said a word: too many logins at once (MaxStartups of its sshd), a penalty for earlier ones that failed (PerSourcePenalties), or a filter of addresses"

// explain makes an error of the end of a login: of what was said on standard error and,
// beside our own words, on standard output.
func explain(to Destination, said, noise string, err error) error {
	for _, r := range refusals {
		if i := strings.Index(said, r.said); i >= 0 {
			begin := strings.LastIndex(said[:i], "\n") + 1
			line, _, _ := strings.Cut(said[begin:], "\n")
			return fmt.Errorf("%s (ssh %s says %s)", r.means, to, quote(strings.TrimSpace(line)))
		}
	}
	quoted := quote(lastLines(said))
	if noise = quote(lastLines(noise)); noise != `""` {
		return fmt.Errorf("its login runs no command: it says %s; an account with a shell is needed (ssh %s true)", noise, to)
	}
	if quoted != `""` {
		return fmt.Errorf("ssh %s says %s", to, quoted)
	}
	return fmt.Errorf("ssh %s ended without a word: %w", to, errors.Join(err))
}

// maxQuoted is the most bytes of what somebody else said that are quoted.
const maxQuoted = 300

func quote(s string) string {
	if len(s) > maxQuoted {
		s = s[len(s)-maxQuoted:]
	}
	return `"` + layout.Line(strings.ToValidUTF8(s, "?")) + `"`
}

// lastLines are the last lines with anything in them, on one; a greeting stands before.
func lastLines(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	var said []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			said = append(said, l)
		}
	}
	return strings.Join(said[max(0, len(said)-2):], " / ")
}

// tail keeps the end of what is written.
type tail struct{ kept []byte }

const maxTail = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b[max(0, len(b)-maxTail):]...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(b), nil
}

func (t *tail) String() string { return string(t.kept) }

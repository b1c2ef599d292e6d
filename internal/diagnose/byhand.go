package diagnose

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// blankWord is a word that rules leave in a command for what differs from run to
// run. byHand fills it in.
var blankWord = regexp.MustCompile(`\b(PID|PORT|URL|WORKER|USER|GROUP|NAME|DEVICE)\b`)

// servingOwner finds who answers on each host, for commands about "the service".
var servingOwner = mustExpression(`max by (host, owner) (max_over_time(plimsoll_tcp_listen_accepted[$window])) > 0`)

func mustExpression(text string) *expression {
	e, err := parseExpression(text, records{})
	if err != nil {
		panic(err) // a constant
	}
	return e
}

// networkTools show what a network namespace has for its own.
var networkTools = []string{"ss", "ip", "nstat", "conntrack", "tc", "ethtool", "nft", "netstat", "tcpdump", "curl", "sysctl net.", "cat /proc/net/"}

// byHand makes a clue's command one that can be typed as it stands: this run's
// address, port, device and process in the place of the blank words, and the
// way into the host's namespace before what shows a network's own. Blank words and
// tools are looked for in the rule's own words alone: a process may be called PID.
func (r *run) byHand(command []filled, subject, labels map[string]string) string {
	get := func(name string) string { return cmp.Or(labels[name], subject[name]) }
	var out []filled
	start := true // a command begins here
	for _, p := range command {
		if p.outside {
			out, start = append(out, p), false
			continue
		}
		for i, part := range strings.Split(p.text, "; ") {
			if i > 0 {
				out, start = append(out, filled{text: "; "}), true
			}
			if start && part != "" {
				out = append(out, r.into(r.handHost(part, get), part)...)
				start = false
			}
			out = append(out, r.blanks(part, get)...)
		}
	}
	return quoted(out)
}

// handHost is the host at which a command is to be typed.
func (r *run) handHost(command string, get func(string) string) string {
	if strings.HasPrefix(command, "curl ") {
		return cmp.Or(r.meta.Plan.Generator, get("host"))
	}
	return get("host")
}

// into is what leads into a host's network namespace, nothing where there is no need.
func (r *run) into(host, command string) []filled {
	network := slices.ContainsFunc(networkTools, func(tool string) bool {
		return command == tool || strings.HasPrefix(command, tool) &&
			(strings.HasSuffix(tool, ".") || strings.HasSuffix(tool, "/") || command[len(tool)] == ' ')
	})
	for _, h := range r.meta.Hosts {
		if h.Name != host || r.partial || !network {
			continue
		}
		if name, ok := strings.CutPrefix(h.Spec, "netns:"); ok && !strings.HasPrefix(name, "-") {
			return []filled{{text: "ip netns exec "}, {name, true}, {text: " "}}
		}
		if pid, ok := strings.CutPrefix(h.Spec, "pid:"); ok && isNumber(pid) {
			return []filled{{text: "nsenter -t " + pid + " -n "}}
		}
	}
	return nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// blanks fills the blank words of a rule's own text in.
func (r *run) blanks(text string, get func(string) string) (out []filled) {
	at := 0
	for _, m := range blankWord.FindAllStringIndex(text, -1) {
		value := r.blank(text[m[0]:m[1]], get)
		if len(value) == 0 {
			continue
		}
		out = append(append(out, filled{text: text[at:m[0]]}), value...)
		at = m[1]
	}
	return append(out, filled{text: text[at:]})
}

// value is one that came from outside, nothing where there is none.
func value(s string) []filled {
	if s == "" {
		return nil
	}
	return []filled{{s, true}}
}

// blank is what stands for a blank word in this run, nothing when nobody knows.
func (r *run) blank(word string, get func(string) string) []filled {
	address := ""
	if load := r.meta.Plan.Load; load != nil && strings.HasPrefix(load.URL, "http") { // anything else would be an option
		address = load.URL
	}
	switch word {
	case "URL":
		return value(address)
	case "PORT":
		return value(cmp.Or(portOf(get("listen")), portOf(get("dst")), urlPort(address)))
	case "DEVICE":
		return value(get("device"))
	case "WORKER":
		return []filled{{text: "$(pgrep -of 'nginx: worker')"}}
	}
	group := cmp.Or(get("groupname"), get("owner"), get("command"), r.owner(get("host")))
	if word == "NAME" {
		return value(group)
	}
	pid := value(get("pid"))
	if pid == nil && group != "" {
		pid = []filled{{text: "$(pgrep -o "}, {group, true}, {text: ")"}}
	}
	switch {
	case word == "PID" || pid == nil:
		return pid
	case word == "USER":
		return slices.Concat([]filled{{text: "$(ps -o user= -p "}}, pid, []filled{{text: ")"}})
	case get("cgroup") != "":
		return value(get("cgroup"))
	}
	return slices.Concat([]filled{{text: "$(cut -d: -f3 /proc/"}}, pid, []filled{{text: "/cgroup)"}})
}

// owner is the process group that answers on a host, "" when none was seen.
func (r *run) owner(host string) string {
	s, _ := largest(r.ask(servingOwner).samples, map[string]string{"host": host})
	return s.labels["owner"]
}

// portOf is the port of a listener or destination, "" of a Unix socket.
func portOf(address string) string {
	i := strings.LastIndexByte(address, ':')
	if i < 0 || strings.Contains(address, "/") {
		return ""
	}
	return address[i+1:]
}

func urlPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

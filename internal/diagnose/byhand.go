package diagnose

import (
	"cmp"
	"net/url"
	"regexp"
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
// way into the host's namespace before what shows a network's own.
func (r *run) byHand(command string, subject, labels map[string]string) string {
	get := func(name string) string { return cmp.Or(labels[name], subject[name]) }
	command = blankWord.ReplaceAllStringFunc(command, func(word string) string {
		return cmp.Or(r.blank(word, get), word)
	})
	parts := strings.Split(command, "; ")
	for i, p := range parts {
		host := get("host")
		if strings.HasPrefix(p, "curl ") {
			host = cmp.Or(r.meta.Plan.Generator, host)
		}
		for _, tool := range networkTools {
			if p == tool || strings.HasPrefix(p, tool) && (strings.HasSuffix(tool, ".") || strings.HasSuffix(tool, "/") || p[len(tool)] == ' ') {
				parts[i] = r.into(host) + p
				break
			}
		}
	}
	return strings.Join(parts, "; ")
}

// into is what leads into a host's network namespace, "" where there is no need.
func (r *run) into(host string) string {
	for _, h := range r.meta.Hosts {
		if h.Name != host || r.partial {
			continue
		}
		if name, ok := strings.CutPrefix(h.Spec, "netns:"); ok {
			return "ip netns exec " + name + " "
		}
		if pid, ok := strings.CutPrefix(h.Spec, "pid:"); ok {
			return "nsenter -t " + pid + " -n "
		}
	}
	return ""
}

// blank is what stands for a blank word in this run, "" when nobody knows.
func (r *run) blank(word string, get func(string) string) string {
	address := ""
	if load := r.meta.Plan.Load; load != nil {
		address = load.URL
	}
	switch word {
	case "URL":
		return address
	case "PORT":
		return cmp.Or(portOf(get("listen")), portOf(get("dst")), urlPort(address))
	case "DEVICE":
		return get("device")
	case "WORKER":
		return "$(pgrep -of 'nginx: worker')"
	}
	group := cmp.Or(get("groupname"), get("owner"), get("command"), r.owner(get("host")))
	pid := get("pid")
	if pid == "" && group != "" {
		pid = "$(pgrep -o " + group + ")"
	}
	switch {
	case word == "NAME":
		return group
	case word == "PID" || pid == "":
		return pid
	case word == "USER":
		return "$(ps -o user= -p " + pid + ")"
	}
	return cmp.Or(get("cgroup"), "$(cut -d: -f3 /proc/"+pid+"/cgroup)")
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

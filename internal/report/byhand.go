package report

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// blankWord is a word that rules leave in a command for what differs from run to
// run. ByHand fills it in.
var blankWord = lazy.Regexp(`\b(PID|PORT|URL|WORKER|USER|GROUP|NAME|DEVICE|FILE)\b`)

// ByHand makes a clue's command one that can be typed as it stands at this run's
// hosts: its address, port, device and process in the place of the blank words, and
// the way into the host's namespace before what shows a network's own.
type ByHand struct {
	Plan  model.Plan
	Hosts []model.Host
	// Owners are the process groups that answer the requests, by host.
	Owners map[string]string
}

// networkTools show what a network namespace has for its own.
var networkTools = []string{"ss", "ip", "nstat", "conntrack", "tc", "ethtool", "nft", "netstat", "sar -n", "tcpdump", "curl", "ping", "dig",
	"redis-cli", "openssl", "nc", "iptables", "iptables-save", "iptables-restore", "ipvsadm", "varnishadm", "nghttp", "sysctl -a", "sysctl net.", "sysctl -w net.", "cat /proc/net/", "sh -c 'for q in /sys/class/net/"}

// inTheMiddle is what stands before a tool that is not the first word of a command.
var inTheMiddle = lazy.Regexp(`^do |\| `)

// machineSettings are those below net that a network namespace other than the machine's own cannot set, or has not.
var machineSettings = []string{"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets", "net.core.netdev", "net.ipv4.neigh.default.gc_", "net.ipv4.tcp_mem"}

// Command writes a command for one subject; labels are those of the sample that
// answered. Blank words and tools are looked for in the rule's own words alone: a
// process may be called PID.
func (r ByHand) Command(command []layout.Piece, subject, labels map[string]string) string {
	get := func(name string) string { return cmp.Or(labels[name], subject[name]) }
	var out []layout.Piece
	start := true  // a command begins here
	named := false // it is about each process of a name
	for _, p := range command {
		if p.Outside {
			out, start = append(out, p), false
			continue
		}
		for i, part := range strings.Split(p.Text, "; ") {
			if i > 0 {
				out, start = append(out, layout.Piece{Text: "; "}), true
			}
			if start && part != "" {
				out = append(out, r.into(r.typedAt(part, get), part)...)
				start = false
			}
			named = named || strings.HasPrefix(part, "for p in $(pgrep ")
			if what, ok := strings.CutPrefix(part, "do "); ok && named {
				part = "do " + r.onlyOf(get("host")) + what
			}
			for part != "" { // a tool in the middle: what comes through a pipe, or is done in a loop
				at := len(part)
				if m := inTheMiddle().FindStringIndex(part); m != nil {
					at = m[1]
				}
				out = append(out, r.blanks(part[:at], get)...)
				if part = part[at:]; part != "" {
					out = append(out, r.into(r.typedAt(part, get), part)...)
				}
			}
		}
	}
	return layout.CommandLine(out)
}

// onlyOf has a loop over the processes of a name leave out those of other hosts: a job on the machine and the service in a container
// may both be python3. To the machine itself belongs what is no other observed host's.
func (r ByHand) onlyOf(name string) string {
	at := slices.IndexFunc(r.Hosts, func(h model.Host) bool { return h.Name == name })
	if at < 0 || r.Hosts[at].NetNS == 0 {
		return ""
	}
	own := r.Hosts[at]
	if !isMachine(own.Spec) {
		return fmt.Sprintf("readlink /proc/$p/ns/net | grep -q %d || continue; ", own.NetNS)
	}
	var others []string
	for _, h := range r.Hosts {
		if h.Machine == own.Machine && h.NetNS != own.NetNS && h.NetNS != 0 {
			others = append(others, strconv.FormatUint(h.NetNS, 10))
		}
	}
	if len(others) == 0 {
		return ""
	}
	slices.Sort(others)
	return "readlink /proc/$p/ns/net | grep -qE '" + strings.Join(others, "|") + "' && continue; "
}

// isMachine says whether a host is a whole machine, and not a part of one.
func isMachine(spec string) bool {
	if there, ok := strings.CutPrefix(spec, "ssh:"); ok {
		return !strings.Contains(there, "/")
	}
	return spec == "local"
}

// typedAt is the host at which a command is to be typed.
func (r ByHand) typedAt(command string, get func(string) string) string {
	if strings.HasPrefix(command, "curl ") {
		return cmp.Or(r.Plan.Generator, get("host"))
	}
	return get("host")
}

// into is what leads into a host's network namespace, nothing where there is no need.
func (r ByHand) into(host, command string) []layout.Piece {
	network := slices.ContainsFunc(networkTools, func(tool string) bool {
		return command == tool || strings.HasPrefix(command, tool) &&
			(strings.HasSuffix(tool, ".") || strings.HasSuffix(tool, "/") || command[len(tool)] == ' ')
	})
	setting, sets := strings.CutPrefix(command, "sysctl -w ")
	network = network && !(sets && slices.ContainsFunc(machineSettings, func(s string) bool { return strings.HasPrefix(setting, s) }))
	for _, h := range r.Hosts {
		if h.Name == host && r.Plan.Remote == nil && network {
			return r.wayInto(h)
		}
	}
	return nil
}

// wayInto is what leads into a host's network namespace. That of a container or a unit is found by its number, and only where it is
// known not to be its machine's: the processes that were there in the run may be gone.
func (r ByHand) wayInto(h model.Host) []layout.Piece {
	kind, arg, _ := strings.Cut(specAtMachine(h), ":")
	switch {
	case kind == "netns" && !strings.HasPrefix(arg, "-"):
		return []layout.Piece{{Text: "ip netns exec "}, {Text: arg, Outside: true}, {Text: " "}}
	case kind == "pid" && isNumber(arg):
		return []layout.Piece{{Text: "nsenter -t " + arg + " -n "}}
	case (kind == "container" || kind == "unit") && hasOwnNetwork(h, r.Hosts):
		return []layout.Piece{{Text: fmt.Sprintf("nsenter -t $(lsns -rno PID %d | head -n1) -n ", h.NetNS)}}
	}
	return nil
}

// specAtMachine is how a host is named on its own machine, where commands about it are typed.
func specAtMachine(h model.Host) string {
	if there, ok := strings.CutPrefix(h.Spec, "ssh:"); ok {
		_, there, _ = strings.Cut(there, "/")
		return there
	}
	return h.Spec
}

// hasOwnNetwork says whether a host is seen to have another network namespace than its machine, which was observed as well.
func hasOwnNetwork(h model.Host, hosts []model.Host) bool {
	return h.NetNS != 0 && slices.ContainsFunc(hosts, func(m model.Host) bool {
		return isMachine(m.Spec) && m.Machine == h.Machine && m.NetNS != 0 && m.NetNS != h.NetNS
	})
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// blanks fills the blank words of a rule's own text in.
func (r ByHand) blanks(text string, get func(string) string) (out []layout.Piece) {
	at := 0
	for _, m := range blankWord().FindAllStringIndex(text, -1) {
		value := r.blank(text[m[0]:m[1]], get)
		if len(value) == 0 {
			continue
		}
		if followed(text[:m[0]]) && value[0].Text == oldest {
			value[0].Text = "$(pgrep -d, "
		}
		out = append(append(out, layout.Piece{Text: text[at:m[0]]}), value...)
		at = m[1]
	}
	return append(out, layout.Piece{Text: text[at:]})
}

// followed says whether a process comes next that strace follows into what it starts: workers that run already it would not follow,
// so that all processes of that name have to be named.
func followed(before string) bool {
	return strings.LastIndex(before, "strace -f") > strings.LastIndexAny(before, ";|")
}

// oldest begins what finds the process that stands for all of its name: the others are mostly its children.
const oldest = "$(pgrep -o "

// value is one that came from outside, nothing where there is none.
func value(s string) []layout.Piece {
	if s == "" {
		return nil
	}
	return []layout.Piece{{Text: s, Outside: true}}
}

// blank is what stands for a blank word in this run, nothing when nobody knows.
func (r ByHand) blank(word string, get func(string) string) []layout.Piece {
	address := ""
	if load := r.Plan.Load; load != nil && strings.HasPrefix(load.URL, "http") { // anything else would be an option
		address = load.URL
	}
	switch word {
	case "URL":
		return value(address)
	case "PORT":
		return value(cmp.Or(portOf(get("listen")), portOf(get("dst")), urlPort(address)))
	case "DEVICE":
		return value(get("device"))
	case "FILE":
		return r.files(get("host"))
	case "WORKER":
		return []layout.Piece{{Text: "$(pgrep -of 'nginx: worker')"}}
	}
	group := cmp.Or(get("groupname"), get("owner"), get("command"), r.Owners[get("host")])
	if word == "NAME" {
		return value(group)
	}
	pid := value(get("pid"))
	if pid == nil && group != "" {
		pid = []layout.Piece{{Text: oldest}, {Text: group, Outside: true}, {Text: ")"}}
	}
	switch {
	case word == "PID" || pid == nil:
		return pid
	case word == "USER":
		return slices.Concat([]layout.Piece{{Text: "$(ps -o user= -p "}}, pid, []layout.Piece{{Text: ")"}})
	case get("cgroup") != "":
		return value(get("cgroup"))
	}
	return slices.Concat([]layout.Piece{{Text: "$(cut -d: -f3 /proc/"}}, pid, []layout.Piece{{Text: "/cgroup)"}})
}

// files are the captures that were read, or a run's own of a host (in its directory);
// nothing where there are none.
func (r ByHand) files(host string) (out []layout.Piece) {
	if r.Plan.Packets != "" {
		return value(model.PacketsFile(host))
	}
	if r.Plan.Capture == nil {
		return nil
	}
	for i, name := range r.Plan.Capture.Files {
		if i > 0 {
			out = append(out, layout.Piece{Text: " "})
		}
		out = append(out, layout.Piece{Text: fileWord(name), Outside: true})
	}
	return out
}

// fileWord is a file's name as an argument that is never an option.
func fileWord(name string) string {
	if strings.HasPrefix(name, "-") && name != "-" {
		return "./" + name
	}
	return name
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

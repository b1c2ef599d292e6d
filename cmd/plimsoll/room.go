package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/probe/sockets"
)

// room is what a machine has for a load. What could not be read is 0 or nil:
// then nothing is said of it.
type room struct {
	// files is how many files the generator's process may open: its hard limit; with tables each of its threads may.
	files  int64
	tables bool
	// ports are the local ports for connections to the target.
	ports *localPorts
	// cpus are those that this process may run on.
	cpus int
	// memory is what can be had without swapping, in bytes.
	memory int64
	// here says that the target is on this machine: its sockets need memory, too.
	here bool
	// target is the load's address, not valid where it is not known; sources are how many addresses the load comes from,
	// 0 for the one that the kernel takes; faults are those from which there is no way.
	target  netip.Addr
	sources int
	faults  []load.SourceFault
}

// localPorts are those for connections. Only so many connections can stand between one local
// address and one target.
type localPorts struct {
	usable   int // net.ipv4.ip_local_port_range less the reserved ones
	held     int // of these, taken by a socket towards the target
	timeWait int // of these, by one in TIME_WAIT
}

// shortage is something that a plan needs and a machine has not.
type shortage struct {
	// text is a sentence: what is short, the limit, what is there, what is needed, and the remedy.
	text string
	// certain says that the plan cannot be carried out as it is.
	certain bool
}

const (
	// socketMemory is what a connection takes in the kernel at either end (slabs of an idle TCP socket; Linux 6.18), in bytes.
	socketMemory = 4 << 10
)

// shortages says what a plan needs that is not there.
func shortages(plan model.LoadPlan, has room) []shortage {
	var list []shortage
	n := int64(plan.MostConnections())
	if need := load.NeededFiles(plan, has.tables); has.files > 0 && need > has.files {
		sure := plan
		sure.MaxConnections = 0
		list = append(list, shortage{certain: load.NeededFiles(sure, has.tables) > has.files, text: fmt.Sprintf(
			"open files: for %s %s are needed, and a process may open %s here (hard limit, ulimit -Hn): raise it (ulimit -n %d as root, LimitNOFILE= of a unit, --ulimit nofile=%d of docker run)%s",
			connectionsText(n), layout.Count(need), layout.Count(has.files), need, need, fewer(plan, has))})
	}
	if len(has.faults) > 0 {
		list = append(list, shortage{certain: true, text: has.sourcesText()})
	}
	if p := has.ports; p != nil && has.portsFor(n) > int64(p.usable-p.held) {
		list = append(list, shortage{text: fmt.Sprintf(
			"local ports: %s, and %s: %s", has.portsNeeded(n), p.text("left by earlier connections"), has.portsRemedy(n, waitForPorts))})
	}
	if text := has.cpuShortage(plan); text != "" {
		list = append(list, shortage{text: text})
	}
	each := int64(connMemory + socketMemory)
	if overTLS(plan) {
		each += tlsMemory
	}
	if plan.Engine == model.IOURing && !plan.KeepAlive { // else they are shared
		each += ringMemory
	}
	if has.here {
		each += socketMemory
	}
	rings, besides := load.RingMemory(plan), ""
	if rings > 0 {
		besides = fmt.Sprintf(", %s of %s besides", layout.Bytes(rings), plural(plan.Threads, "thread"))
	}
	if need := n*each + rings; has.memory > 0 && need > has.memory {
		list = append(list, shortage{text: fmt.Sprintf(
			"memory: for %s about %s are needed (%s each, the kernel's part included%s), and %s are available: free some, or ask for fewer (%s %d)",
			connectionsText(n), layout.Bytes(need), layout.Bytes(each), besides, layout.Bytes(has.memory), mostFlag(plan), max((has.memory-rings)/each, 1))})
	}
	return list
}

// fewer is with how many connections the files would suffice, "" where they do not for one.
func fewer(plan model.LoadPlan, has room) string {
	most := sort.Search(plan.MostConnections(), func(n int) bool { // the first that there is no room for, less one
		p := plan
		if n++; p.MaxConnections > 0 {
			p.Connections, p.MaxConnections = min(p.Connections, n), n
		} else {
			p.Connections = n
		}
		p.Threads = min(p.Threads, n)
		return load.NeededFiles(p, false) > has.files && !(has.tables && load.ThreadsFor(p, has.files) > 0)
	})
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(", or ask for fewer (%s %d)", mostFlag(plan), most)
}

// What a request takes of the generator's CPU time, on the machine of the README's table (bench/load.sh), in seconds.
const (
	requestCPU = 7e-6
	connectCPU = 40e-6 // with a connection of its own
)

// cpuShortage says that the generator takes so much CPU that it is part of what is measured, "" for no.
func (r room) cpuShortage(plan model.LoadPlan) string {
	rate, each := plan.Rate, requestCPU
	for _, s := range plan.Stages {
		rate = max(rate, s.Rate)
	}
	if !plan.KeepAlive {
		each = connectCPU
	}
	need, cpus := rate*each, plural(r.cpus, "CPU")
	const elsewhere = "drive it from another machine (--from NAME=ssh:HOST)"
	switch {
	case r.cpus == 0:
		return ""
	case r.here && rate > 0 && need > float64(r.cpus)/2:
		return fmt.Sprintf("CPU: %s requests/s take the generator about %.1f CPUs, and this machine has %s, which the service needs, too: %s, or offer less (-R)", layout.Rate(rate), need, cpus, elsewhere)
	case rate > 0 && need > float64(r.cpus):
		return fmt.Sprintf("CPU: %s requests/s take the generator about %.1f CPUs, and this machine has %s: %s, or offer less (-R)", layout.Rate(rate), need, cpus, elsewhere)
	case r.here && rate == 0 && 2*plan.Threads > r.cpus:
		return fmt.Sprintf("CPU: the service shares this machine's %s with the generator, whose %s must do with what is left: what comes back is what both can do together; %s, or offer a rate (-R)", cpus, plural(plan.Threads, "thread"), elsewhere)
	}
	return ""
}

// spread gives a plan as many threads as it takes for each one's table of descriptors to have room for its connections, and says so.
func spread(plan model.LoadPlan) (model.LoadPlan, []string) {
	limit := load.FileLimit()
	if limit == 0 || load.NeededFiles(plan, false) <= limit || !load.OwnTables(plan) {
		return plan, nil
	}
	threads := load.ThreadsFor(plan, limit)
	if threads <= plan.Threads {
		return plan, nil
	}
	plan.Threads = threads
	return plan, []string{fmt.Sprintf("%d threads drive the load, each with descriptors of its own, since %s are asked for and a process may open %s files (hard limit, ulimit -Hn)",
		threads, connectionsText(int64(plan.MostConnections())), layout.Count(limit))}
}

// mostFlag is the flag that says how many connections there are at most.
func mostFlag(plan model.LoadPlan) string {
	if plan.MaxConnections > 0 {
		return "--max-connections"
	}
	return "-c"
}

func connectionsText(n int64) string {
	if n == 1 {
		return "1 connection"
	}
	return layout.Count(n) + " connections"
}

// text says how many there are, and whose those are that are held.
func (p localPorts) text(whose string) string {
	s := fmt.Sprintf("%s are usable (net.ipv4.ip_local_port_range)", layout.Count(int64(p.usable)))
	if p.held > 0 {
		s += fmt.Sprintf(", %s of them held towards it", layout.Count(int64(p.held)))
	}
	if p.timeWait > 0 {
		s += fmt.Sprintf(" (%s by TIME_WAIT, %s)", layout.Count(int64(p.timeWait)), whose)
	}
	return s
}

// portsFor is how many ports so many connections need of each address that they come from.
func (r room) portsFor(n int64) int64 {
	from := int64(max(r.sources, 1))
	return (n + from - 1) / from
}

func (r room) portsNeeded(n int64) string {
	if r.sources == 0 {
		return fmt.Sprintf("for %s to one address as many are needed", connectionsText(n))
	}
	return fmt.Sprintf("for %s from %s to one address %s are needed of each", connectionsText(n), addressesText(r.sources), layout.Count(r.portsFor(n)))
}

// waitForPorts is what to do where earlier connections hold ports.
const waitForPorts = "wait a minute, in which TIME_WAIT passes"

// portsRemedy is what to do where ports are short; first comes before all else where the ports would suffice for n connections, had TIME_WAIT none of them.
func (r room) portsRemedy(n int64, first string) string {
	s := `widen the range (sysctl -w net.ipv4.ip_local_port_range="1024 65535")`
	if r.ports.timeWait > 0 && r.portsFor(n) <= int64(r.ports.usable) {
		s = first + ", " + s
	}
	from := "--source with addresses of this machine"
	if r.target.Is4() && r.target.IsLoopback() {
		from = "--source 127.1.0.0/24"
	}
	return s + ", or come from more addresses (" + from + ")"
}

// sourcesText says which source addresses are of no use, and what to do.
func (r room) sourcesText() string {
	first := r.faults[0]
	why := fmt.Sprintf("the kernel knows no way from there (%s): ip route get %s from %s", unix.ErrnoName(first.Errno), r.target, first.Source)
	switch {
	case first.Source.Is4() != r.target.Is4():
		why = "one is IPv4 and the other IPv6: take addresses of the target's kind"
	case first.Errno == unix.EADDRNOTAVAIL:
		prefix := "ip route add local PREFIX dev lo"
		if first.Source.Is6() {
			prefix = "ip -6 route add local PREFIX dev lo, sysctl -w net.ipv6.ip_nonlocal_bind=1"
		}
		why = fmt.Sprintf("that is no address of this machine: add it (ip addr add %s/%d dev lo), or make a whole prefix local (%s); the far side needs a way back to it", first.Source, first.Source.BitLen(), prefix)
	case first.Source.IsLoopback():
		why = "what comes from loopback does not leave this machine: take addresses of an interface"
	}
	others := ""
	if n := len(r.faults) - 1; n > 0 {
		others = fmt.Sprintf(", nor from %s more of %s", layout.Count(int64(n)), addressesText(r.sources))
	}
	return fmt.Sprintf("source addresses: no connection to %s can be made from %s%s: %s", r.target, first.Source, others, why)
}

func addressesText(n int) string {
	if n == 1 {
		return "1 address"
	}
	return layout.Count(int64(n)) + " addresses"
}

// explanations are what an outcome's errno means, and what to do, where no number is needed for it.
var explanations = map[string]string{
	"ENFILE":       "all processes of the machine together have as many files open as may be: raise fs.file-max (sysctl fs.file-max fs.file-nr)",
	"ENOBUFS":      "the kernel had no room for the socket or its bytes: look at net.ipv4.tcp_mem and net.core.wmem_max, and at the memory limit of the container",
	"ENOMEM":       "the kernel had no memory for the socket: look at the memory limit of the container, and at net.ipv4.tcp_mem",
	"ECONNREFUSED": "the far side answered the connect with a reset: nobody listens there, or a firewall says no (ss -ltn there)",
	"EHOSTUNREACH": "no way to the target's machine, or a firewall says no (ip route get ADDRESS)",
	"ENETUNREACH":  "no route to the target (ip route get ADDRESS)",
	"EACCES":       "a firewall or a rule of this machine forbids the connect (nft list ruleset)",
	"EPIPE":        "the far side had ended the connection before the request was sent: it closes connections that it says stay, or was restarted",
	"EPERM":        "a firewall of this machine forbids the connect (nft list ruleset), or its table of tracked connections is full (sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max)",
	"ETIMEDOUT":    "no answer to what was sent, for as long as the kernel repeats it: packets are lost or dropped on the way",
	"ECONNRESET":   "the far side ended the connection with a reset: it crashed, gave up, or its listen queue overflowed (nstat -az TcpExtListenOverflows there)",
}

// tlsExplanations are what the reason of an outcome over TLS means, and what to do.
var tlsExplanations = map[string]string{
	"certificate_expired":           "the server's certificate has expired: renew it (--insecure takes any)",
	"certificate_not_yet_valid":     "the server's certificate is not valid yet: look at the clocks of both machines (date -u)",
	"certificate_wrong_host":        "the server's certificate is for other names than the one that was asked for: use one of them in the URL, or say it with --server-name",
	"certificate_self_signed":       "the server's certificate is signed by nobody but itself: trust it with --cacert FILE (--insecure takes any)",
	"certificate_unknown_authority": "nobody whom this machine trusts has signed the server's certificate: name who has with --cacert FILE; a server that leaves out its intermediate certificates looks the same (openssl s_client -showcerts)",
	"certificate_invalid":           "the server's certificate is none for a server",
	"not_tls":                       "what answers there speaks no TLS: did you mean http://, or another port?",
	"protocol_error":                "what came is not TLS as it should be",
	"no_close_notify":               "the reply ended with the connection, and no close_notify alert announced it: it may have been cut off",
	"alert_handshake_failure":       "the server found no cipher in common, or wants a client certificate: look at its ciphers, --ciphers, --tls-max and --cert",
	"alert_protocol_version":        "the server speaks none of the versions that were offered (--tls-min, --tls-max)",
	"alert_no_application_protocol": "the server does not speak HTTP/1.1 here (ALPN)",
	"alert_unrecognized_name":       "the server knows no such name (SNI): say another with --server-name",
	"alert_certificate_required":    "the server wants a client certificate (--cert, --key)",
	"alert_bad_certificate":         "the server does not take the client's certificate, or misses one (--cert, --key)",
	"alert_unknown_ca":              "the server does not trust who signed the client's certificate (--cert)",
	"eof":                           "the far side ended the connection in the middle",
}

// byOutcome are the same of those for which it takes the whole outcome.
var byOutcome = map[string]string{
	"4xx":             "the service answered, and refused what was asked for: curl -i with the same URL, method and headers shows with which status, and what it says",
	"5xx":             "the service, or a proxy before it, answered that it failed: curl -i shows with which status, and its error log why",
	"connect:EAGAIN":  "the queue of the Unix socket's listener was full, in which case a connect fails at once: the service accepts too slowly, or its backlog is too small (net.core.somaxconn bounds it)",
	"connect:ENOENT":  "the Unix socket's file was not there (--unix-socket): the service removed it, or was restarted",
	"connect:timeout": "no answer to the connect: a full listen queue, a firewall that drops, or packet loss (--timeout is how long is waited)",
	"tls:timeout":     "the connection stood, and the TLS handshake was not done in time: the server has too many of them to do (a full one costs it a signature), or hangs",
	"read:timeout":    "the request was taken and no complete reply came in time: the service is slower than --timeout, or hangs",
	"write:timeout":   "the far side does not take what is sent",
	"check:status":    "the replies were complete, and had another status than the file of targets expects",
	"check:length":    "the replies were complete, and their body had another length than the file of targets says (as it is sent, compressed or not)",
	"check:body":      "the replies were complete, and the text that the file of targets wants was not in their body (bodies are looked at as they are sent, compressed or not)",
	"queue:timeout":   "no connection became free in time, so these were never sent: the service is slower than the rate, or give more connections (-c, --max-connections)",

	"read:eof": "the far side ended the connection before the reply was complete, or began: the service's process crashed or was restarted, or it closes connections that it says stay (its error log; curl -v with the same URL)",

	"protocol:bad_status_line":    "what answers there does not begin as HTTP/1.1 does: another protocol, or https:// in its place (curl -v shows what it says)",
	"protocol:bad_header":         "a line of a reply's head is no header (curl -v shows it)",
	"protocol:bad_content_length": "a reply's Content-Length is no number, or there are two that differ (curl -v shows it)",
	"protocol:bad_chunk":          "a chunked reply has a chunk whose size or end is not as it should be: whoever writes the body is at fault",
	"protocol:head_too_large":     "a reply's head had more than 64 KiB",
	"protocol:too_many_interim":   "more than 16 interim replies (1xx) came, and no final one",
	"protocol:excess_data":        "more came than the reply's Content-Length, or its status, allows",
	"protocol:unasked_reply":      "the server replied where nobody had asked, or twice",
	"protocol:unasked_upgrade":    "the server answered 101 (Switching Protocols) to requests that ask for no other protocol (they have no Upgrade header): that is no reply",
}

// explainAll says of each outcome that is a failure with a known meaning what it
// means and what to do, with the numbers of what there is where they are the cause; the
// most frequent first. room is best read while, or just after, the load lasted.
func explainAll(plan model.LoadPlan, l model.Load, has room) []string {
	outcomes := l.Outcomes
	names := slices.SortedFunc(maps.Keys(outcomes), func(a, b string) int {
		return cmp.Or(cmp.Compare(outcomes[b], outcomes[a]), strings.Compare(a, b))
	})
	var list []string
	if l.StoodStill > 0 {
		list = append(list, fmt.Sprintf("the generator itself stood still for %s: its process was stopped, or got no CPU time, or this machine was paused. What waited, or ran out of time, meanwhile did not do so for the service: try again",
			layout.Micros(l.StoodStill*1e6)))
	}
	for _, name := range names {
		if why := explain(plan, name, has); why != "" && outcomes[name] > 0 {
			text := fmt.Sprintf("%s %s: %s", layout.Count(outcomes[name]), strings.Replace(name, ":", " ", 1), why)
			if said := l.Causes[name]; said != "" {
				text += " (" + said + ")"
			}
			list = append(list, text)
		}
	}
	return list
}

func explain(plan model.LoadPlan, outcome string, has room) string {
	_, errno, _ := strings.Cut(outcome, ":")
	n := int64(plan.MostConnections())
	switch {
	case errno == "EMFILE" && has.files > 0:
		return fmt.Sprintf("the generator may open %s files (hard limit, ulimit -Hn), and for %s %s are needed: raise it (ulimit -n), or ask for fewer (%s)",
			layout.Count(has.files), connectionsText(n), layout.Count(load.NeededFiles(plan, has.tables)), mostFlag(plan))
	case errno == "EADDRNOTAVAIL" && has.ports != nil:
		first := waitForPorts
		if !plan.KeepAlive {
			first = "let connections stay (without --no-keepalive), since each that this side closes first holds its port for a minute"
		}
		return fmt.Sprintf("no local port was free: %s, and %s: %s", has.portsNeeded(n), has.ports.text("left by connections of this load or of earlier ones"), has.portsRemedy(n, first))
	case plan.Pipeline > 1 && (outcome == "read:eof" || outcome == "read:ECONNRESET"):
		return "the server ended connections with requests on them that it had not answered, as it may (nginx does after keepalive_requests): with --pipeline all that is behind the last reply is lost"
	case plan.HTTP2 && byHTTP2[outcome] != "":
		return byHTTP2[outcome]
	case byOutcome[outcome] != "":
		return byOutcome[outcome]
	}
	if why := tlsExplanations[errno]; why != "" && overTLS(plan) {
		return why
	}
	return explanations[errno]
}

// preflight says what the plan needs that is not there: as an error when it can then
// not be carried out, else as a word to the user.
func preflight(ctx context.Context, w *world, plan model.LoadPlan) error {
	if plan.Engine == model.IOURing {
		if err := load.TryIOURing(); err != nil {
			return fail(exitMissing, fmt.Errorf("%w: use --engine epoll", err))
		}
	}
	for _, short := range shortages(plan, roomFor(ctx, plan)) {
		if short.certain {
			return fail(exitMissing, errors.New(short.text))
		}
		fmt.Fprintln(w.stderr, "plimsoll:", short.text)
	}
	return nil
}

// targetOf is the address that the load will go to; not valid when the name is not
// known, which others say better.
func targetOf(ctx context.Context, plan model.LoadPlan) netip.AddrPort {
	name, text, err := load.Address(plan)
	if err != nil || plan.UnixSocket != "" {
		return netip.AddrPort{}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return netip.AddrPort{}
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(list) == 0 {
		return netip.AddrPort{}
	}
	best := slices.IndexFunc(list, func(a netip.Addr) bool { return a.Unmap().Is4() })
	return netip.AddrPortFrom(list[max(best, 0)].Unmap(), uint16(port))
}

// roomFor reads what this machine has for a load.
func roomFor(ctx context.Context, plan model.LoadPlan) room {
	var has room
	has.files = load.FileLimit()
	has.tables = has.files > 0 && load.NeededFiles(plan, false) > has.files && load.OwnTables(plan)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		has.memory = availableMemory(text)
	}
	has.here, has.cpus = plan.UnixSocket != "", runtime.NumCPU()
	target := targetOf(ctx, plan)
	if !target.IsValid() {
		return has
	}
	has.target = target.Addr()
	from, _ := load.ParseSources(plan.Sources) // load.Check has seen them
	has.sources, has.faults = len(from), load.SourceFaults(from, has.target)
	h, err := host.Open("local", "local")
	if err != nil {
		return has
	}
	defer h.Close()
	if usable, held, timeWait, err := sockets.Towards(h, target, from); err == nil {
		has.ports = &localPorts{usable: usable, held: held, timeWait: timeWait}
	}
	if all, err := h.Addresses(); err == nil {
		has.here = slices.Contains(all, target.Addr())
	}
	return has
}

// availableMemory finds MemAvailable in /proc/meminfo: bytes, 0 when it is not there.
func availableMemory(meminfo []byte) int64 {
	for line := range bytes.Lines(meminfo) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "MemAvailable:" {
			n, err := strconv.ParseInt(string(f[1]), 10, 53)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// fellShort is the error of a load of which nothing succeeded, or that was not what
// had been asked for: the report is printed, and the exit code tells.
func fellShort(plan model.LoadPlan, l model.Load) error {
	var all int64
	for _, n := range l.Outcomes {
		all += n
	}
	for _, w := range l.Workers {
		if w.Gone != "" {
			return fail(exitNotPassed, fmt.Errorf("less was offered than asked for: %s", w.WithoutIt(len(l.Workers))))
		}
	}
	switch m := l.Missing; {
	case all > 0 && l.Good() == 0:
		return fail(exitNotPassed, fmt.Errorf("not one good reply: %s tried, and each failed", layout.Count(all)))
	case m != nil && m.Failed > 0:
		return fail(exitNotPassed, fmt.Errorf("less was offered than asked for: %s of %s were never open, since each attempt failed", layout.Count(m.Failed), connectionsText(int64(plan.Connections))))
	case m != nil && m.Untried > 0 && plan.Requests == 0:
		return fail(exitNotPassed, fmt.Errorf("less was offered than asked for: the load was over before %s of %s were opened: %s", layout.Count(m.Untried), connectionsText(int64(plan.Connections)), moreTime(plan)))
	case l.Outcomes["queue:timeout"] > 0:
		return fail(exitNotPassed, fmt.Errorf("less was offered than asked for: %s requests found no connection in time and were never sent", layout.Count(l.Outcomes["queue:timeout"])))
	}
	return nil
}

// moreTime is how all connections of a plan would have been opened.
func moreTime(plan model.LoadPlan) string {
	s := "give it more time (-d, --ramp)"
	if plan.ConnectRate > 0 {
		s += fmt.Sprintf(", or a higher --connect-rate (it was %s/s)", layout.Rate(plan.ConnectRate))
	}
	return s
}

// How many files watching opens at most, with all tracers and some hundred processes, and at least: with tracers
// (Linux 6.18, two CPUs: 350 to 400), and without them (96 to 112).
const (
	watchFiles        = 600
	leastTracedFiles  = 300
	leastWatchedFiles = 96
)

// roomToWatch is an error where a process that may open so many files (0: nobody knows) cannot watch.
func roomToWatch(limit int64, traced bool) error {
	least := int64(leastWatchedFiles)
	if traced {
		least = leastTracedFiles
	}
	if limit == 0 || limit >= least {
		return nil
	}
	return fail(exitMissing, errors.New(filesToWatch(limit)))
}

// filesToWatch says how many files watching needs, how many there may be, and what to do.
func filesToWatch(limit int64) string {
	return fmt.Sprintf("open files: watching needs up to %s, some 120 with --trace off, and a process may open %s here (hard limit, ulimit -Hn): raise it (ulimit -n %d as root, LimitNOFILE= of a unit, --ulimit nofile=%d of docker run)",
		layout.Count(watchFiles), layout.Count(limit), watchFiles, watchFiles)
}

// outOfFiles is the end of a message about the limit of open files.
func outOfFiles() string {
	if limit := load.FileLimit(); limit > 0 {
		return "\n" + filesToWatch(limit)
	}
	return ""
}

package judge

import (
	"cmp"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"plimsoll/internal/bill"
	"plimsoll/internal/breakdown"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
)

const (
	// mostFunctions is how many functions of a program are told, leastFunction the share of its CPU time that each has at least.
	mostFunctions = 3
	leastFunction = 0.05
	// leastStacks is of how many samples at least that is told: of fewer each is more than a hundredth off by itself.
	leastStacks = 20
	// mostSamples is more than one stack can be seen in a run.
	mostSamples = 1 << 40
)

// programOf is where the time of the program went that the run was asked about, with the functions in which it computes
// and the findings that are about it; nil where it was asked about none.
func programOf(rec *record.Run, q *query.Run, v model.Verdict, stacks, whole []*profile.Profile) (*model.ProgramTime, error) {
	p, err := breakdown.Program(rec)
	if p == nil || err != nil {
		return nil, err
	}
	if p.Functions = scriptsOf(p.Names, whole); p.Functions == nil {
		p.Functions = functionsOf(p.Names, stacks, leaf)
	}
	ports := portsWaitedFor(p.Parts)
	owners := answering(q, p.Host, ports)
	for _, f := range slices.Concat(v.Root, v.Grounds) {
		if f.Kind != "healthy" && f.Subject["host"] == p.Host && isAbout(f, slices.Concat(p.Names, owners), ports) {
			p.About = append(p.About, f.Rule)
		}
	}
	return p, nil
}

// whoListens finds who answers where, of those that are observed.
var whoListens = query.Fixed(`max by (host, listen, owner) (max_over_time(plimsoll_tcp_listen_accepted[$window]))`)

// portsWaitedFor are the ports of its own host from which the program waits for an answer for a third of its time, or more: what holds up who
// answers there holds it up.
func portsWaitedFor(parts []model.ProgramPart) (ports []string) {
	const much = 1.0 / 3
	for _, part := range parts {
		at, err := netip.ParseAddrPort(part.Towards)
		if err == nil && part.Share >= much && at.Addr().IsLoopback() { // where others are is not known here
			ports = append(ports, strconv.Itoa(int(at.Port())))
		}
	}
	return ports
}

// answering are the processes that listen at ports of a host.
func answering(q *query.Run, host string, ports []string) (owners []string) {
	if len(ports) == 0 {
		return nil
	}
	for _, s := range q.Ask(whoListens()).Samples {
		if _, at, err := net.SplitHostPort(s.Labels["listen"]); err == nil && s.Labels["host"] == host && slices.Contains(ports, at) {
			owners = append(owners, s.Labels["owner"])
		}
	}
	return owners
}

// isAbout says whether a finding's subject names one of these processes, or one of these ports.
func isAbout(f model.Finding, names, ports []string) bool {
	for label, value := range f.Subject {
		if label == "host" {
			continue
		}
		_, port, err := net.SplitHostPort(value)
		if err != nil {
			port = value
		}
		if slices.Contains(names, value) || slices.Contains(ports, port) {
			return true
		}
	}
	return false
}

// functionsOf are the functions in which processes of these names were seen on a CPU, the largest first; in tells of a stack which.
func functionsOf(names []string, stacks []*profile.Profile, in func(*profile.Sample) model.BillFunction) []model.BillFunction {
	count := map[model.BillFunction]int64{}
	var all int64
	for _, p := range stacks {
		for _, s := range p.Sample {
			group := s.Label["groupname"]
			if len(group) == 0 || len(s.Value) == 0 || len(s.Location) == 0 || s.Value[0] < 0 || s.Value[0] > mostSamples || !slices.Contains(names, group[0]) {
				continue
			}
			all += s.Value[0]
			count[in(s)] += s.Value[0]
		}
	}
	if all < leastStacks {
		return nil
	}
	var list []model.BillFunction
	for f, n := range count {
		if f.Share = float64(n) / float64(all); f.Share >= leastFunction && f.Function != "" {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b model.BillFunction) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Module, b.Module))
	})
	return list[:min(len(list), mostFunctions)]
}

// scriptsOf are the functions of scripts among them, by whole stacks; nil where they were in scripts for less than half of
// their CPU time.
func scriptsOf(names []string, whole []*profile.Profile) []model.BillFunction {
	var all, inScripts int64
	list := functionsOf(names, whole, func(s *profile.Sample) (f model.BillFunction) {
		all += s.Value[0]
		if scripts := bill.Scripts(s); len(scripts) > 0 {
			inScripts += s.Value[0]
			f.Function = layout.InScripts(scripts)
		}
		return f
	})
	if 2*inScripts < all {
		return nil
	}
	return list
}

// leaf is the function at a stack's inner end.
func leaf(s *profile.Sample) (f model.BillFunction) {
	l := s.Location[0]
	if len(l.Line) > 0 && l.Line[0].Function != nil {
		f.Function, f.File, f.Line = l.Line[0].Function.Name, l.Line[0].Function.Filename, l.Line[0].Line
	}
	if l.Mapping != nil {
		f.Module = filepath.Base(l.Mapping.File)
	}
	return f
}

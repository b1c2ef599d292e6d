package breakdown

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

const (
	upstreamSignal = "plimsoll_nginx_upstream_response_seconds_sum"
	upstreamCount  = "plimsoll_nginx_upstream_response_seconds_count"
)

const (
	nginx = "nginx" // the process group whose log tells of upstream servers
	// deepest is how many servers behind one another are looked at.
	deepest = 3
)

// passedOn is the time that the process waited for the servers behind it, with
// what those did meanwhile.
func (s *serving) passedOn(p process, a *activity, depth int, room float64) []part {
	if depth >= deepest {
		return nil
	}
	targets := s.targets(p)
	behind := s.upstreams(p, targets)
	if p.group == nginx {
		return s.passedByNginx(p, behind, depth+1, room)
	}
	var parts []part
	claimed := map[string]float64{}
	for _, b := range a.blocked {
		if b.isUpstream() {
			claimed[b.towards] += b.seconds
		}
	}
	for _, u := range behind {
		node := upstreamNode(u)
		for _, t := range targets {
			if t.group == u.group && claimed[t.dst] > 0 {
				node = addSeconds(node, claimed[t.dst])
				delete(claimed, t.dst)
			}
		}
		parts = append(parts, s.fill(node, u, depth+1, room))
	}
	for dst, seconds := range claimed {
		node := addSeconds(part{Name: "upstream", Detail: dst, Text: "upstream " + dst, How: model.Exact, Signals: []string{blockedSignal}}, seconds)
		parts = append(parts, node)
	}
	slices.SortStableFunc(parts, func(x, y part) int { return strings.Compare(x.Detail, y.Detail) })
	return parts
}

// passedByNginx: nginx waits for all of its upstream servers in one loop, and
// its log tells for how long.
func (s *serving) passedByNginx(p process, behind []process, depth int, room float64) []part {
	mean, passed, why := s.upstreamLog(p.host)
	if why == "" && passed == 0 || why != "" && len(behind) == 0 {
		return nil
	}
	node := part{Name: "upstream", Text: "upstream", Signals: []string{upstreamSignal, upstreamCount}, Why: why}
	if why == "" {
		room = mean * passed
		node = addSeconds(node, room)
		node.How, node.Why = model.Estimate, "nginx logs whole milliseconds"
	}
	for _, u := range behind {
		node.Detail = strings.TrimPrefix(node.Detail+", "+strings.Join(u.listens, ", "), ", ")
		node.Parts = append(node.Parts, s.parts(u, depth, room)...)
		for _, port := range u.ports() {
			node.Parts = append(node.Parts, s.replyLeft(p, port)...)
		}
	}
	node.Text = strings.TrimSpace(node.Text + " " + node.Detail)
	return []part{s.closeNode(node)}
}

// replyLeft is how long replies of an upstream server lay unread at p, by the tracer of
// unread bytes or else by that of requests.
func (s *serving) replyLeft(p process, port string) []part {
	const name, text = "upstream_unread", "reply waits to be read"
	signal, how, role := unreadSignal, model.Little, []string{"role", "client"}
	if why := s.unseen(p.host, unreadSignal); why != "" {
		if s.unseen(p.host, upstreamUnreadSum) != "" {
			return at(p.host, p.group, part{Name: name, Text: text, Why: why + s.fullLooks(p.host), Signals: []string{unreadSignal, upstreamUnreadSum}})
		}
		signal, how, role = upstreamUnreadSum, s.turnsHow(), nil
	}
	sum := 0.0
	for _, l := range s.series(signal, append([]string{"host", p.host, "groupname", p.group}, role...)...) {
		if strings.HasSuffix(l.Labels.Get("dst"), ":"+port) {
			sum += l.Increase(s.from, s.to)
		}
	}
	if sum == 0 {
		return nil
	}
	return at(p.host, p.group, known(name, text, sum/s.n, how, signal))
}

func upstreamNode(u process) part {
	where := strings.Join(u.listens, ", ")
	return part{Name: "upstream", Detail: where, Text: "upstream " + where, How: model.Exact, Signals: []string{blockedSignal}}
}

func addSeconds(p part, seconds float64) part {
	if p.Seconds != nil {
		seconds += *p.Seconds
	}
	p.Seconds = &seconds
	return p
}

// fill puts a process's parts into the wait for it.
func (s *serving) fill(node part, u process, depth int, room float64) part {
	if node.Seconds != nil {
		room = *node.Seconds
	}
	node.Parts = s.parts(u, depth, room)
	return s.closeNode(node)
}

// closeNode gives a wait that nobody measured the sum of its parts, and checks
// that the parts of a measured one fit into it.
func (s *serving) closeNode(node part) part {
	if node.Seconds == nil {
		if sum := total(node.Parts); sum > 0 {
			node = addSeconds(node, sum)
			node.How, node.Why = model.Estimate, sentence("the sum of its parts", node.Why)
		}
		return node
	}
	if w := checkRoom(fmt.Sprintf("the upstream server %s", node.Detail), node.Parts, *node.Seconds, s.whole); w != "" {
		s.warnings = append(s.warnings, w)
	}
	return node
}

// upstreamLog is how long nginx waited for upstream servers, by its log: for
// each request that it passed on, and the share of those among ours. The log
// comes late, by its buffer and by how it is followed: what it says at first is
// about requests before the window, and its last ones come after it.
func (s *serving) upstreamLog(host string) (mean, share float64, why string) {
	const lateness = 2000 // ms
	late := *s.reader
	late.to = s.last
	if s.to-s.from >= 2*lateness {
		late.from += lateness
	}
	sum, count := late.increase(host, upstreamSignal), late.increase(host, upstreamCount)
	if why := sentence(sum.why, count.why); why != "" {
		return 0, 0, why
	}
	sent := late.ended(wasSent)
	if count.value == 0 || sent == 0 || s.n == 0 {
		return 0, 0, ""
	}
	return sum.value / count.value, min(count.value/sent, 1) * s.ended(wasSent) / s.n, ""
}

package breakdown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// block is for how long a process was blocked for one reason, for each request.
type block struct {
	reason  string
	towards string // whom it waited for; "" where nobody knows or there is nobody
	seconds float64
	each    float64 // how long one such wait took; 0 where nobody counted them
}

// byClients says that it waited for those who call it.
func (b block) byClients() bool { return strings.HasPrefix(b.towards, "clients@") }

// isUpstream says that it waited for another server.
func (b block) isUpstream() bool {
	return (b.reason == "socket_read" || b.reason == "connect") && b.towards != "" && !b.byClients()
}

// always are the reasons for which nothing waits that has nothing to do.
var always = []string{"disk", "socket_write", "page_fault", "pipe", "pipe_write", "file_lock", "uninterruptible_other", "connect", "stopped", "file_system", "device_write"}

// sometimes are those for which idle threads wait as well as busy ones; poll
// and accept are for idle ones alone.
var sometimes = []string{"lock", "sleep", "child"}

// tolerated is by how much a wait may seem longer than the request that it is in.
const tolerated = 1.05

// holdsUp says that a request waits meanwhile, whoever was blocked.
func (b block) holdsUp() bool {
	return slices.Contains(always, b.reason) || b.reason == "socket_read" && !b.byClients() && b.towards != ""
}

// blocks returns what a process was blocked on in the window, the largest
// first; why says that nothing is known of it.
func (s *serving) blocks(p process) (list []block, why string) {
	if why := s.unseen(p.host, blockedSignal); why != "" {
		return nil, why
	}
	for _, l := range s.series(blockedSignal, "host", p.host, "groupname", p.group) {
		b := block{reason: l.Labels.Get("reason"), towards: l.Labels.Get("towards"), seconds: l.Increase(s.from, s.to)}
		if slices.Contains(sometimes, b.reason) {
			b.seconds -= s.idleRate(l) * s.hold
		}
		blocks := s.increase(p.host, blocksSignal, "groupname", p.group, "reason", b.reason, "towards", b.towards)
		if blocks.known() {
			b.each = b.seconds / max(blocks.value, 1)
		}
		if b.seconds /= s.n; b.seconds > 0 {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b block) int { return cmp.Compare(b.seconds, a.seconds) })
	return list, ""
}

// idleRate is how many threads waited so before there was any load. Threads
// that are idle wait on under load, or stop to; so what comes on top of them is
// the requests', at least.
func (s *serving) idleRate(l record.Series) float64 {
	for _, w := range s.meta.Windows {
		if w.Name == model.Baseline && w.End > w.Start {
			return l.Increase(w.Start, w.End) / (float64(w.End-w.Start) / 1000)
		}
	}
	return 0
}

// blocked are the waits of a process that its requests paid for; what it waits
// for when it is idle is none.
func (s *serving) blocked(a *activity, room float64) []part {
	if a.blockedWhy != "" {
		return []part{{Name: "blocked", Text: "blocked", Why: a.blockedWhy, Signals: []string{blockedSignal}}}
	}
	sums := map[string]float64{}
	var order []string
	for _, b := range a.blocked {
		doubtful := slices.Contains(sometimes, b.reason)
		if b.isUpstream() || !b.holdsUp() && !doubtful || doubtful && b.each > s.longest*tolerated {
			continue // a wait longer than a request is an idle thread's
		}
		if _, ok := sums[b.reason]; !ok {
			order = append(order, b.reason)
		}
		sums[b.reason] += b.seconds
	}
	var parts []part
	for _, reason := range order {
		parts = append(parts, blockedPart(reason, sums[reason], room))
	}
	return parts
}

func blockedPart(reason string, seconds, room float64) part {
	p := part{Name: "blocked", Detail: reason, Text: "blocked: " + strings.ReplaceAll(reason, "_", " "), Signals: []string{blockedSignal}}
	if !slices.Contains(sometimes, reason) {
		p.Seconds, p.How = &seconds, model.Exact
		return p
	}
	if seconds > room*tolerated {
		p.Why = fmt.Sprintf("its threads waited so for %.3g ms a request, and a request took less: most of it is idleness, and nothing tells the rest", seconds*1e3)
		return p
	}
	p.Seconds, p.How = &seconds, model.Estimate
	p.Why = "what came on top of the threads that waited so before the load"
	return p
}

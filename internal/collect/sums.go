package collect

import (
	"slices"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// sums is what a tracer has counted, by series; namespaces that are one host's
// become one. It is filled anew with each reading, of mostly the same series.
type sums struct {
	hosts   []*host.Host
	series  map[string]*sum   // by host, signal and labels
	list    []*sum            // the same, in the order in which they came
	last    *sum              // that was put last
	procs   map[uint32]owners // of what processes do, by network namespace
	packets map[uint32]owners // of what happens to packets
	round   uint64
	key     []byte
}

// sum is one series.
type sum struct {
	host   string
	signal *model.Signal
	labels []string
	value  float64
	round  uint64 // in which the tracer put it last
	kept   uint64 // of a gauge: the reading whose value is kept
	estimate
	key   string
	after *sum // the one that was put after it the last time: most readings are in the order of the one before
}

// estimate is what the sum of a tracer for bursts makes for all the time, on and off.
type estimate struct {
	counted float64 // the sum at the end of the last burst
	all     float64
	rate    float64 // per second in the last burst
}

func newSums(hosts []*host.Host) *sums {
	return &sums{hosts: hosts, series: map[string]*sum{}, procs: map[uint32]owners{}, packets: map[uint32]owners{}}
}

// manySums and manyNamespaces are from how many on what was not met in the last reading is
// forgotten: processes and containers come and go under ever new names.
const manySums, manyNamespaces = 20_000, 10_000

// begin starts a reading: nothing is put yet.
func (s *sums) begin() {
	if len(s.series) > manySums {
		s.list = slices.DeleteFunc(s.list, func(one *sum) bool {
			gone := one.round != s.round && one.estimate == (estimate{})
			if gone {
				delete(s.series, one.key)
			}
			return gone
		})
		for _, one := range s.list {
			one.after = nil // it may be of those that are gone
		}
		s.last = nil
	}
	for _, known := range []map[uint32]owners{s.procs, s.packets} {
		if len(known) > manyNamespaces {
			clear(known)
		}
	}
	s.round++
}

// each calls do with every series that was put since begin.
func (s *sums) each(do func(*sum)) {
	for _, one := range s.list {
		if one.round == s.round {
			do(one)
		}
	}
}

// all calls do with every series that was ever put.
func (s *sums) all(do func(*sum)) {
	for _, one := range s.list {
		do(one)
	}
}

func (s *sums) add(host string, signal *model.Signal, v float64, labels []string) {
	s.key = append(append(append(s.key[:0], host...), 0), signal.Name...)
	for _, l := range labels {
		s.key = append(append(s.key, 0), l...)
	}
	one := s.known()
	if one == nil {
		one = &sum{host: host, signal: signal, labels: append([]string(nil), labels...), key: string(s.key)}
		s.series[one.key] = one
		s.list = append(s.list, one)
	}
	if s.last != nil {
		s.last.after = one
	}
	s.last = one
	if one.round != s.round {
		one.round, one.value = s.round, 0
	}
	one.value += v
}

// known is the series whose key is in s.key, nil if there is none.
func (s *sums) known() *sum {
	if s.last != nil && s.last.after != nil && s.last.after.key == string(s.key) {
		return s.last.after
	}
	return s.series[string(s.key)]
}

// Put takes what belongs to the machine, and so to each of its hosts.
func (s *sums) Put(signal *model.Signal, v float64, labels ...string) {
	owners{s, s.hosts}.Put(signal, v, labels...)
}

// In is where to put what a process did in a network namespace.
func (s *sums) In(netns uint32) model.Sink {
	return s.ownersOf(s.procs, netns, (*host.Host).TakesStrays)
}

// Net is where to put what happened to packets in a network namespace; where
// nothing tells which it was, to In's hosts.
func (s *sums) Net(netns uint32) model.Sink {
	if netns == 0 {
		return s.In(netns)
	}
	return s.ownersOf(s.packets, netns, (*host.Host).IsMachine)
}

// ownersOf are the hosts that claim a namespace, else those that take what nobody claims.
func (s *sums) ownersOf(known map[uint32]owners, netns uint32, takes func(*host.Host) bool) owners {
	if p, ok := known[netns]; ok {
		return p
	}
	var claim, others []*host.Host
	for _, h := range s.hosts {
		if h.Claims(uint64(netns)) {
			claim = append(claim, h)
		}
		if takes(h) {
			others = append(others, h)
		}
	}
	p := owners{s, claim}
	if len(claim) == 0 {
		p.hosts = others
	}
	known[netns] = p
	return p
}

// owners are hosts to which the same sums belong.
type owners struct {
	sums  *sums
	hosts []*host.Host
}

func (p owners) Put(signal *model.Signal, v float64, labels ...string) {
	for _, h := range p.hosts {
		p.sums.add(h.Name, signal, v, labels)
	}
}

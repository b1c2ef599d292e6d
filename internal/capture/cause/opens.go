package cause

import (
	"cmp"
	"net/netip"
	"slices"

	"plimsoll/internal/capture/tcp"
)

// Failure is how an attempt to connect ended that did not succeed.
type Failure uint8

// The kinds of failures.
const (
	NotFailed       Failure = iota
	FailRefused             // answered by RST
	FailUnreachable         // answered by an ICMP error
	FailUnanswered          // nothing came back
	FailHalf                // a SYN-ACK came back, and the client never answered that
	FailAbandoned           // a SYN-ACK came back, and the client reset it
	FailOld                 // an old connection with the same ports answered
	Failures
)

var failureNames = [Failures]string{"", "refused", "unreachable", "unanswered", "never_completed", "abandoned", "old_connection"}

func (f Failure) String() string { return failureNames[f] }

var failureWords = [Failures]string{"", "refused (RST)", "rejected (ICMP error)", "SYN never answered", "SYN-ACK never answered",
	"SYN-ACK answered by RST", "answered by an old connection"}

// Words is the failure as people read it.
func (f Failure) Words() string { return failureWords[f] }

// Server is what became of the attempts to connect to one address and port.
type Server struct {
	Address     netip.AddrPort     `json:"address"`
	Opened      int64              `json:"opened"`
	Kinds       map[string]Counted `json:"failed,omitempty"`
	ClosedFirst ClosedFirst        `json:"closed_first"`
	IdleTimeout int64              `json:"idle_timeout_ns,omitempty"` // after which it closes, where several connections agree on one

	failed    [Failures]int64
	evidence  [Failures][]uint32
	idle      []int64 // idle times after which it closed, ns
	sources   map[netip.Addr]int64
	seconds   map[int64]int64
	patient   int64 // attempts that nobody completed although the client asked again, as clients do
	again     int64 // SYNs that came again when no client sends one
	moreAddrs bool
	flooded   bool
}

// ClosedFirst is how many connections each side closed first, and so holds in TIME_WAIT.
type ClosedFirst struct {
	Server int64 `json:"server"`
	Client int64 `json:"client"`
	Nobody int64 `json:"nobody"` // no FIN was captured
}

// opens gathers attempts by server and by source.
type opens struct {
	servers map[netip.AddrPort]*Server
	sources map[netip.Addr]*source
	more    int64 // attempts at servers that found no room
}

// Source is a client and what became of its attempts to connect.
type Source struct {
	Address  netip.Addr `json:"address"`
	Attempts int64      `json:"attempts"`
	Failed   int64      `json:"failed"`
	Peak     int64      `json:"most_in_a_second"`
}

// Sources returns the clients with most attempts, at most so many.
func (j *Judge) Sources(most int) []Source {
	list := make([]Source, 0, len(j.opens.sources))
	for a, s := range j.opens.sources {
		list = append(list, Source{a, s.attempts, s.failed, max(s.peak, s.inSecond)})
	}
	slices.SortFunc(list, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), a.Address.Compare(b.Address))
	})
	return list[:min(len(list), most)]
}

// source is a client that opens connections.
type source struct {
	attempts, failed       int64
	second, inSecond, peak int64 // the last second with an attempt, and how many it has; the most of those before
	targets                map[netip.AddrPort]bool
}

func newOpens() opens {
	return opens{servers: map[netip.AddrPort]*Server{}, sources: map[netip.Addr]*source{}}
}

// What is kept of each server: sources and seconds, for floods; idle times.
const (
	maxServers = 4096
	maxSources = 4096
	maxTargets = 256
	maxIdles   = 1024
)

// Conn takes up a connection at its end, when it is forgotten or the capture ends.
func (j *Judge) Conn(c *tcp.Conn) {
	side, known := c.Server()
	at := j.Where.Addr(c, side)
	v := j.opens.servers[at]
	if v == nil {
		if len(j.opens.servers) >= maxServers {
			j.opens.more++
			return
		}
		v = &Server{Address: at, sources: map[netip.Addr]int64{}, seconds: map[int64]int64{}}
		j.opens.servers[at] = v
	}
	client := j.Where.Addr(c, 1-side).Addr()
	fail := failure(c, side)
	if known && c.Completeness&tcp.SawSYN != 0 {
		j.attempt(client, at, fail, c.Start/1e9)
	}
	if fail == NotFailed {
		v.opened(c, side, known)
		return
	}
	v.failed[fail]++
	if len(v.evidence[fail]) < maxEvidence {
		v.evidence[fail] = append(v.evidence[fail], c.Frame)
	}
	if fail == FailUnanswered || fail == FailHalf {
		v.waits(client, c.Start/1e9)
		if c.Hasty > 0 {
			v.repeats(c, client, &c.Half[1-side])
		} else if c.Patient { // it wants the connection, and asks again as clients do
			v.patient++
		}
	}
}

// opened takes up a connection that came to be.
func (v *Server) opened(c *tcp.Conn, side uint8, known bool) {
	if known {
		v.Opened++
	}
	switch c.FirstFIN {
	case 0:
		v.ClosedFirst.Nobody++
	case 1 + side:
		v.ClosedFirst.Server++
		if ns, idle := IdleClose(c); idle && len(v.idle) < maxIdles {
			v.idle = append(v.idle, ns)
		}
	default:
		v.ClosedFirst.Client++
	}
}

// IdleClose says for how long a connection had been idle when its first FIN was
// sent, ns, and whether that was longer than the pauses within a conversation.
func IdleClose(c *tcp.Conn) (ns int64, idle bool) {
	ns = c.Idle.NS()
	return ns, c.FirstFIN != 0 && c.DataAt != 0 && ns >= max(idleLeast, c.IRTT()*idleTrips)
}

// Hasty tells a SYN that comes again at a time at which no client sends it. A client does after one second or, as it was
// before RFC 6298, three, and each later time after as long or twice as long. Whoever floods sends the same packets over and over,
// and each takes what a new one takes.
func Hasty(r *tcp.Result) bool {
	if r.SYNWait == 0 {
		return false
	}
	const least, most = 0.9, 1.15 // clocks are coarse, and timers late
	for _, first := range [...]float64{1e9, 3e9} {
		for wait := first; wait*least <= float64(r.SYNWait); wait *= 2 {
			if float64(r.SYNWait) <= wait*most+lateMost {
				return false
			}
		}
	}
	return true
}

// lateMost is how much later a SYN may be on a busy machine, ns.
const lateMost = 50_000_000

// repeats takes up the SYNs that came again when no client sends one: each is an attempt of its own.
func (v *Server) repeats(c *tcp.Conn, client netip.Addr, k *tcp.Half) {
	n := int64(c.Hasty)
	v.again += n
	for i := range n { // when each came is not kept
		v.waits(client, (c.Start+(k.LastTime()-c.Start)*(i+1)/n)/1e9)
	}
}

// waits takes up an attempt that nobody completed: in a flood there are many.
func (v *Server) waits(client netip.Addr, second int64) {
	if _, there := v.sources[client]; there || len(v.sources) < maxSources {
		v.sources[client]++
	} else {
		v.moreAddrs = true
	}
	if _, there := v.seconds[second]; there || len(v.seconds) < maxSources {
		v.seconds[second]++
	}
}

func (j *Judge) attempt(client netip.Addr, at netip.AddrPort, fail Failure, second int64) {
	s := j.opens.sources[client]
	if s == nil {
		if len(j.opens.sources) >= maxSources {
			return
		}
		s = &source{targets: map[netip.AddrPort]bool{}}
		j.opens.sources[client] = s
	}
	if s.attempts++; second != s.second {
		s.second, s.inSecond, s.peak = second, 0, max(s.peak, s.inSecond)
	}
	s.inSecond++
	if fail != NotFailed {
		s.failed++
		if len(s.targets) < maxTargets {
			s.targets[at] = true
		}
	}
}

// failure says how an attempt ended. Only a connection whose SYN was captured can have failed.
func failure(c *tcp.Conn, server uint8) Failure {
	if c.Completeness&tcp.SawSYN == 0 {
		return NotFailed
	}
	s, k := &c.Half[server], &c.Half[1-server]
	handshakeOnly := k.SYNs > 0 && k.Last != 0 && k.LastFlags&(1<<1) != 0 // the client said nothing but SYN
	switch {
	case c.Completeness&tcp.SawSYNACK != 0 && !handshakeOnly:
		return NotFailed
	case c.Completeness&tcp.SawSYNACK != 0 && c.Completeness&tcp.SawRST != 0:
		return FailAbandoned
	case c.Completeness&tcp.SawSYNACK != 0:
		return FailHalf
	case !handshakeOnly: // the capture has one direction only
		return NotFailed
	case s.Last != 0:
		return FailOld
	case c.Completeness&tcp.SawRST != 0:
		return FailRefused
	case c.Errors != 0:
		return FailUnreachable
	}
	return FailUnanswered
}

// Servers returns what became of attempts to connect, those with most failures first.
func (j *Judge) Servers() []*Server {
	list := make([]*Server, 0, len(j.opens.servers))
	for _, v := range j.opens.servers {
		v.Kinds = map[string]Counted{}
		for f := FailRefused; f < Failures; f++ {
			if v.failed[f] > 0 {
				v.Kinds[f.String()] = Counted{v.failed[f], v.evidence[f]}
			}
		}
		if least, most, ok := v.timeout(); ok && len(v.idle) > 1 {
			v.IdleTimeout = (least + most) / 2
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *Server) int {
		return cmp.Or(cmp.Compare(b.failures(), a.failures()), cmp.Compare(b.Opened, a.Opened), a.Address.Compare(b.Address))
	})
	return list
}

func (v *Server) failures() (n int64) {
	for _, f := range v.failed {
		n += f
	}
	return n
}

package requests

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// Place is a listener, or what is connected to.
type Place struct {
	Netns uint32 `json:"netns"`
	// Listen is the listener as the probe of sockets writes it ("0.0.0.0:80",
	// "unix:/run/x"), "" of a client.
	Listen string `json:"listen,omitempty"`
	// Destination is what a client connects to, "" of a listener.
	Destination string `json:"dst,omitempty"`
	// Begun is how many requests came, or were asked; Followed how many of them
	// were followed themselves.
	Begun    uint64 `json:"begun"`
	Followed uint64 `json:"followed"`
	// Silent are connections that came and neither side said anything until this one closed it, LetBe
	// those that the client closed so. Unanswered are those that asked and got no byte, and LeftEarly
	// those of them whose client closed before anybody notices a wait; they are not among Unanswered.
	Silent     uint64 `json:"silent"`
	LetBe      uint64 `json:"let_be"`
	Unanswered uint64 `json:"unanswered"`
	LeftEarly  uint64 `json:"left_early"`
	// Unread, InHand and Age are of the requests under way; nil where this was
	// not looked at.
	Unread *uint64        `json:"unread_now,omitempty"`
	Age    *time.Duration `json:"under_way_ns,omitempty"`
	Groups []Group        `json:"groups"`
	Peers  []Peer         `json:"peers,omitempty"`
	number uint32
}

// Group is one command's processes at a place.
type Group struct {
	// Name is "" where none of them was seen to take part.
	Name string `json:"groupname"`
	// Unread is until the first read, InHand from the last read until the first byte of
	// the reply, or of a client the wait for that; Served until its last byte.
	Unread Times `json:"unread"`
	InHand Times `json:"in_hand"`
	Served Times `json:"served"`
	// Acknowledged is until the reply was acknowledged, WithNext how many the next request acknowledged.
	Acknowledged Times  `json:"acknowledged"`
	WithNext     uint64 `json:"acknowledged_with_next"`
	// Reply is from the first byte of replies to the last, added up.
	Reply time.Duration `json:"reply_ns"`
	// Receiving is of the requests in several pieces, Pieces how many those are.
	Receiving time.Duration `json:"receiving_ns"`
	Pieces    uint64        `json:"receiving"`
	// Timer is how long requests stood until a timer ended from which their replies follow, by
	// what was done then; Timers how many of those there were.
	Timer  map[string]time.Duration `json:"timer_ns,omitempty"`
	Timers map[string]uint64        `json:"timers,omitempty"`
	// Failed counts the requests without a reply, by how they ended; FailedAfter is how long ago these
	// had begun then, added up.
	Failed      map[string]uint64        `json:"failed,omitempty"`
	FailedAfter map[string]time.Duration `json:"failed_after_ns,omitempty"`
	Excluded    map[string]uint64        `json:"excluded,omitempty"`
	// Now is how many are in hand; nil where this was not looked at.
	Now *uint64 `json:"in_hand_now,omitempty"`
	// Doing is how many threads that had read a request and not answered it were running, or
	// waited for which reason; nil where this was not looked at.
	Doing map[string]uint64 `json:"holders_now,omitempty"`
	// Asking is how many threads had written a request that has no reply yet: "-" those that have one in hand themselves,
	// the rest by their names without the numbers at the end. Of clients; nil where this was not looked at, or where some of
	// their own requests may not be followed.
	Asking map[string]uint64 `json:"asking_now,omitempty"`
}

// Peer is one who asks.
type Peer struct {
	Address  string        `json:"peer"`
	Answered uint64        `json:"answered"`
	Waited   time.Duration `json:"waited_ns"`
}

// Snapshot is everything since the start, the place with most requests first.
type Snapshot struct {
	Places []Place `json:"places"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

var failures = []string{"closed", "left", "left_early", "reset", "aborted", "timed_out", "cut"}

var exclusions = []string{"overlapped", "one_way", "streamed", "tls", "farewell"}

// thens are what a service did when a timer had ended: it replied, or asked others first.
var thens = []string{"replied", "asked"}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	open, err := t.underWay()
	if err != nil {
		return s, err
	}
	by, err := t.places()
	if err != nil {
		return s, fmt.Errorf("read where requests came: %w", err)
	}
	var seen threads
	if open != nil && t.unfound == nil {
		seen, t.unfound = t.lookAtThreads()
	}
	if err := errors.Join(t.groups(by, open, seen), t.peers(by)); err != nil {
		return s, fmt.Errorf("read the requests: %w", err)
	}
	if s.Lost, err = t.Lost(); err != nil {
		return s, err
	}
	t.overlooked.note(by, s.Lost, time.Now())
	if open != nil {
		t.withheld = t.overlooked.withhold(by, time.Now())
	}
	for _, p := range by {
		p.sort()
		s.Places = append(s.Places, *p)
	}
	slices.SortFunc(s.Places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Begun, a.Begun), strings.Compare(a.Listen+a.Destination, b.Listen+b.Destination), cmp.Compare(a.Netns, b.Netns))
	})
	return s, nil
}

// note takes note of what a reading says.
func (o *overlooked) note(by map[uint32]*Place, lost map[string]uint64, now time.Time) {
	if n := lost["places"] + lost["sockets"] + lost["threads"]; n > o.lost {
		o.lost, o.at = n, now
	}
	for number, p := range by {
		passed := p.Begun - min(p.Followed, p.Begun)
		if p.Listen == "" || passed <= o.passed[number] {
			continue
		}
		o.passed[number] = passed
		for _, c := range p.Groups {
			o.of[process{p.Netns, c.Name}] = now
		}
	}
}

// withhold leaves out who asks where some of their requests may not be followed, and says whether there is anybody.
func (o *overlooked) withhold(by map[uint32]*Place, now time.Time) bool {
	withheld := false
	for _, p := range by {
		for i := range p.Groups {
			c := &p.Groups[i]
			if c.Asking != nil && (now.Sub(o.at) < overlookedFor || now.Sub(o.of[process{p.Netns, c.Name}]) < overlookedFor) {
				c.Asking, withheld = nil, true
			}
		}
	}
	return withheld
}

func (p *Place) sort() {
	slices.SortFunc(p.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.InHand.Buckets.Count(), a.InHand.Buckets.Count()), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.Peers, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(b.Answered, a.Answered), strings.Compare(a.Address, b.Address))
	})
}

// walked is what one walk over the sockets found; nil if there was none.
type walked map[bpfAt]bpfUnderWay

// underWay walks over the sockets, unless the last walk took so long that it is
// too soon for the next.
func (t *Trace) underWay() (walked, error) {
	if t.walk == nil || time.Now().Before(t.next) {
		return nil, nil
	}
	m := t.Maps.Maps[bpfMapOpen]
	var old []bpfAt
	if err := trace.Each(m, func(at *bpfAt, _ *bpfUnderWay) { old = append(old, *at) }); err != nil {
		return nil, fmt.Errorf("read the requests under way: %w", err)
	}
	began := time.Now()
	if err := errors.Join(trace.Remove(m, old), t.forgetHolders(), t.Maps.Variables[bpfVarRemembered].Set(uint64(0)), t.walkOver()); err != nil {
		return nil, fmt.Errorf("walk over the sockets that are followed: %w", err)
	}
	t.next = began.Add(time.Duration(float64(time.Since(began)) / walkShare)).Add(-time.Second)
	var n uint64
	if err := t.Maps.Variables[bpfVarRemembered].Get(&n); err != nil {
		return nil, err
	}
	found := walked{}
	err := trace.Each(m, func(at *bpfAt, u *bpfUnderWay) { found[*at] = *u })
	return found, errors.Join(err, t.Maps.Variables[bpfVarNoMoreSockets].Set(n >= maxSockets))
}

func (t *Trace) walkOver() error {
	t.walks++
	if err := t.Maps.Variables[bpfVarWalk].Set(t.walks); err != nil {
		return err
	}
	sockets, err := t.walk.Open()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, sockets)
	return errors.Join(err, sockets.Close())
}

func (t *Trace) places() (map[uint32]*Place, error) {
	by := map[uint32]*Place{}
	var failed error
	err := trace.Each(t.Maps.Maps[bpfMapPlaces], func(key *bpfPlace, number *uint32) {
		p := &Place{Netns: key.Netns, number: *number}
		if bpfRole(key.Role) == bpfRoleSERVER {
			p.Listen = key.address()
		} else {
			p.Destination = key.address()
		}
		var a bpfArrivals
		if err := t.Maps.Maps[bpfMapPlaceSums].Lookup(number, &a); err != nil {
			failed = err
			return
		}
		p.Begun, p.Followed, p.Silent, p.LetBe, p.Unanswered, p.LeftEarly = a.Begun, a.Followed, a.Silent, a.LetBe, a.Unanswered, a.LeftEarly
		by[*number] = p
	})
	return by, errors.Join(err, failed)
}

// address is as the probe of sockets writes listeners and destinations.
func (p *bpfPlace) address() string {
	if p.Family == familyUnix {
		name := strings.TrimRight(string(p.Name[:]), "\x00")
		return "unix:" + strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "@")
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(p.Name[:16])).Unmap(), p.Port).String()
}

const familyUnix = 1

func (t *Trace) groups(by map[uint32]*Place, open walked, seen threads) error {
	var failed error
	err := trace.Each(t.Maps.Maps[bpfMapGroups], func(key *bpfGroup, number *uint32) {
		p := by[key.Place]
		if p == nil {
			return // it came since
		}
		var s bpfSums
		if err := t.Maps.Maps[bpfMapGroupSums].Lookup(number, &s); err != nil {
			failed = err
			return
		}
		c := makeGroup(trace.Comm(key.Comm[:]), &s)
		if open != nil {
			now := open[bpfAt{Place: key.Place, Group: *number}].InHand
			c.Now = &now
		}
		switch {
		case seen.holding == nil:
		case p.Listen != "":
			c.Doing = maps.Clone(seen.holding.of(*number))
		default:
			c.Asking = maps.Clone(seen.asking.of(*number))
		}
		p.Groups = append(p.Groups, c)
	})
	for _, p := range by {
		p.setOpen(open)
	}
	return errors.Join(err, failed)
}

func (p *Place) setOpen(open walked) {
	if open == nil {
		return
	}
	p.Unread, p.Age = new(uint64), new(time.Duration)
	for at, u := range open {
		if at.Place == p.number {
			*p.Unread += u.Unread
			*p.Age += time.Duration(u.AgeNs)
		}
	}
}

func makeGroup(name string, s *bpfSums) Group {
	c := Group{Name: name, Reply: time.Duration(s.ReplyNs), Receiving: time.Duration(s.ReceivingNs), Pieces: s.Receiving, WithNext: s.WithNext,
		Unread: makeTimes(s.UnreadNs, s.Unread), InHand: makeTimes(s.InHandNs, s.InHand), Served: makeTimes(s.ServedNs, s.Served), Acknowledged: makeTimes(s.AcknowledgedNs, s.Acknowledged)}
	c.Timers, c.Timer = named[uint64](thens, s.Timers[:]), named[time.Duration](thens, s.TimerNs[:])
	c.Failed, c.Excluded = named[uint64](failures, s.Failed[:]), named[uint64](exclusions, s.Excluded[:])
	c.FailedAfter = named[time.Duration](failures, s.FailedNs[:])
	return c
}

// named gives counts their names; those that are 0 are left out.
func named[T uint64 | time.Duration](names []string, counts []uint64) map[string]T {
	by := map[string]T{}
	for i, n := range counts {
		if n > 0 {
			by[names[i]] = T(n)
		}
	}
	return by
}

func (t *Trace) peers(by map[uint32]*Place) error {
	return trace.Each(t.Maps.Maps[bpfMapPeers], func(key *bpfPeer, a *bpfAsked) {
		if p := by[key.Place]; p != nil {
			p.Peers = append(p.Peers, Peer{netip.AddrFrom16(key.Addr).Unmap().String(), a.Answered, time.Duration(a.UnreadNs + a.InHandNs)})
		}
	})
}

// Read puts the sums since the start. What has not happened yet is left out;
// the counters start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, p := range s.Places {
		t.put(out.Net(p.Netns), p)
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}

func (t *Trace) put(out model.Sink, p Place) {
	if t.Has(withoutByte) && p.Listen != "" {
		putAll(out, withoutByte, map[string]uint64{"no": p.Silent, "left": p.LetBe, "yes": p.Unanswered, "left_early": p.LeftEarly}, p.Listen)
	}
	side, name := server, p.Listen
	if p.Listen == "" {
		side, name = upstream, p.Destination
	}
	if !t.Has(side.begun) {
		return
	}
	out.Put(side.begun, float64(p.Begun), name)
	out.Put(side.followed, float64(p.Followed), name)
	if p.Age != nil {
		out.Put(side.underWay, p.Age.Seconds(), name)
	}
	if p.Unread != nil && p.Listen != "" {
		out.Put(unreadNow, float64(*p.Unread), name)
	}
	for _, c := range p.Groups {
		labels := []string{c.Name, name}
		if p.Listen != "" {
			labels = []string{name, c.Name}
		}
		t.putGroup(out, side, c, labels)
	}
	for _, peer := range p.Peers {
		out.Put(peerAnswered, float64(peer.Answered), name, peer.Address)
		out.Put(peerSeconds, peer.Waited.Seconds(), name, peer.Address)
	}
}

func (t *Trace) putGroup(out model.Sink, side side, c Group, labels []string) {
	side.unread.put(out, c.Unread, labels)
	side.inHand.put(out, c.InHand, labels)
	side.served.put(out, c.Served, labels)
	if c.InHand.Buckets.Count() > 0 {
		out.Put(side.reply, c.Reply.Seconds(), labels...)
	}
	if t.Has(side.failed) {
		putAll(out, side.failed, c.Failed, labels...)
	}
	putAll(out, side.excluded, c.Excluded, labels...)
	if c.Now != nil && c.Name != "" {
		out.Put(side.waiting, float64(*c.Now), labels...)
	}
	if side != server {
		t.putThreads(out, asking, c.Name, c.Asking, labels)
		return
	}
	if t.Has(failedAfter) {
		for how, d := range c.FailedAfter {
			out.Put(failedAfter, d.Seconds(), append(labels[:len(labels):len(labels)], how)...)
		}
	}
	t.putThreads(out, holders, c.Name, c.Doing, labels)
	acked.put(out, c.Acknowledged, labels)
	if c.WithNext > 0 {
		out.Put(withNext, float64(c.WithNext), labels...)
	}
	if c.Pieces > 0 {
		out.Put(receivingSum, c.Receiving.Seconds(), labels...)
		out.Put(receivingCount, float64(c.Pieces), labels...)
	}
	putAll(out, timerCount, c.Timers, labels...)
	for then, stood := range c.Timer {
		out.Put(timerSum, stood.Seconds(), append(labels[:len(labels):len(labels)], then)...)
	}
}

func putAll(out model.Sink, s *model.Signal, counts map[string]uint64, labels ...string) {
	for name, n := range counts {
		if n > 0 {
			out.Put(s, float64(n), append(labels[:len(labels):len(labels)], name)...)
		}
	}
}

func (t times) put(out model.Sink, d Times, labels []string) {
	n := d.Buckets.Count()
	if n == 0 {
		return
	}
	out.Put(t.sum, d.Sum.Seconds(), labels...)
	out.Put(t.count, float64(n), labels...)
	d.Buckets.Put(out, t.bucket, labels...)
}

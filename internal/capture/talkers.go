package capture

import (
	"cmp"
	"net/netip"
	"slices"

	"plimsoll/internal/capture/tcp"
)

// Talker is what one address sent over TCP.
type Talker struct {
	Address     netip.Addr `json:"address"`
	Packets     int64      `json:"packets"`
	Payload     int64      `json:"payload"` // bytes, those sent again included
	Connections int64      `json:"connections"`
}

// talkers adds up by address. Beyond maxTalkers those that sent least are
// forgotten: who sends much comes back.
type talkers map[netip.Addr]*Talker

const (
	maxTalkers  = 8192
	showTalkers = 20
)

func (t talkers) add(a *tcp.Analyzer, c *tcp.Conn) {
	for side := range c.Half {
		h := &c.Half[side]
		if h.Packets == 0 {
			continue
		}
		addr := a.Addr(c, uint8(side)).Addr()
		one := t[addr]
		if one == nil {
			t.bound()
			one = &Talker{Address: addr}
			t[addr] = one
		}
		one.Packets += int64(h.Packets)
		one.Payload += int64(h.Bytes)
		one.Connections++
	}
}

func (t talkers) bound() {
	if len(t) < maxTalkers {
		return
	}
	for _, one := range t.top()[maxTalkers/2:] {
		delete(t, one.Address)
	}
}

// top returns all, who sent most first.
func (t talkers) top() []Talker {
	list := make([]Talker, 0, len(t))
	for _, one := range t {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Talker) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(b.Payload, a.Payload), a.Address.Compare(b.Address))
	})
	return list
}

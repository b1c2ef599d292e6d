package requests

import (
	"errors"
	"time"
)

// overlookedFor is for how long after a turn that was not followed some more may have been: a connection keeps the share of its
// turns that are followed until one is, and a request may have been in hand before.
const overlookedFor = time.Minute

// errOverlooked says why it is not known who asks for others.
var errOverlooked = errors.New("not all requests that came to who asks are followed (more than some 1,000 a second at a listener, bursts on a busy machine, or no room), " +
	"so threads that ask for their own cannot be told from those that ask for others; measure with less load")

// process is a command in a network namespace.
type process struct {
	netns uint32
	name  string
}

// overlooked is when requests came last that were not followed, so that a thread may have one in hand and nobody knows.
type overlooked struct {
	at     time.Time // of anybody
	of     map[process]time.Time
	passed map[uint32]uint64 // how many each listener's turns were that others stood for, by its number
	lost   uint64
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

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

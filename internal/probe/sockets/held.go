package sockets

import "time"

// What a connection's bytes wait for on their way out, as the kernel divides the
// time that it has some (net/ipv4/tcp_output.c, tcp_chrono_set).
const (
	byWay      = iota // acknowledgements, at the pace of the way and of congestion control
	byReceiver        // room in the peer's window
	byBuffer          // room in the socket's own send buffer; the process would send more
	heldCount
)

var heldNames = [heldCount]string{"way", "receiver", "buffer"}

// What stands behind them.
const (
	bytesMoved    = heldCount + iota // the bytes that have gone to the peer
	segmentsSent                     // with data, those that were sent again included
	segmentsAgain                    // sent again
	bytesCame                        // from the peer
	segmentsCame                     // from the peer, with data
	countCount
)

// heldFor is a time in µs for each of them, and these counts.
type heldFor [countCount]uint64

// maxHeld bounds the connections that are followed from dump to dump. Of further
// ones nothing is counted.
const maxHeld = 16384

// shortLook is the time between two dumps in which too few round trips are to tell anything by; the last round of a
// window may follow upon another at once.
const shortLook = 500 * time.Millisecond

// progress is how far each connection's times had come in the last dump.
type progress struct {
	known map[uint64]*heldSeen // by cookie
	dump  uint64               // number of the dump under way, from 1
	began time.Time            // this dump
	took  time.Duration        // from the one before it to this one; 0 in the first
}

type heldSeen struct {
	held   heldFor
	rested rested
	dump   uint64
}

// rested is the congestion window that a connection had in a pause, 0 where none was seen, and what it had lost by then.
type rested struct{ window, resent, marked uint32 }

// since is what has been added to a connection's times and bytes since the last dump; of
// one that was there before the first, what came after that.
func (p *progress) since(cookie uint64, now heldFor) (added heldFor) {
	k := p.known[cookie]
	if k == nil {
		if len(p.known) >= maxHeld {
			return added
		}
		k = &heldSeen{}
		if p.dump == 1 {
			k.held = now
		}
		p.known[cookie] = k
	}
	for i := range now {
		added[i] = now[i] - min(now[i], k.held[i]) // two clocks in one; never back
	}
	k.held, k.dump = now, p.dump
	return added
}

func (p *progress) begin(now time.Time) {
	if p.known == nil {
		p.known = map[uint64]*heldSeen{}
	} else {
		p.took = now.Sub(p.began)
	}
	p.dump++
	p.began = now
}

// end forgets the connections that were not in the dump.
func (p *progress) end() {
	for cookie, k := range p.known {
		if k.dump != p.dump {
			delete(p.known, cookie)
		}
	}
}

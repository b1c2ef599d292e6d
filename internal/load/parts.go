package load

// part is what a request's time went into. The parts of a request do not
// overlap, and add up to its wait: from the intended time to the outcome.
type part uint8

const (
	queued      part = iota // open loop: no connection was free
	late                    // it could have begun, and the thread was behind
	connectPart             // socket and connect, until the kernel told us of its end
	connectLag              // told of the connect's end, busy with other connections
	tlsPart                 // the TLS handshake
	tlsLag                  // its end not yet seen, busy with other connections
	firstByte               // sending the request, and nothing of the reply has come
	replyPart               // from the reply's first bytes to its last
	replyLag                // told of a reply's bytes, busy with other connections
	partKinds   = int(replyLag) + 1
)

func (p part) String() string {
	return [...]string{
		queued: "queue", late: "late", connectPart: "connect", connectLag: "connect_lag", tlsPart: "tls", tlsLag: "tls_lag",
		firstByte: "first_byte", replyPart: "body", replyLag: "reply_lag",
	}[p]
}

// summed is a number of durations and their sum in nanoseconds.
type summed struct{ n, nanos int64 }

func (s *summed) add(ns int64) {
	s.n++
	s.nanos += ns
}

func (s *summed) durations() Durations { return Durations{Count: s.n, Seconds: float64(s.nanos) / 1e9} }

// moveTo adds s to sum and leaves s empty.
func (s *summed) moveTo(sum *summed) {
	sum.n += s.n
	sum.nanos += s.nanos
	*s = summed{}
}

// partSeconds gives every part its name, and nanoseconds as seconds.
func partSeconds(nanos *[partKinds]int64) map[string]float64 {
	named := map[string]float64{}
	for p, ns := range nanos {
		named[part(p).String()] = float64(ns) / 1e9
	}
	return named
}

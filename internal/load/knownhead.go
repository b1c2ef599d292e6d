package load

// knownHead is a reply's head and what it came to. A server sends the same one until the second changes (Date), and to
// compare costs a fraction of what parsing does.
type knownHead struct {
	bytes  []byte
	after  reply // what a reply is after that head
	learns int64 // when the next one may be learnt
}

const (
	longestKnown = 1 << 10
	// learnEvery keeps heads that are never the same twice (request numbers, cookies) from being parsed twice each.
	learnEvery = 50_000_000
)

// feed does what r.feed does.
func (k *knownHead) feed(r *reply, b []byte, now int64) (used int, s step) {
	if r.state != inStatusLine || r.interim > 0 || len(r.carry) > 0 {
		return r.feed(b)
	}
	n := len(k.bytes)
	if n > 0 && len(b) >= n && string(b[:n]) == string(k.bytes) && r.toHEAD == k.after.toHEAD && r.upgrade == k.after.upgrade {
		carry, text := r.carry, r.text
		*r = k.after
		r.carry, r.text = carry, text
		used, s = r.feed(b[n:])
		return n + used, s
	}
	before := *r
	if used, s = r.feed(b); s != broken && now >= k.learns {
		k.learn(before, r, b, now)
	}
	return used, s
}

// learn keeps the head of r, which was before as it was when b came, if b holds the whole of it.
func (k *knownHead) learn(before reply, r *reply, b []byte, now int64) {
	if r.interim > 0 || r.chunked || r.head > longestKnown || r.state != inBody && r.state != atEnd {
		return
	}
	k.learns, k.bytes = now+learnEvery, append(k.bytes[:0], b[:r.head]...)
	before.text = nil
	before.feed(k.bytes)
	before.carry = nil
	k.after = before
}

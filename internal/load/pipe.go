package load

// pipe is a connection on which several requests are at once, and their places.
type pipe struct {
	lanes
	order  connsIn // whose replies are to come, the next one first; those given up are idle
	active int     // how many of these are not

	out     []byte // to be sent; sent bytes of it are
	sent    int
	written int // bytes of requests since it stands; gone of them are sent
	gone    int
	retired bool // it takes no more requests
}

// reset begins a new connection.
func (p *pipe) reset() {
	p.order.first, p.order.n, p.active = 0, 0, 0
	p.out, p.sent, p.written, p.gone = p.out[:0], 0, 0, 0
	p.retired = false
}

// put writes c's request behind those that are there.
func (p *pipe) put(c *conn) {
	if p.sent > len(p.out)/2 { // what is sent is let go of, also where something is always left to send
		p.out, p.sent = append(p.out[:0], p.out[p.sent:]...), 0
	}
	p.out = append(p.out, c.asked.bytes...)
	p.written += len(c.asked.bytes)
	c.sent, c.state = p.written, awaiting
	p.order.push(c)
	p.active++
	p.carrier.phase = c.phase
	p.carrier.unsealed++
}

// whole says that all of c's request is sent, begun that some of it is.
func (p *pipe) whole(c *conn) bool { return p.gone >= c.sent }
func (p *pipe) begun(c *conn) bool { return p.gone > c.sent-len(c.asked.bytes) }

package load

import (
	"syscall"
	"time"
)

// book puts c's time since it was last booked, up to a moment, under p.
func (t *thread) book(c *conn, p part, until int64) {
	if until > c.booked {
		t.count(c.phase).parts[p] += until - c.booked
		c.booked = until
	}
}

// told books the time of c until epoll told of it under p, and what passed
// since, in which the thread handled other connections, under lag.
func (t *thread) told(c *conn, p, lag part) {
	t.book(c, p, t.woke)
	t.book(c, lag, t.now)
}

// heard is called when the end of c's connection or bytes of its reply were read.
func (t *thread) heard(c *conn) {
	sent, came := c.booked, t.woke
	if t.shared.openLoop { // what came is dated by the kernel, so no lag of ours is in it
		came = c.at
		t.book(c, c.stage(), c.at)
	} else {
		t.told(c, c.stage(), replyLag)
	}
	if !c.heard {
		c.heard, c.first, c.waited = true, c.at, came-sent
	}
}

// receiveInto reads from c's socket.
func (t *thread) receiveInto(c *conn, b []byte) (int, syscall.Errno) {
	c.at = max(t.now, c.booked)
	if c.stamped {
		return t.readStamped(c, b)
	}
	return sysRecv(c.fd, b, len(b), 0)
}

// readStamped reads, and records how long what it read had been in the kernel.
func (t *thread) readStamped(c *conn, b []byte) (int, syscall.Errno) {
	n, at, errno := t.stamps.read(c.fd, b)
	t.dated(c, at)
	return n, errno
}

// dated takes note of when the kernel received what was read last, 0 for unknown.
func (t *thread) dated(c *conn, at int64) {
	if at == 0 {
		return
	}
	now := time.Now()
	lay := now.UnixNano() - at
	t.count(c.phase).add(unread, lay)
	if t.shared.openLoop {
		c.at = max(int64(now.Sub(t.shared.base))-max(lay, 0), c.booked)
	} else {
		c.lay = max(lay-(int64(now.Sub(t.shared.base))-t.now), 0)
		t.addUnread(c)
	}
}

// addUnread adds what c's reply lay unread until the moment to which its
// latency is counted; bytes that came after it cost the request nothing.
func (t *thread) addUnread(c *conn) {
	if c.carries {
		return // its streams' requests take it
	}
	sum := &t.count(c.phase).unread
	sum.nanos += c.lay
	if !c.heard {
		sum.n++
	}
}

package load

// connState is what a connection is about.
type connState uint8

const (
	closed     connState = iota
	idle                 // established, no request in flight
	connecting           // the connect belongs to the request in flight
	shaking              // and so does the TLS handshake
	sending              // the kernel took only a part of the request
	awaiting             // the request is sent, its reply is not complete
)

// conn is one of the load's connections: a place that holds one socket after
// another, and at most one request at a time. There may be a million of them, so its fields leave few gaps.
type conn struct {
	fd      int32 // -1 while closed
	name    int32 // index in thread.conns
	place   int32 // HTTP/2: among the streams of the connection of that name
	state   connState
	phase   phase // in which the request began
	stamped bool  // the kernel stamps what this connection receives
	heard   bool  // bytes of the reply have come
	early   bool  // something had come before the request was sent
	tried   bool  // an attempt was made at it
	stood   bool  // it was established once
	unasked bool  // the last socket was closed because of a reply to no request
	carries bool  // HTTP/2: it carries streams and has no requests of its own; one that is the place of a stream has no socket
	inStage uint8 // open loop: the stage in which the request was due
	// lost is the errno of a send; the server may have answered before it
	// closed, so what it sent is read before the request counts as failed.
	lost     uint16
	unsealed int32 // HTTP/2: requests that it carries and that were not yet sealed
	sent     int   // bytes of the request; where several are on a connection, where it ends in what is sent there
	start    int64 // when the request began, connect included
	intended int64 // when it was to begin
	at       int64 // when what was read last had come
	first    int64 // the same of the first of the reply
	waited   int64 // from when the request was sent until we were told of that
	booked   int64 // until when its time is booked under parts
	freed    int64 // open loop: since when it had no request
	wakes    int64 // when it sleeps: until then
	asked    *request
	reply    reply
	secure   *secure // nil without TLS, and before the first handshake
	lay      int64   // how long what was read last had lain in the kernel

	// neighbours in the list of requests in flight, oldest first
	older, newer *conn
}

// stage is what c's request waits for.
func (c *conn) stage() part {
	switch {
	case c.state == closed || c.state == connecting:
		return connectPart
	case c.state == shaking:
		return tlsPart
	case c.heard:
		return replyPart
	}
	return firstByte
}

// unsent says that sealed bytes wait for the kernel to take them.
func (c *conn) unsent() bool { return c.secure != nil && len(c.secure.wire.out) > 0 }

package http

import "bytes"

// mode is what a direction's next byte belongs to.
type mode uint8

const (
	between    mode = iota // the beginning of a message
	searching              // unknown: a message is looked for at the beginning of segments
	inHead                 // a head that is not whole
	inBody                 // left bytes of a body, of a chunk, or of a TLS record
	chunkSize              // the line before a chunk
	chunkEnd               // the line end behind one
	trailer                // the lines behind the last chunk
	untilClose             // a body that ends with the connection
	recordHead             // the five bytes before a TLS record
	tunnel                 // no HTTP any more: CONNECT, an upgrade
)

// direction is what one side sends.
type direction struct {
	next      uint32 // the sequence number to read next
	mode      mode
	begun     bool
	hopeless  bool // its first bytes are of no protocol that is known
	chunked   bool
	left      int64
	head      []byte // of a head, line or record that is not whole
	held      []part // what came too early, in order
	heldBytes int
	first     Mark // of the message that is being read
	last      Mark // of what was read last
}

// read reads a part that continues the direction.
func (t *Tracker) read(k *conn, side uint8, p part, now Mark) {
	d := &k.dirs[side]
	d.next = p.seq + p.size
	d.last = now
	missing := int64(p.size) - int64(len(p.b))
	if d.mode == inBody && d.left > int64(p.size) || d.mode == untilClose { // most segments
		d.left -= int64(p.size)
		return
	}
	for b := p.b; len(b) > 0 && d.mode != tunnel; {
		n := t.consume(k, side, b, p.at, now)
		if n == 0 { // nothing that begins here is known
			d.mode = searching
			break
		}
		b = b[n:]
	}
	if missing > 0 {
		t.uncaptured(k, side, missing, now)
	}
}

// uncaptured passes over bytes of which only the number is known.
func (t *Tracker) uncaptured(k *conn, side uint8, n int64, now Mark) {
	d := &k.dirs[side]
	switch {
	case d.mode == untilClose || d.mode == tunnel:
	case d.mode == inBody && d.left >= n:
		if d.left -= n; d.left == 0 {
			t.bodyDone(k, side, now)
		}
	default:
		d.mode = searching
		t.Lost++
		k.forget()
	}
}

// consume reads from b what its mode makes of it, and returns how much that was.
func (t *Tracker) consume(k *conn, side uint8, b []byte, at, now Mark) int {
	d := &k.dirs[side]
	switch d.mode {
	case between, searching:
		return t.begin(k, side, b, at, now)
	case inHead:
		return t.moreHead(k, side, b, now)
	case inBody:
		n := int(min(d.left, int64(len(b))))
		if d.left -= int64(n); d.left == 0 {
			t.bodyDone(k, side, now)
		}
		return n
	case chunkSize, chunkEnd, trailer:
		return t.line(k, side, b, now)
	case recordHead:
		return t.record(k, side, b, at)
	}
	return len(b)
}

// begin looks for the beginning of a message.
func (t *Tracker) begin(k *conn, side uint8, b []byte, at, now Mark) int {
	d := &k.dirs[side]
	switch kind := messageKind(b); {
	case kind == request && (k.protocol != HTTP || k.client == side), kind == reply && (k.protocol != HTTP || k.client != side):
		k.protocol, k.client = HTTP, side
		if kind == reply {
			k.client = 1 - side
		}
		d.first, d.mode, d.head = at, inHead, d.head[:0]
		return t.moreHead(k, side, b, now)
	case d.mode == between && k.protocol == HTTP && (b[0] == '\r' || b[0] == '\n'): // empty lines between messages
		return 1
	case k.protocol != HTTP && isRecord(b):
		if k.protocol == Unknown {
			k.client = side
			if len(b) > 5 && b[5] == 2 { // the server's greeting is the first that is there
				k.client = 1 - side
			}
		}
		k.protocol, d.mode, d.head = TLS, recordHead, d.head[:0]
		return t.record(k, side, b, at)
	}
	d.hopeless = d.mode == between && k.protocol == Unknown
	return 0
}

// messageKind is what b begins with.
type kind uint8

const (
	neither kind = iota
	request
	reply
)

var methods = [][]byte{
	[]byte("GET "), []byte("POST "), []byte("HEAD "), []byte("PUT "), []byte("DELETE "), []byte("OPTIONS "), []byte("PATCH "),
	[]byte("CONNECT "), []byte("TRACE "), []byte("PROPFIND "), []byte("REPORT "),
}

var version = []byte("HTTP/1.")

func messageKind(b []byte) kind {
	if b[0] < 'A' || b[0] > 'Z' {
		return neither
	}
	if bytes.HasPrefix(b, version) {
		return reply
	}
	for _, m := range methods {
		if b[0] == m[0] && bytes.HasPrefix(b, m) {
			return request
		}
	}
	return neither
}

// isRecord says whether b begins with a TLS record.
func isRecord(b []byte) bool {
	return len(b) >= 5 && b[0] >= 20 && b[0] <= 24 && b[1] == 3 && b[2] <= 4 && (b[3] != 0 || b[4] != 0) && b[3] < 0x48
}

// moreHead collects a head until its empty line.
func (t *Tracker) moreHead(k *conn, side uint8, b []byte, now Mark) int {
	d := &k.dirs[side]
	if len(d.head) == 0 { // mostly a segment has it all: then nothing is copied
		if h, end := parseHead(b); end > 0 {
			t.headDone(k, side, h, now)
			return end
		}
	}
	had := len(d.head)
	d.head = append(d.head, b[:min(len(b), maxHead-had)]...)
	end := headEnd(d.head, max(had-3, 0))
	if end > 0 {
		h, _ := parseHead(d.head[:end])
		d.head = d.head[:0]
		t.headDone(k, side, h, now)
		return end - had
	}
	if len(d.head) >= maxHead {
		d.mode = searching
	}
	return len(b)
}

// headEnd returns where the empty line of a head ends, 0 where there is none yet.
func headEnd(b []byte, from int) int {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0
		}
		from += i + 1
		switch rest := b[from:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return from + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return from + 2
		}
	}
}

// line reads the lines around chunks.
func (t *Tracker) line(k *conn, side uint8, b []byte, now Mark) int {
	d := &k.dirs[side]
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		if len(d.head)+len(b) > maxHead {
			d.mode = searching
			return len(b)
		}
		d.head = append(d.head, b...)
		return len(b)
	}
	text := b[:i]
	if len(d.head) > 0 {
		d.head = append(d.head, b[:i]...)
		text = d.head
	}
	text = bytes.TrimRight(text, "\r")
	switch d.mode {
	case chunkEnd:
		d.mode = chunkSize
	case trailer:
		if len(text) == 0 {
			t.messageDone(k, side, now)
		}
	default:
		d.chunk(text)
	}
	d.head = d.head[:0]
	return i + 1
}

// chunk reads the line before a chunk.
func (d *direction) chunk(text []byte) {
	size, digits := int64(0), 0
	for _, c := range text {
		v := int64(-1)
		switch {
		case c >= '0' && c <= '9':
			v = int64(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = int64(c|0x20-'a') + 10
		}
		if v < 0 || digits == 12 {
			break
		}
		size, digits = size<<4|v, digits+1
	}
	switch {
	case digits == 0:
		d.mode = searching
	case size == 0:
		d.mode = trailer
	default:
		d.mode, d.left = inBody, size
	}
}

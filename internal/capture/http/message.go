package http

import (
	"bytes"
	"strconv"
)

// head is what a message's head says of its length.
type head struct {
	status    int   // of a reply
	length    int64 // -1 where no field says it
	chunked   bool
	none      bool // there is no body, whatever the fields say
	isHead    bool // of a request: the method is HEAD
	isConnect bool // likewise CONNECT
}

// headDone takes up a head that is whole, and what follows from it.
func (t *Tracker) headDone(k *conn, side uint8, h head, now Mark) {
	d := &k.dirs[side]
	if side == k.client {
		t.asked(k, d, h)
		d.body(h, false)
	} else {
		e := t.answered(k, h.status, d.first)
		h.none = e.head || h.status < 200 || h.status == 204 || h.status == 304
		if h.status == 101 || h.status/100 == 2 && e.connect {
			t.replyDone(k, now)
			k.dirs[0].mode, k.dirs[1].mode = tunnel, tunnel
			return
		}
		d.body(h, true)
	}
	if d.mode == between {
		t.messageDone(k, side, now)
	}
}

// body sets how the body is to be read.
func (d *direction) body(h head, isReply bool) {
	d.chunked = false
	switch {
	case h.none || h.length == 0 && !h.chunked:
		d.mode = between
	case h.chunked:
		d.mode, d.chunked = chunkSize, true
	case h.length > 0:
		d.mode, d.left = inBody, h.length
	case isReply:
		d.mode = untilClose
	default:
		d.mode = between
	}
}

// parseHead reads the first line, and the fields that tell of the body's length. end
// is where the head ends, 0 where it is not whole.
func parseHead(b []byte) (h head, end int) {
	h.length = -1
	for start := 0; ; {
		i := bytes.IndexByte(b[start:], '\n')
		if i < 0 {
			return h, 0
		}
		line := b[start : start+i]
		switch {
		case start == 0:
			h.first(line)
		case i == 0 || i == 1 && line[0] == '\r':
			return h, start + i + 1
		case line[0]|0x20 == 'c' || line[0]|0x20 == 't':
			h.field(line)
		}
		start += i + 1
	}
}

// first reads the first line.
func (h *head) first(line []byte) {
	if bytes.HasPrefix(line, version) {
		if i := bytes.IndexByte(line, ' '); i > 0 && len(line) >= i+4 {
			n, _ := strconv.Atoi(string(line[i+1 : i+4])) // 0 where it is no number
			h.status = max(n, 0)
		}
		return
	}
	h.isHead, h.isConnect = bytes.HasPrefix(line, []byte("HEAD ")), bytes.HasPrefix(line, []byte("CONNECT "))
}

var contentLength, transferEncoding = []byte("content-length"), []byte("transfer-encoding")

func (h *head) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch {
	case len(name) == len(contentLength) && bytes.EqualFold(name, contentLength):
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 62); err == nil && n >= 0 {
			h.length = n
		}
	case len(name) == len(transferEncoding) && bytes.EqualFold(name, transferEncoding):
		h.chunked = bytes.Contains(bytes.ToLower(value), []byte("chunked"))
	}
}

// bodyDone is the end of a body, of a chunk or of a record.
func (t *Tracker) bodyDone(k *conn, side uint8, now Mark) {
	d := &k.dirs[side]
	switch {
	case k.protocol == TLS:
		d.mode = recordHead
	case d.chunked:
		d.mode = chunkEnd
	default:
		t.messageDone(k, side, now)
	}
}

// messageDone is the end of a request or reply.
func (t *Tracker) messageDone(k *conn, side uint8, now Mark) {
	k.dirs[side].mode = between
	if side != k.client {
		t.replyDone(k, now)
		return
	}
	for i := len(k.queue) - 1; i >= 0; i-- {
		if e := &k.queue[i]; e.requestSeen {
			e.ReqLast = now
			return
		}
	}
}

// asked notes a request; until it is whole, its end is where its head ends.
func (t *Tracker) asked(k *conn, d *direction, h head) {
	if len(k.queue) >= maxQueue {
		k.forget()
	}
	k.count++
	k.queue = append(k.queue, Exchange{Stream: k.stream, Protocol: k.protocol, ReqFirst: d.first, ReqLast: d.last,
		Number: k.count, requestSeen: true, head: h.isHead, connect: h.isConnect})
}

// answered notes a reply's beginning with the request it belongs to, and returns that.
func (t *Tracker) answered(k *conn, status int, first Mark) Exchange {
	if len(k.queue) == 0 { // its request was not captured
		k.queue = append(k.queue, Exchange{Stream: k.stream, Protocol: k.protocol})
	}
	e := &k.queue[0]
	e.Status = uint16(status)
	if e.ReplyFirst.Frame == 0 {
		e.ReplyFirst = first
	}
	return *e
}

// replyDone is the end of the oldest exchange, if its reply has begun. Replies
// with a status below 200 are not the end of anything.
func (t *Tracker) replyDone(k *conn, now Mark) {
	if len(k.queue) == 0 || k.queue[0].ReplyFirst.Frame == 0 {
		return
	}
	e := &k.queue[0]
	if k.protocol == HTTP && e.Status < 200 && e.Status != 101 {
		e.ReplyFirst = Mark{}
		return
	}
	e.ReplyLast = now
	if e.requestSeen {
		t.Done(e)
	}
	k.queue = append(k.queue[:0], k.queue[1:]...)
}

// record reads the beginning of a TLS record. One that carries data belongs to
// a request if the client sent it, else to a reply; a new request begins with the
// client's first data after the server's.
func (t *Tracker) record(k *conn, side uint8, b []byte, at Mark) int {
	d := &k.dirs[side]
	n := min(5-len(d.head), len(b))
	d.head = append(d.head, b[:n]...)
	if len(d.head) < 5 {
		return n
	}
	h := d.head
	d.head = d.head[:0]
	if !isRecord(h) {
		d.mode = searching
		return n
	}
	d.mode, d.left = inBody, int64(h[3])<<8|int64(h[4])
	if h[0] == 23 {
		t.data(k, side, at)
	}
	return n
}

// data takes up a record of data. Only the last exchange of the queue is open:
// over TLS requests that overlap cannot be told apart.
func (t *Tracker) data(k *conn, side uint8, at Mark) {
	var open *Exchange
	if len(k.queue) > 0 {
		open = &k.queue[0]
	}
	switch {
	case side != k.client:
		if open != nil && open.ReplyFirst.Frame == 0 {
			open.ReplyFirst = at
		}
	case open != nil && open.ReplyFirst.Frame == 0:
		open.ReqLast = at
	default:
		t.replyDone(k, k.dirs[1-side].last)
		k.count++
		k.queue = append(k.queue, Exchange{Stream: k.stream, Protocol: TLS, ReqFirst: at, ReqLast: at, Number: k.count, requestSeen: true})
	}
}

package load

import (
	"bytes"
	"sync"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// hpackTableSize is the size of both dynamic tables, in RFC 7541's octets: the default, which we leave as it is.
const hpackTableSize = 4096

// longestRemembered bounds the header block that is kept to recognise the next one by.
const longestRemembered = 1 << 10

// fieldKind is what a header field is about.
type fieldKind uint8

const (
	otherField fieldKind = iota
	statusField
	lengthField
	badField // no reply may have it
)

// headField is what matters of a header field. Of its text nothing is kept.
type headField struct {
	name, size uint32 // octets of the name; of the whole, RFC 7541, 4.1
	kind       fieldKind
	bad        bool  // its value cannot be one
	number     int64 // of a status or a length; -1 if the value is none
}

// replyHead is what a header block says.
type replyHead struct {
	status int16 // 0: it has none
	length int64 // Content-Length, -1 if it has none
	fault  fault // of the stream's; the connection can go on
}

// headDecoder decodes the header blocks of one connection. A block like the one before,
// as most are, is recognised by comparison; what it adds to the table is added again.
type headDecoder struct {
	static  []headField
	text    *textBuffer
	ring    []headField // the dynamic table; the newest is at ring[newest]
	newest  int
	entries int
	size    uint32
	max     uint32
	added   uint64 // entries, since the beginning
	last    struct {
		block []byte // nil: not to be recognised
		head  replyHead
		adds  []headField
		// refers says that the block names entries of the dynamic table, so that it means the
		// same only as long as that stays what it was: until more than stood are added.
		refers bool
		stood  uint64
	}
}

// textBuffer takes decoded texts, one at a time.
type textBuffer struct{ b []byte }

// Write appends.
func (t *textBuffer) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	return len(b), nil
}

// staticFields is RFC 7541's static table; entry 0 is none.
var staticFields = sync.OnceValue(func() []headField {
	const entries = 61
	list := make([]headField, 1, entries+1)
	d := hpack.NewDecoder(hpackTableSize, func(f hpack.HeaderField) {
		list = append(list, fieldOf([]byte(f.Name), []byte(f.Value)))
	})
	for i := range entries {
		_, _ = d.Write([]byte{0x80 | byte(i+1)}) // each of them is there
	}
	return list
})

func newHeadDecoder(text *textBuffer) headDecoder {
	return headDecoder{static: staticFields(), text: text, max: hpackTableSize}
}

// reset begins a new connection.
func (d *headDecoder) reset() {
	ring, block, adds := d.ring, d.last.block[:0], d.last.adds[:0]
	*d = newHeadDecoder(d.text)
	d.ring, d.last.block, d.last.adds = ring, block, adds
}

// fieldOf judges a field.
func fieldOf(name, value []byte) headField {
	f := named(name)
	f.give(value)
	return f
}

// named is a field of which the name alone is known.
func named(name []byte) headField {
	f := headField{name: uint32(len(name))}
	switch {
	case string(name) == ":status":
		f.kind = statusField
	case string(name) == "content-length":
		f.kind = lengthField
	case !validFieldName(name):
		f.kind = badField
	}
	return f
}

// give gives a field its value.
func (f *headField) give(value []byte) {
	f.size, f.number = f.name+uint32(len(value))+32, -1
	if f.kind == statusField || f.kind == lengthField {
		if n, ok := parseDigits(value); ok && (f.kind == lengthField || len(value) == 3) {
			f.number = n
		}
	}
	f.bad = bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// validFieldName says whether a name is a token in lower case; so none with a colon, as
// requests' fields have.
func validFieldName(name []byte) bool {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' || !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return len(name) > 0
}

// decode takes a whole header block; false means that it is none, so that the tables of the
// two ends differ from now on.
func (d *headDecoder) decode(block []byte) (replyHead, bool) {
	l := &d.last
	if len(l.block) > 0 && (!l.refers || l.stood == d.added) && bytes.Equal(block, l.block) {
		for _, f := range l.adds {
			d.add(f)
		}
		return l.head, true
	}
	l.block, l.adds, l.refers = l.block[:0], l.adds[:0], false
	h := headReading{decoder: d, block: block, head: replyHead{length: -1}, remember: len(block) <= longestRemembered}
	for len(h.block) > 0 {
		if !h.field() {
			return replyHead{}, false
		}
	}
	if h.remember && (!l.refers || len(l.adds) == 0) {
		l.block, l.head, l.stood = append(l.block, block...), h.head, d.added
	}
	return h.head, true
}

// at is entry i of both tables; dynamic says which one.
func (d *headDecoder) at(i uint64) (f headField, ok bool) {
	switch statics := uint64(len(d.static)); {
	case i == 0 || i >= statics+uint64(d.entries):
		return headField{}, false
	case i < statics:
		return d.static[i], true
	default:
		d.last.refers = true
		at := d.newest - int(i-statics)
		if at < 0 {
			at += len(d.ring)
		}
		return d.ring[at], true
	}
}

// add puts an entry into the dynamic table, and others out of it.
func (d *headDecoder) add(f headField) {
	d.added++
	d.size += f.size
	if d.evict(); f.size > d.max {
		return // the table is empty then
	}
	if d.ring == nil {
		d.ring = make([]headField, hpackTableSize/32)
	}
	if d.newest++; d.newest >= len(d.ring) {
		d.newest = 0
	}
	d.ring[d.newest] = f
	d.entries++
}

// evict makes room, the new entry's size being counted already.
func (d *headDecoder) evict() {
	for d.size > d.max && d.entries > 0 {
		oldest := d.newest - d.entries + 1
		if oldest < 0 {
			oldest += len(d.ring)
		}
		d.size -= d.ring[oldest].size
		d.entries--
	}
	if d.entries == 0 && d.size > d.max {
		d.size = 0
	}
}

// headReading is a header block that is being read.
type headReading struct {
	decoder  *headDecoder
	block    []byte
	head     replyHead
	size     uint64 // of the fields so far
	status   bool   // the status came
	regular  bool   // a field that is no pseudo-header came
	fields   bool   // any did
	remember bool
}

// field reads the next representation (RFC 7541, 6).
func (h *headReading) field() bool {
	switch b := h.block[0]; {
	case b&0x80 != 0:
		i, ok := h.number(7)
		if !ok {
			return false
		}
		f, ok := h.decoder.at(i)
		if ok {
			h.take(f)
		}
		return ok
	case b&0xe0 == 0x20:
		h.remember = false
		size, ok := h.number(5)
		if !ok || size > hpackTableSize || h.fields && h.decoder.size > 0 {
			return false
		}
		h.decoder.max = uint32(size)
		h.decoder.evict()
		return true
	case b&0xc0 == 0x40:
		return h.literal(6, true)
	}
	return h.literal(4, false)
}

// literal reads a field whose value, and perhaps name, are spelled out.
func (h *headReading) literal(bits uint, indexed bool) bool {
	i, ok := h.number(bits)
	if !ok {
		return false
	}
	var f headField
	if i > 0 {
		if f, ok = h.decoder.at(i); !ok {
			return false
		}
	} else {
		name, ok := h.text()
		if !ok {
			return false
		}
		f = named(name)
	}
	value, ok := h.text()
	if !ok {
		return false
	}
	f.give(value)
	if indexed {
		h.decoder.add(f)
		h.decoder.last.adds = append(h.decoder.last.adds, f)
	}
	h.take(f)
	return true
}

// take takes note of a field.
func (h *headReading) take(f headField) {
	h.fields = true
	if h.size += uint64(f.size); h.size > maxHead {
		h.spoil(headTooLarge)
	}
	switch {
	case f.kind == badField, f.bad:
		h.spoil(badHeader)
	case f.kind == statusField:
		if h.regular || h.status {
			h.spoil(badHeader)
		} else if f.number < 100 || f.number > 599 {
			h.spoil(badStatus)
		}
		h.status = true
		h.head.status = int16(max(f.number, 0))
	case f.kind == lengthField:
		if f.number < 0 || h.head.length >= 0 && h.head.length != f.number {
			h.spoil(badContentLength)
		}
		h.head.length = f.number
	}
	h.regular = h.regular || f.kind != statusField
}

// spoil keeps what was wrong first.
func (h *headReading) spoil(f fault) {
	if h.head.fault == noFault {
		h.head.fault = f
	}
}

// number reads an integer with a prefix of so many bits (RFC 7541, 5.1).
func (h *headReading) number(bits uint) (uint64, bool) {
	if len(h.block) == 0 {
		return 0, false
	}
	most := uint64(1)<<bits - 1
	n := uint64(h.block[0]) & most
	h.block = h.block[1:]
	if n < most {
		return n, true
	}
	for shift := uint(0); shift < 63 && len(h.block) > 0; shift += 7 {
		b := h.block[0]
		h.block = h.block[1:]
		n += uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return n, true
		}
	}
	return 0, false
}

// text reads a string. It is there until the next one is read.
func (h *headReading) text() ([]byte, bool) {
	coded := len(h.block) > 0 && h.block[0]&0x80 != 0
	n, ok := h.number(7)
	if !ok || n > uint64(len(h.block)) {
		return nil, false
	}
	raw := h.block[:n]
	h.block = h.block[n:]
	if !coded {
		return raw, true
	}
	buffer := h.decoder.text
	buffer.b = buffer.b[:0]
	_, err := hpack.HuffmanDecode(buffer, raw)
	return buffer.b, err == nil
}

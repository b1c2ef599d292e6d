package load

import "encoding/binary"

// types of HTTP/2's frames (RFC 9113, 6)
const (
	frameData = iota
	frameHeaders
	framePriority
	frameResetStream
	frameSettings
	framePushPromise
	framePing
	frameGoAway
	frameWindowUpdate
	frameContinuation
	framePriorityUpdate = 0x10 // RFC 9218, 7.1
)

// flags of frames
const (
	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

const (
	frameHead    = 9
	maxFrame     = 16 << 10 // of a payload, ours and the server's: the least that there must be room for
	maxStreamID  = 1<<31 - 1
	maxWindow    = 1<<31 - 1
	firstWindow  = 65535 // of both ends, before anything is said
	clientHello  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	http1Preface = "HTTP/"
)

// settings (RFC 9113, 6.5.2)
const (
	settingTableSize   = 0x1
	settingPush        = 0x2
	settingMaxStreams  = 0x3
	settingWindow      = 0x4
	settingFrameSize   = 0x5
	settingMaxHeadSize = 0x6
)

// frame is a frame of the server's, or a piece of one of type DATA.
type frame struct {
	kind, flags uint8
	stream      uint32
	payload     []byte // nothing of it outlives the turn
	last        bool   // piece
}

// frameReader cuts what a server sends into frames, in any pieces in which it comes.
type frameReader struct {
	carry []byte // the beginning of a frame that a piece cut off
	whole bool   // carry was given away, and is to be begun anew
	data  frame  // DATA of which left bytes are still to come
	left  int
	fault fault
}

// reset begins a new connection.
func (r *frameReader) reset() { *r = frameReader{carry: r.carry[:0]} }

// next cuts the next frame off b, and says how much of b it used.
func (r *frameReader) next(b []byte) (f frame, used int, s step) {
	if r.left > 0 {
		return r.piece(b)
	}
	if r.whole {
		r.carry, r.whole = r.carry[:0], false
	}
	head := b
	if len(r.carry) > 0 {
		used = r.fill(b, frameHead)
		head = r.carry
	}
	if len(head) < frameHead {
		return f, used + r.keep(b[used:]), more
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if length > maxFrame {
		r.fault = badFrameSize
		if string(head[:len(http1Preface)]) == http1Preface {
			r.fault = notHTTP2
		}
		return f, used, broken
	}
	f = frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:]) & maxStreamID, last: true}
	if f.kind == frameData && f.flags&flagPadded == 0 && length > 0 {
		if len(r.carry) == 0 {
			used = frameHead
		}
		r.carry = r.carry[:0]
		r.data, r.left = f, length
		f, n, s := r.piece(b[used:])
		return f, used + n, s
	}
	if len(r.carry) == 0 && len(b) >= frameHead+length {
		f.payload = b[frameHead : frameHead+length]
		return f, frameHead + length, done
	}
	used += r.fill(b[used:], frameHead+length)
	if len(r.carry) < frameHead+length {
		return frame{}, used, more
	}
	r.whole = true
	f.payload = r.carry[frameHead:]
	return f, used, done
}

// piece gives of DATA what has come.
func (r *frameReader) piece(b []byte) (frame, int, step) {
	n := min(r.left, len(b))
	if n == 0 {
		return frame{}, 0, more
	}
	f := r.data
	r.left -= n
	f.payload, f.last = b[:n], r.left == 0
	return f, n, done
}

// fill lets carry grow to so many bytes, and says how many of b it took.
func (r *frameReader) fill(b []byte, want int) int {
	n := min(max(want-len(r.carry), 0), len(b))
	return r.keep(b[:n])
}

func (r *frameReader) keep(b []byte) int {
	r.carry = append(r.carry, b...)
	return len(b)
}

// appendFrameHead appends the nine bytes before a payload.
func appendFrameHead(b []byte, length int, kind, flags uint8, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), kind, flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

// appendNumberFrame appends a frame whose payload is one number: RST_STREAM, WINDOW_UPDATE.
func appendNumberFrame(b []byte, kind uint8, stream, number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHead(b, 4, kind, 0, stream), number)
}

// appendHeadFrames appends a header block: HEADERS, and CONTINUATION for what it has no room for.
func appendHeadFrames(b, block []byte, stream uint32, flags uint8) []byte {
	kind := uint8(frameHeaders)
	for len(block) > maxFrame {
		b = append(appendFrameHead(b, maxFrame, kind, flags, stream), block[:maxFrame]...)
		kind, flags, block = frameContinuation, 0, block[maxFrame:]
	}
	return append(appendFrameHead(b, len(block), kind, flags|flagEndHeaders, stream), block...)
}

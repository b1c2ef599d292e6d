package load

import "encoding/binary"

// incoming is what a server said in a frame, a header block, or a piece of a reply's body.
type incoming struct {
	kind   uint8 // a frame's type; CONTINUATION: nothing to act on
	ack    bool
	end    bool // nothing more comes on the stream
	stream uint32
	head   replyHead
	body   int    // bytes of a body
	flow   int    // bytes for the windows
	number uint32 // an error's code, or by how much a window grew
	last   uint32 // GOAWAY: the last stream that the server will have answered
	text   []byte // of a body; settings, PING's data, GOAWAY's words
}

// inbound is one direction of an HTTP/2 connection, the server's: bytes in, what they say out.
// What is kept of them is bounded, and none of it depends on how they were cut into pieces.
type inbound struct {
	frames frameReader
	heads  headDecoder
	block  []byte // a header block of which more is to come
	stream uint32 // whose it is; 0: none is open
	end    bool   // it ends the stream
	parts  int    // frames of which it came
	fault  fault  // why it is broken
}

// reset begins a new connection.
func (in *inbound) reset() {
	in.frames.reset()
	in.heads.reset()
	in.block, in.stream, in.fault = in.block[:0], 0, noFault
}

// next reads on in b, and says how much of it was used. Broken means that the connection is of
// no more use, for the reason of in.fault.
func (in *inbound) next(b []byte) (e incoming, used int, s step) {
	f, used, s := in.frames.next(b)
	switch s {
	case more:
		return e, used, more
	case broken:
		in.fault = in.frames.fault
		return e, used, broken
	}
	if in.fault = in.order(&f); in.fault == noFault {
		e, in.fault = in.meaning(&f)
	}
	if in.fault != noFault {
		return e, used, broken
	}
	return e, used, done
}

// order holds that nothing comes between the frames of a header block.
func (in *inbound) order(f *frame) fault {
	if continues := f.kind == frameContinuation; continues != (in.stream != 0) || continues && f.stream != in.stream {
		return badFrame
	}
	return noFault
}

// meaning says what a frame says, by itself.
func (in *inbound) meaning(f *frame) (incoming, fault) {
	e := incoming{kind: f.kind, stream: f.stream}
	ofConnection := f.kind == frameSettings || f.kind == framePing || f.kind == frameGoAway
	ofStream := f.kind <= frameResetStream || f.kind == frameContinuation
	if ofConnection && f.stream != 0 || ofStream && f.stream == 0 {
		return e, badFrame
	}
	p := f.payload
	switch f.kind {
	case frameData:
		return e.ofData(f)
	case frameHeaders:
		return in.opened(f)
	case frameContinuation:
		return in.fragment(f, p)
	case framePriority:
		return e, sized(len(p) == 5)
	case frameSettings:
		e.text, e.ack = p, f.flags&flagAck != 0
		return e, sized(len(p)%6 == 0 && (!e.ack || len(p) == 0))
	case framePushPromise, framePriorityUpdate:
		return e, badFrame // we said that we want no pushes; priorities are a client's to say
	case framePing:
		e.text, e.ack = p, f.flags&flagAck != 0
		return e, sized(len(p) == 8)
	case frameGoAway:
		if len(p) < 8 {
			return e, badFrameSize
		}
		e.last, e.number, e.text = binary.BigEndian.Uint32(p)&maxStreamID, binary.BigEndian.Uint32(p[4:]), p[8:]
	case frameResetStream, frameWindowUpdate:
		if len(p) != 4 {
			return e, badFrameSize
		}
		e.number = binary.BigEndian.Uint32(p)
		if f.kind == frameWindowUpdate {
			if e.number &= maxWindow; e.number == 0 && e.stream == 0 {
				return e, badFrame // a stream's that grows by nothing ends that stream alone
			}
		}
	default:
		e.kind = frameContinuation // an extension that we do not know
	}
	return e, noFault
}

func sized(right bool) fault {
	if !right {
		return badFrameSize
	}
	return noFault
}

// ofData is a piece of a body.
func (e incoming) ofData(f *frame) (incoming, fault) {
	p, ok := unpadded(f)
	if !ok {
		return e, badFrame
	}
	e.text, e.body, e.flow, e.end = p, len(p), len(f.payload), f.last && f.flags&flagEndStream != 0
	return e, noFault
}

// unpadded is a payload without its padding.
func unpadded(f *frame) ([]byte, bool) {
	p := f.payload
	if f.flags&flagPadded == 0 {
		return p, true
	}
	if len(p) == 0 || int(p[0]) > len(p)-1 {
		return nil, false
	}
	return p[1 : len(p)-int(p[0])], true
}

// opened begins a header block.
func (in *inbound) opened(f *frame) (incoming, fault) {
	p, ok := unpadded(f)
	if f.flags&flagPriority != 0 && ok {
		if ok = len(p) >= 5; ok {
			p = p[5:]
		}
	}
	if !ok {
		return incoming{}, badFrame
	}
	in.stream, in.end, in.parts = f.stream, f.flags&flagEndStream != 0, 0
	return in.fragment(f, p)
}

// fragment takes a part of a header block, and with the last one says what it says.
func (in *inbound) fragment(f *frame, p []byte) (incoming, fault) {
	const mostParts = 64 // as many as a large head could need, and far too many
	if in.parts++; len(in.block)+len(p) > maxHead || in.parts > mostParts {
		return incoming{}, headTooLarge
	}
	whole := f.flags&flagEndHeaders != 0
	if !whole || len(in.block) > 0 {
		in.block = append(in.block, p...)
		p = in.block
	}
	if !whole {
		return incoming{kind: frameContinuation, stream: f.stream}, noFault
	}
	head, ok := in.heads.decode(p)
	in.stream, in.block = 0, in.block[:0]
	if !ok {
		return incoming{}, badHeaderBlock
	}
	return incoming{kind: frameHeaders, stream: f.stream, head: head, end: in.end}, noFault
}

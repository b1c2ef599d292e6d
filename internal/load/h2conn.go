package load

import "encoding/binary"

// h2Conn is a connection that speaks HTTP/2, and the streams that it carries.
type h2Conn struct {
	lanes

	in      inbound
	out     []byte // to be sent; sent bytes of it are
	sent    int
	ids     []uint32 // the lanes' streams, 0: none
	streams []h2Stream
	hint    int // the lane whose turn it probably is to be answered
	lastID  uint32
	active  uint32 // streams

	settled    bool   // the server's first SETTINGS came
	retired    bool   // it takes no more requests
	plain      bool   // the server has no table for our fields
	resets     bool   // we gave up a stream, of which more may come
	mayOpen    uint32 // streams at once, the server's setting
	window     int64  // how much of bodies the server takes, of all streams
	laneWindow int64  // of a stream that opens
	taken      int64  // of bodies, since our window was renewed
	idleFrames int    // frames since one that brought a reply on

	told    outcome // of those that the server leaves unanswered, by its GOAWAY; 0: none came
	reads   uint32
	held    bool // a request, or its body, waits for leave to be sent
	partial bool // the head of a reply came, and not yet its body
}

// h2Stream is what a lane knows of its request.
type h2Stream struct {
	window int64 // how much of its body the server takes
	taken  int64 // of the reply's body, since the window was renewed
	got    int64 // of the reply's body
	length int64 // what its head said; -1: nothing
	head   bool  // it came
	inters uint8 // interim replies
	read   uint32
}

// reset begins a new connection.
func (s *h2Conn) reset() {
	s.in.reset()
	clear(s.ids)
	s.out, s.sent, s.hint, s.lastID, s.active = s.out[:0], 0, 0, 0, 0
	s.settled, s.retired, s.plain, s.resets = false, false, false, false
	s.mayOpen, s.window, s.laneWindow, s.taken, s.idleFrames = maxStreamID, firstWindow, firstWindow, 0, 0
	s.told, s.held, s.heardAt, s.partial = 0, false, 0, false
}

// lane finds the lane of a stream: mostly the one after that which was found last.
func (s *h2Conn) lane(id uint32) *conn {
	for i, n := s.hint, len(s.ids); n > 0; n-- {
		if s.ids[i] == id {
			s.hint = i
			return &s.places[i]
		}
		if i++; i == len(s.ids) {
			i = 0
		}
	}
	return nil
}

// id is the stream of a lane's request, 0 if it has none.
func (s *h2Conn) id(c *conn) uint32 { return s.ids[c.place] }

// leave ends a lane's stream on our side.
func (s *h2Conn) leave(c *conn) {
	s.ids[c.place] = 0
	s.active--
}

// cancel gives up a lane's stream before the server has.
func (s *h2Conn) cancel(c *conn, code uint32) {
	s.resets = true
	s.out = appendNumberFrame(s.out, frameResetStream, s.id(c), code)
	s.leave(c)
}

// free says whether a stream may be opened now.
func (s *h2Conn) free() bool {
	return !s.retired && s.active < s.mayOpen && (s.settled || s.lastID == 0)
}

// fields are a request's header block. The first one on a connection fills the server's table, all
// others rest on it; to a server that has none, none does.
func (s *h2Conn) fields(r *h2Request) []byte {
	switch {
	case s.plain:
		return r.plain
	case s.lastID == 1:
		return r.first
	}
	return r.again
}

// open opens a stream for a lane's request.
func (s *h2Conn) open(c *conn, r *h2Request) {
	if s.lastID += 2; s.lastID == 2 {
		s.lastID = 1
	}
	s.retired = s.lastID >= maxStreamID-2 // there are no more numbers
	s.streams[c.place] = h2Stream{window: s.laneWindow, length: -1, read: s.reads}
	s.ids[c.place] = s.lastID
	s.active++
	s.carrier.unsealed++
	flags := uint8(flagEndStream)
	c.state = awaiting
	if len(r.body) > 0 {
		flags, c.state = 0, sending
	}
	s.out = appendHeadFrames(s.out, s.fields(r), s.lastID, flags)
	s.body(c, r)
}

// body writes as much of a request's body as the server's windows, and what is not yet sent, allow.
// It returns whether that was something.
func (s *h2Conn) body(c *conn, r *h2Request) (any bool) {
	const most = 4 * maxFrame // that is kept to be sent
	st := &s.streams[c.place]
	for c.state == sending {
		n := min(int64(len(r.body)-c.sent), maxFrame, s.window, st.window)
		if n <= 0 || len(s.out)-s.sent >= most {
			s.held = true
			return any
		}
		flags := uint8(0)
		if c.sent+int(n) == len(r.body) {
			flags, c.state = flagEndStream, awaiting
		}
		s.out = appendFrameHead(s.out, int(n), frameData, flags, s.id(c))
		s.out = append(s.out, r.body[c.sent:c.sent+int(n)]...)
		c.sent += int(n)
		s.window -= n
		st.window -= n
		s.idleFrames, any = 0, true
	}
	return any
}

// take counts what came of bodies, and gives our windows back in time. False means that the
// server sent more than they allow.
func (s *h2Conn) take(c *conn, flow int) bool {
	if s.taken += int64(flow); s.taken > ourWindow {
		return false
	}
	if s.taken >= renewWindow {
		s.out = appendNumberFrame(s.out, frameWindowUpdate, 0, uint32(s.taken))
		s.taken = 0
	}
	if c == nil {
		return true
	}
	st := &s.streams[c.place]
	if st.taken += int64(flow); st.taken > ourWindow {
		return false
	}
	if st.taken >= renewWindow {
		s.out = appendNumberFrame(s.out, frameWindowUpdate, s.id(c), uint32(st.taken))
		st.taken = 0
	}
	return true
}

// set takes the server's settings.
func (s *h2Conn) set(text []byte) fault {
	for ; len(text) >= 6; text = text[6:] {
		switch v := binary.BigEndian.Uint32(text[2:]); binary.BigEndian.Uint16(text) {
		case settingTableSize:
			s.plain = s.plain || v < hpackTableSize
		case settingPush:
			if v != 0 {
				return badSettings
			}
		case settingMaxStreams:
			s.mayOpen = min(v, maxStreamID)
		case settingWindow:
			if v > maxWindow || !s.setWindow(int64(v)) {
				return badWindow
			}
		case settingFrameSize:
			if v < maxFrame || v > 1<<24-1 {
				return badSettings
			}
		}
	}
	return noFault
}

// setWindow sets the window of streams, those that are open too.
func (s *h2Conn) setWindow(v int64) bool {
	more := v - s.laneWindow
	s.laneWindow = v
	for i, id := range s.ids {
		if id == 0 {
			continue
		}
		st := &s.streams[i]
		if st.window += more; st.window > maxWindow {
			return false
		}
	}
	return true
}

// waiting says whether a request waits for leave to be sent.
func (s *h2Conn) waiting() bool {
	for i := range s.places {
		if s.places[i].state == sending && s.ids[i] == 0 {
			return true
		}
	}
	return false
}

// coded is the outcome of a kind with a server's error code.
func coded(kind int, code uint32) outcome {
	if code >= http2Codes {
		code = unknownCode
	}
	return failure(kind, int(code))
}

// errorCode is what a server is told of a fault of its own.
func errorCode(f fault) uint32 {
	switch f {
	case badFrameSize:
		return frameSizeError
	case badHeaderBlock:
		return compressionError
	case badWindow:
		return flowControlError
	case headTooLarge, frameFlood, tooManyInterim:
		return enhanceYourCalm
	}
	return protocolError
}

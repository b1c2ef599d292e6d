package http

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/tcp"
)

// wire sends what two sides say through the analyzer and the tracker.
type wire struct {
	a     *tcp.Analyzer
	t     Tracker
	got   []Exchange
	frame uint32
	seq   [2]uint32
}

func newWire() *wire {
	w := &wire{a: tcp.New(), seq: [2]uint32{1000, 5000}}
	w.t.Done = func(e *Exchange) { w.got = append(w.got, *e) }
	w.send(0, decode.SYN, w.seq[0], 0, "")
	w.send(1, decode.SYN|decode.ACK, w.seq[1], w.seq[0]+1, "")
	w.seq[0]++
	w.seq[1]++
	return w
}

func (w *wire) send(side int, flags uint8, seq, ack uint32, text string) {
	w.sendCut(side, flags, seq, ack, text, len(text))
}

// sendCut sends a segment of which only so many bytes were captured.
func (w *wire) sendCut(side int, flags uint8, seq, ack uint32, text string, captured int) {
	s := decode.Segment{Src: decode.Addr{Lo: 1}, Dst: decode.Addr{Lo: 2}, SrcPort: 40000, DstPort: 80, Version: 4, Scale: -1, Window: 1000,
		Flags: flags, Seq: seq, Ack: ack, Len: uint32(len(text)), Payload: []byte(text)[:captured]}
	if side == 1 {
		s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
	}
	w.frame++
	var r tcp.Result
	w.a.Segment(w.frame, int64(w.frame)*1000, &s, &r)
	w.t.Segment(&r, &s, Mark{w.frame, int64(w.frame) * 1000})
}

// say sends text in order, and moves on.
func (w *wire) say(side int, text string) {
	w.send(side, decode.ACK, w.seq[side], w.seq[1-side], text)
	w.seq[side] += uint32(len(text))
}

// frames are the four frames of each exchange, and its status.
func (w *wire) frames() (list [][5]uint32) {
	w.a.Conns(w.t.Close)
	for _, e := range w.got {
		list = append(list, [5]uint32{e.ReqFirst.Frame, e.ReqLast.Frame, e.ReplyFirst.Frame, e.ReplyLast.Frame, uint32(e.Status)})
	}
	return list
}

func (w *wire) want(t *testing.T, want ...[5]uint32) {
	t.Helper()
	if d := cmp.Diff(want, w.frames()); d != "" {
		t.Errorf("request first, last, reply first, last, status (-want +got):\n%s", d)
	}
	if w.t.held != 0 {
		t.Errorf("%d bytes are still held", w.t.held)
	}
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestLengths(t *testing.T) {
	w := newWire() // two frames
	w.say(0, get)
	w.say(1, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
	w.say(1, "def")
	w.say(0, "POST / HTTP/1.1\r\ncontent-length: 4\r\n")
	w.say(0, "\r\nab")
	w.say(0, "cd")
	w.say(1, "HTTP/1.1 204 No Content\r\n\r\n")
	w.want(t, [5]uint32{3, 3, 4, 5, 200}, [5]uint32{6, 8, 9, 9, 204})
}

func TestChunks(t *testing.T) {
	w := newWire()
	w.say(0, get)
	for _, text := range strings.SplitAfter("HTTP/1.1 200 OK\r|\nTransfer-Encoding: chunked\r\n\r\n|5;x=y\r|\nabc|de\r|\n0\r\n|Trailer: x\r\n\r|\n", "|") {
		w.say(1, strings.TrimSuffix(text, "|"))
	}
	w.say(0, get)
	w.say(1, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	w.want(t, [5]uint32{3, 3, 4, 11, 200}, [5]uint32{12, 12, 13, 13, 404})
}

// A reply of no length ends with the connection; requests may be sent ahead;
// what is no end of anything (100) is none; a HEAD's reply has no body.
func TestEndsThatAreNotAnnounced(t *testing.T) {
	w := newWire()
	w.say(0, "HEAD / HTTP/1.1\r\n\r\n"+get)
	w.say(1, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
	w.say(1, "HTTP/1.0 200 OK\r\n\r\nsome")
	w.say(1, "more")
	w.send(1, decode.ACK|decode.FIN, w.seq[1], w.seq[0], "")
	w.want(t, [5]uint32{3, 3, 4, 4, 200}, [5]uint32{3, 3, 5, 7, 200})
}

// Segments that come early are kept, those that come again are passed over; the
// first byte is where it came, the last where nothing was missing any more.
func TestAnyOrder(t *testing.T) {
	w := newWire()
	w.say(0, get)
	at := w.seq[1]
	w.send(1, decode.ACK, at+10, w.seq[0], "00 OK\r\nContent-Length: 3\r\n\r\nabc")
	w.send(1, decode.ACK, at, w.seq[0], "HTTP/1.1 2")
	w.send(1, decode.ACK, at, w.seq[0], "HTTP/1.1 2")
	w.want(t, [5]uint32{3, 3, 5, 5, 200})
}

// A request that nobody answered is one without a reply.
func TestNoReply(t *testing.T) {
	w := newWire()
	w.say(0, get)
	w.want(t, [5]uint32{3, 3, 0, 0, 0})
}

// What was acknowledged will not be sent again: a hole in the capture is passed,
// within a body as what it is, elsewhere by beginning anew with the next message.
func TestHoles(t *testing.T) {
	w := newWire()
	w.say(0, get)
	w.say(1, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab")
	w.seq[1] += 2 // not captured
	w.say(1, "ef")
	w.send(0, decode.ACK, w.seq[0], w.seq[1], "")
	w.say(0, get) // acknowledges the hole
	w.say(1, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
	w.seq[1] += 30 // with the end of that and the beginning of what follows
	w.say(1, "xyz")
	w.send(0, decode.ACK, w.seq[0], w.seq[1], "")
	w.say(0, get)
	w.say(1, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
	got := w.frames()
	if len(got) < 2 || got[0] != [5]uint32{3, 3, 4, 6, 200} || got[len(got)-1][4] != 500 {
		t.Errorf("%v", got)
	}
}

// Of packets that were cut when captured the lengths are known.
func TestCutPackets(t *testing.T) {
	w := newWire()
	w.say(0, get)
	text := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100)
	w.sendCut(1, decode.ACK, w.seq[1], w.seq[0], text, 60)
	w.seq[1] += uint32(len(text))
	w.say(0, get)
	w.say(1, "HTTP/1.1 304 Not Modified\r\n\r\n")
	w.want(t, [5]uint32{3, 3, 4, 4, 200}, [5]uint32{5, 5, 6, 6, 304})
}

// Over TLS records of data are what is asked and answered.
func TestRecords(t *testing.T) {
	hello, data := "\x16\x03\x01\x00\x04hihi", func(text string) string { return "\x17\x03\x03\x00" + string(rune(len(text))) + text }
	w := newWire()
	w.say(0, hello)
	w.say(1, "\x16\x03\x03\x00\x04hoho")
	w.say(0, data("request"))
	w.say(1, data("reply")[:7])
	w.say(1, data("reply")[7:]+data("more"))
	w.say(0, data("again"))
	w.say(1, data("reply"))
	w.send(1, decode.ACK|decode.FIN, w.seq[1], w.seq[0], "")
	w.want(t, [5]uint32{5, 5, 6, 7, 0}, [5]uint32{8, 8, 9, 9, 0})
}

// After an upgrade there is no HTTP any more.
func TestUpgrade(t *testing.T) {
	w := newWire()
	w.say(0, get)
	w.say(1, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05hello")
	w.say(0, "GET is no request here HTTP/1.1\r\n\r\n")
	w.want(t, [5]uint32{3, 3, 4, 4, 101})
}

// What speaks neither is let go of, and what never ends is not collected.
func TestOthersAreLetGo(t *testing.T) {
	w := newWire()
	w.say(0, "SSH-2.0-x\r\n")
	w.say(1, "SSH-2.0-y\r\n")
	if w.t.conns[ignored+1].protocol != Unknown || len(w.t.free) != 1 {
		t.Errorf("%d places are free, want that of the connection", len(w.t.free))
	}
	w = newWire()
	for range 100 {
		w.say(0, "GET /"+strings.Repeat("a", 1000))
	}
	if n := len(w.t.conns[ignored+1].dirs[0].head); n > maxHead {
		t.Errorf("%d bytes of a head are kept", n)
	}
}

// Of very many connections those that wait for their next request take no room,
// and are taken up again.
func TestManyConnectionsArePutAside(t *testing.T) {
	w := newWire()
	w.t.conns = make([]*conn, manyOpen+2) // as if they were in use
	w.say(0, get)
	w.say(1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	if len(w.t.free) != 1 {
		t.Fatalf("%d places are free, want that of the connection", len(w.t.free))
	}
	at := w.seq[0]
	w.say(0, get)
	w.send(0, decode.ACK, at, w.seq[1], get) // sent again
	w.say(1, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	w.want(t, [5]uint32{3, 3, 4, 4, 200}, [5]uint32{5, 5, 7, 7, 404})
	if w.got[1].Number != 2 {
		t.Errorf("the second request has number %d", w.got[1].Number)
	}
}

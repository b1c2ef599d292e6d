package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// saidBy is all that our reading makes of what a server sent, piece by piece; the last line says how it broke.
func saidBy(b []byte, pieces []byte) (said []string, whole bool) {
	in := inbound{heads: newHeadDecoder(new(textBuffer))}
	in.reset()
	bodies := map[uint32]int{} // of DATA frames that came in pieces
	for len(b) > 0 {
		n := len(b)
		if len(pieces) > 0 {
			n = min(n, int(pieces[0])+1)
			pieces = append(pieces[1:len(pieces):len(pieces)], pieces[0])
		}
		piece := b[:n]
		b = b[n:]
		for {
			e, used, s := in.next(piece)
			piece = piece[used:]
			if s == more {
				break
			}
			if s == broken {
				return append(said, "broken"), true
			}
			if e.kind == frameData && in.frames.left > 0 {
				bodies[e.stream] += e.body
				continue
			}
			if e.kind == frameData {
				e.body += bodies[e.stream]
				delete(bodies, e.stream)
			}
			if e.kind == frameSettings && windowBeyondAll(e.text) { // which h2Conn.set finds
				return append(said, "broken"), true
			}
			if text := e.line(); text != "" {
				said = append(said, text)
			}
		}
	}
	return said, in.stream == 0 && in.frames.left == 0 && (len(in.frames.carry) == 0 || in.frames.whole)
}

// windowBeyondAll says whether settings have a window that cannot be, as x/net's framer looks for one: at the first alone.
func windowBeyondAll(settings []byte) bool {
	for ; len(settings) >= 6; settings = settings[6:] {
		if xhttp2.SettingID(binary.BigEndian.Uint16(settings)) == xhttp2.SettingInitialWindowSize {
			return binary.BigEndian.Uint32(settings[2:]) > maxWindow
		}
	}
	return false
}

// line is what is compared of something that was said.
func (e *incoming) line() string {
	switch e.kind {
	case frameData:
		return fmt.Sprintf("data %d %d %v", e.stream, e.body, e.end)
	case frameHeaders:
		if e.head.fault != noFault {
			return fmt.Sprintf("head %d spoiled", e.stream)
		}
		return fmt.Sprintf("head %d %d %d %v", e.stream, e.head.status, e.head.length, e.end)
	case frameResetStream:
		return fmt.Sprintf("reset %d %d", e.stream, e.number)
	case frameSettings:
		return fmt.Sprintf("settings %v %x", e.ack, e.text)
	case framePing:
		return fmt.Sprintf("ping %v %x", e.ack, e.text)
	case frameGoAway:
		return fmt.Sprintf("goaway %d %d %x", e.last, e.number, e.text)
	case frameWindowUpdate:
		return fmt.Sprintf("window %d %d", e.stream, e.number)
	}
	return ""
}

// xnetSays is the same by x/net.
func xnetSays(b []byte) (said []string, whole bool) {
	r := bytes.NewReader(b)
	framer := xhttp2.NewFramer(io.Discard, r)
	framer.SetMaxReadFrameSize(maxFrame)
	framer.ReadMetaHeaders = hpack.NewDecoder(hpackTableSize, nil)
	framer.MaxHeaderListSize = maxHead
	for {
		before := r.Len()
		f, err := framer.ReadFrame()
		var ofStream xhttp2.StreamError
		switch {
		case errors.As(err, &ofStream):
			if before-r.Len() >= frameHead && b[len(b)-before+3] == frameHeaders {
				said = append(said, fmt.Sprintf("head %d spoiled", ofStream.StreamID))
			} else {
				said = append(said, fmt.Sprintf("window %d 0", ofStream.StreamID))
			}
			continue
		case errors.Is(err, io.EOF):
			return said, before == 0
		case errors.Is(err, io.ErrUnexpectedEOF) && r.Len() == 0:
			return said, false
		case err != nil:
			return append(said, "broken"), true
		}
		if kind := f.Header().Type; kind == xhttp2.FramePushPromise || kind == xhttp2.FramePriorityUpdate {
			return append(said, "broken"), true // a client may not get them; the framer serves both sides
		}
		if text := xnetLine(f); text != "" {
			said = append(said, text)
		}
	}
}

func xnetLine(f xhttp2.Frame) string {
	id := f.Header().StreamID
	switch f := f.(type) {
	case *xhttp2.DataFrame:
		return fmt.Sprintf("data %d %d %v", id, len(f.Data()), f.StreamEnded())
	case *xhttp2.MetaHeadersFrame:
		return xnetHead(f)
	case *xhttp2.RSTStreamFrame:
		return fmt.Sprintf("reset %d %d", id, uint32(f.ErrCode))
	case *xhttp2.SettingsFrame:
		var text []byte
		for i := range f.NumSettings() {
			s := f.Setting(i)
			text = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(text, uint16(s.ID)), s.Val)
		}
		return fmt.Sprintf("settings %v %x", f.IsAck(), text)
	case *xhttp2.PingFrame:
		return fmt.Sprintf("ping %v %x", f.IsAck(), f.Data)
	case *xhttp2.GoAwayFrame:
		return fmt.Sprintf("goaway %d %d %x", f.LastStreamID, uint32(f.ErrCode), f.DebugData())
	case *xhttp2.WindowUpdateFrame:
		return fmt.Sprintf("window %d %d", id, f.Increment)
	}
	return ""
}

// xnetHead reads of a head what x/net's client does.
func xnetHead(f *xhttp2.MetaHeadersFrame) string {
	status, length, spoiled := 0, int64(-1), f.Truncated
	for _, h := range f.Fields {
		switch {
		case h.Name == ":status":
			n, err := strconv.ParseUint(h.Value, 10, 16)
			status, spoiled = int(n), spoiled || err != nil || len(h.Value) != 3 || n < 100 || n > 599
		case strings.HasPrefix(h.Name, ":"):
			spoiled = true
		case h.Name == "content-length":
			n, err := strconv.ParseInt(h.Value, 10, 64)
			spoiled = spoiled || err != nil || n < 0 || h.Value[0] == '+' || len(h.Value) > 18 || length >= 0 && n != length
			length = n
		}
	}
	if spoiled {
		return fmt.Sprintf("head %d spoiled", f.StreamID)
	}
	return fmt.Sprintf("head %d %d %d %v", f.StreamID, status, length, f.StreamEnded())
}

// serverBytes writes frames as a server would, for seeds.
func serverBytes(write func(f *xhttp2.Framer, head func(...string) []byte)) []byte {
	var out, block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	write(xhttp2.NewFramer(&out, nil), func(fields ...string) []byte {
		block.Reset()
		for i := 0; i+1 < len(fields); i += 2 {
			_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		return bytes.Clone(block.Bytes())
	})
	return out.Bytes()
}

// h2Seeds are a server's words, right and wrong.
func h2Seeds() [][]byte {
	replies := serverBytes(func(f *xhttp2.Framer, head func(...string) []byte) {
		_ = f.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: 128})
		_ = f.WriteSettingsAck()
		for id := uint32(1); id < 9; id += 2 {
			_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: head(":status", "200", "server", "nginx/1.22.1", "content-length", "5", "date", "Mon, 23 Nov 2026 16:00:00 GMT"), EndHeaders: true})
			_ = f.WriteDataPadded(id, true, []byte("hello"), make([]byte, id))
		}
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 9, BlockFragment: head(":status", "418"), EndHeaders: false, PadLength: 3, Priority: xhttp2.PriorityParam{StreamDep: 1, Weight: 2}})
		_ = f.WriteContinuation(9, false, head("x-a", strings.Repeat("long", 2000)))
		_ = f.WriteContinuation(9, true, head("etag", "\"x\""))
		_ = f.WriteData(9, false, make([]byte, 300))
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 9, BlockFragment: head("x-trailer", "1"), EndHeaders: true, EndStream: true})
		_ = f.WritePing(false, [8]byte{1, 2})
		_ = f.WriteWindowUpdate(0, 70000)
		_ = f.WriteRSTStream(11, xhttp2.ErrCodeRefusedStream)
		_ = f.WriteGoAway(11, xhttp2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
	})
	wrong := serverBytes(func(f *xhttp2.Framer, head func(...string) []byte) {
		f.AllowIllegalWrites = true
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: head("server", "x", ":status", "200"), EndHeaders: true})
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 3, BlockFragment: head(":status", "200", "Upper", "x"), EndHeaders: true})
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 5, BlockFragment: head(":status", "2x0"), EndHeaders: true})
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 7, BlockFragment: head(":status", "200", "content-length", "5", "content-length", "6"), EndHeaders: true})
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 9, BlockFragment: head(":path", "/"), EndHeaders: true})
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 11, BlockFragment: head(":status", "200", "x", "a\x00b"), EndHeaders: true})
		_ = f.WriteWindowUpdate(5, 0)
		_ = f.WriteRawFrame(xhttp2.FrameType(0xfe), 1, 1, []byte("extension"))
		_ = f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 13, BlockFragment: []byte{0xff, 0xff}, EndHeaders: true})
	})
	seeds := [][]byte{replies, wrong, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")}
	for _, kind := range []xhttp2.FrameType{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} {
		for _, stream := range []uint32{0, 1} {
			for _, size := range []int{0, 4, 5, 6, 8, 9} {
				seeds = append(seeds, serverBytes(func(f *xhttp2.Framer, _ func(...string) []byte) {
					f.AllowIllegalWrites = true
					_ = f.WriteRawFrame(kind, xhttp2.Flags(size), stream, bytes.Repeat([]byte{0x88}, size))
				}))
			}
		}
	}
	return seeds
}

// sameAsXNet holds our reading of what a server sends against x/net's, whatever pieces it comes in.
func sameAsXNet(t *testing.T, b, pieces []byte) {
	got, whole := saidBy(b, nil)
	inPieces, wholeInPieces := saidBy(b, pieces)
	if diff := cmp.Diff(got, inPieces); diff != "" || whole != wholeInPieces {
		t.Fatalf("%x in pieces of %v (-whole +pieces):\n%s", b, pieces, diff)
	}
	want, wantWhole := xnetSays(b)
	if differsOnPurpose(got, want) {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" || whole != wantWhole {
		t.Fatalf("%x (-x/net +ours), whole %v, ours %v:\n%s", b, wantWhole, whole, diff)
	}
}

// differsOnPurpose says where two readings part for a reason: one ends a connection where the other ends a stream.
func differsOnPurpose(got, want []string) bool {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	ends := func(said []string) bool {
		return i < len(said) && (said[i] == "broken" || strings.HasSuffix(said[i], " spoiled"))
	}
	return ends(got) && ends(want) || ends(want) && i == len(got) || ends(got) && i == len(want)
}

func TestFramesAreReadAsXNetReadsThem(t *testing.T) {
	for _, b := range h2Seeds() {
		for _, pieces := range [][]byte{{0}, {6}, {8, 0, 40}, {255}} {
			sameAsXNet(t, b, pieces)
		}
	}
	said, _ := saidBy(h2Seeds()[0], nil)
	if want := "head 7 200 5 false"; !slices.Contains(said, want) {
		t.Errorf("no %q in %q", want, said)
	}
}

func FuzzHTTP2Frames(f *testing.F) {
	for _, b := range h2Seeds() {
		f.Add(b, []byte{6, 200})
	}
	f.Fuzz(func(t *testing.T, b, pieces []byte) {
		if len(b) > 1<<16 || len(pieces) > 16 {
			return
		}
		sameAsXNet(t, b, pieces)
	})
}

// FuzzHeaderBlocks holds our decoder against x/net's over several blocks on one connection, most of
// which are said twice, so that they are recognised.
func FuzzHeaderBlocks(f *testing.F) {
	f.Add([]byte{0x88, 0x5f, 0x87, 0x49, 0x7c, 0xa5, 0x89, 0xd3, 0x4d, 0x1f}, []byte{0xbe, 0x88}, []byte{0x88, 0xbe})
	f.Add([]byte{0x20, 0x88}, []byte{0x40, 1, 'a', 1, 'b', 0xbe}, []byte{0x3f, 0x20, 0xbe})
	f.Add([]byte{0x48, 3, '4', '1', '8'}, []byte{0xbe}, []byte{0xbf, 0x0f, 0x0d, 1, '7'})
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		d := newHeadDecoder(new(textBuffer))
		var fields []hpack.HeaderField
		x := hpack.NewDecoder(hpackTableSize, func(f hpack.HeaderField) { fields = append(fields, f) })
		for _, block := range [][]byte{a, a, b, b, a, c, c, b, a} {
			if len(block) > maxHead {
				return
			}
			head, ok := d.decode(block)
			fields = fields[:0]
			_, err := x.Write(block)
			if err == nil {
				err = x.Close()
			}
			if err != nil && strings.Contains(err.Error(), "MUST occur at the beginning") {
				return // it takes no second one there, which RFC 7541, 4.2, asks for
			}
			if ok != (err == nil) {
				t.Fatalf("%x of %x %x %x: ours %v, x/net %v", block, a, b, c, ok, err)
			}
			if !ok {
				return
			}
			if got, want := (&incoming{kind: frameHeaders, head: head}).line(), headOf(fields); got != want {
				t.Fatalf("%x of %x %x %x: ours %s, x/net %s", block, a, b, c, got, want)
			}
		}
	})
}

// headOf is the line of fields that x/net decoded.
func headOf(fields []hpack.HeaderField) string {
	regular, size, status := false, uint32(0), false
	for _, h := range fields {
		size += h.Size()
		f := fieldOf([]byte(h.Name), []byte(h.Value))
		if size > maxHead || f.kind == badField || f.bad || f.kind == statusField && (regular || status) {
			return "head 0 spoiled"
		}
		regular, status = regular || f.kind != statusField, status || f.kind == statusField
	}
	return xnetHead(&xhttp2.MetaHeadersFrame{HeadersFrame: &xhttp2.HeadersFrame{}, Fields: fields})
}

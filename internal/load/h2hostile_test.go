package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"plimsoll/internal/model"
)

// h2Peer is one connection of a server that a test writes frame by frame.
type h2Peer struct {
	*xhttp2.Framer
	conn    *net.TCPConn
	server  *server
	block   bytes.Buffer
	encoder *hpack.Encoder
}

// request waits for the next request, and returns its stream; false when the client has gone.
func (p *h2Peer) request() (uint32, bool) {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return 0, false
		}
		if h, is := f.(*xhttp2.HeadersFrame); is {
			p.server.requests.Add(1)
			return h.StreamID, true
		}
	}
}

// end sends no more, and waits until the client has gone.
func (p *h2Peer) end() {
	_ = p.conn.CloseWrite()
	p.gone()
}

// gone waits until the client has.
func (p *h2Peer) gone() {
	for ok := true; ok; {
		_, ok = p.request()
	}
}

// fields is a header block.
func (p *h2Peer) fields(list ...string) []byte {
	p.block.Reset()
	for i := 0; i+1 < len(list); i += 2 {
		_ = p.encoder.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// head sends a reply's head.
func (p *h2Peer) head(stream uint32, end bool, list ...string) {
	_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: stream, BlockFragment: p.fields(list...), EndHeaders: true, EndStream: end})
}

// each calls answer for each request.
func each(answer func(p *h2Peer, stream uint32)) func(*h2Peer) {
	return func(p *h2Peer) {
		_ = p.WriteSettings()
		for {
			id, ok := p.request()
			if !ok {
				return
			}
			answer(p, id)
		}
	}
}

// once calls answer for the first request, and then waits until the client has gone.
func once(answer func(p *h2Peer, stream uint32)) func(*h2Peer) {
	return func(p *h2Peer) {
		_ = p.WriteSettings()
		if id, ok := p.request(); ok {
			answer(p, id)
			p.gone()
		}
	}
}

// serveFrames has a test speak HTTP/2 on each connection.
func serveFrames(t *testing.T, speak func(*h2Peer)) *server {
	t.Helper()
	return serveConns(t, func(s *server, c *net.TCPConn) {
		defer c.Close()
		s.connections.Add(1)
		if _, err := io.ReadFull(c, make([]byte, len(clientHello))); err != nil {
			return
		}
		p := &h2Peer{Framer: xhttp2.NewFramer(c, c), conn: c, server: s}
		p.encoder = hpack.NewEncoder(&p.block)
		p.AllowIllegalWrites = true
		speak(p)
	})
}

// flood repeats a frame until the client has gone.
func flood(write func(p *h2Peer) error) func(p *h2Peer, stream uint32) {
	return func(p *h2Peer, _ uint32) {
		go p.gone()
		for write(p) == nil {
		}
	}
}

type hostile struct {
	why   string
	speak func(*h2Peer)
	want  string
}

var hostileHTTP2 = []hostile{
	{"another protocol", func(p *h2Peer) { _, _ = p.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); p.gone() }, "protocol:not_http2"},
	{"no settings", func(p *h2Peer) { _ = p.WritePing(false, [8]byte{}); p.gone() }, "protocol:bad_frame"},
	{"an end at once", (*h2Peer).end, "read:eof"},
	{"an end after the settings", func(p *h2Peer) { _ = p.WriteSettings(); p.request(); p.end() }, "read:eof"},
	{"a reset", func(p *h2Peer) { _ = p.WriteSettings(); p.request(); _ = p.conn.SetLinger(0) }, "read:ECONNRESET write:ECONNRESET write:EPIPE"},
	{"silence", each(func(*h2Peer, uint32) {}), "read:timeout"},
	{"silence without settings", (*h2Peer).gone, "read:timeout"},
	{"half a reply, then silence", each(func(p *h2Peer, id uint32) { p.head(id, false, ":status", "200") }), "read:timeout"},
	{"half a reply, then the end", func(p *h2Peer) {
		_ = p.WriteSettings()
		id, _ := p.request()
		p.head(id, false, ":status", "200")
		p.end()
	}, "read:eof"},
	{"refused streams", each(func(p *h2Peer, id uint32) { _ = p.WriteRSTStream(id, xhttp2.ErrCodeRefusedStream) }), "rst_stream:REFUSED_STREAM"},
	{"an error code that is none", each(func(p *h2Peer, id uint32) { _ = p.WriteRSTStream(id, 0x99) }), "rst_stream:unknown_code"},
	{"a reset amid a reply", each(func(p *h2Peer, id uint32) {
		p.head(id, false, ":status", "200")
		_ = p.WriteRSTStream(id, xhttp2.ErrCodeInternal)
	}), "rst_stream:INTERNAL_ERROR"},
	{"goodbye before the request", once(func(p *h2Peer, _ uint32) { _ = p.WriteGoAway(0, xhttp2.ErrCodeNo, nil) }), "goaway:NO_ERROR"},
	{"goodbye with an error", func(p *h2Peer) {
		_ = p.WriteSettings()
		p.request()
		_ = p.WriteGoAway(1<<31-1, xhttp2.ErrCodeEnhanceYourCalm, []byte("too\x1b many"))
		p.end()
	}, "goaway:ENHANCE_YOUR_CALM"},
	{"goodbye after the reply", once(func(p *h2Peer, id uint32) {
		_ = p.WriteGoAway(id, xhttp2.ErrCodeNo, nil)
		p.head(id, true, ":status", "204")
	}), "2xx"},
	{"a length that is too small", each(func(p *h2Peer, id uint32) {
		p.head(id, false, ":status", "200", "content-length", "2")
		_ = p.WriteData(id, true, []byte("hello"))
	}), "protocol:excess_data"},
	{"a length that is too large", each(func(p *h2Peer, id uint32) {
		p.head(id, false, ":status", "200", "content-length", "9")
		_ = p.WriteData(id, true, []byte("hello"))
	}), "protocol:bad_content_length"},
	{"no status", each(func(p *h2Peer, id uint32) { p.head(id, true, "server", "x") }), "protocol:bad_status"},
	{"a status that is none", each(func(p *h2Peer, id uint32) { p.head(id, true, ":status", "2000") }), "protocol:bad_status"},
	{"a status too late", each(func(p *h2Peer, id uint32) { p.head(id, true, "server", "x", ":status", "200") }), "protocol:bad_header"},
	{"a name in upper case", each(func(p *h2Peer, id uint32) { p.head(id, true, ":status", "200", "Server", "x") }), "protocol:bad_header"},
	{"a body before the head", each(func(p *h2Peer, id uint32) { _ = p.WriteData(id, true, []byte("x")) }), "protocol:bad_frame"},
	{"interim replies for ever", each(func(p *h2Peer, id uint32) {
		for range maxInterim + 1 {
			p.head(id, false, ":status", "102")
		}
	}), "protocol:too_many_interim"},
	{"a head that is too large", each(func(p *h2Peer, id uint32) {
		p.head(id, true, ":status", "200", "a", strings.Repeat("x", 4000)) // then by the table, an octet for each
		if next, ok := p.request(); ok {
			block := bytes.Repeat([]byte{0xbe}, 20)
			_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: next, BlockFragment: append([]byte{0x88}, block...), EndHeaders: true, EndStream: true})
		}
	}), "2xx protocol:head_too_large"},
	{"continuation without an end", once(flood(func(p *h2Peer) error {
		_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
		for {
			if err := p.WriteContinuation(1, false, nil); err != nil {
				return err
			}
		}
	})), "protocol:head_too_large"},
	{"a head and others in between", once(func(p *h2Peer, id uint32) {
		_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}})
		_ = p.WritePing(false, [8]byte{})
	}), "protocol:bad_frame"},
	{"a header block that is none", once(func(p *h2Peer, id uint32) {
		_ = p.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0xff, 0xff, 0xff}, EndHeaders: true})
	}), "protocol:bad_header_block"},
	{"a frame that is too large", once(func(p *h2Peer, id uint32) { _ = p.WriteRawFrame(xhttp2.FrameData, 0, id, make([]byte, 20_000)) }), "protocol:bad_frame_size"},
	{"a stream that was never opened", once(func(p *h2Peer, id uint32) { p.head(id+2, true, ":status", "200") }), "protocol:bad_frame"},
	{"a promise", once(func(p *h2Peer, id uint32) {
		_ = p.WritePushPromise(xhttp2.PushPromiseParam{StreamID: id, PromiseID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
	}), "protocol:bad_frame"},
	{"push switched on", func(p *h2Peer) {
		_ = p.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingEnablePush, Val: 1})
		p.gone()
	}, "protocol:bad_settings"},
	{"a window that is too large", once(func(p *h2Peer, _ uint32) { _ = p.WriteWindowUpdate(0, 1<<31-1) }), "protocol:bad_window"},
	{"a stream's window that is too large", each(func(p *h2Peer, id uint32) { _ = p.WriteWindowUpdate(id, 1<<31-1) }), "protocol:bad_window"},
	{"a window that grows by nothing", once(func(p *h2Peer, _ uint32) { _ = p.WriteRawFrame(xhttp2.FrameWindowUpdate, 0, 0, make([]byte, 4)) }), "protocol:bad_frame"},
	{"pings for ever", once(flood(func(p *h2Peer) error { return p.WritePing(false, [8]byte{}) })), "protocol:frame_flood"},
	{"settings for ever", once(flood(func(p *h2Peer) error { return p.WriteSettings(xhttp2.Setting{ID: 99, Val: 1}) })), "protocol:frame_flood"},
	{"empty data for ever", once(func(p *h2Peer, id uint32) {
		p.head(id, false, ":status", "200")
		flood(func(p *h2Peer) error { return p.WriteData(id, false, nil) })(p, id)
	}), "protocol:frame_flood"},
	{"no stream allowed, ever", func(p *h2Peer) {
		_ = p.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: 0})
		if id, ok := p.request(); ok {
			_ = p.WriteRSTStream(id, xhttp2.ErrCodeRefusedStream)
		}
		p.gone()
	}, "rst_stream:REFUSED_STREAM write:timeout"},
}

// What a server says of its GOAWAY is shown without what gives access, wherever its words are cut.
func TestHTTP2GoAwayTellsNoSecret(t *testing.T) {
	const key = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5z"
	for _, said := range []string{
		"password=Hunter2 https://u:Hunter2@h/x?token=Hunter2 -----BEGIN PRIVATE KEY-----Hunter2",
		"Authorization: Bearer " + key,
		strings.Repeat("x ", 45) + key, // it begins before the words are cut and ends behind
	} {
		s := serveFrames(t, func(p *h2Peer) {
			_ = p.WriteSettings()
			p.request()
			_ = p.WriteGoAway(0, xhttp2.ErrCodeEnhanceYourCalm, []byte(said))
			p.end()
		})
		plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 1, HTTP2: true, Streams: 1, TimeoutMS: 60_000}
		all := runPlan(t, t.Context(), plan)
		got := all[len(all)-1].Causes["goaway:ENHANCE_YOUR_CALM"]
		if !strings.Contains(got, "(masked") || strings.Contains(got, "Hunter2") || strings.Contains(got, key[:8]) {
			t.Errorf("%q is told as %q, want what gives access masked", said, got)
		}
	}
}

func TestHTTP2HostileServers(t *testing.T) {
	for _, c := range hostileHTTP2 {
		t.Run(strings.ReplaceAll(c.why, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := serveFrames(t, c.speak)
			plan := model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 8, KeepAlive: true, HTTP2: true, Streams: 1, TimeoutMS: 60_000}
			if strings.HasSuffix(c.want, ":timeout") {
				plan.TimeoutMS = 100
			}
			got := phaseNamed(runPlan(t, context.Background(), plan), "hold").Outcomes
			for name := range got {
				// A thread that was off its CPU may find that even a connect timed out.
				if late := plan.TimeoutMS == 100 && strings.HasSuffix(name, ":timeout"); !strings.Contains(c.want, name) && !late {
					t.Errorf("%v, want %s", got, c.want)
				}
			}
		})
	}
}

// A window that stays shut holds a body up until the timeout; a request whose window opens again is sent whole.
func TestHTTP2WindowOfTheServer(t *testing.T) {
	body := make([]byte, 100_000)
	for _, c := range []struct {
		opens bool
		want  string
	}{{true, "2xx"}, {false, "write:timeout"}} {
		s := serveFrames(t, func(p *h2Peer) {
			_ = p.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 0})
			got, opened := map[uint32]int{}, false
			for {
				f, err := p.ReadFrame()
				if err != nil {
					return
				}
				id := f.Header().StreamID
				switch f := f.(type) {
				case *xhttp2.SettingsFrame:
					if f.IsAck() && c.opens && !opened {
						opened = true
						_ = p.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 1000})
					}
				case *xhttp2.HeadersFrame:
					p.server.requests.Add(1)
				case *xhttp2.DataFrame:
					got[id] += len(f.Data())
					if !c.opens {
						continue
					}
					_ = p.WriteWindowUpdate(0, uint32(len(f.Data())))
					_ = p.WriteWindowUpdate(id, uint32(len(f.Data()))+777)
					if f.StreamEnded() && got[id] == len(body) {
						p.head(id, true, ":status", "200")
					}
				}
			}
		})
		plan := model.LoadPlan{URL: s.url, Method: "POST", Body: body, Connections: 1, Threads: 1, Requests: 6, KeepAlive: true, HTTP2: true, Streams: 2, TimeoutMS: 60_000}
		if !c.opens {
			plan.TimeoutMS = 300
		}
		got := phaseNamed(runPlan(t, context.Background(), plan), "hold").Outcomes
		delete(got, "connect:timeout")
		delete(got, "read:timeout")
		if len(got) != 1 || got[c.want] == 0 || c.opens && got[c.want] != 6 {
			t.Errorf("opens %v: %v, want %s", c.opens, got, c.want)
		}
	}
}

// However many streams are asked for, no more are opened than the server allows, now or later.
func TestHTTP2StreamsThatTheServerAllows(t *testing.T) {
	const first, then, all = 3, 6, 21 + 60
	var most, tooMany atomic.Int64
	s := serveFrames(t, func(p *h2Peer) {
		_ = p.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: first})
		allowed, answered, open := int64(first), 0, []uint32{}
		for {
			f, err := p.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *xhttp2.SettingsFrame:
			case *xhttp2.HeadersFrame:
				p.server.requests.Add(1)
				if open = append(open, f.StreamID); int64(len(open)) == min(allowed, int64(all-answered)) {
					_ = p.WritePing(false, [8]byte{}) // whose answer comes behind one too many, if there is one
				}
			case *xhttp2.PingFrame:
				if n := int64(len(open)); n > allowed {
					tooMany.Store(n)
				} else {
					most.Store(max(most.Load(), n))
				}
				if answered > 20 && allowed == first {
					allowed = then
					_ = p.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: then}, xhttp2.Setting{ID: xhttp2.SettingHeaderTableSize, Val: 0})
				}
				for _, id := range open {
					p.head(id, true, ":status", "200")
					answered++
				}
				open = open[:0]
			}
		}
	})
	plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: all, KeepAlive: true, HTTP2: true, Streams: 32, TimeoutMS: 60_000}
	records := runPlan(t, context.Background(), plan)
	if diff := cmp.Diff(map[string]int64{"2xx": all}, phaseNamed(records, "hold").Outcomes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.mustCount(t, all)
	if most.Load() != then || tooMany.Load() > 0 {
		t.Errorf("at most %d streams at once, want %d; once there were %d", most.Load(), then, tooMany.Load())
	}
}

// What was sent and not answered when the server said goodbye is told, and the load goes on elsewhere.
// A lane with its reply may wait for those of others, but never for one that does not come.
func TestHTTP2ALaneWaitsForNoReplyThatIsHeldBack(t *testing.T) {
	s := serveFrames(t, func(p *h2Peer) {
		_ = p.WriteSettings()
		held, ok := p.request()
		for range 20 {
			var id uint32
			if id, ok = p.request(); ok {
				p.head(id, true, ":status", "200")
			}
		}
		if ok {
			p.head(held, true, ":status", "200")
		}
		p.gone()
	})
	plan := model.LoadPlan{URL: s.url, Connections: 1, Requests: 21, KeepAlive: true, HTTP2: true, Streams: 2, TimeoutMS: 60_000}
	if diff := cmp.Diff(map[string]int64{"2xx": 21}, phaseNamed(runPlan(t, context.Background(), plan), "hold").Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestHTTP2GoAwayUnderLoad(t *testing.T) {
	const most = 10
	s := serveFrames(t, func(p *h2Peer) {
		_ = p.WriteSettings()
		for n := 1; ; n++ {
			id, ok := p.request()
			if !ok {
				return
			}
			if n == most {
				_ = p.WriteGoAway(id, xhttp2.ErrCodeNo, nil)
			}
			if n <= most {
				p.head(id, true, ":status", "200")
			}
		}
	})
	plan := model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 500, KeepAlive: true, HTTP2: true, Streams: 4, TimeoutMS: 60_000}
	all := runPlan(t, context.Background(), plan)
	got := phaseNamed(all, "hold").Outcomes
	if got["2xx"]+got["goaway:NO_ERROR"] != 500 || got["goaway:NO_ERROR"] > got["2xx"]*3/most+3*2 {
		t.Errorf("%v, want 500 replies and goaways, of these at most 3 for each connection", got)
	}
	if answered := s.connections.Load() * most; got["2xx"] > answered {
		t.Errorf("%d replies, the server gave at most %d", got["2xx"], answered)
	}
}

// What comes on a connection without a request costs the connection, and the next request on it.
func TestHTTP2ReplyThatNobodyAskedFor(t *testing.T) {
	s := serveFrames(t, each(func(p *h2Peer, id uint32) {
		p.head(id, true, ":status", "200")
		p.head(id, true, ":status", "200")
	}))
	plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 8, KeepAlive: true, HTTP2: true, TimeoutMS: 60_000}
	got := phaseNamed(runPlan(t, context.Background(), plan), "hold").Outcomes
	if got["2xx"]+got["protocol:unasked_reply"] != 8 || got["protocol:unasked_reply"] < 3 {
		t.Errorf("%v, want replies and unasked ones", got)
	}
}

// A hostile server's frames, at random, end a load all the same.
func TestHTTP2Garbage(t *testing.T) {
	n := uint64(1)
	s := serveFrames(t, func(p *h2Peer) {
		_ = p.WriteSettings()
		p.request()
		var noise []byte
		for range 2000 {
			n = n*6364136223846793005 + 1442695040888963407
			noise = binary.LittleEndian.AppendUint64(noise, n)
		}
		_, _ = p.conn.Write(noise)
	})
	plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 30, KeepAlive: true, HTTP2: true, Streams: 3, TimeoutMS: 60_000}
	runPlan(t, context.Background(), plan)
}

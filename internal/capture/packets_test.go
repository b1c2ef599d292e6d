package capture_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/pcap"
	"plimsoll/internal/capture/tcp"
)

// seg is a segment to be written: by the client (port 40000 + conn) or the server (port 80).
type seg struct {
	at       int64 // µs
	conn     int
	server   bool
	flags    byte
	seq, ack uint32
	win      uint16
	data     string
	id       uint16
	ttl      byte
	options  string
}

const (
	syn    = decode.SYN
	synack = decode.SYN | decode.ACK
	ack    = decode.ACK
	fin    = decode.FIN | decode.ACK
	rst    = decode.RST
	rstack = decode.RST | decode.ACK
)

// packet makes an Ethernet frame of a segment.
func (s seg) packet() []byte {
	tcpLen := 20 + len(s.options)
	b := make([]byte, 14+20+tcpLen, 14+20+tcpLen+len(s.data))
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip := b[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	if s.ttl != 0 {
		ip[8] = s.ttl
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(20+tcpLen+len(s.data)))
	binary.BigEndian.PutUint16(ip[4:], s.id)
	client, server := []byte{10, 0, byte(s.conn >> 8), byte(s.conn)}, []byte{10, 1, 0, 1}
	from, to := uint16(40000), uint16(80)
	if s.server {
		client, server, from, to = server, client, to, from
	}
	copy(ip[12:], client)
	copy(ip[16:], server)
	t := ip[20:]
	binary.BigEndian.PutUint16(t, from)
	binary.BigEndian.PutUint16(t[2:], to)
	binary.BigEndian.PutUint32(t[4:], s.seq)
	binary.BigEndian.PutUint32(t[8:], s.ack)
	t[12], t[13] = byte(tcpLen/4)<<4, s.flags
	binary.BigEndian.PutUint16(t[14:], s.win)
	copy(t[20:], s.options)
	return append(b, s.data...)
}

// pcapOf makes a capture file of segments.
func pcapOf(segs ...seg) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for _, s := range segs {
		b = record(b, s.at, s.packet())
	}
	return b
}

func record(b []byte, us int64, packet []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(us/1e6)+1)
	b = binary.LittleEndian.AppendUint32(b, uint32(us%1e6))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(packet)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(packet)))
	return append(b, packet...)
}

// readBytes reads capture files from memory.
func readBytes(t testing.TB, o capture.Options, files ...[]byte) *capture.Reading {
	t.Helper()
	var sources []capture.Source
	for _, f := range files {
		sources = append(sources, capture.Source{Name: "test", In: bytes.NewReader(f)})
	}
	r, err := capture.Read(t.Context(), sources, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// handshake is a connection's beginning; its client has sent 1000, its server 5000.
func handshake(conn int, at int64) []seg {
	return []seg{
		{at: at, conn: conn, flags: syn, seq: 1000, win: 64000},
		{at: at + 100, conn: conn, server: true, flags: synack, seq: 5000, ack: 1001, win: 64000},
		{at: at + 200, conn: conn, flags: ack, seq: 1001, ack: 5001, win: 64000},
	}
}

// With tcp_abort_on_overflow a listener answers the client's first data with a
// reset, though the handshake looks complete from outside.
func TestOverflowIsToldFromAnAbort(t *testing.T) {
	r := readBytes(t, capture.Options{}, pcapOf(append(handshake(1, 0),
		seg{at: 400, conn: 1, flags: ack, seq: 1001, ack: 5001, win: 64000, data: "GET / HTTP/1.1\r\n\r\n"},
		seg{at: 500, conn: 1, server: true, flags: rst, seq: 5001})...))
	if got := r.Judge.Resets[0]; got.Cause != "queue_overflow" || len(got.Evidence) != 4 {
		t.Errorf("found %+v", got)
	}
}

// A RST that came another way than its sender's segments is somebody else's.
func TestMiddleboxIsKnownByItsTTL(t *testing.T) {
	segs := append(handshake(1, 0), seg{at: 400, conn: 1, server: true, flags: rstack, seq: 5001, ack: 1001, ttl: 61, win: 64000})
	if got := readBytes(t, capture.Options{}, pcapOf(segs...)).Judge.Resets[0]; got.Cause != "middlebox" {
		t.Errorf("found %+v", got)
	}
}

// A packet that a mirror port shows twice was not sent twice.
func TestCapturedTwiceStandsBesideTheLabel(t *testing.T) {
	data := seg{at: 400, conn: 1, flags: ack, seq: 1001, ack: 5001, win: 64000, data: "hello", id: 77}
	twice := data
	twice.at += 5
	again := data
	again.at, again.id = 300_000, 78
	var lines []byte
	r := readBytes(t, capture.Options{Frame: func(f *capture.Frame) error { lines = f.AppendJudged(lines); return nil }}, pcapOf(append(handshake(1, 0), data, twice, again)...))
	if r.Attributed["captured_twice"].Count != 1 || r.Attributed["lost_after"].Count != 1 {
		t.Errorf("attributed: %v", r.Attributed)
	}
	for _, want := range []string{
		`{"frame":5,"stream":0,"labels":"retransmission","rto":0.000005000,"judgement":"captured_twice"}`,
		`{"frame":6,"stream":0,"labels":"retransmission","rto":0.299600000,"judgement":"lost_after"}`,
	} {
		if !bytes.Contains(lines, []byte(want)) {
			t.Errorf("no line %s in\n%s", want, lines)
		}
	}
}

// Several captures are one, in the order of time.
func TestCapturesAreMergedByTime(t *testing.T) {
	h := handshake(1, 0)
	var order []int64
	o := capture.Options{Frame: func(f *capture.Frame) error { order = append(order, f.Packet.Time); return nil }}
	r := readBytes(t, o, pcapOf(h[1]), pcapOf(h[0], h[2]), pcapOf())
	if r.Connections != 1 || r.Completed["incomplete, established"] != 1 {
		t.Errorf("%d connections, %v", r.Connections, r.Completed)
	}
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			t.Errorf("packet %d is earlier than the one before", i+1)
		}
	}
	if len(order) != 3 {
		t.Errorf("%d packets, want 3", len(order))
	}
}

// Who aborts while the other side sends the same again has a reason: what it waits for is lost.
func TestAnAbortWithinALossSaysSo(t *testing.T) {
	abort := func(again int) (string, string) {
		segs := append(handshake(1, 0),
			seg{at: 400, conn: 1, flags: ack, seq: 1001, ack: 5001, win: 64000, data: "GET / HTTP/1.1\r\n\r\n", options: "\x01\x01\x01\x01"},
			seg{at: 500, conn: 1, server: true, flags: ack, seq: 5001, ack: 1019, win: 64000, data: "HTTP", id: 1})
		for i := range again {
			segs = append(segs, seg{at: 200_000 * int64(i+1), conn: 1, server: true, flags: ack, seq: 5001, ack: 1019, win: 64000, data: "HTTP", id: uint16(i + 2)})
		}
		r := readBytes(t, capture.Options{}, pcapOf(append(segs, seg{at: 2_000_000, conn: 1, flags: rstack, seq: 1019, ack: 5001, win: 64000})...))
		return r.Judge.Resets[0].Cause, r.Judge.Resets[0].Why
	}
	for again, want := range map[int]string{
		0: "aborted by the application",
		2: "aborted by the application, while the other side sent again what did not get through",
	} {
		if cause, why := abort(again); cause != "aborted" || why != want {
			t.Errorf("after %d retransmissions: %s, %q; want %q", again, cause, why, want)
		}
	}
}

// The order in which captures are named changes nothing, neither where packets have the same time.
func TestOrderOfCapturesDoesNotMatter(t *testing.T) {
	h := handshake(1, 0)
	for i := range h {
		h[i].at = 0
	}
	parts := map[string][]byte{"a": pcapOf(h[0]), "b": pcapOf(h[1]), "c": pcapOf(h[2])}
	var first string
	for _, names := range []string{"abc", "cba", "bca"} {
		var sources []capture.Source
		for _, n := range names {
			sources = append(sources, capture.Source{Name: string(n), In: bytes.NewReader(parts[string(n)])})
		}
		labels := ""
		if _, err := capture.Read(t.Context(), sources, capture.Options{Frame: func(f *capture.Frame) error {
			labels += string(f.AppendLabels(nil))
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = labels
		}
		if labels != first || labels == "" {
			t.Errorf("named %s: %q, want %q", names, labels, first)
		}
	}
}

// A file that is cut anywhere gives what it has before, and says that it is partial.
func TestCutFilesArePartial(t *testing.T) {
	whole := pcapOf(append(handshake(1, 0), handshake(2, 1000)...)...)
	each := 16 + len(handshake(1, 0)[0].packet())
	for n := 25; n < len(whole); n++ {
		r := readBytes(t, capture.Options{}, whole[:n])
		at, rest := (n-24)/each, (n-24)%each
		if r.Packets != int64(at) || r.Partial != (rest != 0) {
			t.Errorf("of %d bytes: %d packets, partial %v", n, r.Packets, r.Partial)
		}
	}
	hole := append(bytes.Clone(whole), make([]byte, 4096)...)
	if r := readBytes(t, capture.Options{}, hole); r.Packets != 6 || !r.Partial {
		t.Errorf("of a file with a hole: %d packets, partial %v", r.Packets, r.Partial)
	}
}

// Connections for which there is no room are forgotten, those idle the longest
// first, and counted; those that remain are as they were.
func TestMemoryIsBounded(t *testing.T) {
	var segs []seg
	const many = 20_000
	for i := range many {
		segs = append(segs, handshake(i, int64(i)*1000)...)
	}
	gone := int64(0)
	r := readBytes(t, capture.Options{MaxMemory: 2 << 20}, pcapOf(segs...))
	kept, last := int64(0), int64(-1)
	r.TCP.Conns(func(c *tcp.Conn) {
		kept++
		if int64(c.Stream) <= last {
			t.Fatalf("stream %d after %d", c.Stream, last)
		}
		last = int64(c.Stream)
	})
	gone = r.Forgotten
	if r.Connections != many || kept+gone != many || gone == 0 || last != many-1 || r.TCP.Bytes() > 3<<20 {
		t.Errorf("%d connections: %d kept, %d forgotten, the last %d, in %d bytes", r.Connections, kept, gone, last, r.TCP.Bytes())
	}
	if n := r.Judge.Servers()[0].Opened; n != many {
		t.Errorf("%d attempts succeeded, want %d, those forgotten too", n, many)
	}
}

// What is written can be read again: the same packets, with the labels as comments.
func TestWrittenPacketsAreTheSame(t *testing.T) {
	segs := append(handshake(1, 0), handshake(1, 5000)[0])
	var out bytes.Buffer
	w := pcap.NewWriter(&out)
	first := readBytes(t, capture.Options{Frame: func(f *capture.Frame) error { return w.Packet(&f.Packet, f.Comment()) }}, pcapOf(segs...))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SYN-ACK", "retransmission, SYN after 0.005000000 s; SYN or SYN-ACK sent again"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("no comment %q", want)
		}
	}
	second := readBytes(t, capture.Options{}, out.Bytes())
	if first.Packets != second.Packets || first.Bytes != second.Bytes || first.Start != second.Start || first.End != second.End {
		t.Errorf("written: %+v, read: %+v", first.Summary, second.Summary)
	}
}

// An ICMP error that quotes a whole TCP header has a stream's number, as in
// Wireshark; one that quotes the ports alone has none of its own. Either way the
// attempt that it is about has failed for that.
func TestErrorsBelongToTheirConnection(t *testing.T) {
	quote := func(conn, n int) []byte {
		b := seg{conn: conn, flags: syn, seq: 1000}.packet()
		ip := append(bytes.Clone(b[:34]), 3, 13, 0, 0, 0, 0, 0, 0)
		ip[23] = 1
		ip = append(ip, b[14:34+n]...)
		binary.BigEndian.PutUint16(ip[16:], uint16(len(ip)-14))
		return ip
	}
	file := record(record(pcapOf(), 0, quote(1, 8)), 10, quote(2, 20))
	file = append(file, pcapOf(seg{at: 20, conn: 3, flags: syn, seq: 1000})[24:]...)
	file = record(file, 30, quote(3, 8))
	r := readBytes(t, capture.Options{}, file)
	var streams []uint32
	r.TCP.Conns(func(c *tcp.Conn) { streams = append(streams, c.Stream) })
	failed := r.Judge.Servers()[0].Kinds["unreachable"]
	if len(streams) != 2 || failed.Count != 1 || failed.Evidence[0] != 3 {
		t.Errorf("streams %v, failed %+v", streams, failed)
	}
}

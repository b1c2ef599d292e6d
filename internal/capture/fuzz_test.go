package capture_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/http"
)

// FuzzRead reads whatever as a capture file, through all stages.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/causes/*.client.pcap")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)])
	}
	f.Fuzz(func(t *testing.T, b []byte) { whole(t, b) })
}

// FuzzSegments makes well-formed packets of what it gets, so that it reaches
// further than random bytes would: six bytes are a segment, the rest are payloads.
func FuzzSegments(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x12\x01\x00\x01\x00\x00\x10\x00\x01\x01\x00\x10"), "GET / HTTP/1.1\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x18\x00\x01\x00\x00\x15\x18\x01\x00\x16\x00\x30"), "\x16\x03\x01\x00\x05hello\x17\x03\x03\x00\x05hello\x17\x03\x03\x00\x07goodbye")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		var segs []seg
		for at := int64(0); len(b) >= 6 && len(segs) < 500; b, at = b[6:], at+int64(b[4])*1000 {
			n := min(int(b[5]), len(text))
			s := seg{at: at, conn: int(b[1] >> 6), server: b[1]&1 != 0, flags: b[0] & 0x3f, seq: 1000 + uint32(b[2]), ack: 1000 + uint32(b[3]),
				win: uint16(b[1]&0x0e) << 8, id: uint16(b[4]), data: text[:n]}
			text = text[n:]
			segs = append(segs, s)
		}
		whole(t, pcapOf(segs...))
	})
}

// whole reads a capture through all stages, in as little room as there may be.
func whole(t *testing.T, b []byte) {
	packets := int64(0)
	var line []byte
	o := capture.Options{MaxMemory: 1 << 20, Reply: func(e *http.Exchange) { capture.NewExchange(e) }, Frame: func(f *capture.Frame) error {
		packets++
		line = f.AppendJudged(f.AppendLabels(line[:0]))
		f.Comment()
		return nil
	}}
	r, err := capture.Read(t.Context(), []capture.Source{{Name: "fuzz", In: bytes.NewReader(b)}}, o)
	if err != nil {
		return
	}
	if r.Packets != packets {
		t.Fatalf("%d packets in the summary, %d on the way", r.Packets, packets)
	}
	if len(b) >= 4 && binary.LittleEndian.Uint32(b) == 0xa1b2c3d4 && !r.Partial && len(b) > 24 && packets == 0 {
		t.Fatalf("%d bytes without a packet, and not partial", len(b))
	}
}

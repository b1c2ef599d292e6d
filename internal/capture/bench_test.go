package capture_test

import (
	"strings"
	"testing"

	"plimsoll/internal/capture"
)

// BenchmarkRead reads 220 connections that take turns with 100 requests each; of
// every hundredth reply the first copy was lost. bench/capture.sh compares with
// other tools, on a real capture.
func BenchmarkRead(b *testing.B) {
	const connections, requests = 220, 100
	request, reply := "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n"+strings.Repeat("x", 1024)
	var segs []seg
	for c := range connections {
		segs = append(segs, handshake(c, int64(c)*10)...)
	}
	at := int64(10_000)
	for n := range requests {
		for c := range connections {
			from, to := 1001+uint32(n*len(request)), 5001+uint32(n*len(reply))
			segs = append(segs, seg{at: at, conn: c, flags: ack, seq: from, ack: to, win: 64000, data: request, id: uint16(n)})
			answer := seg{at: at + 50, conn: c, server: true, flags: ack, seq: to, ack: from + uint32(len(request)), win: 64000, data: reply, id: uint16(2 * n)}
			segs = append(segs, answer)
			if at += 100; (n+c)%100 == 0 {
				answer.at, answer.id = at+200_000, answer.id+1
				segs = append(segs, answer)
			}
		}
	}
	file := pcapOf(segs...)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if r := readBytes(b, capture.Options{}, file); r.Packets != int64(len(segs)) {
			b.Fatalf("%d packets, want %d", r.Packets, len(segs))
		}
	}
	b.ReportMetric(float64(len(segs)*b.N)/b.Elapsed().Seconds(), "packets/s")
}

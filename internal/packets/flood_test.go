package packets_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/capture"
	"plimsoll/internal/judge"
	"plimsoll/internal/packets"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// syn is a client's SYN to 10.0.0.2:80 at a moment, ns.
type syn struct {
	at     int64
	client uint32 // its address and port come from this number
}

// captureOf is a capture of these SYNs alone.
func captureOf(syns []syn) []byte {
	slices.SortStableFunc(syns, func(a, b syn) int { return int(a.at - b.at) })
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d) // pcap with nanoseconds
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for _, s := range syns {
		for _, v := range []uint32{uint32(1_700_000_000 + s.at/1e9), uint32(s.at % 1e9), 54, 54} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0)
		b = binary.BigEndian.AppendUint32(b, 0x0b000000+s.client) // source
		b = append(b, 10, 0, 0, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(1024+s.client%50000))
		b = append(b, 0, 80)
		b = binary.BigEndian.AppendUint32(b, 1+s.client*7) // sequence number
		b = append(b, 0, 0, 0, 0, 0x50, 2, 0xfa, 0xf0, 0, 0, 0, 0)
	}
	return b
}

// Who floods sends the same packets over and over, faster than any client asks again; the
// clients of a server that is gone ask again a second later, and are none.
func TestFloodsAndDeadServers(t *testing.T) {
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	say := func(syns []syn) (roots []string, sentence string) {
		run, _, err := packets.Read(t.Context(), []capture.Source{{Name: "made", In: bytes.NewReader(captureOf(syns))}}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := judge.Run(run, set)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Verdict.Root {
			roots = append(roots, f.Rule)
		}
		return roots, r.Verdict.Sentence
	}
	var flood, dead []syn
	for n := range 100_000 {
		flood = append(flood, syn{int64(n) * 40_000, uint32(n % 5_000)}) // 25,000 a second, each again after 0.2 s
	}
	for n := range 2_000 {
		for again := range 4 {
			dead = append(dead, syn{int64(n)*5e6 + int64(again)*1_020_000_000, uint32(n)})
		}
	}
	if roots, sentence := say(flood); !slices.Equal(roots, []string{"net.syn_flood"}) {
		t.Errorf("the same SYNs over and over: %v, %s; want net.syn_flood", roots, sentence)
	}
	if roots, sentence := say(dead); len(roots) > 0 || strings.Contains(sentence, "flood") {
		t.Errorf("clients of a server that is gone: %v, %s; want no flood", roots, sentence)
	}
}

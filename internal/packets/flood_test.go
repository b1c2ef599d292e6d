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

// syn is a SYN at a moment, ns: of a client at 10.0.0.2:80, or that one's answer to it.
type syn struct {
	at     int64
	client uint32 // its address
	port   uint16
	answer bool
	id     uint16 // its IP ID; 0 for none, as in IPv6
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
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0x45, 0, 0, 40, byte(s.id>>8), byte(s.id), 0, 0, 64, 6, 0, 0)
		isn := 1 + s.client*7 + uint32(s.port)*11
		from, to, seq, ack, flags := []uint32{0x0b000000 + s.client, uint32(s.port)}, []uint32{0x0a000002, 80}, isn, uint32(0), byte(2)
		if s.answer {
			from, to, seq, ack, flags = to, from, isn*3, isn+1, 0x12
		}
		b = binary.BigEndian.AppendUint32(b, from[0])
		b = binary.BigEndian.AppendUint32(b, to[0])
		b = binary.BigEndian.AppendUint16(b, uint16(from[1]))
		b = binary.BigEndian.AppendUint16(b, uint16(to[1]))
		b = binary.BigEndian.AppendUint32(b, seq)
		b = binary.BigEndian.AppendUint32(b, ack)
		b = append(b, 0x50, flags, 0xfa, 0xf0, 0, 0, 0, 0)
	}
	return b
}

// flood is SYNs of so many clients with so many ports each, 12,500 a second for 6 s; how many there are says
// after which time each comes again.
func flood(clients, ports uint32, answered bool) (list []syn) {
	for n := range uint32(75_000) {
		k := n % (clients * ports)
		s := syn{at: int64(n) * 80_000, client: k % clients, port: uint16(1024 + k/clients)}
		list = append(list, s)
		if answered {
			s.at, s.answer = s.at+20_000, true
			list = append(list, s)
		}
	}
	return list
}

// twice is all of them captured twice, as a mirror port shows them, with IP IDs or without.
func twice(syns []syn, ids bool) (list []syn) {
	for n, s := range syns {
		if ids {
			s.id = uint16(n%65_535) + 1
		}
		list = append(list, s)
		s.at += 3_000
		list = append(list, s)
	}
	return list
}

// asking is clients that ask for so many connections a second, for 6 s, and ask again when their timers say so.
func asking(clients uint32, rate int64, timers []int64, answered bool) (list []syn) {
	for n := range rate * 6 {
		for _, after := range timers {
			s := syn{at: n*1e9/rate + after*1e6, client: uint32(n) % clients, port: uint16(1024 + uint32(n)/clients)}
			list = append(list, s)
			if answered {
				s.at, s.answer = s.at+20_000, true
				list = append(list, s)
			}
		}
	}
	return list
}

// Who floods sends the same packets over and over, when no client asks again; the clients of a server
// that is gone, or whose answers are lost, ask again when clients do, and are none. Nobody of them is small packets: those would be
// any packets.
func TestFloodsAndDeadServers(t *testing.T) {
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	linux, others, old := []int64{0, 1020, 2040, 3060, 4090}, []int64{0, 1000, 3010, 7030}, []int64{0, 2990, 9000}
	for _, one := range []struct {
		name string
		syns []syn
		root string // "" for none
		says string // a part of what is said
	}{
		{"each again after 0.2 s", flood(2_500, 1, false), "net.syn_flood", "256 addresses or more"},
		{"one address, its ports again after 1.5 s", flood(1, 18_750, false), "net.syn_flood", "100 % of all attempts came from 11.0.0.0"},
		{"one address, its ports again after 2.5 s", flood(1, 31_250, false), "net.syn_flood", "100 % of all attempts came from 11.0.0.0"},
		{"none comes again", flood(75_000, 1, false), "net.syn_flood", "256 addresses or more"},
		{"answered, each again after 0.2 s", flood(2_500, 1, true), "net.syn_flood", "256 addresses or more"},
		{"answered, each again after 1.5 s", flood(1, 18_750, true), "net.syn_flood", "11.0.0.0"},
		{"answered, fifty over and over", flood(1, 50, true), "net.syn_flood", "11.0.0.0"},
		{"captured twice, none comes again", twice(flood(75_000, 1, false), true), "net.syn_flood", "256 addresses or more"},
		{"captured twice without IDs, none comes again", twice(flood(75_000, 1, false), false), "net.syn_flood", "256 addresses or more"},
		{"captured twice, a dead server", twice(asking(2_000, 3_000, linux, false), true), "", "SYN never answered"},
		{"captured twice without IDs, a dead server", twice(asking(2_000, 3_000, linux, false), false), "", "SYN never answered"},
		{"a dead server, many Linux clients", asking(2_000, 3_000, linux, false), "", "SYN never answered"},
		{"a dead server, one Linux client", asking(1, 3_000, linux, false), "", "SYN never answered"},
		{"a dead server, other clients", asking(100, 4_000, others, false), "", "SYN never answered"},
		{"a dead server, old clients", asking(100, 5_000, old, false), "", "SYN never answered"},
		{"a dead server, few clients", asking(10, 200, linux, false), "", "SYN never answered"},
		{"answers that are lost", asking(100, 3_000, linux, true), "", "SYN-ACK never answered"},
	} {
		run, _, err := packets.Read(t.Context(), []capture.Source{{Name: "made", In: bytes.NewReader(captureOf(one.syns))}}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := judge.Run(run, set)
		if err != nil {
			t.Fatal(err)
		}
		var roots, want []string
		said := strings.Join(run.Meta().Plan.Capture.Shows, " ")
		if flooded := strings.Contains(said, "SYN flood"); flooded != (one.root != "") {
			t.Errorf("%s: the capture shows: %s", one.name, said)
		}
		for _, f := range r.Verdict.Root {
			roots = append(roots, f.Rule)
			for _, c := range f.Clues {
				said += " " + c.Say
			}
		}
		if one.root != "" {
			want = []string{one.root}
		}
		if !slices.Equal(roots, want) || !strings.Contains(said, one.says) {
			t.Errorf("%s: %v, %s (%s); want %q and %q", one.name, roots, r.Verdict.Sentence, said, one.root, one.says)
		}
	}
}

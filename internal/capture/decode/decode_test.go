package decode

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"plimsoll/internal/capture/pcap"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// The parts that packets are put together from. A segment from port 1000 to 80.
var (
	segment = unhex("03e8 0050 00000064 000000c8 5018 0400 0000 0000") // with five bytes behind it
	payload = []byte("hello")
	macs    = unhex("020000000001 020000000002")
)

func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// v4 wraps a payload in IPv4.
func v4(proto byte, frag uint16, b []byte) []byte {
	h := unhex("4500 0000 0007 0000 40 00 0000 0a000001 0a000002")
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(b)))
	binary.BigEndian.PutUint16(h[6:], frag)
	h[9] = proto
	return append(h, b...)
}

// v6 wraps a payload in IPv6.
func v6(next byte, b []byte) []byte {
	h := unhex("60000000 0000 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002")
	binary.BigEndian.PutUint16(h[4:], uint16(len(b)))
	h[6] = next
	return append(h, b...)
}

func udp(port uint16, b []byte) []byte {
	h := make([]byte, 8)
	binary.BigEndian.PutUint16(h, 5555)
	binary.BigEndian.PutUint16(h[2:], port)
	binary.BigEndian.PutUint16(h[4:], uint16(8+len(b)))
	return append(h, b...)
}

func TestWaysToASegment(t *testing.T) {
	tcp := join(segment, payload)
	plain := v4(6, 0, tcp)
	ether := join(macs, unhex("0800"), plain)
	for name, c := range map[string]struct {
		link pcap.Link
		b    []byte
	}{
		"ethernet":          {pcap.LinkEthernet, ether},
		"padding":           {pcap.LinkEthernet, join(ether, make([]byte, 6))},
		"vlan":              {pcap.LinkEthernet, join(macs, unhex("8100 0005 0800"), plain)},
		"qinq":              {pcap.LinkEthernet, join(macs, unhex("88a8 0005 8100 0006 0800"), plain)},
		"snap":              {pcap.LinkEthernet, join(macs, unhex("0035 aaaa03 000000 0800"), plain)},
		"mpls":              {pcap.LinkEthernet, join(macs, unhex("8847 00010040 00010140"), plain)},
		"pppoe":             {pcap.LinkEthernet, join(macs, unhex("8864 1100 0001 002f 0021"), plain)},
		"cooked":            {pcap.LinkSLL, join(unhex("0000 0001 0006 020000000001 0000 0800"), plain)},
		"cooked v2":         {pcap.LinkSLL2, join(unhex("0800 0000 00000001 0001 00 06 0200000000010000"), plain)},
		"raw":               {pcap.LinkRaw, plain},
		"raw 6":             {pcap.LinkIPv6, v6(6, tcp)},
		"null":              {pcap.LinkNull, join(unhex("02000000"), plain)},
		"null, other order": {pcap.LinkNull, join(unhex("0000001e"), v6(6, tcp))},
		"loop":              {pcap.LinkLoop, join(unhex("00000002"), plain)},
		"extensions":        {pcap.LinkRaw, v6(0, join(unhex("3c00 000000000000 0600 000000000000"), tcp))},
		"authenticated":     {pcap.LinkRaw, v4(51, 0, join(unhex("0604 0000 00000001 00000002 000000000000000000000000"), tcp))},
		"atomic fragment":   {pcap.LinkRaw, v6(44, join(unhex("0600 0000 00000001"), tcp))},
		"ipip":              {pcap.LinkRaw, v4(4, 0, plain)},
		"6in4":              {pcap.LinkRaw, v4(41, 0, v6(6, tcp))},
		"gre":               {pcap.LinkRaw, v4(47, 0, join(unhex("b000 0800 00000000 00000001 00000002"), plain))},
		"gre bridge":        {pcap.LinkRaw, v4(47, 0, join(unhex("0000 6558"), ether))},
		"erspan":            {pcap.LinkRaw, v4(47, 0, join(unhex("1000 88be 00000001 1001000100000000"), ether))},
		"vxlan":             {pcap.LinkRaw, v4(17, 0, udp(4789, join(unhex("0800000000000100"), ether)))},
		"geneve":            {pcap.LinkRaw, v4(17, 0, udp(6081, join(unhex("0100655800000100 00000000"), ether)))},
		"no length":         {pcap.LinkRaw, func() []byte { b := v4(6, 0, tcp); b[2], b[3] = 0, 0; return b }()},
	} {
		var d Decoder
		var s Segment
		kind := d.Decode(&pcap.Packet{Data: c.b, Wire: len(c.b), Link: c.link}, &s)
		if kind != TCP || s.SrcPort != 1000 || s.DstPort != 80 || s.Seq != 100 || s.Ack != 200 || s.Len != 5 || string(s.Payload) != "hello" || s.HeaderBad {
			t.Errorf("%s: kind %d, %+v, %+v", name, kind, s, d.Counts)
		}
	}
}

func TestOuterPacketsAreTakenIfAsked(t *testing.T) {
	b := v4(4, 0, v4(6, 0, join(segment, payload)))
	d, s := Decoder{Outer: true}, Segment{}
	if kind := d.Decode(&pcap.Packet{Data: b, Wire: len(b), Link: pcap.LinkRaw}, &s); kind != Other || d.Counts.Tunnelled != 0 {
		t.Errorf("kind %d, %+v", kind, d.Counts)
	}
}

// A segment in fragments belongs to the packet that completes it, whatever their order.
func TestFragmentsArePutTogether(t *testing.T) {
	tcp := join(segment, payload, []byte("and more than that, to fill three fragments"))
	parts := [][]byte{v4(6, 0x2000, tcp[:24]), v4(6, 0x2000|3, tcp[24:48]), v4(6, 6, tcp[48:])}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 1, 0, 2}, {0, 2, 2, 1}} {
		var d Decoder
		var s Segment
		for i, at := range order {
			b := parts[at]
			kind := d.Decode(&pcap.Packet{Data: b, Wire: len(b), Link: pcap.LinkRaw}, &s)
			if last := i == len(order)-1; (kind == TCP) != last {
				t.Errorf("%v: packet %d: kind %d", order, i, kind)
			}
		}
		if s.Len != uint32(len(tcp)-20) || !strings.HasPrefix(string(s.Payload), "helloand") || d.Counts.Reassembled != 1 {
			t.Errorf("%v: %+v, %+v", order, s, d.Counts)
		}
	}
}

// A flood of first fragments is bounded.
func TestUnfinishedFragmentsAreForgotten(t *testing.T) {
	var d Decoder
	var s Segment
	for i := range 5000 {
		b := v4(6, 0x2000, make([]byte, 1400))
		binary.BigEndian.PutUint16(b[4:], uint16(i))
		d.Decode(&pcap.Packet{Data: b, Wire: len(b), Link: pcap.LinkRaw}, &s)
	}
	if len(d.frags.open) > maxDatagrams || d.frags.held > maxHeld || d.Counts.Unfinished != 5000-maxDatagrams {
		t.Errorf("%d held with %d bytes, %d given up", len(d.frags.open), d.frags.held, d.Counts.Unfinished)
	}
}

func TestLengthsThatLie(t *testing.T) {
	whole := v4(6, 0, join(segment, payload))
	header := func(words byte) []byte { b := v4(6, 0, join(segment, payload)); b[32] = words << 4; return b }
	for name, c := range map[string]struct {
		b    []byte
		wire int
		kind Kind
		bad  bool
		len  uint32
	}{
		"whole":                          {whole, 45, TCP, false, 5},
		"longer on paper than on wire":   {func() []byte { b := v4(6, 0, join(segment, payload)); b[3] = 200; return b }(), 45, TCP, false, 5},
		"cut, not shorter on wire":       {whole[:40], 45, TCP, false, 5},
		"header of four bytes":           {header(1), 45, TCP, true, 21},
		"header longer than its segment": {header(15), 45, TCP, true, 0},
		"ports alone":                    {whole[:24], 45, Other, false, 0},
		"up to the window":               {whole[:36], 45, TCP, false, 5},
		"ip header cut":                  {whole[:19], 45, Other, false, 0},
		"nothing":                        {nil, 45, Other, false, 0},
	} {
		var d Decoder
		var s Segment
		kind := d.Decode(&pcap.Packet{Data: c.b, Wire: c.wire, Link: pcap.LinkRaw}, &s)
		if kind != c.kind || s.HeaderBad != c.bad || s.Len != c.len {
			t.Errorf("%s: kind %d, %+v", name, kind, s)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		want    func(*Segment) bool
	}{
		"SYN's":           {"020405b4 0402 080a 00000001 00000002 01 030307 00", func(s *Segment) bool { return s.Scale == 7 && s.HasStamp && s.Stamp == [2]uint32{1, 2} }},
		"scale too large": {"0303ff01", func(s *Segment) bool { return s.Scale == 14 }},
		"stamps alone":    {"0101 080a 00000001 00000002", func(s *Segment) bool { return s.HasStamp && s.Scale == -1 }},
		"blocks":          {"0101 0512 0000000a 00000014 0000001e 00000028", func(s *Segment) bool { return s.SACKs == 2 && s.SACK[1] == [2]uint32{30, 40} }},
		"no length":       {"03000000", func(s *Segment) bool { return s.Scale == -1 }},
		"length too long": {"01010314", func(s *Segment) bool { return s.Scale == -1 }},
		"kind alone":      {"01010103", func(s *Segment) bool { return s.Scale == -1 }},
	} {
		options := unhex(c.options)
		for len(options)%4 != 0 {
			options = append(options, 0)
		}
		head := append([]byte(nil), segment...)
		head[12] = byte(20+len(options)) / 4 << 4
		b := v4(6, 0, join(head, options, payload))
		var d Decoder
		var s Segment
		d.Decode(&pcap.Packet{Data: b, Wire: len(b), Link: pcap.LinkRaw}, &s)
		if !c.want(&s) || s.Len != 5 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// An ICMP error names the connection that it is about.
func TestQuotations(t *testing.T) {
	quoted := v4(6, 0, segment[:8])
	b := v4(1, 0, join(unhex("030d 0000 00000000"), quoted))
	var d Decoder
	var s Segment
	if kind := d.Decode(&pcap.Packet{Data: b, Wire: len(b), Link: pcap.LinkRaw}, &s); kind != Quoted || s.SrcPort != 1000 || s.ICMP != [2]uint8{3, 13} {
		t.Errorf("kind %d, %+v", kind, s)
	}
	b[20] = 8 // an echo is no error
	if kind := d.Decode(&pcap.Packet{Data: b, Wire: len(b), Link: pcap.LinkRaw}, &s); kind != Other {
		t.Errorf("kind %d of an echo", kind)
	}
}

func FuzzDecode(f *testing.F) {
	tcp := join(segment, payload)
	for _, b := range [][]byte{v4(6, 0, tcp), v6(0, join(unhex("3c00 000000000000 0600 000000000000"), tcp)), v4(6, 0x2000, tcp),
		v4(47, 0, join(unhex("b000 0800 00000000 00000001 00000002"), v4(6, 0, tcp))), v4(1, 0, join(unhex("030d 0000 00000000"), v4(6, 0, segment[:8])))} {
		f.Add(uint16(pcap.LinkRaw), b, 0)
	}
	f.Add(uint16(pcap.LinkEthernet), join(macs, unhex("8100 0005 0800"), v4(17, 0, udp(4789, join(unhex("0800000000000100"), macs, unhex("0800"), v4(6, 0, tcp))))), 7)
	f.Add(uint16(pcap.LinkSLL2), join(unhex("0800 0000 00000001 0001 00 06 0200000000010000"), v4(6, 0, tcp)), 1)
	f.Fuzz(func(t *testing.T, link uint16, b []byte, beyond int) {
		var d Decoder
		var s Segment
		k := pcap.Packet{Data: b, Wire: len(b) + max(beyond, 0)%70000, Link: pcap.Link(link)}
		for range 2 {
			if d.Decode(&k, &s) == TCP && len(s.Payload) > int(s.Len) {
				t.Fatalf("%d bytes of a payload of %d", len(s.Payload), s.Len)
			}
		}
	})
}

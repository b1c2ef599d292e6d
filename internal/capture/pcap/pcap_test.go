package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// file is a pcap file with one packet, 1 s and 5 ticks after 1970.
func file(order binary.AppendByteOrder, magic uint32) []byte {
	b := order.AppendUint32(nil, magic)
	b = append(b, make([]byte, 16)...)
	b = order.AppendUint32(b, uint32(LinkRaw))
	for _, v := range []uint32{1, 5, 3, 90} {
		b = order.AppendUint32(b, v)
	}
	if magic == magicModified {
		b = append(b, make([]byte, 8)...)
	}
	return append(b, 0x45, 1, 2)
}

// all reads a capture to its end, ahead and not: that is the same.
func all(t *testing.T, b []byte) ([]Packet, error) {
	t.Helper()
	list, err := readAll(Open(bytes.NewReader(b)))
	early, earlyErr := readAll(OpenAhead(iotest.HalfReader(bytes.NewReader(b))))
	if !reflect.DeepEqual(list, early) || fmt.Sprint(err) != fmt.Sprint(earlyErr) {
		t.Errorf("%d packets, %v; read ahead %d, %v", len(list), err, len(early), earlyErr)
	}
	return list, err
}

func readAll(p *Reader, err error) (list []Packet, _ error) {
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for {
		var k Packet
		if err := p.Next(&k); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return list, err
		}
		k.Data = bytes.Clone(k.Data)
		list = append(list, k)
	}
}

func TestPcapOfEachKind(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		time int64
	}{
		"little":   {file(binary.LittleEndian, magicMicro), 1_000_005_000},
		"big":      {file(binary.BigEndian, magicMicro), 1_000_005_000},
		"nano":     {file(binary.LittleEndian, magicNano), 1_000_000_005},
		"big nano": {file(binary.BigEndian, magicNano), 1_000_000_005},
		"modified": {file(binary.BigEndian, magicModified), 1_000_005_000},
	} {
		got, err := all(t, c.b)
		want := []Packet{{Time: c.time, Data: []byte{0x45, 1, 2}, Wire: 90, Link: LinkRaw}}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

func TestCompressed(t *testing.T) {
	plain := file(binary.LittleEndian, magicMicro)
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(plain)
	g.Close()
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	z.Write(plain)
	z.Close()
	for name, b := range map[string][]byte{"gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		if got, err := all(t, b); len(got) != 1 || err != nil {
			t.Errorf("%s: %d packets, %v", name, len(got), err)
		}
		var damage *Damage
		if _, err := all(t, b[:len(b)-12]); !errors.As(err, &damage) {
			t.Errorf("%s, cut: %v, want a damage", name, err)
		}
	}
}

// blocks puts pcapng blocks together.
type blocks struct {
	order binary.AppendByteOrder
	b     []byte
}

func (k *blocks) block(kind uint32, words ...any) {
	var body []byte
	for _, w := range words {
		switch w := w.(type) {
		case uint16:
			body = k.order.AppendUint16(body, w)
		case uint32:
			body = k.order.AppendUint32(body, w)
		case uint64:
			body = k.order.AppendUint64(body, w)
		case string:
			body = append(body, w...)
		}
	}
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	total := uint32(len(body) + 12)
	k.b = k.order.AppendUint32(k.order.AppendUint32(k.b, kind), total)
	k.b = k.order.AppendUint32(append(k.b, body...), total)
}

func (k *blocks) section() {
	k.block(blockSection, uint32(sectionMagic), uint16(1), uint16(0), ^uint64(0))
}

// Two sections of different byte orders, each with interfaces of its own clocks.
func TestPcapngOfEachKind(t *testing.T) {
	k := &blocks{order: binary.LittleEndian}
	k.section()
	k.block(blockInterface, uint16(LinkEthernet), uint16(0), uint32(0))
	k.block(blockInterface, uint16(LinkRaw), uint16(0), uint32(2), uint16(optTsResol), uint16(1), "\x83\x00\x00\x00", uint16(optTsOffset), uint16(8), uint64(100), uint32(0))
	k.block(4, "names that nobody needs")
	k.block(blockEnhanced, uint32(0), uint32(0), uint32(7), uint32(1), uint32(60), "a")
	k.block(blockEnhanced, uint32(1), uint32(0), uint32(12), uint32(2), uint32(2), "bb", uint16(0), uint16(optEpbDrop), uint16(8), uint64(3), uint32(0))
	k.block(blockSimple, uint32(4), "cccc")
	k.block(blockPacketOld, uint16(0), uint16(2), uint32(0), uint32(9), uint32(1), uint32(1), "d")
	k.block(blockStats, uint32(1), uint32(0), uint32(0), uint16(optIfDrop), uint16(8), uint64(10))
	k.order = binary.BigEndian
	k.section()
	k.block(blockInterface, uint16(LinkSLL), uint16(0), uint32(0), uint16(optTsResol), uint16(1), "\x09\x00\x00\x00")
	k.block(blockEnhanced, uint32(0), uint32(1), uint32(0), uint32(1), uint32(1), "e")
	got, err := all(t, k.b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Packet{
		{Time: 7000, Data: []byte("a"), Wire: 60, Link: LinkEthernet},
		{Time: 101_500_000_000, Data: []byte("bb"), Wire: 2, Link: LinkRaw},
		{Data: []byte("cccc"), Wire: 4, Link: LinkEthernet},
		{Time: 9000, Data: []byte("d"), Wire: 1, Link: LinkEthernet},
		{Time: 1 << 32, Data: []byte("e"), Wire: 1, Link: LinkSLL},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	p, err := Open(bytes.NewReader(k.b))
	if err != nil {
		t.Fatal(err)
	}
	var one Packet
	for p.Next(&one) == nil {
	}
	if p.Dropped() != 15 {
		t.Errorf("dropped %d, want 3 of one packet, 2 of another, 10 of an interface", p.Dropped())
	}
}

func TestWhatIsNoCapture(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "it is empty"},
		{"abc", "it has 3 bytes"},
		{"GET / HTTP/1.1\r\n", "it begins with"},
		{"\x1f\x8b\x00\x00\x00", "gzip"},
		{"\xd4\xc3\xb2\xa1\x02\x00", "ends within the file's header"},
	} {
		_, err := Open(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// What a file claims is not believed: neither lengths nor numbers of interfaces.
func TestClaimsAreChecked(t *testing.T) {
	huge := file(binary.LittleEndian, magicMicro)
	binary.LittleEndian.PutUint32(huge[32:], 1<<31)
	k := &blocks{order: binary.LittleEndian}
	k.section()
	none := bytes.Clone(k.b)
	k.block(blockEnhanced, uint32(5), uint32(0), uint32(0), uint32(0), uint32(0))
	other := &blocks{order: binary.LittleEndian, b: none}
	other.block(blockInterface, uint16(1), uint16(0), uint32(0))
	other.block(blockEnhanced, uint32(0), uint32(0), uint32(0), uint32(400), uint32(400), "x")
	for name, b := range map[string][]byte{"length": huge, "interface": k.b, "captured": other.b} {
		var damage *Damage
		if _, err := all(t, b); !errors.As(err, &damage) {
			t.Errorf("%s: %v, want a damage", name, err)
		}
	}
}

// Packets lie across chunks that were read ahead, and may be larger than one.
func TestAheadOfLargePackets(t *testing.T) {
	b := file(binary.LittleEndian, magicNano)
	for i := range 400 {
		n := 1 + i*i*i%9000
		if i%50 == 7 {
			n = maxPacket - i
		}
		for _, v := range []uint32{uint32(i), 5, uint32(n), uint32(n)} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = append(b, bytes.Repeat([]byte{byte(i)}, n)...)
	}
	if list, err := all(t, b); err != nil || len(list) != 401 {
		t.Errorf("%d packets, %v", len(list), err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b) //nolint:errcheck // a buffer takes all
	w.Close()  //nolint:errcheck
	if _, err := all(t, z.Bytes()[:z.Len()-9]); err == nil {
		t.Error("a file that is cut was read to its end")
	}
}

// Who closes early waits for nobody, and leaves nothing behind.
func TestAheadEndsEarly(t *testing.T) {
	p, err := OpenAhead(io.MultiReader(bytes.NewReader(file(binary.LittleEndian, magicMicro)), zeros{}))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, open := <-p.ahead.full; open {
		t.Error("it reads on")
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func FuzzRead(f *testing.F) {
	f.Add(file(binary.LittleEndian, magicMicro))
	f.Add(file(binary.BigEndian, magicNano))
	k := &blocks{order: binary.BigEndian}
	k.section()
	k.block(blockInterface, uint16(LinkRaw), uint16(0), uint32(0), uint16(optTsResol), uint16(1), "\xff\x00\x00\x00")
	k.block(blockEnhanced, uint32(0), uint32(0), uint32(12), uint32(2), uint32(2), "bb", uint16(0), uint16(optEpbDrop), uint16(8), uint64(3), uint32(0))
	k.block(blockSimple, uint32(4), "cccc")
	f.Add(k.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		all(t, b) //nolint:errcheck // it holds both ways of reading against one another
		p, err := Open(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer p.Close()
		var one Packet
		for p.Next(&one) == nil {
			if len(one.Data) > one.Wire {
				t.Fatalf("%d bytes of a packet of %d", len(one.Data), one.Wire)
			}
		}
	})
}

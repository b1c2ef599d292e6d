// Package pcap reads packets from capture files, pcap and pcapng, plain or
// compressed, and writes pcapng. It needs nothing but the bytes, and holds one
// packet at a time.
package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Link is a link-layer type as the tcpdump.org registry numbers them
// (LINKTYPE_…): how the first bytes of a packet are to be read.
type Link uint16

// The link types that are decoded. Raw has three numbers, since the registry's
// differs from what some systems wrote.
const (
	LinkNull     Link = 0
	LinkEthernet Link = 1
	LinkRawBSD   Link = 12
	LinkRawOpen  Link = 14
	LinkRaw      Link = 101
	LinkLoop     Link = 108
	LinkSLL      Link = 113
	LinkIPv4     Link = 228
	LinkIPv6     Link = 229
	LinkSLL2     Link = 276
)

// Packet is one captured packet.
type Packet struct {
	Time int64  // when it was captured, in ns since 1970; 0 where the file has no time for it
	Data []byte // its captured bytes; they are good until the next call of Next
	Wire int    // its length on the wire, in bytes, at least len(Data)
	Link Link   // how Data begins
}

// The limits of what one packet or block may claim. Wireshark writes no packet
// above 256 KiB; a larger claim is a broken file, not a larger packet.
const (
	maxPacket = 512 << 10
	maxBlock  = maxPacket + 64<<10
	bufferLen = 128 << 10 // holds nearly every packet; see peek
)

// Damage is the error of a file that stops making sense: everything before
// Offset was read, and nothing after it.
type Damage struct {
	Offset int64  // bytes into the file, after decompression
	What   string // what was found
	Err    error  // the cause, nil where the bytes themselves are it
}

// NoOffset is the Offset of damage to what is no file.
const NoOffset = -1

func (d *Damage) Error() string {
	text := d.What
	if d.Offset != NoOffset {
		text = fmt.Sprintf("at byte %d: %s", d.Offset, d.What)
	}
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	return text
}

func (d *Damage) Unwrap() error { return d.Err }

// NotCapture is the error of a file that is no capture at all.
type NotCapture struct{ What string }

func (e *NotCapture) Error() string {
	return e.What + "; want a capture file: pcap or pcapng, plain, or compressed with gzip or zstd"
}

// Quiet is what a source that captures just now says while nothing comes: the
// packet's Time is then a moment before which nothing will come any more.
var Quiet = errors.New("no packet yet")

// Reader reads one capture file.
type Reader struct {
	in      input
	offset  int64
	order   binary.ByteOrder
	big     bool
	ng      bool
	ahead   *ahead // in, where it is that
	close   func()
	dropped int64

	// of a pcap file
	link      Link
	nano      bool
	recordLen int

	// of a pcapng section
	ifaces []iface
}

// Open begins to read a capture file: it looks at the first bytes, takes off a
// compression, and reads the file's header. The error is a *NotCapture or a *Damage.
func Open(r io.Reader) (*Reader, error) { return open(r, false) }

// OpenAhead is Open, with the file read, and decompressed, by a goroutine of its own.
// Close waits for what that reads just then.
func OpenAhead(r io.Reader) (*Reader, error) { return open(r, true) }

func open(r io.Reader, early bool) (*Reader, error) {
	in, closer, err := decompress(bufio.NewReaderSize(r, bufferLen))
	if err != nil {
		return nil, err
	}
	p := &Reader{in: in, close: closer}
	if early {
		p.ahead = newAhead(in)
		p.in = p.ahead
	}
	if err := p.header(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close frees what a compression holds. It does not close the file.
func (p *Reader) Close() {
	if p.ahead != nil {
		p.ahead.close()
	}
	if p.close != nil {
		p.close()
	}
}

// Dropped is how many packets the file says were lost by the capture itself,
// as far as it was read. A pcap file cannot say it.
func (p *Reader) Dropped() int64 {
	n := p.dropped
	for _, f := range p.ifaces {
		n += f.dropped
	}
	return n
}

// Next reads the next packet into k. The error is io.EOF at the end, or a
// *Damage where the file is cut or broken; after either there are no more packets.
func (p *Reader) Next(k *Packet) error {
	if p.ng {
		return p.nextBlock(k)
	}
	return p.nextRecord(k)
}

const (
	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34 // with eight more bytes before each packet
)

// header reads what the file begins with.
func (p *Reader) header() error {
	b, err := p.in.Peek(4)
	if len(b) < 4 {
		return short(b, err)
	}
	if binary.LittleEndian.Uint32(b) == blockSection {
		p.ng, p.order = true, binary.LittleEndian
		return p.section()
	}
	for _, big := range []bool{false, true} {
		p.setOrder(big)
		switch p.u32(b) {
		case magicMicro:
			p.recordLen = 16
		case magicNano:
			p.recordLen, p.nano = 16, true
		case magicModified:
			p.recordLen = 24
		default:
			continue
		}
		return p.fileHeader()
	}
	return &NotCapture{fmt.Sprintf("it begins with %#x", b)}
}

// short is the error of a file without even four bytes.
func short(b []byte, err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		return &Damage{What: "cannot be read", Err: err}
	}
	if len(b) == 0 {
		return &NotCapture{"it is empty"}
	}
	return &NotCapture{fmt.Sprintf("it has %d bytes", len(b))}
}

func (p *Reader) setOrder(big bool) {
	p.big, p.order = big, binary.LittleEndian
	if big {
		p.order = binary.BigEndian
	}
}

// u32 avoids the call through an interface, since it runs for every packet.
func (p *Reader) u32(b []byte) uint32 {
	if p.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (p *Reader) fileHeader() error {
	b, err := p.take(24, "the file's header")
	if err != nil {
		return err
	}
	p.link = Link(p.u32(b[20:])) // the upper half has the length of a checksum
	return nil
}

// nextRecord reads a record of a pcap file.
func (p *Reader) nextRecord(k *Packet) error {
	h, err := p.in.Peek(p.recordLen)
	if len(h) < p.recordLen {
		if len(h) == 0 && errors.Is(err, io.EOF) {
			return io.EOF
		}
		return p.damaged("the file ends within a packet's header", err)
	}
	sec, frac, caplen, wire := p.u32(h), p.u32(h[4:]), p.u32(h[8:]), p.u32(h[12:])
	switch {
	case caplen > maxPacket:
		return p.damaged(fmt.Sprintf("a packet that claims %d bytes, at most %d make sense", caplen, maxPacket), nil)
	case sec|frac|caplen|wire == 0:
		return p.damaged("zeros in place of a packet", nil) // a file with a hole, or one that was never written to its end
	}
	total := p.recordLen + int(caplen)
	b, err := p.peek(total)
	if len(b) < total {
		return p.damaged("the file ends within a packet", err)
	}
	if !p.nano {
		frac *= 1000
	}
	k.Time = int64(sec)*1e9 + int64(frac)
	k.Data = b[p.recordLen:]
	k.Wire = wireLen(wire, int(caplen))
	k.Link = p.link
	p.skip(total)
	return nil
}

// peek looks at the next n bytes. The buffer is only as large as most packets
// need, since many files may be open at once.
func (p *Reader) peek(n int) ([]byte, error) {
	if b, is := p.in.(*bufio.Reader); is && n > b.Size() {
		p.in = bufio.NewReaderSize(b, maxBlock)
	}
	return p.in.Peek(n)
}

// take returns the next n bytes, which are good until the next read.
func (p *Reader) take(n int, of string) ([]byte, error) {
	b, err := p.in.Peek(n)
	if len(b) < n {
		return nil, p.damaged("the file ends within "+of, err)
	}
	p.skip(n)
	return b, nil
}

// skip passes over n bytes that were peeked at.
func (p *Reader) skip(n int) {
	p.in.Discard(n) //nolint:errcheck // they are in the buffer
	p.offset += int64(n)
}

// damaged makes a *Damage of what was found here; that the file ended is no cause.
func (p *Reader) damaged(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return &Damage{Offset: p.offset, What: what, Err: err}
}

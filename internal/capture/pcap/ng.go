package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// The blocks of a pcapng file that carry packets, or what is needed to read them.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacketOld = 2 // "obsolete packet block"
	blockSimple    = 3
	blockStats     = 5
	blockEnhanced  = 6

	sectionMagic = 0x1a2b3c4d
)

// The options of blocks that are read.
const (
	optEnd      = 0
	optTsResol  = 9  // of an interface
	optTsOffset = 14 // of an interface
	optIfDrop   = 5  // of statistics
	optEpbDrop  = 4  // of an enhanced packet
)

// iface is an interface of a pcapng section.
type iface struct {
	link    Link
	snap    uint32
	offset  int64 // seconds that every time stamp lacks
	perSec  uint64
	nanos   uint64 // ns for each tick, 0 where a tick is no whole number of them
	dropped int64
}

// nextBlock reads blocks of a pcapng file until one has a packet.
func (p *Reader) nextBlock(k *Packet) error {
	for {
		h, err := p.in.Peek(8)
		if len(h) < 8 {
			if len(h) == 0 && errors.Is(err, io.EOF) {
				return io.EOF
			}
			return p.damaged("the file ends within a block's header", err)
		}
		kind, total := p.u32(h), p.u32(h[4:])
		if kind == blockSection {
			if err := p.section(); err != nil {
				return err
			}
			continue
		}
		if total < 12 || total%4 != 0 {
			return p.damaged(fmt.Sprintf("a block that claims %d bytes", total), nil)
		}
		if !carries(kind) {
			if err := p.pass(int64(total)); err != nil {
				return err
			}
			continue
		}
		if total > maxBlock {
			return p.damaged(fmt.Sprintf("a packet's block that claims %d bytes, at most %d make sense", total, maxBlock), nil)
		}
		b, err := p.peek(int(total))
		if len(b) < int(total) {
			return p.damaged("the file ends within a block", err)
		}
		if p.u32(b[total-4:]) != total {
			return p.damaged("a block whose two lengths differ", nil)
		}
		found, err := p.block(kind, b[8:total-4], k)
		if err != nil {
			return err
		}
		p.skip(int(total))
		if found {
			return nil
		}
	}
}

func carries(kind uint32) bool {
	switch kind {
	case blockInterface, blockPacketOld, blockSimple, blockStats, blockEnhanced:
		return true
	}
	return false
}

// pass goes past a block that nobody needs, however long it is.
func (p *Reader) pass(n int64) error {
	for n > 0 {
		step := min(n, bufferLen)
		done, err := p.in.Discard(int(step))
		p.offset += int64(done)
		if err != nil {
			return p.damaged("the file ends within a block", err)
		}
		n -= step
	}
	return nil
}

// section reads a section's header: its byte order, and that the interfaces
// known so far are those of another section.
func (p *Reader) section() error {
	b, err := p.in.Peek(28)
	if len(b) < 28 {
		return p.damaged("the file ends within a section's header", err)
	}
	switch uint32(sectionMagic) {
	case binary.LittleEndian.Uint32(b[8:]):
		p.setOrder(false)
	case binary.BigEndian.Uint32(b[8:]):
		p.setOrder(true)
	default:
		return p.damaged("a section without its byte-order mark", nil)
	}
	for _, f := range p.ifaces {
		p.dropped += f.dropped
	}
	p.ifaces = p.ifaces[:0]
	total := p.u32(b[4:])
	if total < 28 || total%4 != 0 {
		return p.damaged(fmt.Sprintf("a section's header that claims %d bytes", total), nil)
	}
	return p.pass(int64(total))
}

// block reads the body of a block; it says whether there is a packet in it.
func (p *Reader) block(kind uint32, body []byte, k *Packet) (bool, error) {
	switch kind {
	case blockInterface:
		return false, p.addInterface(body)
	case blockStats:
		p.statistics(body)
		return false, nil
	case blockSimple:
		return true, p.simple(body, k)
	}
	return true, p.enhanced(kind, body, k)
}

// maxInterfaces bounds what a file can make us remember.
const maxInterfaces = 1 << 16

func (p *Reader) addInterface(body []byte) error {
	if len(body) < 8 {
		return p.damaged("an interface's block without its fields", nil)
	}
	if len(p.ifaces) == maxInterfaces {
		return p.damaged(fmt.Sprintf("more than %d interfaces", maxInterfaces), nil)
	}
	f := iface{link: Link(p.order.Uint16(body)), snap: p.u32(body[4:]), perSec: 1e6}
	p.options(body[8:], func(code uint16, value []byte) {
		switch {
		case code == optTsResol && len(value) >= 1:
			f.perSec = ticks(value[0])
		case code == optTsOffset && len(value) >= 8:
			f.offset = int64(p.order.Uint64(value))
		}
	})
	if f.perSec <= 1e9 && 1e9%f.perSec == 0 {
		f.nanos = 1e9 / f.perSec
	}
	p.ifaces = append(p.ifaces, f)
	return nil
}

// ticks returns how many ticks of a clock make a second: the lower bits are an
// exponent, of 2 if the highest bit is set, else of 10.
func ticks(resolution byte) uint64 {
	if n := resolution & 0x7f; resolution&0x80 != 0 {
		return 1 << min(n, 63)
	}
	per := uint64(1)
	for range min(resolution, 19) {
		per *= 10
	}
	return per
}

// time turns ticks of an interface's clock into ns since 1970.
func (f *iface) time(high, low uint32) int64 {
	t := uint64(high)<<32 | uint64(low)
	if f.nanos != 0 {
		return int64(t*f.nanos) + f.offset*1e9
	}
	sec, rest := t/f.perSec, t%f.perSec
	hi, lo := bits.Mul64(rest, 1e9)
	part, _ := bits.Div64(hi, lo, f.perSec) // rest < perSec, so it fits
	return (int64(sec)+f.offset)*1e9 + int64(part)
}

// options calls fn for each option; a broken list ends where it breaks.
func (p *Reader) options(b []byte, fn func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := p.order.Uint16(b), int(p.order.Uint16(b[2:]))
		if code == optEnd || 4+n > len(b) {
			return
		}
		fn(code, b[4:4+n])
		b = b[min(4+(n+3)&^3, len(b)):]
	}
}

func (p *Reader) statistics(body []byte) {
	if len(body) < 12 {
		return
	}
	i := p.u32(body)
	if int64(i) >= int64(len(p.ifaces)) {
		return
	}
	p.options(body[12:], func(code uint16, value []byte) {
		if code == optIfDrop && len(value) >= 8 {
			p.ifaces[i].dropped = int64(min(p.order.Uint64(value), 1<<62))
		}
	})
}

func (p *Reader) simple(body []byte, k *Packet) error {
	if len(body) < 4 || len(p.ifaces) == 0 {
		return p.damaged("a packet without an interface", nil)
	}
	wire, f := p.u32(body), &p.ifaces[0]
	have := min(int64(wire), int64(len(body)-4))
	if f.snap != 0 {
		have = min(have, int64(f.snap))
	}
	*k = Packet{Data: body[4 : 4+have], Wire: wireLen(wire, int(have)), Link: f.link}
	return nil
}

// enhanced reads an enhanced packet block, or its forerunner, whose interface
// has 16 bits and a count of drops beside it.
func (p *Reader) enhanced(kind uint32, body []byte, k *Packet) error {
	if len(body) < 20 {
		return p.damaged("a packet's block without its fields", nil)
	}
	id := int64(p.u32(body))
	if kind == blockPacketOld {
		id = int64(p.order.Uint16(body))
		if n := p.order.Uint16(body[2:]); n != 0xffff {
			p.dropped += int64(n)
		}
	}
	if id >= int64(len(p.ifaces)) {
		return p.damaged(fmt.Sprintf("a packet of interface %d, and %d are known", id, len(p.ifaces)), nil)
	}
	f := &p.ifaces[id]
	caplen, wire := p.u32(body[12:]), p.u32(body[16:])
	if int64(caplen) > int64(len(body)-20) {
		return p.damaged(fmt.Sprintf("a packet that claims %d bytes in a block of %d", caplen, len(body)), nil)
	}
	k.Time = f.time(p.u32(body[4:]), p.u32(body[8:]))
	k.Data = body[20 : 20+caplen]
	k.Wire = wireLen(wire, int(caplen))
	k.Link = f.link
	if rest := body[min(20+(int(caplen)+3)&^3, len(body)):]; kind == blockEnhanced && len(rest) >= 12 {
		p.options(rest, func(code uint16, value []byte) {
			if code == optEpbDrop && len(value) >= 8 {
				p.dropped += int64(min(p.order.Uint64(value), 1<<40))
			}
		})
	}
	return nil
}

// wireLen is a packet's length on the wire: no less than what was captured, and
// no more than makes sense, since lengths are added up.
func wireLen(wire uint32, captured int) int {
	return max(min(int(wire), 1<<30), captured)
}

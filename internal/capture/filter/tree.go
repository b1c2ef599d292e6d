package filter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
)

// node is a part of an expression. Its code leads to one label if the packet
// fits, and to the other if not.
type node interface {
	compile(c *compiler, yes, no int)
}

type both struct{ a, b node }

func (n both) compile(c *compiler, yes, no int) {
	next := c.label()
	n.a.compile(c, next, no)
	c.set(next)
	n.b.compile(c, yes, no)
}

type oneOf struct{ a, b node }

func (n oneOf) compile(c *compiler, yes, no int) {
	next := c.label()
	n.a.compile(c, yes, next)
	c.set(next)
	n.b.compile(c, yes, no)
}

type not struct{ a node }

func (n not) compile(c *compiler, yes, no int) { n.a.compile(c, no, yes) }

// protocol fits packets of a protocol: of the network layer if ip is 0, else of
// the one above it. four and six say in which IP it occurs.
type protocol struct {
	ether     uint32
	ip        uint32
	four, six bool
}

func (n protocol) compile(c *compiler, yes, no int) {
	if n.ip == 0 {
		c.ether(n.ether, yes, no)
		return
	}
	at := c.network()
	if n.four {
		is, isNot := c.label(), no
		if n.six {
			isNot = c.label()
		}
		c.ether(etherIPv4, is, isNot)
		c.set(is)
		c.emit(bpf.LoadAbsolute{Off: at + 9, Size: 1})
		c.test(bpf.JumpEqual, n.ip, yes, no)
		if !n.six {
			return
		}
		c.set(isNot)
	}
	is, direct, fragment := c.label(), c.label(), c.label()
	c.ether(etherIPv6, is, no)
	c.set(is)
	c.emit(bpf.LoadAbsolute{Off: at + 6, Size: 1})
	c.test(bpf.JumpEqual, n.ip, yes, direct)
	c.set(direct)
	c.test(bpf.JumpEqual, ipFragment, fragment, no)
	c.set(fragment)
	c.emit(bpf.LoadAbsolute{Off: at + 40, Size: 1})
	c.test(bpf.JumpEqual, n.ip, yes, no)
}

// address fits packets from, to, or of an address or a net.
type address struct {
	net   netip.Prefix
	dir   direction
	ether []uint32 // the protocols of the network layer in which it is looked for
}

func (n address) compile(c *compiler, yes, no int) {
	at := c.network()
	for i, kind := range n.ether {
		is, isNot := c.label(), no
		if i < len(n.ether)-1 {
			isNot = c.label()
		}
		c.ether(kind, is, isNot)
		c.set(is)
		src, dst := at+12, at+16
		switch kind {
		case etherIPv6:
			src, dst = at+8, at+24
		case etherARP, etherRARP:
			src, dst = at+14, at+24
		}
		n.dir.compile(c, src, dst, n.at, yes, no)
		if isNot != no {
			c.set(isNot)
		}
	}
}

// at tests the address at a place, word by word.
func (n address) at(c *compiler, off uint32, yes, no int) {
	bytes, left := n.net.Addr().AsSlice(), n.net.Bits()
	if left == 0 {
		c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: 0})
		c.test(bpf.JumpEqual, 0, yes, no)
		return
	}
	for i := 0; left > 0; i, left = i+4, left-32 {
		c.emit(bpf.LoadAbsolute{Off: off + uint32(i), Size: 4})
		if left < 32 {
			c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(0) << (32 - left)})
		}
		next := yes
		if left > 32 {
			next = c.label()
		}
		c.test(bpf.JumpEqual, binary.BigEndian.Uint32(bytes[i:]), next, no)
		if next != yes {
			c.set(next)
		}
	}
}

// ports fits segments and datagrams with one of some ports. In fragments but the
// first, and behind extension headers of IPv6, there are none.
type ports struct {
	least, most uint32
	dir         direction
	over        []uint32 // the protocols above IP
}

func (n ports) compile(c *compiler, yes, no int) {
	at := c.network()
	six, notSix, four := c.label(), c.label(), c.label()
	c.ether(etherIPv6, six, notSix)
	c.set(six)
	here := c.label()
	c.emit(bpf.LoadAbsolute{Off: at + 6, Size: 1})
	c.either(here, no, n.over...)
	c.set(here)
	n.dir.compile(c, at+40, at+42, func(c *compiler, off uint32, yes, no int) {
		c.emit(bpf.LoadAbsolute{Off: off, Size: 2})
		n.within(c, yes, no)
	}, yes, no)
	c.set(notSix)
	c.ether(etherIPv4, four, no)
	c.set(four)
	fits, first := c.label(), c.label()
	c.emit(bpf.LoadAbsolute{Off: at + 9, Size: 1})
	c.either(fits, no, n.over...)
	c.set(fits)
	c.emit(bpf.LoadAbsolute{Off: at + 6, Size: 2})
	c.test(bpf.JumpBitsSet, 0x1fff, no, first)
	c.set(first)
	c.emit(bpf.LoadMemShift{Off: at})
	n.dir.compile(c, at, at+2, func(c *compiler, off uint32, yes, no int) {
		c.emit(bpf.LoadIndirect{Off: off, Size: 2})
		n.within(c, yes, no)
	}, yes, no)
}

// within tests a port that is loaded.
func (n ports) within(c *compiler, yes, no int) {
	if n.least == n.most {
		c.test(bpf.JumpEqual, n.least, yes, no)
		return
	}
	next := c.label()
	c.test(bpf.JumpGreaterOrEqual, n.least, next, no)
	c.set(next)
	c.test(bpf.JumpGreaterThan, n.most, no, yes)
}

// direction says which of source and destination is to fit.
type direction uint8

const (
	srcOrDst direction = iota
	srcAndDst
	src
	dst
)

func (d direction) compile(c *compiler, srcAt, dstAt uint32, test func(c *compiler, off uint32, yes, no int), yes, no int) {
	next := c.label()
	switch d {
	case src:
		test(c, srcAt, yes, no)
	case dst:
		test(c, dstAt, yes, no)
	case srcOrDst:
		test(c, srcAt, yes, next)
		c.set(next)
		test(c, dstAt, yes, no)
	case srcAndDst:
		test(c, srcAt, next, no)
		c.set(next)
		test(c, dstAt, yes, no)
	}
}

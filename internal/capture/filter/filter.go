// Package filter compiles what to capture into a program for the kernel (classic
// BPF). The language is a part of pcap-filter(7): what it takes means the same as
// with tcpdump, and what it does not take is refused with its place.
package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// Link is how the packets begin that a program sees.
type Link uint8

// The links.
const (
	Ethernet Link = iota // an Ethernet header
	Cooked               // the IP header: of the link layer the kernel tells only what is within
)

// The lengths of what is kept of a packet.
const (
	Whole   = 262144 // bytes; more than a packet has
	Headers = 0      // the headers up to TCP's or UDP's alone
)

// Options say what a program does besides.
type Options struct {
	Link Link
	Snap int // how many bytes of a packet are kept: Whole, Headers, or a number
	// Loopback are the numbers of interfaces that show each packet twice, going
	// and coming: the going one is left out.
	Loopback []int
}

// Compile makes a program of an expression; "" takes everything. The error of an
// expression is a *Error.
func Compile(expression string, o Options) ([]bpf.RawInstruction, error) {
	tree, err := parse(expression)
	if err != nil {
		return nil, err
	}
	c := &compiler{link: o.Link}
	accept, reject := c.label(), c.label()
	for _, index := range o.Loopback {
		next, going := c.label(), c.label()
		c.emit(bpf.LoadExtension{Num: bpf.ExtInterfaceIndex})
		c.test(bpf.JumpEqual, uint32(index), going, next)
		c.set(going)
		c.emit(bpf.LoadExtension{Num: bpf.ExtType})
		c.test(bpf.JumpEqual, packetOutgoing, reject, next)
		c.set(next)
	}
	if tree != nil {
		tree.compile(c, accept, reject)
	}
	c.set(accept)
	c.keep(o.Snap)
	c.set(reject)
	c.emit(bpf.RetConstant{Val: 0})
	program, err := c.resolve()
	if err != nil {
		return nil, err
	}
	return bpf.Assemble(program)
}

// packetOutgoing is the kernel's PACKET_OUTGOING.
const packetOutgoing = 4

// Error says what of an expression is not understood, and where.
type Error struct {
	Expression string
	At         int // bytes into it
	What       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("filter %q: at byte %d: %s", e.Expression, e.At+1, e.What)
}

package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// compiler puts a program together. A test leads to labels, whose places are
// not known yet; resolve finds them.
type compiler struct {
	link   Link
	code   []instruction
	places []int // of labels: an index of code
}

// instruction is one of the program, or a test with the labels to which it leads.
type instruction struct {
	plain   bpf.Instruction // nil for a test
	cond    bpf.JumpTest
	val     uint32
	yes, no int
	long    bool // an end is too far for a test: there is a jump to each
}

// maxProgram is the kernel's limit (BPF_MAXINSNS), and maxSkip that of a test.
const (
	maxProgram = 4096
	maxSkip    = 255
)

func (c *compiler) label() int {
	c.places = append(c.places, 0)
	return len(c.places) - 1
}

func (c *compiler) set(label int) { c.places[label] = len(c.code) }

func (c *compiler) emit(list ...bpf.Instruction) {
	for _, i := range list {
		c.code = append(c.code, instruction{plain: i})
	}
}

func (c *compiler) test(cond bpf.JumpTest, val uint32, yes, no int) {
	c.code = append(c.code, instruction{cond: cond, val: val, yes: yes, no: no})
}

// either leads to yes if what was loaded is one of some values.
func (c *compiler) either(yes, no int, values ...uint32) {
	for i, v := range values {
		next := no
		if i < len(values)-1 {
			next = c.label()
		}
		c.test(bpf.JumpEqual, v, yes, next)
		if next != no {
			c.set(next)
		}
	}
}

// resolve turns labels into distances. Making a test long moves all that comes
// after it, so this goes on until none has to be.
func (c *compiler) resolve() ([]bpf.Instruction, error) {
	at := make([]int, len(c.code)+1)
	for again := true; again; {
		again = false
		for i, one := range c.code {
			at[i+1] = at[i] + 1
			if one.long {
				at[i+1] += 2
			}
		}
		for i := range c.code {
			one := &c.code[i]
			if one.plain == nil && !one.long && max(at[c.places[one.yes]], at[c.places[one.no]])-at[i+1] > maxSkip {
				one.long, again = true, true
			}
		}
	}
	if n := at[len(c.code)]; n > maxProgram {
		return nil, fmt.Errorf("the filter needs %d instructions, the kernel takes %d; make it shorter", n, maxProgram)
	}
	out := make([]bpf.Instruction, 0, at[len(c.code)])
	for i, one := range c.code {
		yes, no := 0, 0
		if one.plain == nil {
			yes, no = at[c.places[one.yes]]-at[i+1], at[c.places[one.no]]-at[i+1]
		}
		switch {
		case one.plain != nil:
			out = append(out, one.plain)
		case one.long:
			out = append(out, bpf.JumpIf{Cond: one.cond, Val: one.val, SkipFalse: 1}, bpf.Jump{Skip: uint32(yes + 1)}, bpf.Jump{Skip: uint32(no)})
		default:
			out = append(out, bpf.JumpIf{Cond: one.cond, Val: one.val, SkipTrue: uint8(yes), SkipFalse: uint8(no)})
		}
	}
	return out, nil
}

// The numbers of protocols in the Ethernet and the IP header.
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherRARP = 0x8035
	etherIPv6 = 0x86dd

	ipICMP     = 1
	ipTCP      = 6
	ipUDP      = 17
	ipFragment = 44
	ipICMPv6   = 58
	ipSCTP     = 132
)

// network is where the network layer's header begins.
func (c *compiler) network() uint32 {
	if c.link == Cooked {
		return 0
	}
	return 14
}

// ether tests which protocol the network layer has.
func (c *compiler) ether(kind uint32, yes, no int) {
	if c.link == Cooked {
		c.emit(bpf.LoadExtension{Num: bpf.ExtProto})
	} else {
		c.emit(bpf.LoadAbsolute{Off: 12, Size: 2})
	}
	c.test(bpf.JumpEqual, kind, yes, no)
}

// otherHeaders is how many bytes are kept of what is neither TCP nor plain UDP,
// where headers alone are wanted: enough for those within a tunnel.
const otherHeaders = 128

// tunnels are the ports of UDP behind which there are packets again: VXLAN, Geneve.
var tunnels = []uint32{4789, 8472, 6081}

// keep ends the program with how many bytes are kept.
func (c *compiler) keep(snap int) {
	if snap != Headers {
		c.emit(bpf.RetConstant{Val: uint32(snap)})
		return
	}
	n := c.network()
	four, six, notFour, other := c.label(), c.label(), c.label(), c.label()
	c.ether(etherIPv4, four, notFour)
	c.set(notFour)
	c.ether(etherIPv6, six, other)
	c.set(four)
	whole := c.label()
	c.emit(bpf.LoadAbsolute{Off: n + 6, Size: 2})
	c.test(bpf.JumpBitsSet, 0x1fff, other, whole)
	c.set(whole)
	c.emit(bpf.LoadMemShift{Off: n}, bpf.LoadAbsolute{Off: n + 9, Size: 1})
	c.headers(n, other)
	c.set(six)
	c.emit(bpf.LoadConstant{Dst: bpf.RegX, Val: 40}, bpf.LoadAbsolute{Off: n + 6, Size: 1})
	c.headers(n, other)
	c.set(other)
	c.emit(bpf.RetConstant{Val: otherHeaders})
}

// headers keeps the packet up to the end of TCP's or UDP's header, which begins X
// bytes behind the network layer's; the protocol is loaded.
func (c *compiler) headers(n uint32, other int) {
	tcp, udp, notTCP, plain := c.label(), c.label(), c.label(), c.label()
	c.test(bpf.JumpEqual, ipTCP, tcp, notTCP)
	c.set(notTCP)
	c.test(bpf.JumpEqual, ipUDP, udp, other)
	c.set(tcp)
	c.emit(bpf.LoadIndirect{Off: n + 12, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: n}, bpf.RetA{})
	c.set(udp)
	c.emit(bpf.LoadIndirect{Off: n + 2, Size: 2})
	c.either(other, plain, tunnels...)
	c.set(plain)
	c.emit(bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: n + 8}, bpf.RetA{})
}

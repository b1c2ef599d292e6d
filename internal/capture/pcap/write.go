package pcap

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Writer writes a pcapng file: one section, one interface for each link type,
// times in nanoseconds.
type Writer struct {
	out   *bufio.Writer
	links []Link
	block []byte
}

// NewWriter writes a file's beginning. Errors of w come from Flush.
func NewWriter(w io.Writer) *Writer {
	p := &Writer{out: bufio.NewWriterSize(w, 256<<10)}
	p.begin(blockSection)
	p.u32(sectionMagic)
	p.u32(1)                                      // version 1.0
	p.block = append(p.block, 255, 255, 255, 255, // a section of a length that is not known yet
		255, 255, 255, 255)
	p.end()
	return p
}

// Packet writes a packet, with a comment if there is one.
func (p *Writer) Packet(k *Packet, comment string) error {
	id := p.iface(k.Link)
	p.begin(blockEnhanced)
	p.u32(uint32(id))
	p.u32(uint32(uint64(k.Time) >> 32))
	p.u32(uint32(uint64(k.Time)))
	p.u32(uint32(len(k.Data)))
	p.u32(uint32(k.Wire))
	p.bytes(k.Data)
	if comment != "" {
		p.option(1, []byte(comment))
		p.option(optEnd, nil)
	}
	return p.end()
}

// Dropped notes how many packets the capture lost, which a reader counts.
func (p *Writer) Dropped(n int64) error {
	if len(p.links) == 0 { // statistics are an interface's
		p.iface(LinkEthernet)
	}
	p.begin(blockStats)
	p.u32(0) // the first interface: the numbers of all are added up
	p.u32(0) // no time
	p.u32(0)
	p.option(optIfDrop, binary.LittleEndian.AppendUint64(nil, uint64(n)))
	p.option(optEnd, nil)
	return p.end()
}

// Flush writes out what is held back, and returns the first error there was.
func (p *Writer) Flush() error { return p.out.Flush() }

// iface returns the number of the interface with that link type.
func (p *Writer) iface(link Link) int {
	for i, l := range p.links {
		if l == link {
			return i
		}
	}
	p.begin(blockInterface)
	p.u16(uint16(link))
	p.u16(0)
	p.u32(0) // no limit of what is captured
	p.option(optTsResol, []byte{9})
	p.option(optEnd, nil)
	p.end()
	p.links = append(p.links, link)
	return len(p.links) - 1
}

func (p *Writer) begin(kind uint32) {
	p.block = p.block[:0]
	p.u32(kind)
	p.u32(0) // its length, which end sets
}

func (p *Writer) end() error {
	total := uint32(len(p.block) + 4)
	binary.LittleEndian.PutUint32(p.block[4:], total)
	p.u32(total)
	_, err := p.out.Write(p.block)
	return err
}

func (p *Writer) u16(v uint16) { p.block = binary.LittleEndian.AppendUint16(p.block, v) }
func (p *Writer) u32(v uint32) { p.block = binary.LittleEndian.AppendUint32(p.block, v) }

// bytes appends b, filled up to a whole number of words.
func (p *Writer) bytes(b []byte) {
	p.block = append(p.block, b...)
	for len(p.block)%4 != 0 {
		p.block = append(p.block, 0)
	}
}

func (p *Writer) option(code uint16, value []byte) {
	p.u16(code)
	p.u16(uint16(len(value)))
	p.bytes(value)
}

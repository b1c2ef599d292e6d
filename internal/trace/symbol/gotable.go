package symbol

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"sort"
)

// The beginnings of Go's table of functions, of Go 1.18 and 1.20. Older ones are
// left to the file's symbols.
const (
	goMagic118 = 0xfffffff0
	goMagic120 = 0xfffffff1
	goHead     = 8 + 8*8
	// maxGoSteps bounds the walk to a line; the longest functions have some thousands.
	maxGoSteps = 1 << 16
)

// goTable is the table by which a Go program itself names its functions
// (.gopclntab). It has megabytes, so only where functions begin is held in memory;
// debug/gosym would hold all of it, several times.
type goTable struct {
	data    io.ReaderAt
	order   binary.ByteOrder
	text    uint64 // what its addresses are counted from
	quantum uint64
	// index has for each function where it begins, counted from text, and where its
	// record lies; behind the last one, where that ends.
	index                             []byte
	count                             int
	names, units, files, lines, funcs int64
}

// readGoTable returns nil if the file has no such table, or one whose addresses
// cannot be told for certain.
func readGoTable(f *elf.File) *goTable {
	s, code := f.Section(".gopclntab"), f.Section(".text")
	if s == nil {
		s = f.Section(".data.rel.ro.gopclntab")
	}
	if s == nil || code == nil || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 {
		return nil
	}
	return parseGoTable(s.ReaderAt, f.ByteOrder, code.Addr, code.Size)
}

func parseGoTable(data io.ReaderAt, order binary.ByteOrder, code, size uint64) *goTable {
	var head [goHead]byte
	if _, err := data.ReadAt(head[:], 0); err != nil {
		return nil
	}
	magic := order.Uint32(head[:])
	if magic != goMagic118 && magic != goMagic120 || head[7] != 8 {
		return nil
	}
	word := func(i int) int64 { return int64(order.Uint64(head[8+8*i:]) & (1<<40 - 1)) }
	t := &goTable{
		data: data, order: order, text: code, quantum: uint64(head[6]), count: int(word(0)),
		names: word(3), units: word(4), files: word(5), lines: word(6), funcs: word(7),
	}
	if t.count <= 0 || t.count > maxSymbols {
		return nil
	}
	t.index = make([]byte, 8*t.count+4)
	if _, err := data.ReadAt(t.index, t.funcs); err != nil {
		return nil
	}
	// With C code linked in, Go's does not begin where the section does, and the
	// table need not say where. Then its end gives it away.
	if end := t.start(t.count); end > size || size-end >= 4096 {
		return nil
	}
	return t
}

// start returns where function i begins, counted from the text's start.
func (t *goTable) start(i int) uint64 { return uint64(t.order.Uint32(t.index[8*i:])) }

// find returns the function that holds an address, and the line; "" if there is none.
func (t *goTable) find(addr uint64) (name, file string, line int) {
	if t == nil || addr < t.text || addr-t.text >= t.start(t.count) {
		return "", "", 0
	}
	at := addr - t.text
	i := sort.Search(t.count, func(i int) bool { return t.start(i) > at }) - 1
	if i < 0 {
		return "", "", 0
	}
	// A function's record: entry, name, args, deferreturn, pcsp, pcfile, pcln,
	// npcdata, cuOffset; four bytes each.
	var record [4 * 9]byte
	if _, err := t.data.ReadAt(record[:], t.funcs+int64(t.order.Uint32(t.index[8*i+4:]))); err != nil {
		return "", "", 0
	}
	field := func(n int) uint32 { return t.order.Uint32(record[4*n:]) }
	name = stringAt(t.data, t.names+int64(field(1)))
	unit, okFile := t.value(field(5), t.start(i), at)
	ln, okLine := t.value(field(6), t.start(i), at)
	if !okFile || !okLine || unit < 0 || ln <= 0 {
		return name, "", 0
	}
	var offset [4]byte
	if _, err := t.data.ReadAt(offset[:], t.units+4*(int64(field(8))+int64(unit))); err != nil {
		return name, "", 0
	}
	return name, stringAt(t.data, t.files+int64(t.order.Uint32(offset[:]))), int(ln)
}

// value walks one of a function's tables to an address: pairs of how much the
// value changes (zigzag) and how many bytes of code it holds for.
func (t *goTable) value(table uint32, pc, target uint64) (int32, bool) {
	from := &varints{data: t.data, offset: t.lines + int64(table)}
	v := int32(-1)
	for step := range maxGoSteps {
		change, ok := from.next()
		if !ok || change == 0 && step > 0 {
			return 0, false
		}
		length, ok := from.next()
		if !ok {
			return 0, false
		}
		v += int32(change>>1) ^ -int32(change&1)
		pc += uint64(length) * t.quantum
		if target < pc {
			return v, true
		}
	}
	return 0, false
}

// varints reads numbers of seven bits a byte.
type varints struct {
	data   io.ReaderAt
	offset int64
	part   [64]byte
	held   []byte
}

func (v *varints) next() (uint32, bool) {
	var n uint32
	for shift := 0; shift < 35; shift += 7 {
		if len(v.held) == 0 {
			got, _ := v.data.ReadAt(v.part[:], v.offset) // at the file's end less than asked for
			v.offset, v.held = v.offset+int64(got), v.part[:got]
		}
		if len(v.held) == 0 {
			return 0, false
		}
		b := v.held[0]
		v.held = v.held[1:]
		n |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return n, true
		}
	}
	return 0, false
}

package symbol

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"
	"sort"
)

// Where functions begin stands also in binaries whose symbols were removed: in the
// index of what C++ needs to throw exceptions (.eh_frame_hdr, Linux Standard Base
// Core, "Exception Frames"). Without names it still tells functions apart.

// The only ways in which that index is written in practice: a pointer and a count
// of four bytes, then pairs of four bytes, counted from the index's own address.
const (
	encPointer = 0x1b
	encCount   = 0x03
	encTable   = 0x3b
	boundsHead = 12
)

// bounds are the addresses at which functions begin, in order.
type bounds []uint64

func readBounds(f *elf.File) bounds {
	s := f.Section(".eh_frame_hdr")
	if s == nil || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 {
		return nil
	}
	return parseBounds(s.ReaderAt, f.ByteOrder, s.Addr)
}

func parseBounds(data io.ReaderAt, order binary.ByteOrder, base uint64) bounds {
	var head [boundsHead]byte
	if _, err := data.ReadAt(head[:], 0); err != nil {
		return nil
	}
	count := order.Uint32(head[8:])
	if head[0] != 1 || head[1] != encPointer || head[2] != encCount || head[3] != encTable || count > maxSymbols {
		return nil
	}
	table := make([]byte, 8*count)
	if _, err := data.ReadAt(table, boundsHead); err != nil {
		return nil
	}
	all := make(bounds, count)
	for i := range all {
		all[i] = base + uint64(int64(int32(order.Uint32(table[8*i:]))))
	}
	if !slices.IsSorted(all) {
		return nil
	}
	return all
}

// start returns where the function that holds an address begins, 0 if that is not known.
func (b bounds) start(addr uint64) uint64 {
	i := sort.Search(len(b), func(i int) bool { return b[i] > addr }) - 1
	if i < 0 {
		return 0
	}
	return b[i]
}

// size returns how far it is from an address to the next function.
func (b bounds) size(addr uint64) uint32 {
	i := sort.Search(len(b), func(i int) bool { return b[i] > addr })
	if i == len(b) {
		return 0
	}
	return uint32(min(b[i]-addr, 1<<32-1))
}

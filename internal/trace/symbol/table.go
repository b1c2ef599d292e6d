package symbol

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

// symbols is one symbol table, by address.
type symbols struct {
	list  []entry
	names io.ReaderAt
}

type entry struct {
	addr uint64
	size uint32
	name uint32
}

// sort orders them by address, of several at one address the longest first.
func (s *symbols) sort() {
	slices.SortStableFunc(s.list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(b.size, a.size))
	})
}

// find returns the name of what holds an address; "" if nothing does that has a
// name: what lies between two functions is neither's.
func (s *symbols) find(addr uint64) string {
	i, exact := slices.BinarySearchFunc(s.list, addr, func(e entry, addr uint64) int { return cmp.Compare(e.addr, addr) })
	if !exact {
		i--
	}
	for i > 0 && s.list[i-1].addr == s.list[i].addr {
		i--
	}
	if i < 0 || !exact && addr-s.list[i].addr >= uint64(s.list[i].size) {
		return ""
	}
	return stringAt(s.names, int64(s.list[i].name))
}

// stringAt reads text that ends in a zero.
func stringAt(from io.ReaderAt, offset int64) string {
	var text []byte
	var part [256]byte
	for len(text) < longestMangled {
		n, err := from.ReadAt(part[:], offset+int64(len(text)))
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(text, part[:end]...))
		}
		text = append(text, part[:n]...)
		if err != nil {
			break
		}
	}
	return ""
}

// maxSymbols is how many symbols of one table are read.
const maxSymbols = 1 << 19

// longestMangled is where a mangled name is cut off; C++ makes long ones.
const longestMangled = 4 << 10

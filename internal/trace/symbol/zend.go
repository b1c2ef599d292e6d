package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
)

// PHP's own functions are static, but scripts call them by names, which stand in
// tables of struct _zend_function_entry: name, code, description of the arguments,
// three pointers that the loader puts in.

const (
	maxRelocations = 1 << 20
	relocationSize = 24
)

var zendName = lazy.Regexp(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)

type zendFunction struct {
	addr uint64
	name string
}

// zendTable makes symbols of the tables of functions in PHP and its extensions.
func zendTable(f *elf.File, of bounds) (table symbols) {
	code, constants := f.Section(".text"), f.Section(".rodata")
	if code == nil || constants == nil || !isZend(f) {
		return table
	}
	within := func(s *elf.Section, addr uint64) bool { return addr >= s.Addr && addr-s.Addr < s.Size }
	pointers := relocations(f)
	var list []zendFunction
	for place, name := range pointers {
		addr := pointers[place+8]
		if !within(constants, name) || !within(code, addr) || pointers[place+16] == 0 || of.start(addr) != addr {
			continue
		}
		if text := stringAt(constants, int64(name-constants.Addr)); zendName().MatchString(text) {
			list = append(list, zendFunction{addr, "zif_" + text})
		}
	}
	// Of several names for one function, the longest: implode rather than join.
	slices.SortFunc(list, func(a, b zendFunction) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(len(b.name), len(a.name)), strings.Compare(a.name, b.name))
	})
	list = slices.CompactFunc(list, func(a, b zendFunction) bool { return a.addr == b.addr })
	var names bytes.Buffer
	for _, z := range list {
		table.list = append(table.list, entry{z.addr, of.size(z.addr), uint32(names.Len())})
		names.WriteString(z.name + "\x00")
	}
	table.names = bytes.NewReader(names.Bytes())
	return table
}

// isZend says whether a binary is PHP or an extension of it.
func isZend(f *elf.File) bool {
	list, err := f.DynamicSymbols()
	return err == nil && slices.ContainsFunc(list, func(s elf.Symbol) bool {
		return s.Section != elf.SHN_UNDEF && (s.Name == "zend_register_functions" || s.Name == "get_module")
	})
}

// relocations returns the pointers that the loader puts into a binary's data, by
// where they are put.
func relocations(f *elf.File) map[uint64]uint64 {
	list := f.Section(".rela.dyn")
	if list == nil || list.Size > maxRelocations*relocationSize {
		return nil
	}
	raw, err := list.Data()
	if err != nil {
		return nil
	}
	relative := uint32(elf.R_X86_64_RELATIVE)
	if f.Machine == elf.EM_AARCH64 {
		relative = uint32(elf.R_AARCH64_RELATIVE)
	}
	pointers := map[uint64]uint64{}
	for ; len(raw) >= relocationSize; raw = raw[relocationSize:] {
		if uint32(f.ByteOrder.Uint64(raw[8:])) == relative {
			pointers[f.ByteOrder.Uint64(raw)] = f.ByteOrder.Uint64(raw[16:])
		}
	}
	return pointers
}

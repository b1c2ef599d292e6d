package symbol

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ianlancetaylor/demangle"
	"github.com/ulikunitz/xz"
)

const (
	// maxDebugData bounds a symbol table that is stored compressed.
	maxDebugData = 32 << 20
	// maxNote bounds a section of notes: a build id has 20 bytes.
	maxNote    = 4 << 10
	symbolSize = 24 // of a 64-bit file
)

// object is an ELF file. The names of its functions stay in the file, which is
// held open, until they are asked for.
type object struct {
	closers   []io.Closer
	buildID   string
	segments  []segment
	functions []symbols
	variables []symbols
	goTable   *goTable
	bounds    bounds // only of a binary without a symbol table of its own
	entries   int
	used      uint64
}

// segment is a part of the file that is loaded at an address.
type segment struct{ offset, size, addr uint64 }

func (b *object) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// openBinary reads the file behind a mapping; nil if it cannot be opened. What
// cannot be read of it leaves its functions without names, no more.
func openBinary(pid int, m *mapping) *object {
	file, err := openMapped(pid, m)
	if err != nil {
		return nil
	}
	b := &object{closers: []io.Closer{file}}
	f, err := elf.NewFile(file)
	if err != nil || f.Class != elf.ELFCLASS64 {
		return b
	}
	b.readSegments(f)
	if b.goTable = readGoTable(f); b.goTable != nil {
		b.entries += b.goTable.count / 2 // they have half the size
	}
	if b.readSymbols(f, ".symtab", ".strtab") {
		return b
	}
	b.readSymbols(f, ".dynsym", ".dynstr")
	b.readMini(f)
	b.readDebugFile(pid)
	b.bounds = readBounds(f)
	b.entries += len(b.bounds) / 2 // they have half the size
	zend, ruby := zendTable(f, b.bounds), rubyTable(f, b.bounds)
	b.functions = append(b.functions, zend, ruby)
	b.entries += len(zend.list) + len(ruby.list)
	return b
}

// readVDSO reads the code that the kernel maps into every process; ours is like
// that of all others.
func readVDSO() *object {
	b := &object{}
	file, err := os.Open("/proc/self/maps")
	if err != nil {
		return b
	}
	defer file.Close()
	mappings, _ := parseMaps(file) // what was read of it serves
	i := slices.IndexFunc(mappings, func(m mapping) bool { return m.path == vdsoModule })
	if i < 0 {
		return b
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return b
	}
	defer memory.Close()
	image := make([]byte, mappings[i].end-mappings[i].start)
	if _, err := memory.ReadAt(image, int64(mappings[i].start)); err != nil {
		return b
	}
	if f, err := elf.NewFile(bytes.NewReader(image)); err == nil && f.Class == elf.ELFCLASS64 {
		b.readSegments(f)
		b.readSymbols(f, ".dynsym", ".dynstr")
	}
	return b
}

func (b *object) readSegments(f *elf.File) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			b.segments = append(b.segments, segment{p.Off, p.Filesz, p.Vaddr})
		}
	}
	if s := f.Section(".note.gnu.build-id"); s != nil && s.Size <= maxNote {
		if data, err := s.Data(); err == nil {
			b.buildID = buildID(data, f)
		}
	}
}

// buildID takes the id from a note: sizes of name and id, type, "GNU", id.
func buildID(note []byte, f *elf.File) string {
	const head = 16
	if len(note) < head || string(note[12:16]) != "GNU\x00" {
		return ""
	}
	n := f.ByteOrder.Uint32(note[4:])
	if int64(n) > int64(len(note)-head) {
		return ""
	}
	return hex.EncodeToString(note[head : head+n])
}

// readSymbols reads one symbol table; false if the file has none such.
func (b *object) readSymbols(f *elf.File, table, strings string) bool {
	list, names := f.Section(table), f.Section(strings)
	if list == nil || names == nil || list.Type == elf.SHT_NOBITS || names.Flags&elf.SHF_COMPRESSED != 0 {
		return false
	}
	functions, variables := symbols{names: names.ReaderAt}, symbols{names: names.ReaderAt}
	from := bufio.NewReader(list.Open())
	var raw [symbolSize]byte
	for range maxSymbols {
		if _, err := io.ReadFull(from, raw[:]); err != nil {
			break
		}
		e := entry{f.ByteOrder.Uint64(raw[8:]), uint32(min(f.ByteOrder.Uint64(raw[16:]), 1<<32-1)), f.ByteOrder.Uint32(raw[:])}
		if e.addr == 0 || elf.SectionIndex(f.ByteOrder.Uint16(raw[6:])) == elf.SHN_UNDEF {
			continue
		}
		switch elf.SymType(raw[4] & 0xf) {
		case elf.STT_FUNC, elf.STT_GNU_IFUNC:
			functions.list = append(functions.list, e)
		case elf.STT_OBJECT:
			variables.list = append(variables.list, e)
		}
	}
	functions.sort()
	variables.sort()
	b.functions, b.variables = append(b.functions, functions), append(b.variables, variables)
	b.entries += len(functions.list) + len(variables.list)
	return true
}

// readMini reads the compressed symbol table that some distributions leave in
// their stripped binaries ("MiniDebugInfo").
func (b *object) readMini(f *elf.File) {
	s := f.Section(".gnu_debugdata")
	if s == nil {
		return
	}
	from, err := xz.NewReader(s.Open())
	if err != nil {
		return
	}
	data, err := io.ReadAll(io.LimitReader(from, maxDebugData))
	if err != nil {
		return
	}
	if mini, err := elf.NewFile(bytes.NewReader(data)); err == nil && mini.Class == elf.ELFCLASS64 {
		b.readSymbols(mini, ".symtab", ".strtab")
	}
}

// readDebugFile reads the symbols that a distribution's package of debug symbols
// has put beside, where gdb looks too.
func (b *object) readDebugFile(pid int) {
	if len(b.buildID) < 3 {
		return
	}
	file, err := openIn(pid, fmt.Sprintf("/usr/lib/debug/.build-id/%s/%s.debug", b.buildID[:2], b.buildID[2:]))
	if err != nil {
		return
	}
	b.closers = append(b.closers, file)
	if f, err := elf.NewFile(file); err == nil && f.Class == elf.ELFCLASS64 {
		b.readSymbols(f, ".symtab", ".strtab")
	}
}

// address turns a place in the file into an address as its symbols have it.
func (b *object) address(offset uint64) uint64 {
	for _, s := range b.segments {
		if offset >= s.offset && offset-s.offset < s.size {
			return offset - s.offset + s.addr
		}
	}
	if n := len(b.segments); n > 0 && offset >= b.segments[n-1].offset {
		return offset - b.segments[n-1].offset + b.segments[n-1].addr // .bss lies behind the file's last part
	}
	return offset
}

// function names the function that holds an address, and the line if that is known.
func (b *object) function(addr uint64) (name, file string, line int) {
	if name, file, line := b.goTable.find(addr); name != "" {
		return cut(name), cut(file), line
	}
	return b.named(b.functions, addr), "", 0
}

func (b *object) variable(addr uint64) string { return b.named(b.variables, addr) }

func (b *object) named(tables []symbols, addr uint64) string {
	for _, t := range tables {
		if name := t.find(addr); name != "" {
			return cut(plain(name))
		}
	}
	return ""
}

// plain undoes what compilers of C++ and Rust do to names.
func plain(name string) string {
	return demangle.Filter(name, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoClones, demangle.MaxLength(10))
}

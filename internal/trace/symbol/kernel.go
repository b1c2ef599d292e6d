package symbol

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	kallsyms = "/proc/kallsyms"
	// maxKernelSymbols is several times what a kernel with all its modules has.
	maxKernelSymbols = 1 << 20
	// longestKernelFunction is how far behind a symbol an address may lie; the list
	// has no sizes.
	longestKernelFunction = 1 << 20
)

// kernelTable is the kernel's functions by address. Names lie one behind the
// other in one string, for there are a hundred thousand.
type kernelTable struct {
	err     error
	symbols []kernelSymbol
	names   string
	modules []string
}

type kernelSymbol struct {
	addr   uint64
	name   uint32 // where it begins in names
	length uint16
	module uint16 // in modules
}

func readKernel() *kernelTable {
	file, err := os.Open(kallsyms)
	if err != nil {
		return &kernelTable{err: fmt.Errorf("name the kernel's functions: %w", err)}
	}
	defer file.Close()
	return parseKernel(file)
}

// parseKernel reads a list as /proc/kallsyms has it: "ffffffff81000000 T _stext",
// and behind it a module's name in brackets.
func parseKernel(list io.Reader) *kernelTable {
	t := &kernelTable{modules: []string{""}}
	var names strings.Builder
	known := map[string]uint16{"": 0}
	lines := bufio.NewScanner(list)
	hidden := 0
	for lines.Scan() && len(t.symbols) < maxKernelSymbols {
		text, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		kind, rest, _ := bytes.Cut(rest, []byte(" "))
		name, module, _ := bytes.Cut(rest, []byte("\t"))
		if len(kind) != 1 || !strings.Contains("tTwW", string(kind)) || len(name) == 0 || len(name) > maxName {
			continue
		}
		addr, err := strconv.ParseUint(string(text), 16, 64)
		if err != nil {
			continue
		}
		if addr == 0 {
			hidden++
			continue
		}
		at, ok := known[string(module)]
		if !ok && len(t.modules) < 1<<16 {
			at = uint16(len(t.modules))
			known[string(module)] = at
			t.modules = append(t.modules, string(module))
		}
		t.symbols = append(t.symbols, kernelSymbol{addr, uint32(names.Len()), uint16(len(name)), at})
		names.Write(name)
	}
	t.names = names.String()
	slices.SortStableFunc(t.symbols, func(a, b kernelSymbol) int { return cmp.Compare(a.addr, b.addr) })
	t.err = wrong(lines.Err(), len(t.symbols), hidden)
	return t
}

func wrong(err error, symbols, hidden int) error {
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", kallsyms, err)
	case symbols == 0 && hidden > 0:
		return fmt.Errorf("the kernel hides the addresses of its functions; run it as root, or with CAP_SYSLOG, or set kernel.kptr_restrict = 0: %w", fs.ErrPermission)
	case symbols == 0:
		return errors.New(kallsyms + " names no function")
	}
	return nil
}

// find returns the name of the function that holds an address, and the module
// ("[nf_conntrack]") that it is in, "" for the kernel itself.
func (t *kernelTable) find(addr uint64) (name, module string) {
	i, exact := slices.BinarySearchFunc(t.symbols, addr, func(s kernelSymbol, addr uint64) int { return cmp.Compare(s.addr, addr) })
	if !exact {
		i--
	}
	if i < 0 || addr-t.symbols[i].addr > longestKernelFunction {
		return "", ""
	}
	for i > 0 && t.symbols[i-1].addr == t.symbols[i].addr {
		i-- // of several names, the first
	}
	s := t.symbols[i]
	return t.names[s.name : s.name+uint32(s.length)], t.modules[s.module]
}

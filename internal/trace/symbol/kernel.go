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
	// usualKernelSymbols is what a kernel without many modules has, with names of
	// so many bytes.
	usualKernelSymbols = 1 << 17
	usualKernelName    = 28
	// longestKernelFunction is how far behind a symbol an address may lie; the list
	// has no sizes.
	longestKernelFunction = 1 << 20
	// maxKernelText bounds a name with its module: all of them have room in 32 bits.
	maxKernelText = 1 << 11
)

// kernelTable is the kernel's functions. There are more than a hundred thousand,
// so they are held tightly.
type kernelTable struct {
	err error
	// list is by address; text has the names, as the kernel's list has them, with
	// the module behind some and a newline behind each.
	list []kernelSymbol
	text []byte
}

// kernelSymbol is the two halves of an address, and where the name begins.
type kernelSymbol struct{ high, low, name uint32 }

func (s kernelSymbol) addr() uint64 { return uint64(s.high)<<32 | uint64(s.low) }

// parseKernel reads a list as /proc/kallsyms has it: "ffffffff81000000 T _stext",
// and behind it a module's name in brackets. It is told for how many to make room.
func parseKernel(list io.Reader, room int) *kernelTable {
	t := &kernelTable{list: make([]kernelSymbol, 0, room), text: make([]byte, 0, room*usualKernelName)}
	lines := bufio.NewScanner(list)
	hidden := 0
	for lines.Scan() && len(t.list) < maxKernelSymbols {
		text, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		kind, rest, _ := bytes.Cut(rest, []byte(" "))
		name, _, _ := bytes.Cut(rest, []byte("\t"))
		if len(kind) != 1 || !strings.Contains("tTwW", string(kind)) || len(name) == 0 || len(name) > maxName || len(rest) > maxKernelText {
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
		t.list = append(t.list, kernelSymbol{uint32(addr >> 32), uint32(addr), uint32(len(t.text))})
		t.text = append(append(t.text, rest...), '\n')
	}
	slices.SortStableFunc(t.list, func(a, b kernelSymbol) int { return cmp.Compare(a.addr(), b.addr()) })
	t.err = wrong(lines.Err(), len(t.list), hidden)
	return t
}

func readKernel() *kernelTable {
	file, err := os.Open(kallsyms)
	if err != nil {
		return &kernelTable{err: fmt.Errorf("name the kernel's functions: %w", err)}
	}
	defer file.Close()
	return parseKernel(file, usualKernelSymbols)
}

func wrong(err error, symbols, hidden int) error {
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", kallsyms, err)
	case symbols == 0 && hidden > 0:
		return fmt.Errorf("the kernel hides the addresses of its functions; run it as root, or with CAP_SYSLOG, or set kernel.kptr_restrict = 0 and kernel.perf_event_paranoid = 1: %w", fs.ErrPermission)
	case symbols == 0:
		return errors.New(kallsyms + " names no function")
	}
	return nil
}

// find returns the name of the function that holds an address, and the module
// ("[nf_conntrack]") that it is in, "" for the kernel itself.
func (t *kernelTable) find(addr uint64) (name, module string) {
	i, exact := slices.BinarySearchFunc(t.list, addr, func(s kernelSymbol, addr uint64) int { return cmp.Compare(s.addr(), addr) })
	if !exact {
		i--
	}
	if i < 0 || addr-t.list[i].addr() > longestKernelFunction {
		return "", ""
	}
	for i > 0 && t.list[i-1].addr() == t.list[i].addr() {
		i-- // of several names, the first
	}
	text, _, _ := bytes.Cut(t.text[t.list[i].name:], []byte("\n"))
	name, module, _ = strings.Cut(string(text), "\t")
	return name, module
}

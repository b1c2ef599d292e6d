package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mapsList = `00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon
00651000-00652000 rw-p 00051000 08:02 173521      /usr/bin/dbus-daemon
00652000-00655000 rw-p 00000000 00:00 0
00e03000-00e24000 rw-p 00000000 00:00 0           [heap]
35b1800000-35b1820000 r-xp 00000000 08:02 135522  /usr/lib64/a b.so (deleted)
7f00-7f01 r-xp 00000000 00:00 0
7f04000-7f05000 rwxs 00000000 00:05 77 /dev/zero (deleted)
7fff6b5ff000-7fff6b600000 r-xp 00000000 00:00 0   [vdso]
`

func TestParseMaps(t *testing.T) {
	got, err := parseMaps(strings.NewReader(mapsList))
	if err != nil {
		t.Fatal(err)
	}
	daemon := fileID{"08:02", "173521", "/usr/bin/dbus-daemon"}
	want := []mapping{
		{start: 0x7f00, end: 0x7f01, code: true},
		{start: 0x400000, end: 0x452000, code: true, path: daemon.path, file: daemon},
		{start: 0x651000, end: 0x655000, offset: 0x51000, path: daemon.path, file: daemon},
		{start: 0x7f04000, end: 0x7f05000, code: true, path: "/dev/zero"},
		{start: 0x35b1800000, end: 0x35b1820000, code: true, path: "/usr/lib64/a b.so", file: fileID{"08:02", "135522", "/usr/lib64/a b.so"}},
		{start: 0x7fff6b5ff000, end: 0x7fff6b600000, code: true, path: "[vdso]"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(mapping{}, fileID{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

const kernelList = `ffffffff81000000 T _stext
ffffffff81000100 t first
ffffffff81000100 t also_first
ffffffff81000200 D some_data
ffffffff81000300 W second
ffffffffc0000000 t in_module	[nf_conntrack]
`

func TestParseKernel(t *testing.T) {
	k := parseKernel(strings.NewReader(kernelList), 0)
	if k.err != nil {
		t.Fatal(k.err)
	}
	for addr, want := range map[uint64]string{
		0xffffffff80ffffff: " ", 0xffffffff81000100: "first ", 0xffffffff810002ff: "first ", 0xffffffff81000300: "second ",
		0xffffffffc0000010: "in_module [nf_conntrack]", 0xffffffffc1000000: " ",
	} {
		if name, module := k.find(addr); name+" "+module != want {
			t.Errorf("%x: %q, want %q", addr, name+" "+module, want)
		}
	}
}

func TestHiddenKernelIsSaidPlainly(t *testing.T) {
	k := parseKernel(strings.NewReader("0000000000000000 T _stext\n0000000000000000 t first\n"), 0)
	if !errors.Is(k.err, fs.ErrPermission) || !strings.Contains(k.err.Error(), "kptr_restrict") {
		t.Error(k.err)
	}
	if name, _ := k.find(0xffffffff81000000); name != "" {
		t.Error(name)
	}
}

func TestParsePerfMap(t *testing.T) {
	m := parsePerfMap(strings.NewReader("1000 10 old one\n1000 20 new one\n0x2000 0x8 other\nnonsense\n3000 0 empty\n"))
	for addr, want := range map[uint64]string{0xfff: "", 0x1000: "new one", 0x101f: "new one", 0x1020: "", 0x2007: "other", 0x3000: ""} {
		if got := m.find(addr); got != want {
			t.Errorf("%x: %q, want %q", addr, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for f, want := range map[Frame]string{
		{Function: "main"}:                           "main",
		{Module: "/usr/sbin/nginx", Address: 0x1234}: "nginx+0x1234",
		{Module: jitModule, Address: 5}:              "[jit]",
		{Module: KernelModule, Kernel: true}:         "[kernel]",
		{Address: 7}:                                 "[unknown]",
	} {
		if got := f.Name(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	for mangled, want := range map[string]string{
		"_ZN5outer5thing6methodEiPc":                         "outer::thing::method",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE":     "core::fmt::Formatter::pad",
		"_RNvNtCs1234_7mycrate3foo3bar":                      "mycrate::foo::bar",
		"_Z3addIiET_S0_S0_":                                  "add<int>",
		"plain_c":                                            "plain_c",
		"_ZN" + strings.Repeat("9abcdefghi", 100) + "3fooEv": "",
	} {
		if got := cut(plain(mangled)); got != want && want != "" || len(got) > maxName+3 {
			t.Errorf("%s: %q, want %q", mangled, got, want)
		}
	}
}

func FuzzMaps(f *testing.F) {
	f.Add(mapsList, uint64(0x400100))
	f.Fuzz(func(t *testing.T, text string, addr uint64) {
		all, _ := parseMaps(strings.NewReader(text))
		p := &process{mappings: all}
		if m := p.mapping(addr, true); m != nil && (addr < m.start || addr >= m.end || !m.code) {
			t.Errorf("%x is not in %+v", addr, m)
		}
	})
}

func FuzzKernel(f *testing.F) {
	f.Add(kernelList, uint64(0xffffffff81000100))
	f.Fuzz(func(t *testing.T, text string, addr uint64) {
		parseKernel(strings.NewReader(text), 0).find(addr)
	})
}

func FuzzPerfMap(f *testing.F) {
	f.Add("1000 10 old one\n1000 20 new one\n", uint64(0x1008))
	f.Fuzz(func(t *testing.T, text string, addr uint64) {
		m := parsePerfMap(strings.NewReader(text))
		m.find(addr)
	})
}

func FuzzGoTable(f *testing.F) {
	if file, err := elf.Open("/proc/self/exe"); err == nil {
		if s := file.Section(".gopclntab"); s != nil {
			data := make([]byte, 4096)
			_, _ = s.ReadAt(data, 0) // as much as there is
			f.Add(data, uint64(0x1000), uint64(0x100000))
		}
		_ = file.Close()
	}
	f.Fuzz(func(_ *testing.T, data []byte, addr, size uint64) {
		parseGoTable(bytes.NewReader(data), binary.LittleEndian, 0x1000, size).find(addr)
	})
}

func FuzzBounds(f *testing.F) {
	f.Add([]byte{1, encPointer, encCount, encTable, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, uint64(0x1200))
	f.Fuzz(func(_ *testing.T, data []byte, addr uint64) {
		b := parseBounds(bytes.NewReader(data), binary.LittleEndian, 0x1000)
		b.start(addr)
		b.size(addr)
	})
}

func FuzzSymbols(f *testing.F) {
	if data, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(data, uint64(0x3000))
	}
	f.Fuzz(func(_ *testing.T, data []byte, addr uint64) {
		file, err := elf.NewFile(bytes.NewReader(data))
		if err != nil || file.Class != elf.ELFCLASS64 {
			return
		}
		b := &object{}
		b.readSegments(file)
		b.goTable = readGoTable(file)
		b.bounds = readBounds(file)
		b.functions = append(b.functions, zendTable(file, b.bounds), rubyTable(file, b.bounds))
		b.readSymbols(file, ".symtab", ".strtab")
		b.readSymbols(file, ".dynsym", ".dynstr")
		b.function(b.address(addr))
		b.variable(addr)
	})
}

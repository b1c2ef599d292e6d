package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

// What objects ask of kernels whose types are recorded in testdata/kernels, and those do
// not have, stands in testdata/kernels/absent.txt: each line is either asked for with
// bpf_core_field_exists and the like, or it is why a tracer cannot run there
// (docs/kernels.md). A new line is to be looked at, and then PLIMSOLL_UPDATE=1 keeps
// it. bench/kernels records a kernel's types.
func TestRelocations(t *testing.T) {
	recorded, err := filepath.Glob("testdata/kernels/*.btf.gz")
	if err != nil || len(recorded) == 0 {
		t.Fatal(recorded, err)
	}
	var b strings.Builder
	everywhere := map[string]int{}
	for _, path := range recorded {
		kernel := readTypes(t, path)
		name := strings.TrimSuffix(filepath.Base(path), ".btf.gz")
		for _, line := range missing(t, kernel) {
			if isOthers(name, line) {
				continue
			}
			fmt.Fprintf(&b, "%-12s %s\n", name, line)
			everywhere[line]++
		}
	}
	for line, n := range everywhere {
		if n == len(recorded) {
			t.Errorf("no kernel has it: %s; if it is new in the C, bench/kernels must record the kernels' types anew", line)
		}
	}
	const golden = "testdata/kernels/absent.txt"
	if os.Getenv("PLIMSOLL_UPDATE") == "1" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("what kernels lack has changed (-was +is)\n%s", d)
	}
}

// isOthers says whether a type is of another architecture than a kernel: its flavour
// tells.
func isOthers(kernel, line string) bool {
	arm64 := strings.HasSuffix(kernel, "-arm64")
	return strings.Contains(line, "___arm64.") && !arm64 || arm64 && (strings.Contains(line, "___x86.") || strings.Contains(line, "___amd64."))
}

func readTypes(t *testing.T, path string) *btf.Spec {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// missing lists what any object asks of a kernel in vain.
func missing(t *testing.T, kernel *btf.Spec) []string {
	t.Helper()
	objects, err := filepath.Glob("*/bpf_bpfel.o")
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	recorded := HasFunction(kernel, "sock_def_readable") // records of before it was asked for have no functions
	var lines []string
	for _, object := range objects {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		tracer := filepath.Dir(object)
		for _, program := range spec.Programs {
			if program.Type == ebpf.Tracing && program.AttachType == ebpf.AttachTraceRawTp {
				if _, err := Arguments(kernel, program.AttachTo); err != nil {
					lines = append(lines, fmt.Sprintf("%-9s tracepoint %s", tracer, program.AttachTo))
				}
			}
			if OnFunction(program) && recorded && !HasFunction(kernel, program.AttachTo) {
				lines = append(lines, fmt.Sprintf("%-9s function %s", tracer, program.AttachTo))
			}
			for i := range program.Instructions {
				if what := inVain(t, kernel, spec.Types, &program.Instructions[i]); what != "" {
					lines = append(lines, fmt.Sprintf("%-9s %s", tracer, what))
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// inVain says what an instruction asks of the kernel's types and does not get, or gets
// in a size that the verifier would refuse; "" if there is no such.
func inVain(t *testing.T, kernel, local *btf.Spec, ins *asm.Instruction) string {
	t.Helper()
	relo := btf.CORERelocationMetadata(ins)
	if relo == nil {
		return ""
	}
	asks := parseRelocation(t, local, relo)
	if asks.kind == "field_exists" || asks.kind == "enumval_exists" { // an answer in any case
		return ""
	}
	fixups, err := btf.CORERelocate([]*btf.CORERelocation{relo}, []*btf.Spec{kernel}, binary.LittleEndian,
		func(btf.Type) (btf.TypeID, error) { return 1, nil })
	if err != nil {
		return fmt.Sprintf("%s: %v", asks, err)
	}
	if strings.HasSuffix(fixups[0].String(), "poison") {
		return asks.String()
	}
	if asks.kind != "byte_off" || ins.OpCode.Class() != asm.LdXClass {
		return ""
	}
	if has := sizeOf(kernel, asks.root, asks.path); has >= 0 && ins.OpCode.Size().Sizeof() > has {
		return fmt.Sprintf("%s is of %d bytes, and %d are read", asks, has, ins.OpCode.Size().Sizeof())
	}
	return ""
}

// relocation is what is asked: the kind, and by name the fields from a type on.
type relocation struct {
	kind, root string
	path       []string
}

func (r relocation) String() string {
	what := strings.Join(append([]string{r.root}, r.path...), ".")
	if r.kind == "byte_off" {
		return what
	}
	return r.kind + " of " + what
}

var relocationText = regexp.MustCompile(`^CORERelocation\((\w+), \w+:"(\w+)"\[([\d:]+)\], local_id=(\d+)\)$`)

// parseRelocation reads it as it prints itself, for it tells its parts in no other way.
func parseRelocation(t *testing.T, local *btf.Spec, relo *btf.CORERelocation) relocation {
	t.Helper()
	m := relocationText.FindStringSubmatch(relo.String())
	if m == nil {
		t.Fatalf("%s is printed in a way that is not known here", relo)
	}
	r := relocation{kind: m[1], root: m[2]}
	id, err := strconv.Atoi(m[4])
	if err != nil {
		t.Fatal(err)
	}
	typ, err := local.TypeByID(btf.TypeID(id))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range strings.Split(m[3], ":")[1:] { // the first is of an array of the root
		n, err := strconv.Atoi(step)
		if err != nil {
			t.Fatal(err)
		}
		switch under := btf.UnderlyingType(typ).(type) {
		case *btf.Array:
			typ = under.Type
		default:
			member := membersOf(under)[n]
			typ = member.Type
			if member.Name != "" {
				r.path = append(r.path, member.Name)
			}
		}
	}
	return r
}

func membersOf(typ btf.Type) []btf.Member {
	switch typ := typ.(type) {
	case *btf.Struct:
		return typ.Members
	case *btf.Union:
		return typ.Members
	}
	return nil
}

// sizeOf is how many bytes the kernel's field has, or a bit field's unit; −1 if it has
// another form than ours, where the relocation says so itself.
func sizeOf(kernel *btf.Spec, root string, path []string) int {
	root, _, _ = strings.Cut(root, "___")
	var s *btf.Struct
	if kernel.TypeByName(root, &s) != nil {
		return -1
	}
	var typ btf.Type = s
	for _, name := range path {
		m := member(typ, name)
		if m == nil || m.BitfieldSize > 0 {
			return -1
		}
		typ = m.Type
	}
	n, err := btf.Sizeof(typ)
	if err != nil {
		return -1
	}
	return n
}

// member finds a field by its name, also in what has none.
func member(typ btf.Type, name string) *btf.Member {
	members := membersOf(btf.UnderlyingType(typ))
	for i, m := range members {
		if m.Name == name {
			return &members[i]
		}
		if m.Name == "" {
			if found := member(m.Type, name); found != nil {
				return found
			}
		}
	}
	return nil
}

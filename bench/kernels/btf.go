package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// typesOf cuts the type information out of a kernel's image, whatever that is
// packed with.
func typesOf(image string) (*btf.Spec, error) {
	data, err := os.ReadFile(image)
	if err != nil {
		return nil, err
	}
	for _, unpacked := range append([][]byte{data}, unpack(data)...) {
		if raw := findBTF(unpacked); raw != nil {
			return btf.LoadSpecFromReader(bytes.NewReader(raw))
		}
	}
	return nil, fmt.Errorf("%s: no type information found; is it packed in a way that is not known here?", image)
}

// packings are what kernels are packed with, by how each begins.
var packings = []struct {
	begins string
	unpack []string
}{
	{"\xfd7zXZ\x00", []string{"xz", "-dc", "--single-stream"}},
	{"\x28\xb5\x2f\xfd", []string{"zstd", "-dcq"}},
	{"\x1f\x8b\x08", []string{"gzip", "-dc"}},
	{"\x02\x21\x4c\x18", []string{"lz4", "-dc"}},
}

// unpack returns what any part of an image unpacks to. What follows the packed part
// makes the programs complain, after they have unpacked all of it.
func unpack(image []byte) [][]byte {
	var all [][]byte
	for _, p := range packings {
		for at := 0; ; at++ {
			next := bytes.Index(image[at:], []byte(p.begins))
			if next < 0 {
				break
			}
			at += next
			cmd := exec.Command(p.unpack[0], p.unpack[1:]...)
			cmd.Stdin = bytes.NewReader(image[at:])
			out, _ := cmd.Output()
			if len(out) > len(image) {
				all = append(all, out)
			}
		}
	}
	return all
}

// findBTF finds it by its header: magic, version 1, no flags, 24 bytes, types first.
func findBTF(data []byte) []byte {
	const header = 24
	begins := []byte{0x9f, 0xeb, 1, 0, header, 0, 0, 0, 0, 0, 0, 0}
	var longest []byte
	for at := 0; ; at++ {
		next := bytes.Index(data[at:], begins)
		if next < 0 || len(data)-at-next < header {
			return longest
		}
		at += next
		number := func(offset int) uint64 { return uint64(binary.LittleEndian.Uint32(data[at+offset:])) }
		types, strs, length := number(12), number(16), number(20)
		if end := uint64(at) + header + strs + length; types == strs && end <= uint64(len(data)) && end-uint64(at) > uint64(len(longest)) {
			longest = data[at:end]
		}
	}
}

// needed is what the objects ask of a kernel's types: names of structs, unions and
// enums, and what programs are attached to: tracepoints and functions.
type needed struct {
	types map[string]bool
	hooks map[string]bool
}

func readNeeded(pattern string) (needed, error) {
	n := needed{map[string]bool{}, map[string]bool{}}
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return n, fmt.Errorf("%s: no objects found, %v; run this in the project's folder", pattern, err)
	}
	for _, path := range paths {
		spec, err := ebpf.LoadCollectionSpec(path)
		if err != nil {
			return n, err
		}
		for t, err := range spec.Types.All() {
			if err != nil {
				return n, fmt.Errorf("%s: %w", path, err)
			}
			if name := essential(t.TypeName()); name != "" {
				n.types[name] = true
			}
		}
		for _, p := range spec.Programs {
			n.hooks[p.AttachTo] = true
		}
	}
	return n, nil
}

// essential is a type's name without its flavour.
func essential(name string) string {
	name, _, _ = strings.Cut(name, "___")
	return name
}

// trimmer copies of a kernel's types what is needed: the structs with all their
// members, of what those hold no more than the size.
type trimmer struct {
	names map[string]bool
	done  map[btf.Type]btf.Type
}

// trim writes what is needed of a kernel's types, as BTF.
func trim(kernel *btf.Spec, n needed, to io.Writer) error {
	t := trimmer{n.types, map[btf.Type]btf.Type{}}
	b, err := btf.NewBuilder(nil, nil)
	if err != nil {
		return err
	}
	for typ, err := range kernel.All() {
		if err != nil {
			return err
		}
		kept := t.keep(typ)
		if def, ok := typ.(*btf.Typedef); ok && n.hooks[strings.TrimPrefix(def.Name, "btf_trace_")] {
			kept = tracepoint(def)
		}
		if f, ok := typ.(*btf.Func); ok && n.hooks[f.Name] {
			kept = &btf.Func{Name: f.Name, Type: &btf.FuncProto{Return: &btf.Void{}}, Linkage: btf.StaticFunc}
		}
		if kept == nil {
			continue
		}
		if _, err := b.Add(kept); err != nil {
			return err
		}
	}
	raw, err := b.Marshal(nil, &btf.MarshalOptions{Order: binary.LittleEndian, StripFuncLinkage: true})
	if err != nil {
		return err
	}
	_, err = to.Write(raw)
	return err
}

// keep returns the copy of a type that is needed by its name, else nil.
func (t *trimmer) keep(typ btf.Type) btf.Type {
	switch typ := typ.(type) {
	case *btf.Struct, *btf.Union:
		if t.names[essential(typ.TypeName())] {
			return t.copy(typ)
		}
	case *btf.Enum:
		if t.names[typ.Name] {
			return typ
		}
	}
	return nil
}

// tracepoint keeps how many arguments there are.
func tracepoint(def *btf.Typedef) btf.Type {
	pointer, ok := def.Type.(*btf.Pointer)
	if !ok {
		return nil
	}
	proto, ok := pointer.Target.(*btf.FuncProto)
	if !ok {
		return nil
	}
	short := &btf.FuncProto{Return: &btf.Void{}}
	for range proto.Params {
		short.Params = append(short.Params, btf.FuncParam{Type: &btf.Pointer{Target: &btf.Void{}}})
	}
	return &btf.Typedef{Name: def.Name, Type: &btf.Pointer{Target: short}}
}

// copy copies a type as a member is of it.
func (t *trimmer) copy(typ btf.Type) btf.Type {
	typ = btf.UnderlyingType(typ)
	if known := t.done[typ]; known != nil {
		return known
	}
	switch typ := typ.(type) {
	case *btf.Struct:
		s := &btf.Struct{Name: typ.Name, Size: typ.Size}
		t.done[typ] = s
		s.Members = t.members(typ.Name, typ.Members)
		return s
	case *btf.Union:
		u := &btf.Union{Name: typ.Name, Size: typ.Size}
		t.done[typ] = u
		u.Members = t.members(typ.Name, typ.Members)
		return u
	case *btf.Pointer:
		return &btf.Pointer{Target: t.target(typ.Target)}
	case *btf.Array:
		return &btf.Array{Index: typ.Index, Type: t.copy(typ.Type), Nelems: typ.Nelems}
	case *btf.Enum:
		return &btf.Int{Size: typ.Size}
	case *btf.Int:
		return &btf.Int{Size: typ.Size, Encoding: typ.Encoding}
	}
	return &btf.Void{}
}

// members of a struct that is known by another name only are not asked for.
func (t *trimmer) members(name string, all []btf.Member) []btf.Member {
	if name != "" && !t.names[essential(name)] {
		return nil
	}
	var kept []btf.Member
	for _, m := range all {
		m.Type, m.Tags = t.copy(m.Type), nil
		kept = append(kept, m)
	}
	return kept
}

// target is what a pointer points to: of what is not needed, nothing is known.
func (t *trimmer) target(typ btf.Type) btf.Type {
	if kept := t.keep(btf.UnderlyingType(typ)); kept != nil {
		return kept
	}
	return &btf.Void{}
}

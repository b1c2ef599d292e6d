package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"plimsoll/internal/model"
)

// MaxIgnored is how many processes Ignore can leave out.
const MaxIgnored = 3

// Set is the maps and programs of one tracer in the kernel.
type Set struct {
	// Maps holds maps and global variables, by their names in C.
	Maps     *ebpf.Collection
	programs []Program
	links    []link.Link
	needs    map[*model.Signal][]string
}

// Load puts the maps into the kernel and attaches the programs one by one, so
// that one that a kernel refuses does not take the others with it. needs says
// which programs each signal rests on. The error is that of the first program if
// all were refused.
func Load(spec *ebpf.CollectionSpec, needs map[*model.Signal][]string) (*Set, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit of locked memory, which kernels before 5.11 want for BPF: %w", err)
	}
	data := spec.Copy()
	data.Programs = nil
	maps, err := ebpf.NewCollection(data)
	if err != nil {
		return nil, plain("create the BPF maps", err)
	}
	s := &Set{Maps: maps, needs: needs}
	if err := s.Ignore(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var names []string
	for name := range spec.Programs {
		names = append(names, name)
	}
	slices.Sort(names)
	cache := btf.NewCache()
	var first error
	for _, name := range names {
		err := s.attach(spec, name, cache)
		s.programs = append(s.programs, Program{Name: name, Tracepoint: spec.Programs[name].AttachTo, Err: err})
		if first == nil {
			first = err
		}
	}
	if len(s.links) == 0 {
		return nil, errors.Join(first, s.Close())
	}
	return s, nil
}

// attach loads one program over the maps that stand already, and switches it on.
func (s *Set) attach(spec *ebpf.CollectionSpec, name string, cache *btf.Cache) error {
	one := spec.Copy()
	one.Programs = map[string]*ebpf.ProgramSpec{name: one.Programs[name]}
	coll, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: s.Maps.Maps, Cache: cache})
	if err != nil {
		return plain("load the BPF program "+name, err)
	}
	defer coll.Close() // the link keeps the program
	l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[name]})
	if err != nil {
		return plain("attach the BPF program "+name, err)
	}
	s.links = append(s.links, l)
	return nil
}

// plain words an error of the kernel's or the library's: one line, and of a
// class that StatusOf can tell.
func plain(what string, err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier): // before the classes: the kernel may refuse a program with EACCES
		return fmt.Errorf("%s: the kernel's verifier refuses it; please report it with your kernel's version: %v", what, verifier)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the kernel does not allow it (too few privileges, lockdown, or a security module): %w", what, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return fmt.Errorf("%s: this kernel cannot do it: %w", what, errors.Join(fs.ErrNotExist, err))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Programs says what became of each program, by name.
func (s *Set) Programs() []Program { return slices.Clone(s.programs) }

// Status says for each signal whether the programs that it rests on are attached.
func (s *Set) Status() map[string]model.Status {
	status := map[string]model.Status{}
	for signal, needs := range s.needs {
		status[signal.Name] = StatusOf(s.missing(needs))
	}
	return status
}

// Has says whether all programs that a signal rests on are attached.
func (s *Set) Has(signal *model.Signal) bool { return s.missing(s.needs[signal]) == nil }

func (s *Set) missing(needs []string) error {
	for _, p := range s.programs {
		if p.Err != nil && slices.Contains(needs, p.Name) {
			return p.Err
		}
	}
	return nil
}

// Ignore leaves out these processes, besides our own.
func (s *Set) Ignore(tgids ...int) error {
	if len(tgids) > MaxIgnored {
		return fmt.Errorf("leave out %d processes: want at most %d", len(tgids), MaxIgnored)
	}
	var list [MaxIgnored + 1]uint32
	for i, id := range append([]int{os.Getpid()}, tgids...) {
		list[i] = uint32(id)
	}
	v, ok := s.Maps.Variables["ignored"]
	if !ok {
		return fmt.Errorf("leave out processes: the BPF object has no variable named ignored: %w", fs.ErrNotExist)
	}
	if err := v.Set(list); err != nil {
		return fmt.Errorf("leave out processes: %w", err)
	}
	return nil
}

// Lost returns the variables that count what found no room, by what follows
// "lost_" in their names.
func (s *Set) Lost() (map[string]uint64, error) {
	lost := map[string]uint64{}
	for name, v := range s.Maps.Variables {
		what, found := strings.CutPrefix(name, "lost_")
		if !found {
			continue
		}
		var n uint64
		if err := v.Get(&n); err != nil {
			return nil, fmt.Errorf("read the BPF variable %s: %w", name, err)
		}
		lost[what] = n
	}
	return lost, nil
}

// Close detaches the programs and gives the maps back.
func (s *Set) Close() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.Close())
	}
	s.Maps.Close()
	return errors.Join(errs...)
}

// SetConstant sets a constant of the C source before it is loaded.
func SetConstant(spec *ebpf.CollectionSpec, name string, value any) error {
	v, ok := spec.Variables[name]
	if !ok {
		return fmt.Errorf("set %s: the BPF object has no such constant: %w", name, fs.ErrNotExist)
	}
	if err := v.Set(value); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}

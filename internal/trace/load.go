package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// MaxIgnored is how many processes Ignore can leave out.
const MaxIgnored = 3

// MaxOnly is how many processes Only can single out.
const MaxOnly = 64

// Attach switches a loaded program on; closing what it returns switches it off.
type Attach func(*ebpf.Program) (io.Closer, error)

// Set is the maps and programs of one tracer in the kernel.
type Set struct {
	// Maps holds maps and global variables, by their names in C.
	Maps     *ebpf.Collection
	programs []Program
	loaded   []loaded
	needs    map[*model.Signal][]string
	// tellsMisses says whether this kernel counts the events that programs missed by
	// recursion; their programs are in counted.
	tellsMisses bool
	counted     []*ebpf.Program
}

// loaded is a program in the kernel; on is nil while it is not attached.
type loaded struct {
	name    string
	program *ebpf.Program
	attach  Attach
	on      io.Closer
}

// Load puts the maps into the kernel and attaches the programs one by one, so
// that one that a kernel refuses does not take the others with it. since is the
// tracer's FirstKernel; needs says which programs each signal rests on. The error is
// that of the first program if all were refused.
func Load(spec *ebpf.CollectionSpec, since Kernel, needs map[*model.Signal][]string) (*Set, error) {
	return LoadWith(spec, since, needs, nil)
}

// LoadWith is Load for programs that are not on a BTF tracepoint; how tells by
// its name how each of those is attached.
func LoadWith(spec *ebpf.CollectionSpec, since Kernel, needs map[*model.Signal][]string, how map[string]Attach) (*Set, error) {
	l, err := newLoader(spec, since)
	if err != nil {
		return nil, err
	}
	s := &Set{Maps: l.maps, needs: needs, tellsMisses: tellsMisses()}
	if err := errors.Join(s.Ignore(), s.markResumed()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, name := range l.names() {
		attach := how[name]
		if attach == nil {
			attach = attachTracing
		}
		s.programs = append(s.programs, Program{Name: name, Tracepoint: spec.Programs[name].AttachTo, Err: s.attach(l, name, attach)})
	}
	if len(s.loaded) == 0 {
		return nil, errors.Join(s.programs[0].Err, s.Close())
	}
	return s, nil
}

// Try puts the maps and each program into the kernel and takes them out again:
// whether this kernel takes them. Of those on functions it attaches the first, for there
// are kernels that cannot though they load them. The error is that of the maps.
func Try(spec *ebpf.CollectionSpec, since Kernel) ([]Program, error) {
	l, err := newLoader(spec, since)
	if err != nil {
		return nil, err
	}
	defer l.maps.Close()
	var tried []Program
	for _, name := range l.names() {
		tried = append(tried, Program{Name: name, Tracepoint: spec.Programs[name].AttachTo, Err: l.try(name)})
	}
	return tried, nil
}

func (l *loader) try(name string) error {
	program, err := l.load(name)
	if err != nil {
		return err
	}
	defer program.Close()
	if !OnFunction(l.spec.Programs[name]) {
		return nil
	}
	if !l.asked {
		l.asked, l.refused = true, attachOnce(program)
	}
	if l.refused != nil {
		return plain("attach the BPF program "+name, l.refused, l.since)
	}
	return nil
}

func attachOnce(program *ebpf.Program) error {
	on, err := attachTracing(program)
	if err != nil {
		return err
	}
	return on.Close()
}

// OnFunction says whether a program is called with a function of the kernel, and not at
// a tracepoint.
func OnFunction(p *ebpf.ProgramSpec) bool {
	return p.AttachType == ebpf.AttachTraceFEntry || p.AttachType == ebpf.AttachTraceFExit
}

// loader loads programs one by one over maps that stand already.
type loader struct {
	spec  *ebpf.CollectionSpec
	since Kernel
	maps  *ebpf.Collection
	types *btf.Cache
	// asked is whether it was tried to attach a program to a function, refused the answer.
	asked   bool
	refused error
}

// newLoader creates the maps.
func newLoader(spec *ebpf.CollectionSpec, since Kernel) (*loader, error) {
	if err := liftMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit of locked memory, which kernels before 5.11 want for BPF: %w", err)
	}
	data := spec.Copy()
	data.Programs = nil
	maps, err := ebpf.NewCollection(data)
	if err != nil {
		return nil, plain("create the BPF maps", err, since)
	}
	return &loader{spec: spec, since: since, maps: maps, types: types()}, nil
}

// NoMemlock is the first Linux that does not count BPF memory as locked.
var NoMemlock = Kernel{Major: 5, Minor: 11}

// liftMemlock lifts the limit of locked memory where the kernel counts BPF memory by it. The library's own way asks the kernel, by
// making a map, whenever the program starts, whatever it is to do.
func liftMemlock() error {
	here, err := RunningKernel()
	if err != nil || !here.Less(NoMemlock) {
		return err
	}
	endless := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	return unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &endless, nil)
}

// names are in the order in which the programs are attached. What looks at all that is there (an iterator) comes first, since
// the others ask what it has found at the first thing that they see.
func (l *loader) names() []string {
	turn := func(name string) int {
		if l.spec.Programs[name].AttachType == ebpf.AttachTraceIter {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(l.spec.Programs), func(a, b string) int {
		return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(a, b))
	})
}

func (l *loader) load(name string) (*ebpf.Program, error) {
	one := &ebpf.CollectionSpec{
		Maps: l.spec.Maps, Programs: map[string]*ebpf.ProgramSpec{name: l.spec.Programs[name]}, Types: l.spec.Types, ByteOrder: l.spec.ByteOrder,
	}
	coll, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: l.maps.Maps, Cache: l.types})
	if err != nil {
		return nil, plain("load the BPF program "+name, err, l.since)
	}
	defer coll.Close()
	return coll.DetachProgram(name), nil
}

func attachTracing(p *ebpf.Program) (io.Closer, error) {
	return link.AttachTracing(link.TracingOptions{Program: p})
}

// attach loads one program, and switches it on.
func (s *Set) attach(l *loader, name string, how Attach) error {
	program, err := l.load(name)
	if err != nil {
		return err
	}
	on, err := how(program)
	if err != nil {
		program.Close()
		return plain("attach the BPF program "+name, err, l.since)
	}
	s.loaded = append(s.loaded, loaded{name, program, how, on})
	s.counted = append(s.counted, program)
	return nil
}

// Pause switches the programs off, so that they cost nothing; counts stay.
func (s *Set) Pause() error {
	var errs []error
	for i := range s.loaded {
		if l := &s.loaded[i]; l.on != nil {
			errs = append(errs, l.on.Close())
			l.on = nil
		}
	}
	return errors.Join(errs...)
}

// Resume switches them on again.
func (s *Set) Resume() error {
	if err := s.markResumed(); err != nil {
		return err
	}
	for i := range s.loaded {
		l := &s.loaded[i]
		if l.on != nil {
			continue
		}
		on, err := l.attach(l.program)
		if err != nil {
			return errors.Join(fmt.Errorf("attach the BPF program %s again: %w", l.name, err), s.Pause())
		}
		l.on = on
	}
	return nil
}

// markResumed tells the programs that what began before now was half seen.
func (s *Set) markResumed() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	return s.set("resumed_at", uint64(now.Nano()))
}

// set writes a global variable of the C source.
func (s *Set) set(name string, value any) error {
	v, ok := s.Maps.Variables[name]
	if !ok {
		return fmt.Errorf("set %s: the BPF object has no such variable: %w", name, fs.ErrNotExist)
	}
	if err := v.Set(value); err != nil {
		return fmt.Errorf("set the BPF variable %s: %w", name, err)
	}
	return nil
}

// plain words an error of the kernel's or the library's: one line, and of a class
// that host.StatusOf can tell. What a kernel older than since, the first that was tried
// with all of it working, refuses, it lacks.
func plain(what string, err error, since Kernel) error {
	here, unknown := RunningKernel()
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	return plainOn(here, what, err, since)
}

func plainOn(here Kernel, what string, err error, since Kernel) error {
	var verifier *ebpf.VerifierError
	refused := errors.As(err, &verifier)
	switch {
	case here.Less(since) && (refused || errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, btf.ErrNotFound)):
		return host.Absent(fmt.Sprintf("needs Linux %s, and this is %s (%s: %v)", since, here, what, err))
	case refused: // before the classes: the kernel may refuse a program with EACCES
		return fmt.Errorf("%s: this kernel's verifier refuses it, which others since Linux %s do not (docs/kernels.md): %v", what, since, verifier)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the kernel does not allow it (too few privileges, lockdown, or a security module): %w", what, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return host.Absent(fmt.Sprintf("%s: this kernel cannot do it: %v", what, err))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Programs says what became of each program, by name.
func (s *Set) Programs() []Program { return slices.Clone(s.programs) }

// Status says for each signal whether the programs that it rests on are attached.
func (s *Set) Status() map[string]model.Status {
	status := map[string]model.Status{}
	for signal, needs := range s.needs {
		status[signal.Name] = host.StatusOf(s.missing(needs))
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
	return s.set("ignored", list)
}

// Only singles out these processes: of others nothing is counted from now on.
// With none, everybody counts again. A tracer whose numbers are not of processes
// takes no notice.
func (s *Set) Only(tgids ...int) error {
	if len(tgids) > MaxOnly {
		return fmt.Errorf("single out %d processes: want at most %d", len(tgids), MaxOnly)
	}
	m := s.Maps.Maps["only"]
	if m == nil {
		return fmt.Errorf("single out processes: the BPF object has no map named only: %w", fs.ErrNotExist)
	}
	var old []uint32
	var key uint32
	var there uint8
	each := m.Iterate()
	for each.Next(&key, &there) {
		old = append(old, key)
	}
	errs := []error{each.Err(), s.set("only_some", len(tgids) > 0)}
	for _, key := range old {
		if !slices.Contains(tgids, int(key)) {
			errs = append(errs, m.Delete(key))
		}
	}
	for _, id := range tgids {
		errs = append(errs, m.Put(uint32(id), uint8(1)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("single out processes: %w", err)
	}
	return nil
}

// With is a view of the same maps and programs with other signals. It does not hold
// the programs: to switch them and to close them is the set's.
func (s *Set) With(needs map[*model.Signal][]string) *Set {
	return &Set{Maps: s.Maps, programs: s.programs, needs: needs, tellsMisses: s.tellsMisses, counted: s.counted}
}

// tellsMisses says whether the kernel counts recursion misses (since Linux 5.12).
func tellsMisses() bool {
	kernel, err := KernelTypes()
	if err != nil {
		return false
	}
	var info *btf.Struct
	return kernel.TypeByName("bpf_prog_info", &info) == nil &&
		slices.ContainsFunc(info.Members, func(m btf.Member) bool { return m.Name == recursion })
}

// recursion is the kernel's name of the count, and the label of what it counts.
const recursion = "recursion_misses"

// Lost returns the variables that count what found no room, by what follows
// "lost_" in their names, and recursion_misses, where the kernel tells: events, of
// anybody, at which it did not run a program since that was running on the CPU already.
func (s *Set) Lost() (map[string]uint64, error) { return s.LostOf("lost_") }

// LostOf is Lost for variables whose names begin otherwise.
func (s *Set) LostOf(prefix string) (map[string]uint64, error) {
	lost := map[string]uint64{}
	for name, v := range s.Maps.Variables {
		what, found := strings.CutPrefix(name, prefix)
		if !found {
			continue
		}
		var n uint64
		if err := v.Get(&n); err != nil {
			return nil, fmt.Errorf("read the BPF variable %s: %w", name, err)
		}
		lost[what] = n
	}
	return lost, s.addMisses(lost)
}

func (s *Set) addMisses(lost map[string]uint64) error {
	if !s.tellsMisses {
		return nil
	}
	lost[recursion] = 0
	for _, program := range s.counted {
		stats, err := program.Stats()
		if err != nil {
			return fmt.Errorf("read what a BPF program missed: %w", err)
		}
		lost[recursion] += stats.RecursionMisses
	}
	return nil
}

// Close detaches the programs and gives the maps back.
func (s *Set) Close() error {
	err := s.Pause()
	for _, l := range s.loaded {
		l.program.Close()
	}
	s.Maps.Close()
	return err
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

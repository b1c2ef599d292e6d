// Package symbol gives addresses of running programs their names: kernel
// functions by the kernel itself (what its %ps prints) or /proc/kallsyms, functions of processes by their ELF files, Go's
// own tables, and the maps that JIT compilers leave for profilers.
//
// Everything is read when it is first asked for, from the process's own view of
// the file system, and kept within bounds.
package symbol

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
)

const (
	// maxProcesses is how many processes' mappings are kept.
	maxProcesses = 512
	// maxKept is how many mappings of all processes are kept, at some 150 bytes each.
	maxKept = 1 << 17
	// maxEntries is how many symbols of binaries are kept, at 16 bytes each.
	maxEntries = 1 << 19
	// maxBinaries is how many files are kept open.
	maxBinaries = 128
	// maxJIT is how many bytes of maps of JIT compilers are kept.
	maxJIT = 16 << 20
	// maxNamed is how many addresses' names are kept.
	maxNamed = 16384
)

// Frame is one function of a stack, or what is known of it.
type Frame struct {
	// Function is its name, demangled; "" if none is known.
	Function string `json:"function,omitempty"`
	// File and Line are where it is in the source; "" and 0 if that is not known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// FirstLine is where the function begins there; 0 if that is not known.
	FirstLine int `json:"first_line,omitempty"`
	// Module is the binary's path as the process sees it, or "[kernel]", "[vdso]",
	// "[jit]"; "" if it is not known, as of a process that is gone.
	Module string `json:"module,omitempty"`
	// BuildID is the binary's, in hexadecimal digits; "" if it has none.
	BuildID string `json:"build_id,omitempty"`
	// Address is counted as in the module's own symbol table; of what has no
	// module, it is the address at run time.
	Address uint64 `json:"address,omitempty"`
	// Start is where a function without a name begins; 0 if that is not known.
	Start  uint64 `json:"start,omitempty"`
	Kernel bool   `json:"kernel,omitempty"`
}

// Name is the best name that is known: the function's, else the module's with the
// address at which it begins, or that of the frame ("nginx+0x1a20"), else "[unknown]".
func (f Frame) Name() string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Module == jitModule || f.Module == KernelModule:
		return f.Module
	case f.Module != "":
		return fmt.Sprintf("%s+%#x", path.Base(f.Module), cmp.Or(f.Start, f.Address))
	}
	return "[unknown]"
}

// Resolver gives addresses their names. It is not safe for concurrent use.
type Resolver struct {
	kernel    *kernelNames
	processes map[int]*process
	binaries  map[fileID]*object
	vdso      *object
	named     map[place]named
	// clock counts look-ups: what was used longest ago goes first.
	clock uint64
}

// place is an address in a binary, named what is there.
type place struct {
	in   *object
	addr uint64
}

type named struct {
	function, file string
	line           int
	start          uint64
}

// New returns a resolver that has read nothing yet.
func New() *Resolver {
	return &Resolver{processes: map[int]*process{}, binaries: map[fileID]*object{}, named: map[place]named{}}
}

// Close gives back the files that it holds open.
func (r *Resolver) Close() error {
	var errs []error
	for _, b := range r.binaries {
		errs = append(errs, b.close())
	}
	if r.kernel != nil {
		errs = append(errs, r.kernel.close())
	}
	r.processes, r.binaries, r.named, r.kernel = map[int]*process{}, map[fileID]*object{}, map[place]named{}, nil
	return errors.Join(errs...)
}

// KernelErr says why the kernel's functions cannot be named; nil if they can.
func (r *Resolver) KernelErr() error { return r.kernelNames().err() }

func (r *Resolver) kernelNames() *kernelNames {
	if r.kernel == nil {
		r.kernel = openKernel()
	}
	return r.kernel
}

// Kernel names the kernel's function that holds an address.
func (r *Resolver) Kernel(addr uint64) Frame {
	name, module := r.kernelNames().find(addr)
	return Frame{Function: name, Module: cmp.Or(module, KernelModule), Address: addr, Kernel: true}
}

// KernelStack names the frames of a stack, the innermost first. All but that one
// are return addresses: what called lies just before them.
func (r *Resolver) KernelStack(addrs []uint64) []Frame {
	frames := make([]Frame, 0, len(addrs))
	for i, addr := range addrs {
		frames = append(frames, r.Kernel(caller(i, addr)))
	}
	return frames
}

// UserStack names the frames of a process's stack, the innermost first. It ends
// before the first address that lies in no code: from there on the program was
// built without frame pointers, and what follows is chance. Of a process that was
// gone before anybody looked at it, there is one frame that says nothing.
func (r *Resolver) UserStack(pid int, addrs []uint64) []Frame {
	p := r.process(pid)
	if !p.known() {
		return []Frame{{}}
	}
	frames := make([]Frame, 0, len(addrs))
	for i, addr := range addrs {
		if i > 0 && p.mapping(addr, true) == nil {
			break
		}
		frames = append(frames, r.User(pid, caller(i, addr)))
	}
	return frames
}

func caller(depth int, addr uint64) uint64 {
	if depth > 0 && addr > 0 {
		return addr - 1
	}
	return addr
}

// User names the function of a process that holds an address.
func (r *Resolver) User(pid int, addr uint64) Frame {
	p := r.process(pid)
	m := p.mapping(addr, true)
	if m == nil {
		return Frame{Address: addr}
	}
	if !m.isFile() && m.path != vdsoModule {
		return Frame{Function: cut(p.jit(addr)), Module: jitModule, Address: addr}
	}
	frame, b := r.inFile(pid, m, addr)
	if b == nil {
		return frame
	}
	n, known := r.named[place{b, frame.Address}]
	if !known {
		n.function, n.file, n.line = b.function(frame.Address)
		if n.function == "" {
			n.start = b.bounds.start(frame.Address)
		}
		if len(r.named) == maxNamed {
			clear(r.named)
		}
		r.named[place{b, frame.Address}] = n
	}
	frame.Function, frame.File, frame.Line, frame.Start = n.function, n.file, n.line, n.start
	return frame
}

// Data names the variable of a process that holds an address: which mutex a
// futex's word belongs to. The Function of what it returns is the variable's name.
func (r *Resolver) Data(pid int, addr uint64) Frame {
	m := r.process(pid).mapping(addr, false)
	if m == nil || !m.isFile() {
		return Frame{Address: addr}
	}
	frame, b := r.inFile(pid, m, addr)
	if b != nil {
		frame.Function = b.variable(frame.Address)
	}
	return frame
}

// inFile finds the place of an address in the file that is mapped there; the
// binary is nil if that file cannot be read.
func (r *Resolver) inFile(pid int, m *mapping, addr uint64) (Frame, *object) {
	b := r.binary(pid, m)
	if b == nil {
		return Frame{Module: m.path, Address: addr - m.start + m.offset}, nil
	}
	return Frame{Module: m.path, BuildID: b.buildID, Address: b.address(addr - m.start + m.offset)}, b
}

// Snapshot is how a process's memory is laid out at a moment.
type Snapshot struct{ process *process }

// Take takes a snapshot of a living process. It may be called from any goroutine.
func Take(pid int) (Snapshot, error) {
	p, err := readProcess(pid)
	return Snapshot{p}, err
}

// Keep has the resolver use a snapshot from now on, in place of an older one.
func (r *Resolver) Keep(s Snapshot) {
	if old := r.processes[s.process.pid]; old != nil {
		s.process.perfMap = old.perfMap
	}
	s.process.used = r.tick()
	r.processes[s.process.pid] = s.process
	r.trimProcesses()
}

// Look reads a process's mappings anew while it lives. Those of one that is gone
// stay as they were. User, UserStack and Data do it by themselves the first time.
func (r *Resolver) Look(pid int) {
	if s, err := Take(pid); err == nil {
		r.Keep(s)
	}
}

func (r *Resolver) process(pid int) *process {
	if r.processes[pid] == nil {
		r.Look(pid)
	}
	if p := r.processes[pid]; p != nil {
		p.used = r.tick()
		return p
	}
	return &process{}
}

// binary returns the file behind a mapping, opening it if it is not known yet.
func (r *Resolver) binary(pid int, m *mapping) *object {
	if m.path == vdsoModule {
		if r.vdso == nil {
			r.vdso = readVDSO()
		}
		return r.vdso
	}
	b := r.binaries[m.file]
	if b == nil && !m.unreadable {
		b = openBinary(pid, m)
		if b == nil {
			m.unreadable = true
			return nil
		}
		r.binaries[m.file] = b
		b.used = r.tick()
		r.trimBinaries()
	}
	if b != nil {
		b.used = r.tick()
	}
	return b
}

func (r *Resolver) tick() uint64 {
	r.clock++
	return r.clock
}

// trimProcesses forgets the processes that were not asked about for longest.
func (r *Resolver) trimProcesses() {
	bytes, mappings := 0, 0
	for _, p := range r.processes {
		bytes, mappings = bytes+p.perfMap.bytes, mappings+len(p.mappings)
	}
	for len(r.processes) > 1 && (len(r.processes) > maxProcesses || bytes > maxJIT || mappings > maxKept) {
		pid := oldest(r.processes, func(p *process) uint64 { return p.used })
		bytes, mappings = bytes-r.processes[pid].perfMap.bytes, mappings-len(r.processes[pid].mappings)
		delete(r.processes, pid)
	}
}

func (r *Resolver) trimBinaries() {
	held := 0
	for _, b := range r.binaries {
		held += b.entries
	}
	for len(r.binaries) > 1 && (len(r.binaries) > maxBinaries || held > maxEntries) {
		id := oldest(r.binaries, func(b *object) uint64 { return b.used })
		held -= r.binaries[id].entries
		_ = r.binaries[id].close() // it was only read
		delete(r.binaries, id)
		clear(r.named) // of which some hold it
	}
}

func oldest[K comparable, V any](of map[K]V, used func(V) uint64) K {
	return slices.MinFunc(slices.Collect(maps.Keys(of)), func(a, b K) int { return cmp.Compare(used(of[a]), used(of[b])) })
}

// Module is a binary that a process has mapped.
type Module struct {
	// Path is as the process sees it; ID tells it apart from all other files.
	Path, ID string
	// Bias is what to add to an address of its symbol table to get the process's.
	Bias    uint64
	pid     int
	mapping *mapping
}

// Open opens the file. The caller closes it.
func (m *Module) Open() (*os.File, error) { return openMapped(m.pid, m.mapping) }

// Module returns the first binary of a process whose path is the one looked for,
// nil if it has none such.
func (r *Resolver) Module(pid int, is func(path string) bool) *Module {
	p := r.process(pid)
	for i := range p.mappings {
		m := &p.mappings[i]
		if !m.code || !m.isFile() || !is(m.path) {
			continue
		}
		b := r.binary(pid, m)
		if b == nil {
			return nil
		}
		return &Module{m.path, m.file.device + " " + m.file.inode + " " + m.path, m.start - b.address(m.offset), pid, m}
	}
	return nil
}

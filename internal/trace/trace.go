// Package trace watches the kernel through BPF programs on its tracepoints, or where
// it is too old for those on its functions: what no counter shows. Everything is added up in the kernel and read at the
// sampling interval; each tracer lives in a folder of its own with its C, its
// compiled object and its signals, and package all lists them.
//
// Nothing is pinned: all programs are held by file descriptors of this process,
// so they are gone when it is, however it ends.
package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/privilege"
)

// Level is how expensive a tracer is.
type Level int

const (
	// Light tracers run all the time (but see Sparing): together they are to cost 1 % of the throughput at most (bench/README.md: what was measured).
	Light Level = iota
	// Auto tracers run all the time where there is something for them to see (Tracer.StartFor), and at the full level wherever they can.
	Auto
	// Full tracers are expensive; in a run they are switched on in short bursts.
	Full
)

func (l Level) String() string { return [...]string{Light: "light", Auto: "auto", Full: "full"}[l] }

// Tracer declares one way of watching the kernel.
type Tracer struct {
	Name string
	// Programs returns what Start loads, before it is loaded; nil of a tracer whose
	// programs are a library's. Needs says which of them each signal rests on.
	Programs func() (*ebpf.CollectionSpec, error)
	Needs    map[*model.Signal][]string
	// Short is About in half a line, of at most 55 columns.
	Short string
	// About is a sentence for a reader who wants to know what it shows.
	About string
	// Long is what plimsoll trace NAME --help says beyond About, in paragraphs of
	// lines of at most 80 columns.
	Long  string
	Level Level
	// InBursts marks a Light tracer that is light because it watches in bursts, as Full ones do; it watches everybody then.
	InBursts bool
	// Brief marks one that costs several times what the others do, at
	// every request: its bursts are half as long as theirs.
	Brief bool
	// Busy, if not nil, is the signal whose growth tells which processes work;
	// its first label is groupname. Of very many, expensive tracers look at those first.
	Busy *model.Signal
	// Profile is the name of the stacks that it collects ("cpu"); "" if it has
	// none. With one, what Start returns is a Profiler.
	Profile string
	Signals []*model.Signal
	// Tracepoints are the kernel's names of those it cannot do without.
	Tracepoints []string
	// Functions are those of the kernel that it cannot do without where that lacks one of
	// Tracepoints; nil if no function does instead.
	Functions []string
	// FirstKernel is the oldest Linux on which all of it was seen to work
	// (docs/kernels.md); older ones may have been given the means by their vendor, so it
	// is never a reason to refuse.
	FirstKernel Kernel
	// Cost is what it was measured to cost, and on what; Paired the same as a loaded
	// service feels it, while it is on all the time; Blind is what it cannot
	// see; ByHand is the classic tool that shows the same. For the handbook.
	Cost   string
	Paired Paired
	Blind  []string
	ByHand string
	// Start attaches it. It fails only if none of its programs could be attached.
	Start func() (Running, error)
	// StartInRun starts it for a run, where it must cost next to nothing; nil where
	// Start is cheap enough.
	StartInRun func() (Running, error)
	// StartFor starts one of level Auto for what runs on these hosts, and where anything may (more) for whatever is started
	// later. An error is fs.ErrNotExist, with a sentence, where it would see nothing.
	StartFor func(hosts []*host.Host, more bool) (Running, error)
}

// Paired is what a loaded service lost while a tracer was on, beside the same
// without it, as bench/tracecost measured it: ratios with over without, the median
// of so many pairs and its 95 % interval.
type Paired struct {
	Pairs int
	// Replies is of replies a second, CPU of the service's CPU time for each.
	Replies, CPU string
}

func (p Paired) String() string {
	return fmt.Sprintf("replies/s %s, CPU per reply %s, in %d pairs", p.Replies, p.CPU, p.Pairs)
}

// Running is a tracer that watches. Its methods are called from one goroutine.
type Running interface {
	// Read puts the sums since the start. A signal whose programs are not all
	// attached is never put.
	Read(out Out) error
	// Report returns all that was seen since the start, elapsed ago. It is called
	// now and then while the tracer watches, and at the end.
	Report(elapsed time.Duration) (Report, error)
	// Status says for each signal, by name, whether it is being read.
	Status() map[string]model.Status
	// Programs says what became of each program.
	Programs() []Program
	// Ignore leaves processes out from now on, besides our own: those of our
	// load. There is room for MaxIgnored.
	Ignore(tgids ...int) error
	// Only singles out processes from now on, at most MaxOnly; none is everybody.
	Only(tgids ...int) error
	// Pause switches it off for a while, Resume on again; counts stay, and what
	// was going on in between is not counted.
	Pause() error
	Resume() error
	// Close detaches it. It is called once.
	Close() error
}

// Sparing is a Running whose programs cost so much each time they are called that a run
// has it watch in bursts where that is often.
type Sparing interface {
	// Calls is how often its programs were called since the start, by CPU.
	Calls() ([]uint64, error)
	// Finish has it begin nothing new until it is resumed, and go on with what it began.
	Finish() error
}

// Apart is a Running whose work is done in a process of its own.
type Apart interface {
	// Used is what that process has used, as it last said: CPU seconds, and the most memory in bytes.
	Used() (cpuSeconds float64, maxRSS int64)
}

// Profiler is a Running that has stacks.
type Profiler interface {
	// Profile returns the stacks since the start.
	Profile() (*profile.Profile, error)
}

// Out takes samples. Put takes what belongs to the whole machine.
type Out interface {
	model.Sink
	// In is where to put what a process did in one network namespace, named by its inode.
	In(netns uint32) model.Sink
	// Net is where to put what happened to packets and connections there: a host that
	// stands in for the machine takes the processes of others, and not their network.
	Net(netns uint32) model.Sink
}

// Report is what a tracer saw; its JSON is its document.
type Report interface {
	// Text lays it out in lines of at most so many columns, without colour.
	Text(columns int) string
}

// Program is one BPF program and what became of it; Err is nil if it is attached.
type Program struct {
	Name string
	// Tracepoint is what it is attached to; of some that is a function of the kernel.
	Tracepoint string
	Err        error
}

// Kernel is the version of a Linux, as 6.1.
type Kernel struct{ Major, Minor int }

func (k Kernel) String() string { return fmt.Sprintf("%d.%d", k.Major, k.Minor) }

// Less says whether k is older than other.
func (k Kernel) Less(other Kernel) bool {
	return k.Major < other.Major || k.Major == other.Major && k.Minor < other.Minor
}

// ParseKernel reads a release as uname gives it ("6.1.0-18-amd64").
func ParseKernel(release string) (Kernel, error) {
	var k Kernel
	if n, _ := fmt.Sscanf(release, "%d.%d", &k.Major, &k.Minor); n != 2 || k.Major < 0 || k.Minor < 0 {
		return Kernel{}, fmt.Errorf("kernel release %q: want something like 6.1.0", release)
	}
	return k, nil
}

// RunningKernel returns the version of the kernel that runs.
func RunningKernel() (Kernel, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Kernel{}, fmt.Errorf("ask for the kernel's version: %w", err)
	}
	return ParseKernel(unix.ByteSliceToString(u.Release[:]))
}

// MayRun returns nil, or an error whose text is a sentence saying what is
// missing and what would help: fs.ErrPermission when we may not, fs.ErrNotExist
// when this kernel lacks its types or a tracepoint, and a function that would do
// instead. It costs next to nothing, and Start says the rest.
func (t Tracer) MayRun() error {
	if err := privilege.Check("tracer", t.Name); err != nil {
		return err
	}
	kernel, err := KernelTypes()
	if err != nil {
		return err
	}
	for _, name := range t.Tracepoints {
		if _, err := Arguments(kernel, name); err != nil {
			return t.doWithout(kernel, err)
		}
	}
	return nil
}

// doWithout says whether functions of this kernel do instead of the tracepoint that it lacks.
func (t Tracer) doWithout(kernel *btf.Spec, lacks error) error {
	if t.Functions == nil {
		return fmt.Errorf("%w; Linux %s has it", lacks, t.FirstKernel)
	}
	for _, name := range t.Functions {
		if !HasFunction(kernel, name) {
			return fmt.Errorf("%w, and no function %s, which would do instead", lacks, name)
		}
	}
	return nil
}

// kernelTypes is the running kernel's types, which take 40 ms and ten megabytes
// to decode: once for all tracers that start.
var kernelTypes struct {
	sync.Mutex
	cache *btf.Cache
}

func types() *btf.Cache {
	kernelTypes.Lock()
	defer kernelTypes.Unlock()
	if kernelTypes.cache == nil {
		kernelTypes.cache = btf.NewCache()
	}
	return kernelTypes.cache
}

// ForgetTypes gives the memory of the kernel's types back: for when all tracers
// have started. They are read again when they are needed again.
func ForgetTypes() {
	kernelTypes.Lock()
	defer kernelTypes.Unlock()
	kernelTypes.cache = nil
}

// KernelTypes returns the running kernel's own description of its types, which
// all share. An error is fs.ErrNotExist where the kernel was built without it.
func KernelTypes() (*btf.Spec, error) {
	spec, err := types().Kernel()
	switch {
	case err == nil:
		return spec, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("the kernel's type information cannot be read; run it as root: %w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return nil, host.Absent("this kernel was built without type information (CONFIG_DEBUG_INFO_BTF), which tracing needs")
	}
	return nil, fmt.Errorf("read the kernel's type information: %w", err)
}

// Arguments returns how many arguments a tracepoint of this kernel has, for
// they change between kernels. An error is fs.ErrNotExist if there is no such tracepoint.
func Arguments(kernel *btf.Spec, tracepoint string) (int, error) {
	var def *btf.Typedef
	if err := kernel.TypeByName("btf_trace_"+tracepoint, &def); err != nil {
		return 0, host.Absent("this kernel has no tracepoint " + tracepoint)
	}
	if p, ok := def.Type.(*btf.Pointer); ok {
		if f, ok := p.Target.(*btf.FuncProto); ok && len(f.Params) > 0 {
			return len(f.Params) - 1, nil // the first is the tracer's own
		}
	}
	return 0, host.Absent("this kernel describes the tracepoint " + tracepoint + " in a way that is not known here")
}

// HasFunction says whether programs can be told to be called with a function of this kernel.
func HasFunction(kernel *btf.Spec, name string) bool {
	var f *btf.Func
	return kernel.TypeByName(name, &f) == nil
}

// Seconds is a duration as samples want it.
func Seconds(ns uint64) float64 { return float64(ns) / float64(time.Second) }

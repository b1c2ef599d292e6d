// Package cpu is the tracer of CPU time: 99 times a second it looks at each CPU,
// and notes which process is on it and by which functions it came to where it is.
package cpu

import (
	"errors"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/pprof/profile"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/symbol"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "cpu",
		Short:       "who uses the CPUs, and in which functions",
		About:       "which processes use the CPUs, and in which of their functions and the kernel's, by samples",
		Long:        long,
		Profile:     "cpu",
		Busy:        samplesTotal,
		Signals:     signals,
		Programs:    loadBpf,
		Needs:       needs,
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 15, Replies: "0.991 (0.984–0.994)", CPU: "1.008 (1.006–1.016)"},
		Blind:       blind,
		ByHand:      "perf top; or perf record -F 99 -a -g, then perf report; or profile-bpfcc -F 99 10",
		Start:       func() (trace.Running, error) { return Start(Hertz) },
		StartInRun:  func() (trace.Running, error) { return Start(SparseHertz) },
	}
}

const long = `Looks at each CPU 99 times a second and notes which process is on it, in which
function, and who called that: the kernel's functions, and the process's own as
far as it keeps frame pointers. Of PHP 7.4 to 8.5 also the functions of the
script, with file and line; of node --perf-basic-prof and of JVMs with a perf map
agent, the names of compiled functions.

One sample stands for 1/99 of a second. The file that -o writes is a pprof
profile: go tool pprof FILE, speedscope FILE. In a run it looks 19
times a second, and one sample stands for 1/19 of a second.`

const cost = "6 to 20 µs of BPF run time a sample, 99 samples a second on each busy CPU: 0.06 to 0.2 % of it (Linux 6.18); " +
	"fetching samples and naming functions 0.2 to 0.6 % of one CPU, and 0.1 s of it once, at the start"

var blind = []string{
	"what takes less than some tens of milliseconds of CPU time in all is found by chance, or not",
	"programs built without frame pointers (Debian's nginx, PHP, most C libraries) show their innermost function, and few or none of those that called it",
	"time in which the kernel has interrupts off is found at the moment when it puts them on again",
	"work of interrupts is counted for the process that they interrupted; that of an idle CPU is not counted",
	"a process that ends before it can be looked at, within a millisecond or so of its first sample, has functions without names",
	"python and ruby show the functions of the interpreter, not of the script",
	"a PHP function's line is that of its last call, or of the last instruction that could have failed; of PHP with threads, and of versions other than 7.4 to 8.5, there is no script; in the first second of a PHP process there is none either, unless it was forked from one that is known",
	"CPUs that are switched on later are not looked at",
	"in a PID namespace of our own (a container), our own process is not recognised, and no function of a process has a name",
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	hertz int // samples a second of CPU time
	names *symbol.Resolver
	php   php
	taken *taken
	// asked are the processes that were asked whether they are PHP's, by what they
	// were then: a process may become another program.
	asked map[uint32]string
	// kept are the stacks that were given names before.
	kept  map[keptKey][]uint32
	round uint32
	looks *looks
	// foreign says that the kernel's numbers of processes are not those that we see.
	foreign bool
}

// Start attaches the program, to look at each CPU hertz times a second. The caller
// closes it.
func Start(hertz int) (*Trace, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	cpus, err := trace.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	size := min(max(smallestMap, perCPU*cpus), largestMap)
	spec.Maps[bpfMapSamples].MaxEntries, spec.Maps[bpfMapStacks].MaxEntries = uint32(size), uint32(size)
	return start(spec, hertz)
}

// The room for samples and stacks between two looks: twice what a CPU can take in
// a second with all of them different.
const (
	perCPU      = 512
	smallestMap = 2048
	largestMap  = 16384
)

func start(spec *ebpf.CollectionSpec, hertz int) (*Trace, error) {
	names := symbol.New()
	t := &Trace{
		hertz: hertz, names: names, php: php{names, map[string]phpGlobals{}},
		asked: map[uint32]string{}, kept: map[keptKey][]uint32{}, foreign: foreign(),
	}
	// All that takes time comes before the first sample.
	known := map[uint32]bpfPhp{}
	for _, pid := range running() {
		if where, isPHP := t.php.find(pid); isPHP && !t.foreign {
			known[uint32(pid)] = where
		}
	}
	_ = names.KernelErr()                         // makes ready to name the kernel's functions; that it cannot is for the report
	spec.Programs[sampler].AttachTo = "cpu-clock" // for people; the kernel is told by attach
	set, err := trace.LoadWith(spec, since, needs, map[string]trace.Attach{sampler: t.attach})
	if err != nil {
		return nil, errors.Join(err, names.Close())
	}
	t.Set, t.taken = set, newTaken()
	if t.looks, err = look(set.Maps.Maps[bpfMapAnnounced]); err != nil {
		return nil, errors.Join(err, names.Close(), set.Close())
	}
	for pid, where := range known {
		if err := t.tell(pid, where); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// foreign says whether we are in a PID namespace of our own.
func foreign() bool {
	first, err := host.InFirstPIDs()
	return err == nil && !first
}

// Close detaches the program.
func (t *Trace) Close() error { return errors.Join(t.looks.Close(), t.names.Close(), t.Set.Close()) }

// Lost counts what found no room, by what it was.
func (t *Trace) Lost() (map[string]uint64, error) {
	lost, err := t.Set.Lost()
	if err == nil {
		lost["groups"] = t.taken.lostGroups
		lost["stacks"] += t.taken.lostStacks
	}
	return lost, err
}

// Read puts the sums since the start.
func (t *Trace) Read(out trace.Out) error {
	if err := t.fetch(); err != nil {
		return err
	}
	for key, g := range t.taken.groups {
		in := out.In(key.netns)
		put := func(s *model.Signal, n uint64, label string) {
			if n > 0 && t.Has(s) {
				in.Put(s, float64(n), key.name, label)
			}
		}
		put(samplesTotal, g.user, "user")
		put(samplesTotal, g.kernel, "kernel")
		put(functionSamples, g.other, others)
		if t.Has(collectorSamples) {
			in.Put(collectorSamples, float64(g.collector), key.name)
		}
		if t.Has(memorySamples) {
			in.Put(memorySamples, float64(g.memory), key.name)
		}
		for name, f := range g.functions {
			if f.shown {
				put(functionSamples, f.samples-f.before, name)
			}
		}
	}
	counts, err := t.Lost()
	if err != nil {
		return err
	}
	trace.PutLost(out, lost, counts)
	return nil
}

// Profile returns all stacks since the start.
func (t *Trace) Profile() (*profile.Profile, error) {
	if err := t.fetch(); err != nil {
		return nil, err
	}
	period := int64(time.Second) / int64(t.hertz)
	samples := t.taken.samples()
	for i := range samples {
		samples[i].Values = append(samples[i].Values, samples[i].Values[0]*period)
	}
	p := stacks.Profile([]profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, samples)
	p.PeriodType, p.Period = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, period
	p.TimeNanos, p.DurationNanos = t.taken.since.UnixNano(), int64(time.Since(t.taken.since))
	return p, nil
}

package cpu

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/symbol"
)

const (
	maxGroups = 512
	// maxStacks and maxFrames bound what is kept of a watch however long.
	maxStacks = 16384
	maxFrames = 32768
	// A function is a series of its own once it was found seldomest times in all,
	// if there is room among those of its group and of all.
	seldomest         = 10
	functionsOfGroup  = 24
	functionsOfAll    = 512
	candidatesOfGroup = 1024
	processesOfGroup  = 4096

	others = "other"
)

// taken is all samples since the start.
type taken struct {
	since  time.Time
	groups map[groupKey]*group
	counted
	known      map[symbol.Frame]uint32
	collects   map[uint32]bool // the frames that are a garbage collector's
	mapping    map[uint32]bool // those of the kernel that are about a thread's memory
	series     int             // how many functions are one
	lostGroups uint64
	lostStacks uint64
}

// counted is stacks with their counts, and what the numbers of their frames mean.
type counted struct {
	stacks map[stackKey]uint64
	frames []symbol.Frame
}

type groupKey struct {
	netns uint32
	name  string
}

type group struct {
	user, kernel uint64
	collector    uint64 // those of a garbage collector
	memory       uint64 // those in which the kernel was busy with the thread's memory
	functions    map[string]*function
	series       int // how many of them are one
	// other counts the samples of functions that were no series when they were taken.
	other     uint64
	processes map[uint32]bool
}

type function struct {
	samples uint64
	// before is how many of them were taken before it became a series.
	before uint64
	shown  bool
}

// stackKey tells stacks apart; frames are their numbers, four bytes each.
type stackKey struct {
	group  groupKey
	thread string
	kernel bool
	frames string
}

func newTaken() *taken {
	return &taken{since: time.Now(), groups: map[groupKey]*group{}, counted: counted{stacks: map[stackKey]uint64{}}, known: map[symbol.Frame]uint32{}, collects: map[uint32]bool{}, mapping: map[uint32]bool{}}
}

// number returns the number of a frame; false if there is no room for a new one.
func (t *taken) number(f symbol.Frame) (uint32, bool) {
	n, known := t.known[f]
	if !known {
		if len(t.frames) == maxFrames {
			return 0, false
		}
		n = uint32(len(t.frames))
		t.known[f] = n
		t.frames = append(t.frames, f)
		if Collects(f.Function) {
			t.collects[n] = true
		}
		if f.Kernel && MapsMemory(f.Function) {
			t.mapping[n] = true
		}
	}
	return n, true
}

// one is a sample with its names.
type one struct {
	group    groupKey
	pid      uint32
	thread   string
	kernel   bool
	frames   []uint32 // from the innermost out
	function string
	count    uint64
}

// add counts the samples of one round.
func (t *taken) add(round []one) {
	inRound := map[groupKey]map[string]uint64{}
	for _, s := range round {
		g := t.groups[s.group]
		if g == nil && len(t.groups) == maxGroups {
			t.lostGroups += s.count
			continue
		}
		if g == nil {
			g = &group{functions: map[string]*function{}, processes: map[uint32]bool{}}
			t.groups[s.group] = g
		}
		if s.kernel {
			g.kernel += s.count
		} else {
			g.user += s.count
		}
		if slices.ContainsFunc(s.frames, func(n uint32) bool { return t.collects[n] }) {
			g.collector += s.count
		}
		if slices.ContainsFunc(s.frames, func(n uint32) bool { return t.mapping[n] }) {
			g.memory += s.count
		}
		if len(g.processes) < processesOfGroup {
			g.processes[s.pid] = true
		}
		if inRound[s.group] == nil {
			inRound[s.group] = map[string]uint64{}
		}
		inRound[s.group][s.function] += s.count
		t.addStack(s)
	}
	for key, functions := range inRound {
		for name, n := range functions {
			t.addFunction(t.groups[key], name, n)
		}
	}
}

func (t *taken) addStack(s one) {
	frames := make([]byte, 0, 4*len(s.frames))
	for _, f := range s.frames {
		frames = binary.NativeEndian.AppendUint32(frames, f)
	}
	key := stackKey{s.group, s.thread, s.kernel, string(frames)}
	if _, known := t.stacks[key]; !known && len(t.stacks) == maxStacks {
		t.lostStacks += s.count
		return
	}
	t.stacks[key] += s.count
}

// addFunction counts a function, as a series of its own from the round on in which
// it has been found often enough. Until then it is one of the others, and what was
// counted there stays there: a counter never falls.
func (t *taken) addFunction(g *group, name string, n uint64) {
	f := g.functions[name]
	if f == nil && len(g.functions) < candidatesOfGroup {
		f = &function{}
		g.functions[name] = f
	}
	if f == nil || name == others {
		g.other += n
		return
	}
	f.samples += n
	if !f.shown && f.samples >= seldomest && g.series < functionsOfGroup && t.series < functionsOfAll {
		f.shown, f.before = true, f.samples-n
		g.series++
		t.series++
	}
	if !f.shown {
		g.other += n
	}
}

// copy returns the stacks as they are now.
func (c counted) copy() counted { return counted{maps.Clone(c.stacks), c.frames} }

// samples returns all stacks, each with its count.
func (c counted) samples() []stacks.Sample {
	all := make([]stacks.Sample, 0, len(c.stacks))
	for key, n := range c.stacks {
		all = append(all, c.sample(key, n))
	}
	return all
}

// hottest returns the most frequent stacks, the first first.
func (c counted) hottest(most int) []stacks.Sample {
	keys := slices.SortedFunc(maps.Keys(c.stacks), func(a, b stackKey) int { return cmp.Compare(c.stacks[b], c.stacks[a]) })
	var list []stacks.Sample
	for _, key := range keys[:min(len(keys), most)] {
		list = append(list, c.sample(key, c.stacks[key]))
	}
	return list
}

func (c counted) sample(key stackKey, n uint64) stacks.Sample {
	s := stacks.Sample{Values: []int64{int64(n)}, Labels: map[string]string{
		stacks.Group: key.group.name, "thread": key.thread, "mode": "user", "netns": strconv.Itoa(int(key.group.netns)),
	}}
	if key.kernel {
		s.Labels["mode"] = "kernel"
	}
	for rest := []byte(key.frames); len(rest) >= 4; rest = rest[4:] {
		s.Frames = append(s.Frames, c.frames[binary.NativeEndian.Uint32(rest)])
	}
	return s
}

// collectors are functions of garbage collectors whose threads do other work, too, or
// have no names; one that ends in * stands for all that begin so.
var collectors = []string{
	"runtime.gcBgMarkWorker*", "runtime.gcDrain*", "runtime.gcAssistAlloc*", "runtime.scanobject", "runtime.bgsweep*", "runtime.bgscavenge*", "runtime.markroot*", "runtime.wbBufFlush1",
	"v8::internal::MarkCompactCollector*", "v8::internal::Scavenger*", "v8::internal::MarkingVisitor*", "v8::internal::ConcurrentMarking*", "v8::internal::Heap::CollectGarbage*",
	"v8::internal::Heap::PerformGarbageCollection*", "v8::internal::Sweeper*",
	"zend_gc_collect_cycles", "gc_collect_main", "gc_collect_with_callback", "_PyGC_Collect", "PyGC_Collect", "gc_marks_rest", "gc_marks_continue", "gc_sweep_continue", "rb_gc", "gc_start*",
	// the innermost ones, for what was built without frame pointers
	"gc_mark*", "gc_sweep*", "rb_gc_mark*", "mark_locations_array", symbol.RubyCollector, "visit_decref", "visit_reachable", "subtract_refs", "deduce_unreachable",
}

// Collects says whether a function, by its name, is a garbage collector's. A compiler's
// ending (.constprop.0, .isra.0) makes it no other.
func Collects(function string) bool { return among(collectors, function) }

// memoryFunctions are functions of the kernel that handle a page fault, or map memory and take
// it back; each stands on the stack of all that it calls.
var memoryFunctions = []string{
	"exc_page_fault", "asm_exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "do_page_fault", "do_mem_abort", "el0_da", "el1_abort",
	"__vm_munmap", "vm_munmap", "__do_munmap", "do_vmi_align_munmap", "unmap_region", "unmap_vmas", "zap_page_range_single", "do_mmap", "vm_mmap_pgoff",
	"__do_sys_brk", "__x64_sys_brk", "__arm64_sys_brk", "do_madvise", "do_mprotect_pkey", "exit_mmap", "mmput", "__x64_sys_mremap", "tlb_finish_mmu",
}

// MapsMemory says whether a function of the kernel, by its name, is one of those.
func MapsMemory(function string) bool { return among(memoryFunctions, function) }

func among(list []string, function string) bool {
	for _, c := range list {
		rest, is := strings.CutPrefix(function, strings.TrimSuffix(c, "*"))
		if is && (rest == "" || rest[0] == '.' || strings.HasSuffix(c, "*")) {
			return true
		}
	}
	return false
}

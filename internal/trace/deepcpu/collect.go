package deepcpu

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/ebpf-profiler/libpf"
	"go.opentelemetry.io/ebpf-profiler/process"
	"go.opentelemetry.io/ebpf-profiler/reporter"
	"go.opentelemetry.io/ebpf-profiler/reporter/samples"
	"go.opentelemetry.io/ebpf-profiler/times"

	"plimsoll/internal/host"
	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/symbol"
)

const (
	// maxStacks is how many different stacks are kept.
	maxStacks = 1 << 16
	// maxFiles is how many binaries are remembered.
	maxFiles = 1 << 13
	// maxNamed is how many frames are kept with their names.
	maxNamed = 1 << 17
	// maxComm is how long the kernel lets a command's name be.
	maxComm = 15
)

// unread is what stands in a stack where the library could not read on.
const unread = "[stack not read]"

// collector takes stacks from the library and adds them up. One goroutine, the
// one that answers, calls its methods; the library's call the two Report methods.
type collector struct {
	period    int64    // nanoseconds of CPU time that a sample stands for
	languages []string // whose functions are named; nil: of all

	mu     sync.Mutex
	seed   maphash.Seed
	stacks map[stackKey]*stack
	groups map[libpf.PID]owner
	files  map[libpf.FrameMappingFile]file
	// fresh are the stacks that are new since frames were named.
	fresh []*stack
	// changed are those that were found since functions were counted.
	changed       []*stack
	only, ignored []int
	// Samples count from since to until, by the clock that dates them; until is 0
	// while it is not paused.
	since, until times.KTime
	began        time.Time
	watched      time.Duration // in earlier spans

	noRoom, notRead uint64

	// What follows belongs to the goroutine that answers.
	names *symbol.Resolver
	named map[unique.Handle[libpf.Frame]]symbol.Frame
	// functions are of all samples since the start.
	functions *functions
}

type stackKey struct {
	pid    libpf.PID
	thread libpf.Comm
	frames uint64 // a hash of them: of 65,536 stacks two are alike once in eight thousand million runs
}

type stack struct {
	pid    libpf.PID
	frames libpf.Frames
	of     owner
	blind  bool // it is an interpreter's whose functions are not named
	count  int64
	told   int64  // how many of them functions have
	script string // what these have them under; "" if that was not asked yet
}

// file is a binary, and a process that sees it under its path.
type file struct {
	pid  int
	path string
}

func newCollector(hertz int, languages []string) *collector {
	c := &collector{
		period: int64(time.Second) / int64(hertz), languages: languages,
		seed:   maphash.MakeSeed(),
		stacks: map[stackKey]*stack{}, groups: map[libpf.PID]owner{}, files: map[libpf.FrameMappingFile]file{},
		names: symbol.New(), named: map[unique.Handle[libpf.Frame]]symbol.Frame{}, functions: newFunctions(),
	}
	c.setIgnored(nil)
	c.begin()
	return c
}

// begin counts from now on.
func (c *collector) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.stacks)
	c.fresh, c.changed, c.noRoom, c.notRead = nil, nil, 0, 0
	c.since, c.began = times.GetKTime(), time.Now()
}

func (c *collector) close() { _ = c.names.Close() } // its files were only read

// ReportTraceEvent takes one sample.
func (c *collector) ReportTraceEvent(t *libpf.Trace, m *samples.TraceEventMeta) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := int64(m.Timestamp)
	if at < c.since.UnixNano() || c.until != 0 && at > c.until.UnixNano() || !c.wants(int(m.PID)) {
		return nil
	}
	if slices.ContainsFunc(t.Frames, func(f unique.Handle[libpf.Frame]) bool { return f.Value().Type.IsError() }) {
		c.notRead++
	}
	key := stackKey{m.PID, m.Comm, c.hash(t.Frames)}
	s := c.stacks[key]
	if s == nil {
		if len(c.stacks) >= maxStacks {
			c.noRoom++
			return nil
		}
		s = &stack{pid: m.PID, frames: t.Frames, of: c.owner(m), blind: c.blind(m.ExecutablePath.String())}
		c.stacks[key] = s
		c.fresh = append(c.fresh, s)
	}
	if s.count == s.told {
		c.changed = append(c.changed, s)
	}
	s.count++
	return nil
}

// count gives functions the samples that were taken since it was called last.
func (c *collector) count() []counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.changed {
		if s.blind { // to say that it was in no script would be wrong
			continue
		}
		if s.script == "" {
			s.script = scriptOf(s.frames)
		}
		c.functions.add(s.of, s.script, uint64(s.count-s.told))
		s.told = s.count
	}
	c.changed = nil
	return c.functions.list()
}

// blind says whether a program is the interpreter of a language that is not read: it was not there when the process began.
func (c *collector) blind(executable string) bool {
	l := languageOf(executable)
	return l != "" && len(c.languages) > 0 && !slices.Contains(c.languages, l)
}

// hash tells stacks apart. The library's own does not look at functions and lines.
func (c *collector) hash(frames libpf.Frames) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, f := range frames {
		maphash.WriteComparable(&h, f)
	}
	return h.Sum64()
}

func (c *collector) wants(pid int) bool {
	return (len(c.only) == 0 || slices.Contains(c.only, pid)) && !slices.Contains(c.ignored, pid)
}

// owner is the name of a process's first thread, and its network namespace. Of one that is
// gone already the name is that of its binary, cut as the kernel would.
func (c *collector) owner(m *samples.TraceEventMeta) owner {
	exe := m.ExecutablePath.String()
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.PID))
	known, was := c.groups[m.PID]
	switch {
	case err == nil:
		netns, _ := host.Inode(fmt.Sprintf("/proc/%d/ns/net", m.PID)) // 0, as of one that is gone: the machine's
		c.groups[m.PID] = owner{uint32(netns), groupName(strings.TrimSuffix(string(comm), "\n"), exe == "")}
		return c.groups[m.PID]
	case was:
		return known
	case exe != "":
		name := path.Base(exe)
		return owner{group: name[:min(len(name), maxComm)]}
	default:
		return owner{group: groupName(m.Comm.String(), true)}
	}
}

// groupName takes the kernel's threads of one kind together: kworker/0:1 is kworker.
func groupName(comm string, kernel bool) string {
	if name, _, found := strings.Cut(comm, "/"); kernel && found && name != "" {
		comm = name
	}
	return strings.ToValidUTF8(comm, "\uFFFD")
}

// ReportExecutable is told of each binary when it is first seen.
func (c *collector) ReportExecutable(m *reporter.ExecutableMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) < maxFiles {
		c.files[m.MappingFile] = file{int(m.Process.PID()), pathOf(m.Mapping)}
	}
}

func pathOf(m *process.RawMapping) string {
	if m.IsVDSO() {
		return "[vdso]"
	}
	return strings.Clone(m.Path) // the library uses its buffer again
}

func (c *collector) setOnly(pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.only = slices.Clone(pids)
}

// setIgnored leaves out processes, and always this one and the one it works for.
func (c *collector) setIgnored(pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ignored = append([]int{os.Getpid(), os.Getppid()}, pids...)
}

func (c *collector) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == 0 {
		c.until = times.GetKTime()
		c.watched += time.Duration(c.until - c.since)
	}
}

func (c *collector) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until != 0 {
		c.since, c.until = times.GetKTime(), 0
	}
}

func (c *collector) lost() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]uint64{lostStacks: c.noRoom, lostUnread: c.notRead, lostGroups: c.functions.noRoom}
}

// profile returns all stacks in pprof's gzipped form.
func (c *collector) profile() ([]byte, error) {
	var all []stacks.Sample
	for key, s := range c.copied() {
		one := stacks.Sample{PID: int(key.pid), Values: []int64{s.count, s.count * c.period},
			Labels: map[string]string{
				stacks.Group: s.of.group, "thread": strings.ToValidUTF8(key.thread.String(), "\uFFFD"), "netns": strconv.Itoa(int(s.of.netns)),
			}}
		for _, f := range s.frames {
			one.Frames = append(one.Frames, c.name(key.pid, f))
		}
		all = append(all, one)
	}
	p := stacks.Profile([]profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, all)
	for _, f := range p.Function {
		f.SystemName = "" // else pprof takes <module> for a part of a C++ name, and drops it
	}
	p.PeriodType, p.Period = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, c.period
	p.TimeNanos, p.DurationNanos = c.began.UnixNano(), int64(c.duration())
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		return nil, fmt.Errorf("write the stacks as pprof: %w", err)
	}
	return out.Bytes(), nil
}

// copied is the stacks as they are now: naming their frames takes a while, and
// samples must not wait for it.
func (c *collector) copied() map[stackKey]stack {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = nil
	all := make(map[stackKey]stack, len(c.stacks))
	for key, s := range c.stacks {
		all[key] = *s
	}
	return all
}

func (c *collector) duration() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == 0 {
		return c.watched + time.Duration(times.GetKTime()-c.since)
	}
	return c.watched
}

// learn names the frames of new stacks while their processes live.
func (c *collector) learn() {
	c.mu.Lock()
	fresh := c.fresh
	c.fresh = nil
	c.mu.Unlock()
	for _, s := range fresh {
		for _, f := range s.frames {
			c.name(s.pid, f)
		}
	}
}

// name turns a frame of the library's into one of ours.
func (c *collector) name(pid libpf.PID, h unique.Handle[libpf.Frame]) symbol.Frame {
	if f, ok := c.named[h]; ok {
		return f
	}
	f := c.nameAnew(pid, h.Value())
	if f.Function != "" && len(c.named) < maxNamed {
		c.named[h] = f
	}
	return f
}

func (c *collector) nameAnew(pid libpf.PID, f libpf.Frame) symbol.Frame {
	if f.Type.IsError() {
		return symbol.Frame{Function: unread}
	}
	var in file
	if f.Mapping.Valid() {
		c.mu.Lock()
		in = c.files[f.Mapping.Value().File]
		c.mu.Unlock()
	}
	switch at := uint64(f.AddressOrLineno); {
	case f.FunctionName != libpf.NullString || !f.Type.IsInterpType(libpf.Native):
		return scriptFrame(f, in.path)
	case in.path == "":
		return symbol.Frame{Address: at}
	default:
		named := c.native(int(pid), in.path, at)
		if named.Function == "" && in.pid != int(pid) { // this process may be gone
			named = c.native(in.pid, in.path, at)
		}
		return named
	}
}

// native names a function of a binary by its address in the binary's own symbol
// table, which a process that has it mapped leads to.
func (c *collector) native(pid int, path string, at uint64) symbol.Frame {
	if m := c.names.Module(pid, func(other string) bool { return other == path }); m != nil {
		if f := c.names.User(pid, at+m.Bias); f.Module == path {
			return f
		}
	}
	return symbol.Frame{Module: path, Address: at}
}

// scriptFrame is one that the library has named: of an interpreter, of Go, of the kernel.
func scriptFrame(f libpf.Frame, path string) symbol.Frame {
	named := symbol.Frame{Function: functionName(f.FunctionName), File: fileName(f.SourceFile), Line: int(f.SourceLine), FirstLine: beginning(f), Module: path}
	switch {
	case f.Type.IsInterpType(libpf.Kernel):
		named.Kernel, named.Module, named.Address = true, symbol.KernelModule, uint64(f.AddressOrLineno)
	case named.Function == "":
		return symbol.Frame{Function: unread}
	case path == "":
		named.Module = interpreter(f.Type.Interpreter())
	}
	return named
}

// valid makes text of a string from a process's memory; "" is what the library
// writes as <unknown>.
func valid(s libpf.String) string {
	if s.String() == "<unknown>" {
		return ""
	}
	return strings.ToValidUTF8(s.String(), "\uFFFD")
}

// longestName is how many characters of a function's or a file's name are kept. A program may make names as long as
// its memory is; those that people write, with packages and types, have a hundred or two.
const longestName = 256

// functionName is the beginning of one that is too long.
func functionName(s libpf.String) string {
	name := valid(s)
	if r := []rune(name); len(r) > longestName {
		return string(r[:longestName-1]) + "…"
	}
	return name
}

// fileName is the end of one that is too long, where the file itself stands.
func fileName(s libpf.String) string {
	name := valid(s)
	if r := []rune(name); len(r) > longestName {
		return "…" + string(r[len(r)-longestName+1:])
	}
	return name
}

// interpreter is what stands for one where a binary would.
func interpreter(t libpf.InterpreterType) string { return "[" + t.String() + "]" }

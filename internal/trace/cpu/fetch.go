package cpu

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/symbol"
)

// settle is how long a program that began before a round's end may still be at
// it: it takes some microseconds.
const settle = 2 * time.Millisecond

// maxKept is how many stacks' names are kept between looks; maxAsked how many
// processes are remembered.
const (
	maxKept  = 8192
	maxAsked = 4096
	noStack  = ^uint64(0)
	// sweepEvery is after how many rounds ended processes are forgotten.
	sweepEvery = 16
)

// keptKey tells stacks apart: the same addresses in another process are other functions.
type keptKey struct {
	tgid uint32 // 0: the kernel's, PHP's
	hash uint64
}

// fetch ends the round, and takes what was counted in it.
func (t *Trace) fetch() error {
	t.round++
	if err := t.Maps.Variables[bpfVarThisRound].Set(t.round); err != nil {
		return fmt.Errorf("begin a new round of samples: %w", err)
	}
	time.Sleep(settle)
	list, err := t.past()
	if err != nil {
		return err
	}
	for _, snapshot := range t.looks.taken() {
		t.names.Keep(snapshot)
	}
	if len(t.kept) > maxKept {
		clear(t.kept)
	}
	named := make([]one, 0, len(list))
	for key, count := range list {
		s := t.name(&key)
		s.count = count
		named = append(named, s)
	}
	t.taken.add(named)
	errs := []error{t.forget(), trace.Remove(t.Maps.Maps[bpfMapSamples], slices.Collect(maps.Keys(list)))}
	if t.round%sweepEvery == 0 {
		errs = append(errs, t.sweep())
	}
	for key := range list {
		errs = append(errs, t.ask(key.Tgid, trace.Comm(key.Comm[:])))
	}
	return errors.Join(errs...)
}

// past reads the samples of rounds that are over.
func (t *Trace) past() (map[bpfSample]uint64, error) {
	list := map[bpfSample]uint64{}
	err := trace.Each(t.Maps.Maps[bpfMapSamples], func(key *bpfSample, n *uint64) {
		if key.Round != t.round {
			list[*key] = *n
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the samples: %w", err)
	}
	return list, nil
}

// forget removes the stacks of rounds that are over.
func (t *Trace) forget() error {
	m := t.Maps.Maps[bpfMapStacks]
	var old []bpfStackKey
	err := trace.Each(m, func(key *bpfStackKey, _ *bpfStack) {
		if key.Round != t.round {
			old = append(old, *key)
		}
	})
	if err != nil {
		return fmt.Errorf("read the stacks: %w", err)
	}
	if err := trace.Remove(m, old); err != nil {
		return fmt.Errorf("remove old stacks: %w", err)
	}
	return nil
}

// gone is the error of a removal; that it is gone already is none.
func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// name gives a sample its names, while its process may still be there.
func (t *Trace) name(s *bpfSample) one {
	named := one{
		group: groupKey{s.Netns, trace.Comm(s.Comm[:])}, pid: s.Tgid, thread: trace.Comm(s.Thread[:]), kernel: s.Kernel != 0,
	}
	kernel := t.stack(keptKey{0, s.Kernel}, s.Round, t.kernelFrames)
	user := t.stack(keptKey{s.Tgid, s.User}, s.Round, func(addrs []uint64) []symbol.Frame { return t.userFrames(int(s.Tgid), addrs) })
	script := t.stack(keptKey{0, s.Php}, s.Round, t.scriptFrames)
	// What the interpreter itself was called by says nothing once the script is known.
	if len(script) > 0 {
		user = t.interpreter(user)
	}
	// Where an include was the last thing that a function did and noted, the loop may be
	// about what follows it; elsewhere it is being done.
	if len(script) > 0 && t.taken.frames[script[0]] == includes && t.executes(user) {
		script = script[1:]
	}
	named.frames = append(append(append(named.frames, kernel...), user...), script...)
	switch {
	case named.kernel:
		named.function = t.function(kernel)
	case len(script) > 0:
		named.function = leaf(t.framesOf(script))
	default:
		named.function = t.function(user)
	}
	return named
}

func (t *Trace) kernelFrames(addrs []uint64) []symbol.Frame { return t.names.KernelStack(addrs) }

// userFrames names a process's stack. A process that maps new code, or has become
// another program, is looked at again.
func (t *Trace) userFrames(pid int, addrs []uint64) []symbol.Frame {
	if t.foreign {
		return []symbol.Frame{{}}
	}
	frames := t.names.UserStack(pid, addrs)
	if frames[0].Module == "" {
		t.names.Look(pid)
		frames = t.names.UserStack(pid, addrs)
	}
	return frames
}

// scriptFrames names the functions of a PHP script.
func (t *Trace) scriptFrames(words []uint64) []symbol.Frame {
	var frames []symbol.Frame
	for ; len(words) >= 2; words = words[2:] {
		var s bpfScript
		if err := t.Maps.Maps[bpfMapScripts].Lookup(&words[0], &s); err != nil {
			frames = append(frames, symbol.Frame{Function: "php:[unknown]", Module: phpFrames})
			continue
		}
		if words[1]>>32 != 0 {
			frames = append(frames, includes)
		}
		frames = append(frames, scriptOf(&s).frame(int(uint32(words[1]))))
	}
	return frames
}

// stack returns the numbers of a stack's frames; none if it is not known.
func (t *Trace) stack(key keptKey, round uint32, name func([]uint64) []symbol.Frame) []uint32 {
	if key.hash == 0 || key.hash == noStack {
		return nil
	}
	if known, ok := t.kept[key]; ok {
		return known
	}
	var s bpfStack
	if err := t.Maps.Maps[bpfMapStacks].Lookup(&bpfStackKey{Hash: key.hash, Round: round}, &s); err != nil || s.Words == 0 || s.Words > uint64(len(s.Word)) {
		return nil
	}
	var numbers []uint32
	for _, f := range name(s.Word[:s.Words]) {
		n, room := t.taken.number(f)
		if !room {
			break
		}
		numbers = append(numbers, n)
	}
	t.kept[key] = numbers
	return numbers
}

func (t *Trace) framesOf(numbers []uint32) []symbol.Frame {
	frames := make([]symbol.Frame, 0, len(numbers))
	for _, n := range numbers {
		frames = append(frames, t.taken.frames[n])
	}
	return frames
}

// interpreter cuts a PHP process's own stack behind the interpreter's loop.
func (t *Trace) interpreter(user []uint32) []uint32 {
	for i, n := range user {
		if t.taken.frames[n].Function == interpretersLoop {
			return user[:i+1]
		}
	}
	return user
}

// executes says whether the innermost function of a PHP process is the interpreter's
// loop, or compiled from a script, or not known.
func (t *Trace) executes(user []uint32) bool {
	if len(user) == 0 {
		return true
	}
	f := t.taken.frames[user[0]]
	return f.Function == interpretersLoop || !strings.HasPrefix(f.Module, "/")
}

// function names the innermost function for a series: code of which nothing is
// known is one for each binary, not one for each address.
func (t *Trace) function(frames []uint32) string {
	if len(frames) == 0 {
		return "[unknown]"
	}
	f := t.taken.frames[frames[0]]
	if f.Function == "" && f.Start == 0 && strings.HasPrefix(f.Module, "/") {
		return "[" + path.Base(f.Module) + "]"
	}
	return layout.InModule(f.Name(), path.Base(f.Module))
}

// ask finds out once whether a process executes PHP, and tells the program.
func (t *Trace) ask(tgid uint32, comm string) error {
	if t.foreign {
		return nil
	}
	if was, asked := t.asked[tgid]; asked && was == comm || len(t.asked) == maxAsked {
		return nil
	}
	t.asked[tgid] = comm
	where, isPHP := t.php.find(int(tgid))
	if !isPHP {
		return gone(t.Maps.Maps[bpfMapPhpProcesses].Delete(tgid))
	}
	return t.tell(tgid, where)
}

// tell has the program read what a PHP process executes.
func (t *Trace) tell(tgid uint32, where bpfPhp) error {
	if err := t.Maps.Maps[bpfMapPhpProcesses].Put(tgid, &where); err != nil {
		return fmt.Errorf("tell the BPF program of the PHP process %d: %w", tgid, err)
	}
	return nil
}

// sweep forgets the processes that have ended: their numbers are given anew.
func (t *Trace) sweep() error {
	var errs []error
	for tgid := range t.asked {
		if err := unix.Kill(int(tgid), 0); errors.Is(err, unix.ESRCH) {
			delete(t.asked, tgid)
			errs = append(errs, gone(t.Maps.Maps[bpfMapPhpProcesses].Delete(tgid)))
		}
	}
	return errors.Join(errs...)
}

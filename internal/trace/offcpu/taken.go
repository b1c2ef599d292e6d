package offcpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/symbol"
	"plimsoll/internal/trace/wait/reason"
)

const (
	// maxSums is how many different waits are kept: by stacks, reason and waker.
	maxSums = 16384
	// maxPIDs is how many processes of a group are listed.
	maxPIDs = 64
)

// who is a group of processes.
type who struct {
	netns uint32
	name  string
}

// waitKey is what waits are summed up by. Stacks are equal if all their functions
// are, so that processes that come and go do not fill the memory.
type waitKey struct {
	netns                uint32
	group, reason, waker string
	kernel               uint64
	user                 int // the place in taken.user
}

// taken is what was taken out of the kernel's maps, with names. Those must be
// looked up while the processes live.
type taken struct {
	names *symbol.Resolver
	maps  map[string]*ebpf.Map
	sums  map[waitKey]bpfWait
	pids  map[who]map[int]bool
	// kernel holds the kernel's stacks by their hash, which stay; user all different
	// ones of processes, and known their places by what is in them.
	kernel map[uint64][]symbol.Frame
	user   [][]symbol.Frame
	known  map[string]int
	// at holds the places of stacks that are in the kernel's map.
	at                    map[userStack]int
	lostWaits, lostStacks uint64
}

type userStack struct {
	tgid uint32
	hash uint64
}

func newTaken(maps map[string]*ebpf.Map) *taken {
	return &taken{
		names: symbol.New(), maps: maps, sums: map[waitKey]bpfWait{}, pids: map[who]map[int]bool{},
		kernel: map[uint64][]symbol.Frame{}, user: [][]symbol.Frame{nil}, known: map[string]int{"": 0}, at: map[userStack]int{},
	}
}

// fetch takes the waits that ended out of the kernel's map, which so has room for
// new ones, and forgets the stacks of processes that are gone.
func (t *taken) fetch() error {
	var keys []bpfWaitKey
	var key bpfWaitKey
	var w bpfWait
	each := t.maps[bpfMapWaits].Iterate()
	for each.Next(&key, &w) {
		keys = append(keys, key)
	}
	if err := each.Err(); err != nil {
		return fmt.Errorf("read the waits: %w", err)
	}
	for _, key := range keys {
		if err := t.maps[bpfMapWaits].LookupAndDelete(key, &w); err != nil {
			return fmt.Errorf("take a wait: %w", err)
		}
		t.add(key, w)
	}
	return t.forget()
}

// forget makes room for the stacks of other processes.
func (t *taken) forget() error {
	gone := map[uint32]bool{}
	var errs []error
	for s := range t.at {
		if _, asked := gone[s.tgid]; !asked {
			gone[s.tgid] = errors.Is(unix.Kill(int(s.tgid), 0), unix.ESRCH)
		}
		if !gone[s.tgid] {
			continue
		}
		delete(t.at, s)
		if err := t.maps[bpfMapUserStacks].Delete(s.hash); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("forget a stack: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (t *taken) add(raw bpfWaitKey, w bpfWait) {
	key := t.key(raw)
	sum, there := t.sums[key]
	if !there && len(t.sums) >= maxSums {
		t.lostWaits += w.Waits
		return
	}
	t.sums[key] = bpfWait{Ns: sum.Ns + w.Ns, Waits: sum.Waits + w.Waits}
}

// key names what the kernel knows by numbers.
func (t *taken) key(raw bpfWaitKey) waitKey {
	group := trace.Comm(raw.Comm[:])
	at := who{raw.Netns, group}
	if t.pids[at] == nil {
		t.pids[at] = map[int]bool{}
	}
	if len(t.pids[at]) < maxPIDs {
		t.pids[at][int(raw.Tgid)] = true
	}
	t.kernelStack(raw.Kernel)
	return waitKey{
		netns: raw.Netns, group: group, reason: reason.Reason(raw.Reason).String(), waker: trace.Comm(raw.Waker[:]),
		kernel: raw.Kernel, user: t.userStack(raw.Tgid, raw.User),
	}
}

// slept makes a sum readable.
func (t *taken) slept(key waitKey, w bpfWait) slept {
	return slept{stacks.Sample{
		Frames: slices.Concat(asleep(t.kernel[key.kernel]), t.user[key.user]),
		Labels: map[string]string{stacks.Group: key.group, "reason": key.reason, "waker": key.waker},
		Values: []int64{int64(w.Ns), int64(w.Waits)},
	}, key.netns}
}

// addresses returns a stack by its hash; none of 0, which stands for none, or if it
// is gone.
func (t *taken) addresses(stacks string, hash uint64) []uint64 {
	var f bpfFrames
	if hash == 0 {
		return nil
	}
	if err := t.maps[stacks].Lookup(hash, &f); err != nil {
		t.lostStacks++
		return nil
	}
	if end := slices.Index(f.At[:], 0); end >= 0 {
		return f.At[:end]
	}
	return f.At[:]
}

// kernelStack sees to it that a stack of the kernel has its names.
func (t *taken) kernelStack(hash uint64) {
	if _, there := t.kernel[hash]; !there {
		t.kernel[hash] = t.names.KernelStack(t.addresses(bpfMapKernelStacks, hash))
	}
}

// userStack returns the place of a process's stack.
func (t *taken) userStack(tgid uint32, hash uint64) int {
	key := userStack{tgid, hash}
	place, there := t.at[key]
	if there || hash == 0 {
		return place
	}
	frames := t.names.UserStack(int(tgid), t.addresses(bpfMapUserStacks, hash))
	var text strings.Builder
	for _, f := range frames {
		text.WriteString(f.Module + "\n" + f.Name() + "\n")
	}
	place, there = t.known[text.String()]
	if !there {
		if len(t.user) >= maxSums {
			t.lostStacks++
			return 0
		}
		place = len(t.user)
		t.known[text.String()], t.user = place, append(t.user, frames)
	}
	t.at[key] = place
	return place
}

// asleep cuts off what every stack of a sleeping thread begins with: our own
// programs, and the scheduler.
func asleep(kernel []symbol.Frame) []symbol.Frame {
	for i, f := range kernel {
		if !ofScheduler(f.Function) {
			return kernel[i:]
		}
	}
	return nil
}

func ofScheduler(function string) bool {
	for _, prefix := range []string{"bpf_", "__bpf_", "__traceiter_", "__schedule", "schedule", "io_schedule", "preempt_schedule"} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return function == ""
}

// slept is one stack on which threads of a group slept: nanoseconds and waits.
type slept struct {
	stacks.Sample
	netns uint32
}

// idle says whether who sleeps so most often has nothing to do.
func (s slept) idle() bool { return reason.Named(s.Labels["reason"]).Idle() }

func (s slept) blocked() time.Duration { return time.Duration(s.Values[0]) }

// Package wait is the tracer of blocked threads: how long they slept, by what
// they waited for and towards whom.
package wait

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
	"plimsoll/internal/trace/wait/reason"
)

// Tracer declares it, as a view of programs that another tracer may share.
func Tracer(programs *sched.Programs) trace.Tracer {
	return trace.Tracer{
		Name:        "wait",
		Short:       "how long threads are blocked, by what, towards whom",
		About:       "how long threads are blocked, by process, by what they wait for and towards whom",
		Long:        long,
		Level:       trace.Light,
		Signals:     signals,
		Programs:    sched.Spec,
		Needs:       needs,
		Tracepoints: []string{"sched_switch"},
		FirstKernel: sched.FirstKernel,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 11, Replies: "0.997 (0.980–1.003)", CPU: "1.007 (0.998–1.019)"},
		Blind:       blind,
		ByHand:      "offcputime-bpfcc 10; perf trace -s; of one thread /proc/PID/task/TID/wchan, stack and syscall",
		Start:       func() (trace.Running, error) { return start(programs) },
	}
}

// Group is what is known of all threads of one command's processes in one
// network namespace that waited for one thing, since the start.
type Group struct {
	NetNS  uint32 `json:"netns"` // the inode of the network namespace
	Name   string `json:"groupname"`
	Reason string `json:"reason"`
	// Lengths counts the waits that ended by how long they were.
	Lengths trace.Histogram `json:"lengths"`
	// Targets are those whom it waited for, the longest first.
	Targets []Target `json:"targets"`
}

// Target is whom threads waited for; Towards is "" where there is nobody in
// particular, "other" for those beyond the bound.
type Target struct {
	Towards string `json:"towards"`
	// Blocked is how long, with the waits that still last; Blocks counts the waits
	// that ended.
	Blocked time.Duration `json:"blocked_ns"`
	Blocks  uint64        `json:"blocks"`
}

// Blocked is the sum over all targets.
func (g Group) Blocked() time.Duration {
	var sum time.Duration
	for _, t := range g.Targets {
		sum += t.Blocked
	}
	return sum
}

// Snapshot is everything since the start, the group that was blocked longest first.
type Snapshot struct {
	Groups []Group `json:"groups"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*sched.View
	numbers map[uint32]sched.Group // whose sums they are
	writers writers
	// unfound is why threads cannot be found in our /proc, or not looked at; nil where they can.
	unfound error
}

func start(programs *sched.Programs) (*Trace, error) {
	return begin(programs.Use(sched.Blocked, needs))
}

func begin(view *sched.View, err error) (*Trace, error) {
	if err != nil {
		return nil, err
	}
	if err := view.Look(); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return &Trace{view, map[uint32]sched.Group{}, writers{seen: map[writer]bool{}}, trace.MayFindThreads()}, nil
}

// Pause detaches the programs. Waits count as far as they have come.
func (t *Trace) Pause() error { return errors.Join(t.Look(), t.View.Pause()) }

// Resume attaches them again. Waits that last already count from now on.
func (t *Trace) Resume() error {
	if err := t.View.Resume(); err != nil {
		return err
	}
	return t.Look()
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	if err := t.Look(); err != nil {
		return Snapshot{}, err
	}
	if err := t.readNumbers(); err != nil {
		return Snapshot{}, err
	}
	groups, err := t.groups()
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{}
	for _, g := range groups {
		s.Groups = append(s.Groups, g.sorted())
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Blocked(), a.Blocked()), strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason))
	})
	s.Lost, err = t.Lost()
	return s, err
}

// readNumbers learns whose sums the numbers are, which never changes.
func (t *Trace) readNumbers() error {
	var n uint32
	if err := t.Maps.Variables[sched.NumberCount].Get(&n); err != nil {
		return fmt.Errorf("count the sums of waits: %w", err)
	}
	if int(n) == len(t.numbers) {
		return nil
	}
	if err := trace.Each(t.Maps.Maps[sched.Numbers], func(g *sched.Group, number *uint32) { t.numbers[*number] = *g }); err != nil {
		return fmt.Errorf("read whose the sums of waits are: %w", err)
	}
	return nil
}

// groups reads the sums; those of one group are of its targets.
func (t *Trace) groups() (map[groupKey]*Group, error) {
	paths, err := t.paths()
	if err != nil {
		return nil, err
	}
	groups := map[groupKey]*Group{}
	for number, whose := range t.numbers {
		var cpus []sched.Sum
		if err := t.Maps.Maps[sched.Sums].Lookup(number, &cpus); err != nil {
			return nil, fmt.Errorf("read a sum of waits: %w", err)
		}
		key := groupKey{whose.Netns, trace.Comm(whose.Comm[:]), reason.Reason(whose.Cause.Reason).String()}
		if groups[key] == nil {
			groups[key] = &Group{NetNS: key.netns, Name: key.name, Reason: key.reason, Lengths: make(trace.Histogram, len(sched.Sum{}.Length)), Targets: []Target{}}
		}
		groups[key].add(label(&whose.Cause, paths), cpus)
	}
	return groups, nil
}

type groupKey struct {
	netns        uint32
	name, reason string
}

// label words a target as the label towards.
func label(c *sched.Cause, paths map[uint64]string) string {
	peer := reason.Peer{Addr: c.Addr, Port: c.Port, Kind: c.Peer, Client: c.Client > 0}
	return peer.Towards(func(key uint64) string { return paths[key] })
}

// add adds what each CPU counted. A Unix socket that was bound again has the same
// path as before, so that a target may come twice.
func (g *Group) add(towards string, cpus []sched.Sum) {
	at := slices.IndexFunc(g.Targets, func(t Target) bool { return t.Towards == towards })
	if at < 0 {
		at = len(g.Targets)
		g.Targets = append(g.Targets, Target{Towards: towards})
	}
	target := &g.Targets[at]
	for i := range cpus {
		target.Blocked += time.Duration(cpus[i].Ns)
		target.Blocks += cpus[i].Blocks
		for slot, n := range cpus[i].Length {
			g.Lengths[slot] += n
		}
	}
}

// sorted is the group with the targets that it did wait for, the longest first.
func (g *Group) sorted() Group {
	g.Targets = slices.DeleteFunc(g.Targets, func(t Target) bool { return t.Blocked == 0 })
	slices.SortFunc(g.Targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(b.Blocked, a.Blocked), strings.Compare(a.Towards, b.Towards))
	})
	return *g
}

func (t *Trace) paths() (map[uint64]string, error) {
	paths := map[uint64]string{}
	err := trace.Each(t.Maps.Maps[sched.Paths], func(key *uint64, path *sched.Path) {
		paths[*key] = reason.Path(path.Name[:], int(path.Len))
	})
	if err != nil {
		return nil, fmt.Errorf("read the paths of Unix sockets: %w", err)
	}
	return paths, nil
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, g := range s.Groups {
		in := out.In(g.NetNS)
		for _, to := range g.Targets {
			if t.Has(blockedSeconds) {
				in.Put(blockedSeconds, to.Blocked.Seconds(), g.Name, g.Reason, to.Towards)
			}
			if to.Blocks > 0 && t.Has(blocks) {
				in.Put(blocks, float64(to.Blocks), g.Name, g.Reason, to.Towards)
			}
		}
		if t.Has(blockedBucket) {
			g.Lengths.Put(in, blockedBucket, g.Name, g.Reason)
		}
	}
	trace.PutLost(out, lost, s.Lost)
	if t.unfound != nil || !t.Has(stuckWriters) {
		return nil
	}
	t.unfound = t.putStuck(out)
	return nil
}

// Status says for each signal whether it is read.
func (t *Trace) Status() map[string]model.Status {
	status := t.View.Status()
	if t.unfound != nil && status[stuckWriters.Name].State == model.Read {
		status[stuckWriters.Name] = host.StatusOf(t.unfound)
	}
	return status
}

// Package requests is the tracer of requests as services get them: how many, how
// long each lay unread, was in hand and was on its way back, and the same for what
// services ask of others, told by the turns that the ends of connections take.
package requests

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	// maxSockets is how many sockets are remembered at once, about.
	maxSockets = 65536
	// walkShare is the part of one CPU that walks over the sockets may use.
	walkShare = 0.002
	// listenersEvery is how often listeners are looked for among all open files, at most.
	listenersEvery = 30 * time.Second
)

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	// functions are links of programs on functions, which stay attached while it is switched off.
	functions map[*ebpf.Program]io.Closer
	walker    *ebpf.Program // of the sockets that are remembered; nil if the kernel refused it
	walk      *link.Iter
	walks     uint64
	failed    error // why there is none
	next      time.Time
	found     time.Time // when listeners were looked for last
	learned   bool      // where the function of sleepers' timers is, or that the kernel does not tell
	// unfound is why it is not known what threads with a request in hand do; nil where it is.
	unfound error
	served  servers
	did     map[[2]string]map[string]bool // what holders of a listener and a group were seen to do
	// overlooked is when requests came that were not followed; withheld whether the last walk does not tell of somebody who asks, for that.
	overlooked overlooked
	withheld   bool
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	t, err := attach(spec)
	if err != nil {
		return nil, err
	}
	if err := t.Resume(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// attach attaches the programs one after the other. Until Resume those on functions are off,
// and turns that the others saw begin are not followed: their reads may have gone unseen.
func attach(spec *ebpf.CollectionSpec) (*Trace, error) {
	t := &Trace{unfound: trace.MayFindThreads(), did: map[[2]string]map[string]bool{}, functions: map[*ebpf.Program]io.Closer{}}
	t.overlooked.of, t.overlooked.passed = map[process]time.Time{}, map[uint32]uint64{}
	how := map[string]trace.Attach{
		atOpen: func(p *ebpf.Program) (io.Closer, error) {
			t.walker = p
			return io.NopCloser(nil), nil // it runs when it is read
		},
		atListeners: t.findListeners,
		atWakeup:    t.learn,
	}
	for name, p := range spec.Programs {
		if trace.OnFunction(p) {
			how[name] = t.attachToFunction
		}
	}
	set, err := trace.LoadWith(spec, since, needs, how)
	if err != nil {
		return nil, errors.Join(err, t.detach())
	}
	t.Set = set
	if t.walker != nil {
		t.walk, t.failed = t.attachWalk(spec.Programs[atOpen].AttachTo)
	}
	return t, nil
}

// attachWalk has the walker go over all sockets of the map, or over the open files of all processes: those that our PID namespace
// has, which is only good where these are all.
func (t *Trace) attachWalk(over string) (*link.Iter, error) {
	if over != overFiles {
		return link.AttachIter(link.IterOptions{Program: t.walker, Map: t.Maps.Maps[bpfMapTurns]})
	}
	if err := trace.MayFindThreads(); err != nil {
		return nil, err
	}
	return link.AttachIter(link.IterOptions{Program: t.walker})
}

func (t *Trace) attachToFunction(p *ebpf.Program) (io.Closer, error) {
	if t.functions[p] == nil {
		on, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return nil, err
		}
		t.functions[p] = on
	}
	return io.NopCloser(nil), nil
}

func (t *Trace) detach() error {
	var errs []error
	for _, on := range t.functions {
		errs = append(errs, on.Close())
	}
	return errors.Join(errs...)
}

// findListeners lets the program look at all open files: it learns where processes
// listen already. When the tracer is resumed soon after, there is little new to learn.
func (t *Trace) findListeners(p *ebpf.Program) (io.Closer, error) {
	if time.Since(t.found) < listenersEvery {
		return io.NopCloser(nil), nil
	}
	t.found = time.Now()
	iter, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return nil, err
	}
	files, err := iter.Open()
	if err == nil {
		_, err = io.Copy(io.Discard, files)
		err = errors.Join(err, files.Close())
	}
	return io.NopCloser(nil), errors.Join(err, iter.Close())
}

// learn lets the program run that asks where a function of the kernel is, which stays there.
func (t *Trace) learn(p *ebpf.Program) (io.Closer, error) {
	if t.learned {
		return io.NopCloser(nil), nil
	}
	t.learned = true
	_, err := p.Run(&ebpf.RunOptions{})
	return io.NopCloser(nil), err
}

// Calls is how often the programs of turns and timers were called since the start, by CPU.
func (t *Trace) Calls() ([]uint64, error) {
	var calls []uint64
	if err := t.Maps.Maps[bpfMapCalls].Lookup(uint32(0), &calls); err != nil {
		return nil, fmt.Errorf("read how often the programs were called: %w", err)
	}
	return calls, nil
}

// Finish has turns that begin be passed over until Resume; those under way are followed on.
func (t *Trace) Finish() error {
	t.overlooked.at = time.Now()
	return t.Maps.Variables[bpfVarFinishing].Set(true)
}

// Pause switches the programs off.
func (t *Trace) Pause() error {
	t.overlooked.at = time.Now()
	return errors.Join(t.Maps.Variables[bpfVarOn].Set(false), t.Set.Pause())
}

// Resume switches them on again.
func (t *Trace) Resume() error {
	if err := t.Maps.Variables[bpfVarFinishing].Set(false); err != nil {
		return err
	}
	if err := t.Set.Resume(); err != nil {
		return err
	}
	return t.Maps.Variables[bpfVarOn].Set(true)
}

// Status says for each signal whether it is read.
func (t *Trace) Status() map[string]model.Status {
	status := t.Set.Status()
	if t.failed != nil {
		for _, s := range []*model.Signal{unreadNow, server.waiting, server.underWay, holders, asking, upstream.waiting, upstream.underWay} {
			status[s.Name] = host.StatusOf(fmt.Errorf("walk over the sockets that are followed: %w", t.failed))
		}
	}
	if t.unfound != nil && t.failed == nil {
		status[holders.Name] = host.StatusOf(t.unfound)
		status[asking.Name] = host.StatusOf(t.unfound)
	} else if t.withheld && t.failed == nil {
		status[asking.Name] = host.StatusOf(errOverlooked)
	}
	return status
}

// Close detaches the programs.
func (t *Trace) Close() error {
	var err error
	if t.walk != nil {
		err = t.walk.Close()
	}
	return errors.Join(err, t.detach(), t.Set.Close())
}

// Tracecost measures what tracing costs the service that is watched.
//
//	taskset -c 1 go run ./bench/tracecost [-pairs N] [-slice D] [-turns N] [-copies N] [-burst D] [-watch-wrk] [-passed] NAME…
//	go run ./bench/tracecost [-settle D] [-python] -with 'COMMAND' [-against 'COMMAND']
//	go run ./bench/tracecost -pool FILE…
//
// NAME is a tracer, several of them (exec+tcp), or light: all those of that level,
// as a run starts them.
//
// One nginx of its own (one worker on CPU 0, no access log, a file of 599 bytes)
// is driven by wrk from CPU 1 over keep-alive connections, all the time. The
// tracers are loaded once and switched on and off every slice, in the order off
// on, on off, …, so that a machine that changes its mind changes it for both; while
// they are on they are read once a second. They are switched on and off before the
// half without them, too, since switching by itself may show for a while. With -turns
// the halves of a pair are cut into so many parts that take turns: where the machine's
// neighbours are loud, parts that are close in time have more in common. With -copies
// so many copies of the tracers are on at once, each with its own programs, maps and
// readings: what a machine's noise hides of one shows in eight, and the last line
// tells the share of one. Of each pair it takes two ratios, on over off: replies per
// second, and the worker's CPU time per reply; it prints them, and their medians with
// the 95 % interval of the median. -pool takes the pairs that earlier runs printed into files together.
//
// With -burst they are on as a run has those whose programs are called very often: for D, and
// a tenth of a second more for the end of what they began, in every two seconds, which a
// slice should last; to switch them is in what is measured.
//
// The tracers leave wrk out, as those of a run leave out its load engine; -watch-wrk
// has them look at it too, as those of a watch beside another load tool do. With -passed
// the nginx on CPU 0 is a proxy in front of a second one: what tracers do only on
// connections that a service opens itself shows there.
//
// With -python the service on CPU 0 is no nginx but a script, some 20 µs of Python a request, for what looks into scripts.
//
// -with starts and ends a command (another tool, or plimsoll watch itself) in place
// of the tracers; settle is how long it is given to get going before the slice.
// It needs root, two CPUs, nginx and wrk, and a machine that does nothing else.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/all"
	"plimsoll/internal/trace/deepcpu"
)

// calm is between switching and measuring. Switching rewrites code of the kernel,
// for which it interrupts every CPU; a run does that before its windows.
const calm = 200 * time.Millisecond

type options struct {
	pairs         int
	slice, settle time.Duration
	burst         time.Duration
	turns, copies int
	connections   int
	with, against string
	watchWrk      bool
	passed        bool
	python        bool
	pool          bool
	tracers       []string
}

func main() {
	runtime.LockOSThread() // what we start ends with the thread that started it
	var o options
	flag.IntVar(&o.pairs, "pairs", 40, "how many pairs")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long each half of a pair lasts")
	flag.IntVar(&o.turns, "turns", 1, "in how many parts it is cut, which take turns with those of the other half")
	flag.DurationVar(&o.settle, "settle", 3*time.Second, "how long a command is given to get going")
	flag.DurationVar(&o.burst, "burst", 0, "how long they watch in every two seconds (0: throughout)")
	flag.IntVar(&o.copies, "copies", 1, "how many copies of the tracers are on at once")
	flag.IntVar(&o.connections, "c", 100, "connections")
	flag.StringVar(&o.with, "with", "", "a command that runs in the second half of a pair")
	flag.StringVar(&o.against, "against", "", "a command that runs in the first half")
	flag.BoolVar(&o.passed, "passed", false, "requests are passed to a second nginx, on CPU 1, over connections that are kept")
	flag.BoolVar(&o.python, "python", false, "the service is a script in Python")
	flag.BoolVar(&o.watchWrk, "watch-wrk", false, "trace the load generator as well")
	flag.BoolVar(&o.pool, "pool", false, "no measurement: the pairs of what earlier ones printed, in files")
	flag.Parse()
	o.tracers = flag.Args()
	if slices.Equal(o.tracers, []string{stackReader}) {
		if err := serveStacks(); err != nil {
			fmt.Fprintln(os.Stderr, "tracecost: read stacks:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "tracecost:", err)
		os.Exit(1)
	}
}

func run(o options) (err error) {
	if o.pool {
		return pool(o.tracers)
	}
	if o.pairs < 1 || o.turns < 1 || o.copies < 1 || o.slice < time.Duration(o.turns)*time.Millisecond {
		return errors.New("want at least one pair, one copy, and one turn of a millisecond")
	}
	site, err := startSite(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.stop()) }()
	if o.with != "" {
		b := &bench{site: site, options: o, off: command(o.against, o.settle), on: command(o.with, o.settle)}
		return b.print(o.with)
	}
	if len(o.tracers) == 0 {
		return errors.New("name tracers, or a command by -with")
	}
	for _, names := range o.tracers {
		if err := site.tracers(o, names); err != nil {
			return fmt.Errorf("%s: %w", names, err)
		}
	}
	return nil
}

// tracers measures one tracer, or several together.
func (s *site) tracers(o options, names string) (err error) {
	var together []trace.Running
	for range o.copies {
		starts, err := named(names) // tracers of one list share programs, and copies do not
		if err != nil {
			return err
		}
		for _, t := range starts {
			running, err := s.start(o, t)
			if err != nil {
				return err
			}
			defer running.Close()
			together = append(together, running)
		}
	}
	if o.copies > 1 {
		names = fmt.Sprintf("%d copies of %s", o.copies, names)
	}
	on := switched(together...)
	off := on.undone()
	if o.burst > 0 {
		on, off = inBursts(o.burst, on), half{nothing, nothing, nothing}
	}
	b := &bench{site: s, options: o, off: off, on: on}
	return b.print(names)
}

// start starts a tracer, and switches it off.
func (s *site) start(o options, t trace.Tracer) (trace.Running, error) {
	running, err := t.Start()
	if err != nil {
		return nil, err
	}
	if !o.watchWrk {
		err = running.Ignore(s.wrk.Process.Pid)
	}
	if err := errors.Join(err, running.Pause(), aim(t, running, s.worker)); err != nil {
		return nil, errors.Join(err, running.Close())
	}
	return running, nil
}

// named finds tracers by their names; those of a level start as a run starts them.
func named(names string) ([]trace.Tracer, error) {
	var found []trace.Tracer
	known := append(all.All(), deepcpu.Tracer(spawn))
	for name := range strings.SplitSeq(names, "+") {
		before := len(found)
		for _, t := range known {
			if name == "light" && t.Level == trace.Light {
				found = append(found, asInRun(t))
			} else if t.Name == name {
				found = append(found, t)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("there is no tracer %s", name)
		}
	}
	return found, nil
}

func asInRun(t trace.Tracer) trace.Tracer {
	if t.StartInRun != nil {
		t.Start = t.StartInRun
	}
	return t
}

// aim singles out the worker for a dear tracer, as a run would.
func aim(t trace.Tracer, r trace.Running, worker int) error {
	if t.Level == trace.Full {
		return r.Only(worker)
	}
	return nil
}

// half is what goes on in one half of a pair: begin switches it on, end off; read
// is called in the middle of each second.
type half struct{ begin, read, end func() error }

func nothing() error { return nil }

// undone is the other half of a pair: switched on and off again before it begins, so
// that what switching does to the caches and to the rhythm of the load is in both.
func (h half) undone() half {
	return half{func() error { return errors.Join(h.begin(), h.end()) }, nothing, nothing}
}

// switched is tracers that are on, and read as often as a run reads them.
func switched(running ...trace.Running) half {
	each := func(do func(trace.Running) error) func() error {
		return func() error {
			var errs []error
			for _, r := range running {
				errs = append(errs, do(r))
			}
			return errors.Join(errs...)
		}
	}
	read := func(r trace.Running) error { return r.Read(nowhere{}) }
	return half{each(trace.Running.Resume), each(read), each(trace.Running.Pause)}
}

// lastOrders and cycle are a run's (collect).
const (
	lastOrders = 100 * time.Millisecond
	cycle      = 2 * time.Second
)

// inBursts is tracers that are on in bursts, the first of which begins where the slice does.
func inBursts(burst time.Duration, h half) half {
	var stop chan struct{}
	var ended chan error
	turns := func() error {
		time.Sleep(calm)
		for began := time.Now(); ; began = began.Add(cycle) {
			if err := h.begin(); err != nil {
				return err
			}
			time.Sleep(burst + lastOrders)
			if err := errors.Join(h.end(), h.read()); err != nil {
				return err
			}
			select {
			case <-stop:
				return nil
			case <-time.After(time.Until(began.Add(cycle))):
			}
		}
	}
	return half{
		func() error {
			stop, ended = make(chan struct{}), make(chan error, 1)
			go func() { ended <- turns() }()
			return nil
		},
		nothing,
		func() error { close(stop); return <-ended },
	}
}

// nowhere takes samples and forgets them.
type nowhere struct{}

func (nowhere) Put(*model.Signal, float64, ...string) {}

func (nowhere) In(uint32) model.Sink  { return nowhere{} }
func (nowhere) Net(uint32) model.Sink { return nowhere{} }

// command is a process on CPU 1, ended by ^C.
func command(line string, settle time.Duration) half {
	if line == "" {
		return half{func() error { time.Sleep(settle); return nil }, nothing, nothing}
	}
	var cmd *exec.Cmd
	return half{
		func() error {
			cmd = exec.Command("taskset", append([]string{"-c", "1"}, strings.Fields(line)...)...)
			if err := cmd.Start(); err != nil {
				return err
			}
			time.Sleep(settle)
			return nil
		},
		nothing,
		func() error {
			_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended by itself
			_ = cmd.Wait()                         // how a tool that was interrupted ends is its own affair
			return nil
		},
	}
}

type bench struct {
	*site
	options
	off, on half
}

// print measures and prints the pairs and what they come to.
func (b *bench) print(name string) error {
	var pairs []pair
	for i := range b.pairs {
		off, on, err := b.pair(i%2 == 1)
		if err != nil {
			return err
		}
		p := pair{on.rate() / off.rate(), on.cpuPerReply() / off.cpuPerReply()}
		p.print(os.Stdout, name)
		pairs = append(pairs, p)
	}
	summarise(name, pairs)
	if b.copies > 1 {
		for i := range pairs {
			pairs[i] = pairs[i].root(b.copies)
		}
		summarise("of it one copy's share", pairs)
	}
	return nil
}

// pair measures both halves, turn by turn: off on, on off, …; or the other way round.
func (b *bench) pair(onFirst bool) (off, on measured, err error) {
	part := b.slice / time.Duration(b.turns)
	for turn := range b.turns {
		halves := []struct {
			half
			sum *measured
		}{{b.off, &off}, {b.on, &on}}
		if onFirst != (turn%2 == 1) {
			slices.Reverse(halves)
		}
		for _, h := range halves {
			m, err := b.measure(h.half, time.Duration(turn)*part, part)
			if err != nil {
				return off, on, err
			}
			h.sum.add(m)
		}
	}
	return off, on, nil
}

// measure measures the part of a half that begins at a point of it and lasts so long.
func (b *bench) measure(h half, at, lasts time.Duration) (measured, error) {
	if err := h.begin(); err != nil {
		return measured{}, err
	}
	time.Sleep(calm)
	from, err := b.look()
	if err != nil {
		return measured{}, err
	}
	if err := h.pass(at, lasts); err != nil {
		return measured{}, err
	}
	to, err := b.look()
	if err != nil {
		return measured{}, err
	}
	return to.since(from), h.end()
}

// pass lets a part of a half pass, and reads in the middle of each of its seconds,
// wherever the parts' bounds are.
func (h half) pass(at, lasts time.Duration) error {
	end := at + lasts
	for {
		next := at.Truncate(time.Second) + time.Second/2
		if next < at {
			next += time.Second
		}
		if next >= end {
			time.Sleep(end - at)
			return nil
		}
		time.Sleep(next - at)
		if err := h.read(); err != nil {
			return err
		}
		at = next + 1 // this second has been read
	}
}

// Switchcost measures what tracers add to a switch between two threads that they
// leave out, which is the least that they can cost.
//
//	go run ./bench/switchcost [-rounds N] NAME…
//
// NAME is a tracer, or several of them (runqueue+wait). Two threads of this process
// pass a byte to and fro on CPU 1, while nothing is traced, then with each NAME, then
// in the other order, and so on. It prints the median time of a switch, with its
// quartiles. Our own process is what every tracer leaves out.
//
// It needs root, two CPUs, and a machine that does nothing else.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/all"
)

const (
	exchanges = 20_000 // in a round, of two switches each
	nothing   = "nothing"
	calm      = 20 * time.Millisecond // after switching tracers, which rewrites the kernel's code
)

func main() {
	rounds := flag.Int("rounds", 60, "how often each is measured")
	flag.Parse()
	if err := run(*rounds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "switchcost:", err)
		os.Exit(1)
	}
}

func run(rounds int, sets []string) error {
	if len(sets) == 0 || rounds < 1 {
		return errors.New("name tracers, as runqueue or runqueue+wait, and at least one round")
	}
	list, running := all.All(), map[string]trace.Running{}
	for _, name := range strings.Split(strings.Join(sets, "+"), "+") {
		if running[name] != nil {
			continue
		}
		r, err := start(list, name)
		if err != nil {
			return err
		}
		defer r.Close()
		running[name] = r
	}
	sets = append([]string{nothing}, sets...)
	times := map[string][]time.Duration{}
	for range rounds {
		for _, set := range sets {
			t, err := measure(set, running)
			if err != nil {
				return err
			}
			times[set] = append(times[set], t)
		}
		slices.Reverse(sets)
	}
	for _, set := range sets {
		t := times[set]
		slices.Sort(t)
		n := len(t)
		fmt.Printf("%-24s %v a switch (%v to %v)\n", set, t[n/2], t[n/4], t[n*3/4])
	}
	return nil
}

// start starts a tracer and switches it off.
func start(list []trace.Tracer, name string) (trace.Running, error) {
	i := slices.IndexFunc(list, func(t trace.Tracer) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no tracer %q", name)
	}
	r, err := list[i].Start()
	if err != nil {
		return nil, err
	}
	return r, r.Pause()
}

func measure(set string, running map[string]trace.Running) (time.Duration, error) {
	var errs []error
	for _, name := range strings.Split(set, "+") {
		if r := running[name]; r != nil {
			errs = append(errs, r.Resume())
			defer r.Pause()
		}
	}
	time.Sleep(calm)
	t, err := pingPong()
	return t, errors.Join(append(errs, err)...)
}

// pingPong returns how long a switch takes, with all that a pipe does.
func pingPong() (time.Duration, error) {
	to, back := make([]int, 2), make([]int, 2)
	if err := errors.Join(unix.Pipe(to), unix.Pipe(back)); err != nil {
		return 0, fmt.Errorf("make two pipes: %w", err)
	}
	defer func() {
		for _, fd := range []int{to[0], back[0], back[1]} {
			unix.Close(fd)
		}
	}()
	ended := make(chan error)
	go func() { ended <- pass(to[0], back[1]) }()
	began := time.Now()
	err := serve(to[1], back[0])
	took := time.Since(began)
	unix.Close(to[1]) // the other side reads its end
	return took / (2 * exchanges), errors.Join(err, <-ended)
}

// serve begins each exchange.
func serve(to, back int) error {
	if err := onOneCPU(); err != nil {
		return err
	}
	var ball [1]byte
	for range exchanges {
		if _, err := unix.Write(to, ball[:]); err != nil {
			return fmt.Errorf("write to a pipe: %w", err)
		}
		if _, err := unix.Read(back, ball[:]); err != nil {
			return fmt.Errorf("read from a pipe: %w", err)
		}
	}
	return nil
}

// pass gives back what it gets, until that ends.
func pass(from, to int) error {
	if err := onOneCPU(); err != nil {
		return err
	}
	var ball [1]byte
	for {
		n, err := unix.Read(from, ball[:])
		if n == 0 || err != nil {
			return err
		}
		if _, err := unix.Write(to, ball[:]); err != nil {
			return fmt.Errorf("write to a pipe: %w", err)
		}
	}
}

// onOneCPU keeps this goroutine's thread on CPU 1, for good: the thread ends with a
// goroutine that does not unlock it.
func onOneCPU() error {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(1)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("stay on CPU 1: %w", err)
	}
	return nil
}

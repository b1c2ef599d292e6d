package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// heed has the first signal end what is done. The next one ends the program at once,
// but where it may have changed the machine: a terminal that closes says so twice, and who
// asks again wants no change to be left. Then only the third ^C does.
func (w *world) heed(signals <-chan os.Signal, cancel func()) {
	interrupts := 0
	for n := 1; ; n++ {
		s := <-signals
		if s == os.Interrupt {
			interrupts++
		}
		switch {
		case n == 1:
			cancel()
		case !w.changing.Load():
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		case interrupts == 3:
			fmt.Fprintln(w.stderr, "plimsoll: ended by the third ^C; what stands is in the journal: plimsoll tune --status lists it, plimsoll undo --all takes it back (plimsoll lab down what a lab made)")
			os.Exit(exitInterrupted)
		case n == 2:
			fmt.Fprintln(w.stderr, "plimsoll: it is taking back what it changed; the third ^C ends it at once, with what still stands in the journal")
		}
	}
}

// mayChange is called before the machine is changed. From then on nothing but kill -9 and
// the third ^C ends the program before what it changed was taken back; also not
// that nobody reads what it says (SIGPIPE): that is an error of writing then.
func (w *world) mayChange() {
	w.changing.Store(true)
	// Ignoring it would be inherited by the commands that are started; this is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// Fleet measures what a verdict on each of many hosts takes, of plimsoll and of the server that is asked.
//
//	go run ./bench/fleet [-hosts 1000] [-window 1m] [-scrape 5s] [-o DIR] PLIMSOLL RUN...
//
// Each host replays one of the recorded runs, in turn, as a Prometheus would have scraped it: its main window over and over, counters
// going on, for the window and the five minutes before it. All of that becomes a block in DIR, which a real Prometheus is started
// on, and "PLIMSOLL diagnose --prometheus --all" asks that one. It prints how many series and readings there are, the time, and of both the
// CPU time and the peak memory. It ends with 1 where a host was not judged, or has not the answer of the others that replay its run.
// Arguments after -- go to the server, as limits do: -- --query.max-samples=5000000. It needs prometheus.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var f fleet
	flag.IntVar(&f.hosts, "hosts", 1000, "how many hosts there are")
	flag.DurationVar(&f.window, "window", time.Minute, "the window that is judged")
	flag.DurationVar(&f.scrape, "scrape", 5*time.Second, "the time between two scrapes")
	flag.StringVar(&f.dir, "o", "", "where the server's data lie, and stay (default: a directory that is removed)")
	write := flag.Int64("write", 0, "write the server's data, for a window that ends then, in Unix seconds (fleet's own child, whose memory is not to count as theirs)")
	flag.Parse()
	err := fmt.Errorf("want the plimsoll to measure, and one recorded run at least")
	if bad := f.check(); bad != nil {
		err = bad
	} else if flag.NArg() >= 2 {
		f.plimsoll = flag.Arg(0)
		f.runs, f.server = split(flag.Args()[1:])
		if f.at = time.Unix(*write, 0); *write > 0 {
			err = f.write()
		} else {
			err = f.measure()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// check checks the flags.
func (f *fleet) check() error {
	switch {
	case f.hosts < 1:
		return fmt.Errorf("-hosts %d: want at least 1", f.hosts)
	case f.window <= 0:
		return fmt.Errorf("-window %v: want more than none", f.window)
	case f.scrape < time.Millisecond:
		return fmt.Errorf("-scrape %v: want at least 1ms", f.scrape)
	}
	return nil
}

// split parts the runs from the server's arguments.
func split(args []string) (runs, server []string) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}

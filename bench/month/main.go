// Month shows whether a watch that stays keeps its bounds over a month, which it makes short.
//
//	go run ./bench/month [-days 30] [-interval 2m] [-processes 100000] [-containers 10000] [-destinations 50000] [-o DIR]
//
// The exporter of "plimsoll watch --listen --keep" runs in this process with all light tracers, on a network namespace of its own, by a
// clock that goes on by an interval as soon as a round is done. With the rounds come and go real processes of ever new names, real
// control groups with limits, and real connections to ever new addresses, so many in all. Each day it is scraped, over HTTP, and its series,
// memory, descriptors and disk are printed, with what was cut and lost. From time to time it is asked for a run, as by plimsoll snapshot, more often than there may
// be some. It ends with 1 where a bound was not kept. It needs root, ip, and control groups of version 1.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"plimsoll/internal/record/writer"
)

func main() {
	m := &month{}
	flag.IntVar(&m.days, "days", 30, "how many days the month has")
	flag.DurationVar(&m.interval, "interval", 2*time.Minute, "the time between two rounds")
	flag.IntVar(&m.all.processes, "processes", 100_000, "how many processes come and go in all")
	flag.IntVar(&m.all.containers, "containers", 10_000, "how many of them are each in control groups of its own")
	flag.IntVar(&m.all.destinations, "destinations", 50_000, "how many addresses are connected to in all")
	flag.StringVar(&m.dir, "o", "", "where the last minutes and the runs lie (default: a directory that is removed)")
	asChurn := flag.Bool("churn", false, "make what comes and goes (month's own child)")
	finish := flag.String("close", "", "close a run that was made (month's own child)")
	flag.Parse()
	err := error(nil)
	if *finish != "" {
		err = writer.Finish(*finish)
	} else if *asChurn {
		err = churnOn(os.Stdin, os.Stdout)
	} else {
		err = m.run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "month:", err)
		os.Exit(1)
	}
}

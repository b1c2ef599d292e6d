package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// peek is how often it is looked at whether the judge has worked, and pause is for how long it has not between two verdicts.
	peek  = 20 * time.Millisecond
	pause = 500 * time.Millisecond
)

// judged is what was seen of a run's judge: when it began to work, each time, and what CPU time it had taken before.
type judged struct {
	begun []time.Time
	cpu   []time.Duration
}

// judge watches the process that judges the run of that process, until ctx is done. Its verdicts are told by its CPU time: it takes none
// between them.
func (b *bench) judge(ctx context.Context, pid int) (j judged) {
	var last time.Duration
	var worked time.Time
	for ; ctx.Err() == nil; time.Sleep(peek) {
		id, ok := b.processes(pid)["judge"]
		if !ok {
			continue
		}
		for at := time.Now(); ctx.Err() == nil; at = time.Now() {
			now, err := cpuTimes(map[string]int{"judge": id})
			if err != nil {
				return j // it ended
			}
			if now["judge"]-last > time.Millisecond {
				if at.Sub(worked) > pause {
					j.begun, j.cpu = append(j.begun, at), append(j.cpu, last)
				}
				worked, last = at, now["judge"]
			}
			time.Sleep(peek)
		}
	}
	return j
}

// String is how often it judged, and what share of a core that took. What it did first, reading the rules before anybody asks, is told apart.
func (j judged) String() string {
	n := len(j.begun)
	if n < 4 {
		return fmt.Sprintf("judged %d times", max(n-1, 0))
	}
	var gaps []time.Duration
	for i, at := range j.begun[2:] {
		gaps = append(gaps, at.Sub(j.begun[i+1]))
	}
	slices.Sort(gaps)
	all := j.begun[n-1].Sub(j.begun[1])
	return fmt.Sprintf("judged %d times, %.0f s from the first to the last, every %.2f s (%.2f to %.2f), %.2f %% of a core; before the first %.2f s of CPU time", n-1, all.Seconds(),
		gaps[len(gaps)/2].Seconds(), gaps[0].Seconds(), gaps[len(gaps)-1].Seconds(), 100*(j.cpu[n-1]-j.cpu[1]).Seconds()/all.Seconds(), j.cpu[1].Seconds())
}

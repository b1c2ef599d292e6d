package program

import "time"

// kind is what time is added up by.
type kind struct {
	doing   string // running, queued, throttled, or why it is blocked
	towards string // whom or what for: an address, a file; "" where there is nobody, or it is not seen
	call    string // the system call, "" for none
	thread  string // the thread's name, its number cut off
}

// The ranks of what threads do at one moment: what has a lower one is what the program as a whole is about.
const (
	active    = iota // it computes, or wants to; or waits for something that somebody does for it
	longWait         // the same wait, for so long that it may be one for news that nobody expects
	maybeIdle        // sleep, lock, poll: a wait, or nothing to do
	forOwn           // for another part of the program, whose own time tells more
	ranks
)

// amount is what one thread did in the time since the look before.
type amount struct {
	kind   kind
	rank   int
	weight float64 // among those of its rank
	d      time.Duration
}

// share gives the time since the look before to what was done in it: first to what is of the lowest rank, as much as there
// was of it one after the other, and what then is left to the next one. So two processes that take turns, or a shell and
// what it waits for, make one course of time. add is told the part of each.
func share(list []amount, room time.Duration, add func(kind, time.Duration)) {
	for rank := 0; rank < ranks && room > 0; rank++ {
		var all time.Duration
		var weights float64
		for _, a := range list {
			if a.rank == rank {
				all += a.d
				weights += a.weight * a.d.Seconds()
			}
		}
		take := min(all, room)
		if take <= 0 || weights <= 0 {
			continue
		}
		for _, a := range list {
			if a.rank == rank {
				add(a.kind, time.Duration(float64(take)*a.weight*a.d.Seconds()/weights))
			}
		}
		room -= take
	}
}

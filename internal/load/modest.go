package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// What another process may say of a load is bounded: its names become series, and its numbers are added up.
const (
	maxNames  = 2048    // of outcomes and the like, in each place
	maxName   = 512     // bytes
	maxCount  = 1 << 50 // the sum of thousands is still a number
	maxSecond = 1e15
)

// modest says what in a record is more than any worker has to say.
func (r *Record) modest() error {
	names, count, seconds := []string{r.Target}, max(r.Connections.Connecting, r.Connections.Open, r.Connections.Idle, r.Connections.Closed, r.Connections.Failed, r.Connections.Untried, r.Connections.Stood), 0.0
	many := max(len(r.Threads), len(r.Causes), len(r.Targets), len(r.Stages))
	outcomes := func(list map[string]int64) {
		many = max(many, len(list))
		names = slices.AppendSeq(names, maps.Keys(list))
		for _, n := range list {
			count = max(count, n)
		}
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		outcomes(p.Outcomes)
		outcomes(p.Statuses)
		count = max(count, p.Requests, p.Attempts, p.Received, p.Sent, p.ConnectCalls.Count, p.ReplyUnread.Count)
		seconds = max(seconds, p.ConnectCalls.Seconds, p.ReplyUnread.Seconds)
		for _, by := range []map[string]float64{p.Waits, p.Parts} {
			many = max(many, len(by))
			for name, s := range by {
				names, seconds = append(names, name), max(seconds, s)
			}
		}
	}
	for _, t := range r.Threads {
		names, seconds = append(names, t.Thread), max(seconds, t.User, t.System)
	}
	for outcome := range r.Causes {
		names = append(names, outcome)
	}
	for _, t := range r.Targets {
		outcomes(t.Outcomes)
		names = append(names, t.Name)
	}
	for _, t := range r.Stages {
		outcomes(t.Outcomes)
	}
	if r.TLS != nil {
		many, count, seconds = max(many, len(r.TLS.Handshakes)), max(count, r.TLS.Crypto.Count), max(seconds, r.TLS.Crypto.Seconds)
		for _, h := range r.TLS.Handshakes {
			names, count = append(names, h.Phase, h.Version, h.Cipher), max(count, h.Count)
		}
	}
	if r.Totals != nil {
		seconds = max(seconds, r.Totals.Seconds, r.Totals.CPUSeconds, r.Totals.StoodStill)
	}
	switch {
	case many > maxNames:
		return fmt.Errorf("%d names in one place: want at most %d", many, maxNames)
	case slices.ContainsFunc(names, func(s string) bool { return len(s) > maxName }):
		return fmt.Errorf("a name has more than %d bytes", maxName)
	case count > maxCount || seconds > maxSecond:
		return errors.New("a count or a time is more than any load can have")
	}
	return nil
}

// Within says whether all times of a record are between two, in Unix milliseconds.
func (r *Record) Within(from, to int64) bool {
	in := func(t int64) bool { return t >= from && t <= to }
	return in(r.Time) && !slices.ContainsFunc(r.Phases, func(p PhaseRecord) bool { return !in(p.Start) || p.End != 0 && !in(p.End) })
}

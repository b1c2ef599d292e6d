package compare

import (
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// waits adds up how long requests took for their users, in microseconds.
type waits struct{ count, sum, squares float64 }

func (w *waits) add(h *hdr.PackedHistogram) {
	for bar := range record.Bars(h) {
		w.times(float64(bar.Count), float64(bar.From+bar.To)/2)
	}
}

func (w *waits) times(n, wait float64) {
	w.count += n
	w.sum += n * wait
	w.squares += n * wait * wait
}

// felt is how long the wait is in which a user is found. With an open load each
// request is another user, and that is the mean. In a closed one a user who waits
// makes no other request: counted by requests, the few who got in stand for all. So
// each wait counts for as long as it lasted (the inspection paradox, Feller 1971).
func (w waits) felt(open bool) float64 {
	switch {
	case w.count == 0 || w.sum == 0:
		return 0
	case open:
		return w.sum / w.count
	}
	return w.squares / w.sum
}

// waited reads what users waited in the hold window: of the whole run, failed
// requests included, and second by second, of replies alone.
func (one *run) waited(r *record.Run, hold model.Window) error {
	open := one.meta.Plan.Load.Rate > 0
	var all waits
	for i, err := range r.Intervals() {
		if err != nil {
			return err
		}
		if i.Tag != "response" || i.Start < hold.Start || i.Start >= hold.End {
			continue
		}
		var second waits
		second.add(i.Histogram)
		all.add(i.Histogram)
		// What ends after the window is no second of it: what was left in flight, the slowest.
		if felt := second.felt(open); felt > 0 && i.End < hold.End+500 {
			one.feltIn = append(one.feltIn, felt)
		}
	}
	if failed := float64(failures(one.load.Outcomes)); failed > 0 {
		micros, err := failedWait(r, hold)
		if err != nil || micros == 0 { // not recorded: then it is not known what users waited
			return err
		}
		all.times(failed, micros/failed)
	}
	one.felt = all.felt(open)
	return nil
}

// failures are what ended without a reply. An attempt to connect that failed is no
// request in a closed loop, and yet somebody waited for it.
func failures(outcomes map[string]int64) (n int64) {
	for outcome, k := range outcomes {
		if !model.IsReply(outcome) {
			n += k
		}
	}
	return n
}

// failedWait is how long the users of requests without a reply waited, in
// microseconds: the last values of counters that begin with the phase. The last of
// them fail after it. 0 where that was not recorded.
func failedWait(r *record.Run, hold model.Window) (float64, error) {
	micros := 0.0
	for s, err := range r.Series(hold.Start, math.MaxInt64, record.Match("plimsoll_load_wait_seconds_total", "phase", model.Hold)...) {
		if err != nil {
			return 0, err
		}
		if !model.IsReply(s.Labels.Get("outcome")) {
			micros += s.Last() * 1e6
		}
	}
	return micros, nil
}

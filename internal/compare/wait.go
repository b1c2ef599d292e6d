package compare

import (
	"context"
	"fmt"
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// waits adds up how long requests took for their users, in microseconds.
type waits struct{ count, sum, squares float64 }

func (w *waits) add(h *hdr.Histogram) {
	for _, bar := range h.Distribution() {
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
		if felt := second.felt(open); felt > 0 {
			one.feltIn = append(one.feltIn, felt)
		}
	}
	if failed := float64(one.load.Requests - one.load.Latency.Count); failed > 0 {
		micros, err := failedWait(r, hold)
		if err != nil || micros == 0 { // not recorded: then it is not known what users waited
			return err
		}
		all.times(failed, micros/failed)
	}
	one.felt = all.felt(open)
	return nil
}

// failedWait is how long the users of requests without a reply waited, in
// microseconds: the last values of counters that begin with the phase. The last of
// them fail after it. 0 where that was not recorded.
func failedWait(r *record.Run, hold model.Window) (float64, error) {
	q, err := r.Queryable().Querier(hold.Start, math.MaxInt64)
	if err != nil {
		return 0, fmt.Errorf("%s: read how long users waited: %w", r.Dir(), err)
	}
	defer q.Close()
	set := q.Select(context.Background(), false, nil,
		labels.MustNewMatcher(labels.MatchEqual, "__name__", "plimsoll_load_wait_seconds_total"),
		labels.MustNewMatcher(labels.MatchEqual, "phase", model.Hold),
		labels.MustNewMatcher(labels.MatchRegexp, "outcome", ".*:.*"))
	micros := 0.0
	for set.Next() {
		last := 0.0
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			_, last = it.At()
		}
		if it.Err() != nil {
			return 0, fmt.Errorf("%s: read how long users waited: %w", r.Dir(), it.Err())
		}
		micros += last * 1e6
	}
	if err := set.Err(); err != nil {
		return 0, fmt.Errorf("%s: read how long users waited: %w", r.Dir(), err)
	}
	return micros, nil
}

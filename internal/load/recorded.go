package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// leftNoTarget is why something is left out of which no request can be made.
const leftNoTarget = "no request that can be sent"

// nameOfOthers is that of all that is too rare for a name of its own.
const nameOfOthers = "(others)"

// TargetFile is what a file of targets says.
type TargetFile struct {
	Targets []model.Target
	// Recorded is nil where somebody wrote the targets. Its speed is 0: see Replay.
	Recorded *model.Recording
	// Second is the grain of the recording's clock in microseconds, 0 for a fine one.
	Second int64
	// Notes are for the user: what was left out, and why.
	Notes []string
}

// recording is what was read of one.
type recording struct {
	from     string
	requests []recordedRequest
	left     map[string]int // what was left out: why, and how many
	notes    []string       // what else there is to say
	whole    bool           // its clock has seconds, nothing finer
}

// recordedRequest is a request that somebody sent.
type recordedRequest struct {
	at     int64 // Unix microseconds
	target model.Target
}

// leave notes that something is left out.
func (r *recording) leave(why string) { r.left[why]++ }

// said is what a user should know of how the recording was read.
func (r *recording) said() []string {
	list := slices.Clone(r.notes)
	for _, why := range slices.Sorted(maps.Keys(r.left)) {
		list = append(list, fmt.Sprintf("%d left out: %s", r.left[why], why))
	}
	return list
}

// file makes targets of a recording, in the order in which they were first asked for, and says when each was.
func (r *recording) file(plan model.LoadPlan, u *url.URL) (TargetFile, error) {
	slices.SortStableFunc(r.requests, func(a, b recordedRequest) int { return cmp.Compare(a.at, b.at) })
	f := TargetFile{Recorded: &model.Recording{From: r.from}}
	index, size := map[string]int32{}, 0
	kept := r.requests[:0]
	for _, q := range r.requests {
		t := q.target
		t.Headers, t.Weight, t.Name = others(t.Headers, plan.Headers), 1, r.from // what the user says counts
		key := strings.Join([]string{t.Method, t.Path, strings.Join(t.Headers, "\n"), string(t.Body)}, "\x00")
		n, known := index[key]
		if !known {
			n = int32(len(f.Targets))
			if _, err := targetRequest(plan, t, u); err != nil {
				n = -1
			} else if size += len(key); n == maxDifferent || size > maxRecordedBytes {
				return TargetFile{}, fmt.Errorf("more than %d different requests, or %d bytes of them: take a part of the %s", maxDifferent, maxRecordedBytes, r.from)
			} else {
				t.Weight = 0
				f.Targets = append(f.Targets, t)
			}
			index[key] = n
		}
		if n < 0 {
			r.leave(leftNoTarget)
			continue
		}
		f.Targets[n].Weight++
		f.Recorded.Of = append(f.Recorded.Of, n)
		kept = append(kept, recordedRequest{at: q.at})
	}
	r.requests = kept
	if f.Notes = r.said(); len(kept) == 0 {
		return TargetFile{}, fmt.Errorf("no request in this %s that can be sent (%s)", r.from, strings.Join(f.Notes, "; "))
	}
	f.Recorded.Requests, f.Recorded.AtMicros = len(kept), r.times()
	if r.whole {
		f.Second = 1_000_000
	}
	nameByPath(f.Targets)
	return f, nil
}

// times are the moments of the requests since the first of them, in microseconds. Where only the second of each is known, those of a
// second are spread over it.
func (r *recording) times() []int64 {
	list := make([]int64, len(r.requests))
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && r.requests[i+n].at == r.requests[i].at {
			n++
		}
		for k := range n {
			if list[i+k] = r.requests[i].at - r.requests[0].at; r.whole {
				list[i+k] += int64(k) * 1_000_000 / int64(n)
			}
		}
		i += n
	}
	return list
}

// nameByPath names targets by method and path; the rarest share a name, as there is room for so many.
func nameByPath(list []model.Target) {
	weights := map[string]float64{}
	for i := range list {
		t := &list[i]
		path, _, _ := strings.Cut(t.Path, "?")
		t.Name = shortName(t.Method + " " + path)
		weights[t.Name] += t.Weight
	}
	if len(weights) <= maxTargetNames {
		return
	}
	names := slices.SortedFunc(maps.Keys(weights), func(a, b string) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b)) })
	kept := map[string]bool{}
	for _, name := range names[:maxTargetNames-1] {
		kept[name] = true
	}
	for i := range list {
		if !kept[list[i].Name] {
			list[i].Name = nameOfOthers
		}
	}
}

// Replay has a plan send what a file recorded at its own pace, so many times as fast.
func (f TargetFile) Replay(plan model.LoadPlan, speed float64) (model.LoadPlan, error) {
	if f.Recorded == nil {
		return plan, errors.New("these targets have no times: a pace is that of an access log or a HAR export")
	}
	if !(speed >= leastSpeed && speed <= maxSpeed) { // written so that NaN is refused
		return plan, fmt.Errorf("want a speed of %g to %g", leastSpeed, maxSpeed)
	}
	if last := float64(f.Recorded.AtMicros[f.Recorded.Requests-1]); last/speed/1000 >= maxMillis {
		return plan, fmt.Errorf("that would take %.3g days: want at most a year; take a part of the recording, or a higher speed", last/speed/1e6/86400)
	}
	r := *f.Recorded
	r.Speed, r.AtMicros = speed, slices.Clone(r.AtMicros)
	for i, at := range r.AtMicros {
		r.AtMicros[i] = int64(float64(at) / speed)
	}
	last := r.AtMicros[len(r.AtMicros)-1]
	if f.Second > 0 { // the last second is a whole one
		whole := (f.Recorded.AtMicros[len(r.AtMicros)-1]/f.Second + 1) * f.Second
		last = max(last, int64(float64(whole)/speed)-1)
	}
	length := last/1000 + 1
	if plan.DurationMS == 0 || plan.DurationMS > length {
		plan.DurationMS = length
	}
	r.Requests, _ = slices.BinarySearch(r.AtMicros, plan.DurationMS*1000)
	plan.Rate = float64(r.Requests) / (float64(plan.DurationMS) / 1e3)
	plan.Recorded = &r
	return plan, nil
}

// sendable says whether a text may be a header's value.
func sendable(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

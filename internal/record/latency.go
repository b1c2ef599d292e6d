package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"strconv"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// maxInterval is the longest line of latency.hlog that is read; a full
// histogram of 1 µs to 60 s with three digits takes some 30 KiB.
const maxInterval = 4 << 20

// maxTracked is the most that a histogram may be able to hold, in microseconds:
// a day. Room is made for all that it could hold.
const maxTracked = 24 * 3600 * 1_000_000

// maxHeld is how many bytes of histograms a run holds when its latencies are gone through, so
// that they need not be unpacked again: those of some hours. Of a longer run they are read anew.
const maxHeld = 24 << 20

// Histogram adds up the intervals of that tag that begin in [from, to), in
// Unix milliseconds; microseconds are its unit. nil means there are none.
func (r *Run) Histogram(tag string, from, to int64) (*hdr.PackedHistogram, error) {
	var sum *hdr.PackedHistogram
	for i, err := range r.Intervals() {
		if err != nil {
			return nil, err
		}
		if i.Tag != tag || i.Start < from || i.Start >= to {
			continue
		}
		if sum == nil {
			sum = i.Histogram.Clone()
			continue
		}
		sum.Merge(i.Histogram)
	}
	return sum, nil
}

// Intervals yields the lines of latency.hlog, in their order. An error ends it. A
// run without that file had no load of ours.
func (r *Run) Intervals() iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		if list := r.intervals.Load(); list != nil {
			for _, i := range *list {
				if !yield(i, nil) {
					return
				}
			}
			return
		}
		var list []Interval
		held := 0
		for i, err := range r.readIntervals() {
			if held <= maxHeld && err == nil {
				list = append(list, i)
				held += i.Histogram.GetMemorySize()
			}
			if !yield(i, err) || err != nil {
				return
			}
		}
		if held <= maxHeld {
			r.intervals.Store(&list)
		}
	}
}

// readIntervals is Intervals out of the file.
func (r *Run) readIntervals() iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		if r.folder == nil {
			return
		}
		f, _, err := r.folder.open(LatencyFile)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Interval{}, fmt.Errorf("open the run's latencies: %w", err))
			return
		}
		defer f.Close()
		n := 0
		for i, err := range parseIntervals(f) {
			if n++; err == nil {
				err = r.checkInterval(i, n)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", r.folder.name(LatencyFile), err)
			}
			if !yield(i, err) || err != nil {
				return
			}
		}
	}
}

// checkInterval refuses lines at a time when nothing was sampled, and more of them than
// the run has had time for: each costs what it takes to unpack a histogram.
func (r *Run) checkInterval(i Interval, n int) error {
	if !r.sampled {
		return nil
	}
	if i.Start < r.first-slack || i.End > r.last+slack {
		return fmt.Errorf("line %d is of %d to %d ms; the run's samples are from %d to %d", n, i.Start, i.End, r.first, r.last)
	}
	// two of each interval and phase, and two phases at a time where they meet
	every := min(max(r.meta.Plan.Interval, 1), 1000)
	if most := 4*((r.last-r.first+2*slack)/every) + 64; int64(n) > most {
		return fmt.Errorf("it has more than %d lines, which a run of %d ms cannot have", most, r.last-r.first)
	}
	return nil
}

// parseIntervals reads an HdrHistogram interval log with absolute times. The
// library's own reader takes a torn last line for an error.
func parseIntervals(in io.Reader) iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		lines := bufio.NewReaderSize(in, 64<<10)
		for n := 1; ; n++ {
			line, err := readLine(lines, maxInterval)
			if errors.Is(err, io.EOF) {
				return // what has no newline was being written
			}
			var i Interval
			if err == nil {
				if line[0] == '#' || line[0] == '"' {
					continue
				}
				i, err = parseInterval(strings.TrimSuffix(string(line), "\n"))
			}
			if err != nil {
				yield(Interval{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

// parseInterval reads "Tag=T,START,LENGTH,MAX,HISTOGRAM", times in seconds.
func parseInterval(line string) (Interval, error) {
	fields := strings.Split(line, ",")
	var i Interval
	if tag, ok := strings.CutPrefix(fields[0], "Tag="); ok {
		i.Tag, fields = tag, fields[1:]
	}
	if len(fields) != 4 {
		return Interval{}, errors.New("want tag, start, length, maximum and histogram")
	}
	start, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(start >= 0 && start < 1e12) {
		return Interval{}, fmt.Errorf("start %q: want seconds", fields[0])
	}
	length, err := strconv.ParseFloat(fields[1], 64)
	if err != nil || !(length >= 0 && length < 1e9) {
		return Interval{}, fmt.Errorf("length %q: want seconds", fields[1])
	}
	i.Start = int64(start*1000 + 0.5)
	i.End = int64((start+length)*1000 + 0.5)
	if i.Histogram, err = hdr.DecodePacked([]byte(fields[3])); err != nil {
		return Interval{}, fmt.Errorf("histogram: %w", err)
	}
	if i.Histogram.TotalCount() == math.MaxInt64 {
		return Interval{}, errors.New("histogram: it counts more than can be counted")
	}
	if i.Histogram.HighestTrackableValue() > maxTracked || i.Histogram.SignificantFigures() > 3 {
		return Interval{}, fmt.Errorf("histogram: it reaches to %d µs in %d digits, want at most %d in 3", i.Histogram.HighestTrackableValue(), i.Histogram.SignificantFigures(), int64(maxTracked))
	}
	return i, nil
}

package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// maxInterval is the longest line of latency.hlog that is read; a full
// histogram of 1 µs to 60 s with three digits takes some 30 KiB.
const maxInterval = 4 << 20

// Interval is one line of latency.hlog.
type Interval struct {
	Tag        string // "response" or "service"
	Start, End int64  // Unix milliseconds
	Histogram  *hdr.Histogram
}

// Histogram adds up the intervals of that tag that begin in [from, to), in
// Unix milliseconds; microseconds are its unit. nil means there are none.
func (r *Run) Histogram(tag string, from, to int64) (*hdr.Histogram, error) {
	intervals, err := r.Intervals()
	if err != nil {
		return nil, err
	}
	var sum *hdr.Histogram
	for _, i := range intervals {
		if i.Tag != tag || i.Start < from || i.Start >= to {
			continue
		}
		if sum == nil {
			sum = i.Histogram
			continue
		}
		sum.Merge(i.Histogram)
	}
	return sum, nil
}

// Intervals reads latency.hlog. A run without it had no load of ours.
func (r *Run) Intervals() ([]Interval, error) {
	path := filepath.Join(r.dir, LatencyFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the run's latencies: %w", err)
	}
	defer f.Close()
	list, err := parseIntervals(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// parseIntervals reads an HdrHistogram interval log with absolute times. The
// library's own reader takes a torn last line for an error.
func parseIntervals(in io.Reader) ([]Interval, error) {
	lines := bufio.NewReader(in)
	var list []Interval
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return list, nil // what has no newline was being written
		}
		if err != nil {
			return nil, err
		}
		if len(line) > maxInterval {
			return nil, fmt.Errorf("line %d: longer than %d bytes", n, maxInterval)
		}
		if line[0] == '#' || line[0] == '"' {
			continue
		}
		i, err := parseInterval(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list = append(list, i)
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
	if i.Histogram, err = hdr.Decode([]byte(fields[3])); err != nil {
		return Interval{}, fmt.Errorf("histogram: %w", err)
	}
	return i, nil
}

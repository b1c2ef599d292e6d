package writer

import (
	"fmt"
	"io"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/record"
)

// Interval appends a histogram of microseconds to the latency log. Start and
// end are Unix milliseconds; encoded is an HdrHistogram in its compressed V2
// encoding, in base64.
func (w *Writer) Interval(start, end int64, tag, encoded string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return
	}
	w.fail(w.interval(start, end, tag, encoded))
}

func (w *Writer) interval(start, end int64, tag, encoded string) error {
	if tag == "" || strings.ContainsAny(tag, ", \r\n") {
		return fmt.Errorf("latency tag %q: want a word", tag)
	}
	h, err := hdr.DecodePacked([]byte(encoded))
	if err != nil {
		return fmt.Errorf("latency interval %s: want an HdrHistogram: %w", tag, err)
	}
	if w.latency == nil {
		if err := w.openLatency(); err != nil {
			return err
		}
	}
	w.hear(func(b *Batch) {
		b.Intervals = append(b.Intervals, record.Interval{Tag: tag, Start: start, End: end, Histogram: h})
	})
	return latencyLine(w.latency, start, end, tag, encoded, h)
}

// LatencyLine appends an interval to a latency log that is in no run directory. See Interval.
func LatencyLine(out io.Writer, start, end int64, tag, encoded string) error {
	h, err := hdr.DecodePacked([]byte(encoded))
	if err != nil {
		return fmt.Errorf("latency interval %s: want an HdrHistogram: %w", tag, err)
	}
	return latencyLine(out, start, end, tag, encoded, h)
}

func latencyLine(out io.Writer, start, end int64, tag, encoded string, h *hdr.PackedHistogram) error {
	// The log's own unit for the maximum is the millisecond.
	_, err := fmt.Fprintf(out, "Tag=%s,%.3f,%.3f,%.3f,%s\n",
		tag, float64(start)/1000, float64(end-start)/1000, float64(h.Max())/1000, encoded)
	return err
}

// openLatency begins the log. A base time of zero says that times are absolute.
func (w *Writer) openLatency() error {
	f, err := w.open.create(record.LatencyFile)
	if err != nil {
		return err
	}
	w.latency = f
	return LatencyHead(f, w.run.Started)
}

// LatencyHead begins a latency log of a load that began then (Unix milliseconds).
func LatencyHead(out io.Writer, started int64) error {
	_, err := fmt.Fprintf(out, "#[Histogram log format version 1.3]\n#[Values are microseconds; Interval_Max is milliseconds]\n"+
		"#[BaseTime: 0.000 (seconds since epoch)]\n#[StartTime: %.3f (seconds since epoch), %s]\n"+
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		float64(started)/1000, time.UnixMilli(started).UTC().Format(time.RFC3339))
	return err
}

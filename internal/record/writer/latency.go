package writer

import (
	"fmt"
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
	h, err := hdr.Decode([]byte(encoded))
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
	// The log's own unit for the maximum is the millisecond.
	_, err = fmt.Fprintf(w.latency, "Tag=%s,%.3f,%.3f,%.3f,%s\n",
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
	began := time.UnixMilli(w.run.Started).UTC()
	_, err = fmt.Fprintf(f, "#[Histogram log format version 1.3]\n#[Values are microseconds; Interval_Max is milliseconds]\n"+
		"#[BaseTime: 0.000 (seconds since epoch)]\n#[StartTime: %.3f (seconds since epoch), %s]\n"+
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		float64(w.run.Started)/1000, began.Format(time.RFC3339))
	return err
}

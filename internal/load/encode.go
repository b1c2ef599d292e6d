package load

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// encoder writes histograms in the form of Interval.Histogram, byte for byte as hdr's Encode. That makes a compressor for each, of
// more than a megabyte, and our process collects no garbage while it works.
type encoder struct {
	plain  []byte
	packed bytes.Buffer
	zip    *zlib.Writer
}

func (e *encoder) encode(h *hdr.Histogram) (string, error) {
	s := h.Export()
	return e.encodePlaces(s.SignificantFigures, s.LowestTrackableValue, s.HighestTrackableValue, slices.All(s.Counts))
}

// encodeCounts encodes what a histogram of newHistogram would have counted, without a copy of it.
func (e *encoder) encodeCounts(c *counts) (string, error) {
	return e.encodePlaces(digits, 1, maxMicros, c.all())
}

func (e *encoder) encodePlaces(figures, lowest, highest int64, counts iter.Seq2[int, int64]) (string, error) {
	const ofThisVersion, headLength = 0x10, 8
	b := binary.BigEndian.AppendUint32(e.plain[:0], uint32(hdr.V2EncodingCookieBase|ofThisVersion))
	b = binary.BigEndian.AppendUint32(b, 0) // how long the counts are, known below
	b = binary.BigEndian.AppendUint32(b, 0) // an offset that nobody uses
	b = binary.BigEndian.AppendUint32(b, uint32(figures))
	b = binary.BigEndian.AppendUint64(b, uint64(lowest))
	b = binary.BigEndian.AppendUint64(b, uint64(highest))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(1)) // a value is what it says
	head := len(b)
	e.plain = appendCounts(b, counts)
	binary.BigEndian.PutUint32(e.plain[4:], uint32(len(e.plain)-head))

	e.packed.Reset()
	e.packed.Write(make([]byte, headLength))
	if e.zip == nil {
		e.zip, _ = zlib.NewWriterLevel(&e.packed, zlib.BestCompression) // which is a level that there is
	} else {
		e.zip.Reset(&e.packed)
	}
	if _, err := e.zip.Write(e.plain); err != nil {
		return "", fmt.Errorf("encode a latency histogram: %w", err)
	}
	if err := e.zip.Close(); err != nil {
		return "", fmt.Errorf("encode a latency histogram: %w", err)
	}
	all := e.packed.Bytes()
	binary.BigEndian.PutUint32(all, uint32(hdr.V2CompressedEncodingCookieBase|ofThisVersion))
	binary.BigEndian.PutUint32(all[4:], uint32(len(all)-headLength))
	return base64.StdEncoding.EncodeToString(all), nil
}

// appendCounts appends the counts of places that come in order; so many that are 0 are one negative number, one by itself is 0.
func appendCounts(b []byte, counts iter.Seq2[int, int64]) []byte {
	next := 0
	for place, n := range counts {
		if n == 0 {
			continue
		}
		if zeros := place - next; zeros == 1 {
			b = append(b, 0)
		} else if zeros > 1 {
			b = binary.AppendVarint(b, -int64(zeros))
		}
		b = binary.AppendVarint(b, n)
		next = place + 1
	}
	if next == 0 { // a histogram has one place at least
		b = append(b, 0)
	}
	return b
}

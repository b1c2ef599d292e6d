package load

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

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
	const ofThisVersion, headLength = 0x10, 8
	s := h.Export()
	b := binary.BigEndian.AppendUint32(e.plain[:0], uint32(hdr.V2EncodingCookieBase|ofThisVersion))
	b = binary.BigEndian.AppendUint32(b, 0) // how long the counts are, known below
	b = binary.BigEndian.AppendUint32(b, 0) // an offset that nobody uses
	b = binary.BigEndian.AppendUint32(b, uint32(s.SignificantFigures))
	b = binary.BigEndian.AppendUint64(b, uint64(s.LowestTrackableValue))
	b = binary.BigEndian.AppendUint64(b, uint64(s.HighestTrackableValue))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(1)) // a value is what it says
	head := len(b)
	e.plain = appendCounts(b, s.Counts)
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

// appendCounts appends counts, those behind the last that is more than 0 left out; so many that are 0 are one negative number.
func appendCounts(b []byte, counts []int64) []byte {
	last := len(counts) - 1
	for last > 0 && counts[last] == 0 {
		last--
	}
	for i := 0; i <= last; i++ {
		if counts[i] != 0 {
			b = binary.AppendVarint(b, counts[i])
			continue
		}
		zeros := int64(1)
		for ; i < last && counts[i+1] == 0; i++ {
			zeros++
		}
		if zeros == 1 {
			zeros = 0
		}
		b = binary.AppendVarint(b, -zeros)
	}
	return b
}

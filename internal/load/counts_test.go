package load

import (
	"math/rand/v2"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// What a thread counts is told like the same durations in a histogram, of the ends of each row, too.
func TestCountsAreAHistogram(t *testing.T) {
	values := []int64{0, 1, maxMicros - 1, maxMicros}
	for bit := range 26 {
		values = append(values, 1<<bit-1, 1<<bit, 1<<bit+1)
	}
	for range 10_000 {
		values = append(values, rand.Int64N(1<<(1+rand.IntN(25))))
	}
	var c counts
	var e encoder
	for round := range 2 { // forgotten, it is as new
		want, got := newHistogram(), newHistogram()
		for _, us := range values[round:] {
			c.add(us)
			if err := want.RecordValue(us); err != nil {
				t.Fatal(err)
			}
		}
		text, err := e.encodeCounts(&c)
		if whole, _ := want.Encode(hdr.V2CompressedEncodingCookieBase); err != nil || text != string(whole) {
			t.Errorf("round %d: %v, encoded\n%s\nwant\n%s", round, err, text, whole)
		}
		if c.addTo(got); !got.Equals(want) || got.TotalCount() != int64(len(values)-round) {
			t.Errorf("round %d: %v, want %v", round, quantiles(got), quantiles(want))
		}
		if c.clear(); !c.empty() {
			t.Error("something is left")
		}
	}
}

package load

import (
	"math/rand/v2"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// What an encoder writes, used again and again, is what the library would.
func TestEncoderWritesWhatTheLibraryDoes(t *testing.T) {
	var e encoder
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		h := newHistogram()
		for range n * n {
			_ = h.RecordValues(1+random.Int64N(int64(1)<<(n%26)), 1+random.Int64N(1000))
		}
		want, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.encode(h); err != nil || got != string(want) {
			t.Fatalf("%d values: %v\ngot  %s\nwant %s", n*n, err, got, want)
		}
	}
}

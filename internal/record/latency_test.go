package record

import (
	"math/rand/v2"
	"slices"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// What is kept of a histogram is the same as in the library's own form, which has a place for each wait.
func TestBarsAreThoseOfTheLibrary(t *testing.T) {
	for _, form := range []struct {
		low, high int64
		digits    int
	}{{1, 60_000_000, 3}, {1, 3_600_000_000, 2}, {1, 1000, 1}, {1000, 60_000_000, 3}, {7, 60_000_000, 2}} {
		dense, packed := hdr.New(form.low, form.high, form.digits), hdr.NewPacked(form.low, form.high, form.digits)
		random := rand.New(rand.NewPCG(1, uint64(form.low)))
		for range 1000 {
			v := random.Int64N(form.high) >> random.IntN(20)
			if err := dense.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		packed.MergeFrom(dense)
		var want []Bar
		for _, b := range dense.Distribution() {
			if b.Count > 0 {
				want = append(want, Bar{b.From, b.To, b.Count})
			}
		}
		if got := slices.Collect(Bars(packed)); !slices.Equal(got, want) {
			t.Errorf("%+v: bars\n%v\nwant\n%v", form, got, want)
		}
		for _, q := range []float64{0, 50, 90, 99, 100} {
			if got, want := packed.ValueAtPercentile(q), dense.ValueAtQuantile(q); got != want {
				t.Errorf("%+v: p%v %d, want %d", form, q, got, want)
			}
		}
		if packed.Mean() != dense.Mean() || packed.Max() != dense.Max() {
			t.Errorf("%+v: mean %v, largest %v, want %v and %v", form, packed.Mean(), packed.Max(), dense.Mean(), dense.Max())
		}
	}
}

package workers

import (
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// farClock is another machine's: off is by how much it is ahead of ours at a moment of its own, from which on it runs faster by drift.
type farClock struct {
	at    time.Time
	off   time.Duration
	drift float64
}

func (c farClock) ahead(now time.Time) time.Duration {
	return c.off + time.Duration(c.drift*float64(now.Sub(c.at)))
}

// answer says what time it is there, on ways there and back that take what they take.
func (c farClock) answer(in io.Reader, out io.Writer, there, back func() time.Duration) {
	said := newLines(out)
	defer said.close()
	_ = hear(in, func(o order) error { // it ends with the pipe
		time.Sleep(there())
		now := time.Now()
		told := clockWord{ID: o.Clock, Heard: now.UnixNano() + int64(c.ahead(now)), Said: now.UnixNano() + int64(c.ahead(now))}
		time.Sleep(back())
		return said.say(word{Clock: &told})
	})
}

// The difference of a worker's clock is known to within the error that is told, in 100 of 100: it may be years, it may grow by
// what quartzes drift, and the ways may be short or take half a second, and all of it in one direction.
func TestClocksAreAsTheyAreSaidToBe(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 100 {
		// The whole way of some is one way, and all but the first answer of some are slower: nothing but the error that is told is left then.
		slow, lopsided := time.Duration(math.Pow(10, random.Float64()*4)*1e5), random.IntN(3)
		takes := func(of int) func() time.Duration {
			first := true
			return func() time.Duration {
				if lopsided == of {
					return 0
				}
				d := slow + time.Duration(random.ExpFloat64()*float64(slow)/20)
				if first {
					first, d = false, slow
				}
				return min(d, time.Second/4)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			far := farClock{time.Now(), time.Duration(random.Int64N(40*365*24)-20*365*24) * time.Hour, 90e-6 * (2*random.Float64() - 1)}
			in, toIn := io.Pipe()
			out, toOut := io.Pipe()
			var ended sync.WaitGroup
			ended.Go(func() { far.answer(in, toOut, takes(1), takes(2)) })
			w := newWorker(Place{Name: "g1"}, way{out, toIn, func() { _ = toOut.CloseWithError(io.EOF) }})
			c, err := w.measure(t.Context())
			truth := float64(far.ahead(time.Now())) / 1e6
			w.out.close()
			_ = w.pipe.Close()
			for range w.heard {
			}
			ended.Wait()
			if err != nil {
				t.Fatal(err)
			}
			const rounding = 1e-3 // of years in milliseconds
			if wrong := math.Abs(c.OffsetMS - truth); wrong > c.UncertaintyMS+rounding {
				t.Errorf("%d: %.3f ms was measured as %.3f ms: %.3f ms wrong, and the error is said to be %.3f ms", i, truth, c.OffsetMS, wrong, c.UncertaintyMS)
			}
		})
	}
}

package pipe

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// slow is a way on which everything takes so long, there and back not alike, and now and then much longer.
type slow struct {
	io.Reader
	io.Writer
	ends         [2]io.Closer
	there, back  time.Duration
	random       *rand.Rand
	randomOfBack *rand.Rand
}

func delay(d time.Duration, r *rand.Rand) {
	if r.IntN(4) == 0 {
		d += 5 * time.Millisecond
	}
	time.Sleep(d)
}

func (s *slow) Write(b []byte) (int, error) {
	delay(s.there, s.random)
	return s.Writer.Write(b)
}

func (s *slow) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	delay(s.back, s.randomOfBack)
	return n, err
}

func (s *slow) Close() error { return errors.Join(s.ends[0].Close(), s.ends[1].Close()) }

// The offset of a clock is within the error that is told with it, in 100 of 100: clocks up to a day off, ways that are slower in
// one direction, and delays that come and go. The error is never less than what the ways alone leave open.
func TestClockWithinItsError(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 100 {
		off := time.Duration(random.Int64N(int64(48*time.Hour))) - 24*time.Hour
		w := &slow{there: time.Duration(random.IntN(3_000_000)), back: time.Duration(random.IntN(3_000_000)),
			random: rand.New(rand.NewPCG(uint64(i), 1)), randomOfBack: rand.New(rand.NewPCG(uint64(i), 2))}
		stdin, toStdin := io.Pipe()
		fromStdout, stdout := io.Pipe()
		w.Reader, w.Writer, w.ends = fromStdout, toStdin, [2]io.Closer{toStdin, fromStdout}
		s := &server{version: "test", now: func() time.Time { return time.Now().Add(off) }, out: newOutbox(stdout, 1<<20), todo: make(chan heard, manyCommands)}
		ended := make(chan error, 1)
		go func() { ended <- s.serve(stdin) }()
		r, err := Dial(w, "test", time.Now)
		check(t, err)
		c := r.About().Clock[0]
		wrong := c.OffsetMS - float64(off)/1e6
		if math.Abs(wrong) > c.UncertaintyMS+1e-3 || c.UncertaintyMS < float64(w.there+w.back)/2e6-0.001 {
			t.Errorf("%d: a clock %v off was measured as %v ms off: %v ms wrong, and the error is said to be %v ms; %v there, %v back", i, off, c.OffsetMS, wrong, c.UncertaintyMS, w.there, w.back)
		}
		check(t, r.hangUp())
		<-ended // how it ended is of no interest: the way to it is gone
	}
}

package ssh

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll/internal/clock"
)

// tellTime says, for each offset that it hears, when it heard that and when it says so, by a clock that is so far from this machine's.
func tellTime(in io.Reader, out io.Writer) {
	now := clock.Ours()
	for {
		var off int64
		if _, err := fmt.Fscanln(in, &off); err != nil {
			return
		}
		heard := now().UnixNano() + off
		fmt.Fprintln(out, heard, now().UnixNano()+off)
	}
}

// The offset of another process' clock is known to within the error that is told, in 100 of 100, over a real ssh. The truth is known:
// both are of one machine, whose clock the other one shifts by what it is told.
func TestClockOverSSH(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	g, err := Start(t.Context(), Destination{Name: "web"}, nil, "time")
	check(t, err)
	defer func() { check(t, g.Close()) }()
	out, now, random := bufio.NewReader(g), clock.Ours(), rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		off := random.Int64N(int64(48*time.Hour)) - int64(24*time.Hour)
		var b clock.Book
		for range 8 {
			asked := now()
			_, err := fmt.Fprintln(g, off)
			var heard, said int64
			if err == nil {
				_, err = fmt.Fscanln(out, &heard, &said)
			}
			check(t, err)
			b.Read(asked, now(), heard, said)
		}
		best, _ := b.Best(now())
		if wrong := best.OffsetMS - float64(off)/1e6; math.Abs(wrong) > best.UncertaintyMS {
			t.Errorf("%d: %v off was measured as %v ms: %v ms wrong, and the error is said to be %v ms", i, time.Duration(off), best.OffsetMS, wrong, best.UncertaintyMS)
		}
	}
}

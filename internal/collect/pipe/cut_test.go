package pipe

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/collect"
)

// link is what bytes go over in one direction: each is under way for so long, and none arrives between two moments. It takes what it is
// given, as a kernel does, and loses nothing, as TCP does.
type link struct {
	way       time.Duration
	cut, mend time.Time
	sent      chan parcel
	done      chan struct{}
	into      *io.PipeWriter
}

type parcel struct {
	bytes []byte
	at    time.Time
}

func newLink(way time.Duration, cut, mend time.Time) (*link, *io.PipeReader) {
	out, into := io.Pipe()
	l := &link{way, cut, mend, make(chan parcel, 10_000), make(chan struct{}), into}
	go l.carry()
	return l, out
}

func (l *link) carry() {
	defer l.into.Close()
	for {
		select {
		case p := <-l.sent:
			time.Sleep(time.Until(p.at.Add(l.way)))
			if now := time.Now(); !now.Before(l.cut) && now.Before(l.mend) {
				time.Sleep(l.mend.Sub(now))
			}
			if _, err := l.into.Write(p.bytes); err != nil {
				return
			}
		case <-l.done:
			return
		}
	}
}

func (l *link) Write(b []byte) (int, error) {
	select {
	case l.sent <- parcel{slices.Clone(b), time.Now()}:
		return len(b), nil
	case <-l.done:
		return 0, io.ErrClosedPipe
	}
}

// farWay is the session's end of two links.
type farWay struct {
	*link
	*io.PipeReader
}

func (f farWay) Write(b []byte) (int, error) { return f.link.Write(b) }

func (f farWay) Close() error {
	select {
	case <-f.done:
		return nil
	default:
	}
	close(f.done)
	return f.PipeReader.Close()
}

// watched is what a session records of a collector that it watches for so long, over links of which each is so slow and is cut for some time
// from the tenth second on, and how the collector ends.
func watched(t *testing.T, lasting, way, cut time.Duration) (b *book, r *Remote, farEnd error) {
	t.Helper()
	from := time.Now().Add(10 * time.Second)
	there, stdin := newLink(way, from, from.Add(cut))
	back, stdout := newLink(way, from, from.Add(cut))
	s := newServer(back)
	ended := make(chan error, 1)
	go func() { ended <- s.serve(stdin) }()
	r, err := Dial(farWay{there, stdout}, "test", time.Now)
	check(t, err)
	b = newBook(t)
	check(t, r.Open(collect.Config{Interval: time.Second}))
	check(t, r.Start(context.Background(), b))
	_, err = r.Edge(context.Background(), collect.Edge{Time: time.Now(), Window: "hold"})
	check(t, err)
	time.Sleep(lasting)
	r.Settle()
	if _, err := r.Edge(context.Background(), collect.Edge{Time: time.Now()}); err != nil && r.About().Cut == "" {
		t.Error(err)
	}
	check(t, r.Close())
	farEnd = <-ended
	close(back.done)
	return b, r, farEnd
}

func (b *book) rounds() (n int) {
	for _, l := range b.lines {
		if strings.HasPrefix(l, "round ") {
			n++
		}
	}
	return n
}

// A link that is away for less than two minutes costs nothing but time, and neither does a long way; one that is away for longer ends the host's
// part, which both ends notice by themselves.
func TestCutsAndLongWays(t *testing.T) {
	for name, c := range map[string]struct{ way, cut time.Duration }{
		"all is well": {0, 0}, "cut for 30 s": {0, 30 * time.Second}, "cut for 110 s": {0, 110 * time.Second}, "200 ms there and back": {100 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, farEnd := watched(t, 3*time.Minute, c.way, c.cut)
				about := r.About()
				if about.Cut != "" || about.DroppedSamples != 0 || b.rounds() < 180 || farEnd != nil {
					t.Errorf("%d rounds in 180 s, %d samples dropped, cut %q, ended with %v; %q", b.rounds(), about.DroppedSamples, about.Cut, farEnd, b.lines[:min(len(b.lines), 3)])
				}
				for _, clock := range about.Clock {
					if clock.OffsetMS < -clock.UncertaintyMS || clock.OffsetMS > clock.UncertaintyMS || clock.UncertaintyMS > c.way.Seconds()*1e3+1 {
						t.Errorf("the clock that is the same is measured as %+v", clock)
					}
				}
			})
		})
	}
	t.Run("cut for 5 min", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, r, farEnd := watched(t, 7*time.Minute, 0, 5*time.Minute)
			if about := r.About(); !strings.Contains(about.Cut, "nothing was heard for 2m0s") || b.rounds() < 8 || b.rounds() > 13 || !errors.Is(farEnd, errSilent) {
				t.Errorf("%d rounds, cut %q; there it ended with %v", b.rounds(), about.Cut, farEnd)
			}
			if !slices.ContainsFunc(b.lines, func(l string) bool { return strings.Contains(l, "the pipe to their collector was cut") }) {
				t.Errorf("no note says so: %q", b.lines)
			}
		})
	})
}

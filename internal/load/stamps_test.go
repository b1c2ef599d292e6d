package load

import (
	"context"
	"testing"

	"plimsoll/internal/model"
)

func TestEachThreadHasConnectionsThatAreStamped(t *testing.T) {
	for threads := 1; threads <= 4; threads++ {
		j, err := prepare(model.LoadPlan{URL: "http://127.0.0.1:1", Connections: 48, Threads: threads, DurationMS: 1})
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEngine(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		e.closeAll()
		for _, th := range e.threads {
			n := 0
			for i := range th.conns {
				if th.conns[i].stamped {
					n++
				}
			}
			if want := (len(th.conns) + stampEvery - 1) / stampEvery; n != want {
				t.Errorf("thread %d of %d: %d of its %d connections are stamped, want %d", th.id, threads, n, len(th.conns), want)
			}
		}
	}
}

package load

import (
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// The server answers nobody before so many connections stand: they are opened since a request is due and all others are busy.
func TestThePoolGrowsWhenAllAreBusy(t *testing.T) {
	for why, c := range map[string]struct {
		change func(*model.LoadPlan)
		stood  int64
	}{
		"up to the limit":        {func(p *model.LoadPlan) {}, 6},
		"two threads":            {func(p *model.LoadPlan) { p.Threads = 2 }, 6},
		"dense":                  {func(p *model.LoadPlan) { p.Rate = 50_000 }, 6},
		"after calm and ramp":    {func(p *model.LoadPlan) { p.RampMS = 20 }, 6},
		"as fast as it may":      {func(p *model.LoadPlan) { p.ConnectRate = 500 }, 6},
		"pipelined, two on each": {func(p *model.LoadPlan) { p.Pipeline = 2 }, 6},
	} {
		t.Run(why, func(t *testing.T) {
			all := make(chan struct{})
			var once sync.Once
			s := serve(t, func(conn *net.TCPConn, n int64) bool {
				if n == c.stood {
					once.Do(func() { close(all) })
				}
				<-all
				return say(okReply)(conn, n)
			})
			plan := model.LoadPlan{URL: s.url, Connections: 2, MaxConnections: 6, Threads: 1, Requests: 100, Rate: 2000, KeepAlive: true, TimeoutMS: 600_000}
			c.change(&plan)
			records := runPlan(t, t.Context(), plan)
			if diff := cmp.Diff(map[string]int64{"2xx": 100}, phaseNamed(records, "hold").Outcomes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := records[len(records)-1].Connections.Stood; got != c.stood || s.connections.Load() != c.stood {
				t.Errorf("%d connections stood, the server had %d; want %d", got, s.connections.Load(), c.stood)
			}
		})
	}
}

// What is answered before the next is due needs no more connections than there are.
func TestThePoolDoesNotGrowWithoutNeed(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 1, MaxConnections: 5, Rate: 1, Requests: 2, KeepAlive: true})
	th := s.thread
	s.until("the first request is sent", func() bool {
		if s.peer < 0 && th.conns[0].state >= connecting {
			s.accept()
		}
		return th.conns[0].state == awaiting
	})
	s.answer([]byte(okReply))
	s.until("it is answered", func() bool { return th.inFlight == 0 })
	th.shared.base = th.shared.base.Add(-1_000_000_000) // the second is due
	s.until("the second request is sent", func() bool { return th.inFlight == 1 })
	if len(th.reserves) != 4 {
		t.Errorf("%d places in reserve, want all 4", len(th.reserves))
	}
}

func TestPoolsThatAreNone(t *testing.T) {
	for why, plan := range map[string]model.LoadPlan{
		"a closed loop":           {MaxConnections: 20},
		"no more than there are":  {MaxConnections: 10, Rate: 1},
		"more than can be":        {MaxConnections: maxConnections + 1, Rate: 1},
		"with streams, more than": {MaxConnections: maxConnections / 10, Rate: 1, HTTP2: true, Streams: 100, KeepAlive: true},
	} {
		plan.URL, plan.Connections, plan.DurationMS = "http://127.0.0.1/", 10, 1000
		if err := Check(plan); err == nil {
			t.Errorf("%s: was taken", why)
		}
	}
}

package nginx

import (
	"testing"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/service/nginx"
)

// puts counts how often each series is put.
type puts struct {
	*livetest.Record
	times map[string]int
}

func (c puts) Sample(host string, at int64, s *model.Signal, v float64, labels ...string) {
	c.times[s.Name]++
	c.Record.Sample(host, at, s, v, labels...)
}

// Several containers on a host have the same configuration: a series that is put twice in one reading ends the recording.
func TestSeveralWithTheSameBlock(t *testing.T) {
	c := puts{livetest.NewRecord(), map[string]int{}}
	r := &reader{}
	for weight := range 3 {
		r.instances = append(r.instances, &instance{conf: &nginx.Settings{Weights: map[nginx.Server]int{{Block: "app", Address: "127.0.0.1:8100"}: weight + 1}}})
	}
	r.putConfOfAll(probe.NewOut(c, "web", time.Unix(1, 0), time.Second))
	if got := c.times[upstreamWeight.Name]; got != 1 {
		t.Errorf("put %d times, want once", got)
	}
	if got := c.Values[upstreamWeight.Name+"{app,127.0.0.1:8100}"]; got != 3 {
		t.Errorf("weight %v, want the largest, 3", got)
	}
}

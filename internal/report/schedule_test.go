package report

import (
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// A rate of what was due is none that was kept up with where half of all stood for long before they were sent.
func TestScheduleTellsOfWaitsForAConnection(t *testing.T) {
	for _, c := range []struct {
		latency, service float64
		want             bool
	}{{1_000_000, 700, true}, {100_700, 700, true}, {100_699, 700, false}, {800, 700, false}} {
		l := model.Load{Latency: model.Quantiles{P50: c.latency}, Service: model.Quantiles{P50: c.service}, Lag: model.Quantiles{Count: 1}}
		if got := strings.Contains(schedule(l), "for a free connection"); got != c.want {
			t.Errorf("%+v: %q", c, schedule(l))
		}
	}
}

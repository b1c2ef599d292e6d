package load

import (
	"errors"
	"fmt"
	"slices"

	"plimsoll/internal/model"
)

// The most that a recording may have. Different ones are kept as they are sent, a kilobyte or so each.
const (
	MaxRecording     = 256 << 20 // bytes of the file
	maxRecorded      = 1_000_000
	maxDifferent     = 100_000
	maxRecordedBytes = 256 << 20 // of all that is sent
	leastSpeed       = 1e-3
	maxSpeed         = 1e3
)

// mostTargets is how many targets a plan may have.
func mostTargets(p model.LoadPlan) int {
	if p.Recorded != nil {
		return maxDifferent
	}
	return maxTargets
}

func checkRecording(p model.LoadPlan) error {
	r := p.Recorded
	switch {
	case r == nil:
		return nil
	case len(p.Targets) == 0:
		return errors.New("a recording without targets")
	case r.Speed == 0 && len(r.Of)+len(r.AtMicros) == 0:
		return nil
	case r.Speed == 0:
		return errors.New("a recording with times and without a speed")
	case !(r.Speed >= leastSpeed && r.Speed <= maxSpeed) || p.Rate == 0:
		return fmt.Errorf("a recording's speed: %g at %g requests/s: want more than 0 of both", r.Speed, p.Rate)
	case p.Requests > 0 || p.DurationMS == 0 || len(p.Stages) > 0 || p.Arrivals != "":
		return errors.New("a recording that is replayed has its own pace: leave out -n, --stage and --arrivals")
	case len(r.Of) != len(r.AtMicros) || len(r.Of) > maxRecorded || !slices.IsSorted(r.AtMicros) || len(r.AtMicros) == 0 || r.AtMicros[0] < 0:
		return fmt.Errorf("a recording: want the time and the target of up to %d requests, in their order", maxRecorded)
	}
	for _, n := range r.Of {
		if n < 0 || int(n) >= len(p.Targets) {
			return fmt.Errorf("a recording: request of target %d: want 0 to %d", n, len(p.Targets)-1)
		}
	}
	return nil
}

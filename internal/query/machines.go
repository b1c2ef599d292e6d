package query

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// MachineInfo is the series that says which hosts share a machine: 1 for each
// host, with the machine in a label. It is made of the run's manifest: hosts
// share a machine when the kernel says the same boot id, and not because they
// booted in the same second, as machines of a cloud may.
const MachineInfo = "host:machine:info"

// MachineOf names the machine of a host. One whose boot id is not known, as of a
// Prometheus, is a machine by itself.
func MachineOf(h model.Host) string {
	if h.Machine == "" {
		return "of " + h.Name
	}
	return h.Machine
}

// withMachines is a run's series and MachineInfo.
type withMachines struct {
	storage.Queryable
	hosts []model.Host
	apart int64 // milliseconds between two readings of MachineInfo
}

func (m withMachines) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := m.Queryable.Querier(mint, maxt)
	return machinesQuerier{q, m, mint, maxt}, err
}

type machinesQuerier struct {
	storage.Querier
	of         withMachines
	mint, maxt int64
}

func (q machinesQuerier) Select(ctx context.Context, sort bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
		return m.Name == "__name__" && m.Type == labels.MatchEqual && m.Value == MachineInfo
	}) {
		return q.Querier.Select(ctx, sort, hints, matchers...)
	}
	var points []record.Point
	// A rule may look back for centuries; it was so for long enough.
	for t := max(q.mint, q.maxt-maxMoments*q.of.apart); t < q.maxt; t += q.of.apart {
		points = append(points, record.Point{Time: t, Value: 1})
	}
	points = append(points, record.Point{Time: q.maxt, Value: 1})
	var made record.Memory
	for _, h := range q.of.hosts {
		made.Add(labels.FromStrings("__name__", MachineInfo, "host", h.Name, "machine", MachineOf(h)), points)
	}
	made.Sort()
	own, err := made.Querier(q.mint, q.maxt)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return own.Select(ctx, sort, hints, matchers...)
}

package collect

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// What a load said before an edge that is late is told of its own time, and not of the first moment of the window.
func TestALateEdgeMovesNothing(t *testing.T) {
	for late, want := range map[int64][]int64{500: {10_500, 10_501}, 501: {10_000, 10_100}} {
		dir := t.TempDir() + "/run"
		out, err := writer.Create(dir, model.Run{})
		check(t, err)
		edge := time.UnixMilli(10_000 + late)
		l := NewLoad(newRecorder(Into(out)), func() time.Time { return edge }, []string{"a"}, model.LoadPlan{}, nil)
		said := func(ms int64, started string) load.Record {
			return load.Record{Time: ms, Phase: model.Hold, PhaseStarted: started, Connections: load.Connections{Open: 5}}
		}
		l.Take(said(10_000, model.Hold))
		round := Round{Number: 1, Time: edge, Edge: true}
		check(t, l.Round(t.Context(), round))
		l.Take(said(10_100, ""))
		check(t, l.rec.Commit(round))
		check(t, out.Close())
		got := slices.Sorted(maps.Keys(readings(t, opened(t, dir), "plimsoll_load_connections", map[string]string{"state": "open"})))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d ms late: -want +got\n%s", late, d)
		}
	}
}

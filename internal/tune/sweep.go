package tune

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"plimsoll/internal/change"
	"plimsoll/internal/compare"
	"plimsoll/internal/model"
)

// Setting is one setting with the values to be tried.
type Setting struct {
	Kind, Name string
	Values     []string
}

// ParseSetting reads KIND:NAME=VALUE,VALUE…, such as
// sysctl:net.core.somaxconn=128,1024 or backlog:0.0.0.0:80=128,4096.
func ParseSetting(text string) (Setting, error) {
	kind, rest, hasKind := strings.Cut(text, ":")
	i := strings.LastIndexByte(rest, '=')
	bad := fmt.Errorf("%q: want KIND:NAME=VALUE,VALUE like sysctl:net.core.somaxconn=128,1024,8192", text)
	if !hasKind || i <= 0 {
		return Setting{}, bad
	}
	s := Setting{Kind: kind, Name: rest[:i]}
	for v := range strings.SplitSeq(rest[i+1:], ",") {
		if v = strings.TrimSpace(v); v == "" || slices.Contains(s.Values, v) {
			return Setting{}, fmt.Errorf("%q: want each value once, and none empty", text)
		}
		s.Values = append(s.Values, v)
	}
	kinds := []string{model.ChangeSysctl, model.ChangeNginx, model.ChangePHPFPM, model.ChangeBacklog, model.ChangeNice, model.ChangePolicy,
		model.ChangeRPS, model.ChangeTxQueue}
	if !slices.Contains(kinds, kind) {
		return Setting{}, fmt.Errorf("%q: no kind %s; there are %s", text, kind, strings.Join(kinds, ", "))
	}
	return s, nil
}

// combinations lists every combination of values, one of each setting.
func combinations(settings []Setting) [][]string {
	list := [][]string{nil}
	for _, s := range settings {
		var longer [][]string
		for _, head := range list {
			for _, v := range s.Values {
				longer = append(longer, append(slices.Clone(head), v))
			}
		}
		list = longer
	}
	return list
}

// order says which point is run when: each so often, all in random order, so
// that a machine that slows down or warms up does not favour any.
func order(points, repeat int, seed uint64) []int {
	var list []int
	for p := range points {
		for range repeat {
			list = append(list, p)
		}
	}
	random := rand.New(rand.NewPCG(seed, seed))
	random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return list
}

// Sweep runs the load with each combination of values on a host, so many times,
// and restores what was set before, also when it is interrupted. undo takes
// changes back by their numbers; shown is told of each run.
func Sweep(ctx context.Context, tools Tools, host string, settings []Setting, repeat int, seed uint64, undo func(context.Context, []int) error,
	shown func(i, n int, point model.SweepPoint, load model.TuneLoad)) (model.Sweep, error) {
	result := model.Sweep{Seed: seed, Repeat: repeat, Points: []model.SweepPoint{}, Restored: true}
	values := combinations(settings)
	for _, v := range values {
		p := model.SweepPoint{Dirs: []string{}, Loads: []model.TuneLoad{}}
		for i, s := range settings {
			p.Settings = append(p.Settings, s.Name+"="+v[i])
		}
		result.Points = append(result.Points, p)
	}
	plan := order(len(values), repeat, seed)
	for i, point := range plan {
		p := &result.Points[point]
		seen, err := sweepOnce(ctx, tools, host, settings, values[point], undo)
		if err != nil {
			result.Restored = !errors.Is(err, errNotRestored)
			return result, err
		}
		if seen.Load == nil {
			return result, fmt.Errorf("the run %s held no load, so there is nothing to draw", seen.Dir)
		}
		load := model.TuneLoadOf(seen.Load)
		p.Dirs, p.Loads = append(p.Dirs, seen.Dir), append(p.Loads, load)
		if shown != nil {
			shown(i+1, len(plan), *p, load)
		}
	}
	for i := range result.Points {
		p := &result.Points[i]
		var good, tail []float64
		for _, l := range p.Loads {
			good, tail = append(good, *l.GoodRPS), append(tail, *l.P99)
		}
		p.GoodRPS, p.P99 = compare.MeanOf(good), compare.MeanOf(tail)
	}
	return result, nil
}

// errNotRestored: a value that was tried is still set.
var errNotRestored = errors.New("not restored")

// sweepOnce makes one combination's changes, runs, and takes them back.
func sweepOnce(ctx context.Context, tools Tools, host string, settings []Setting, values []string, undo func(context.Context, []int) error) (seen Seen, err error) {
	var ids []int
	defer func() {
		if e := undo(context.WithoutCancel(ctx), ids); e != nil {
			err = errors.Join(err, fmt.Errorf("%w; plimsoll undo --all tries again: %w", errNotRestored, e))
		}
	}()
	for i, s := range settings {
		step, err := tools.Prepare(model.FixChange{Kind: s.Kind, Name: s.Name, Value: values[i], Host: host, Subject: map[string]string{"host": host}})
		if errors.Is(err, change.ErrAlready) {
			continue
		}
		if err != nil {
			return seen, err
		}
		e, err := tools.Apply(ctx, step)
		if e.ID > 0 && e.Open() {
			ids = append(ids, e.ID)
		}
		if err != nil {
			return seen, err
		}
	}
	seen, err = tools.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	return seen, err
}

package tune

import (
	"cmp"
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
// sysctl:net.ipv4.tcp_tw_reuse=0,1 or backlog:0.0.0.0:80=128,4096.
func ParseSetting(text string) (Setting, error) {
	kind, rest, hasKind := strings.Cut(text, ":")
	i := strings.LastIndexByte(rest, '=')
	bad := fmt.Errorf("%q: want KIND:NAME=VALUE,VALUE like sysctl:net.ipv4.tcp_tw_reuse=0,1", text)
	if !hasKind || i <= 0 {
		return Setting{}, bad
	}
	s := Setting{Kind: kind, Name: rest[:i]}
	if kind == model.ChangeSysctl {
		s.Name = change.SysctlName(s.Name)
	}
	for v := range strings.SplitSeq(rest[i+1:], ",") {
		if v = strings.TrimSpace(v); v == "" || slices.Contains(s.Values, v) {
			return Setting{}, fmt.Errorf("%q: want each value once, and none empty", text)
		}
		s.Values = append(s.Values, v)
	}
	if !slices.Contains(sweepKinds, kind) {
		return Setting{}, fmt.Errorf("%q: no kind %s; there are %s", text, kind, strings.Join(sweepKinds, ", "))
	}
	return s, nil
}

// Sweepable returns the settings in the order in which they are to be made, or an error
// that says why trying their values would show nothing: of a setting that is given twice the
// second value would always win; net.core.somaxconn bounds
// listen(2)'s backlog when it is called, so a listener that stands does not notice. A
// backlog that is set after it does, since that listens again.
func Sweepable(settings []Setting) ([]Setting, error) {
	if err := eachOnce(settings); err != nil {
		return nil, err
	}
	is := func(kind, name string) bool {
		return slices.ContainsFunc(settings, func(s Setting) bool { return s.Kind == kind && (name == "" || s.Name == name) })
	}
	if is(model.ChangeSysctl, "net.core.somaxconn") && !is(model.ChangeBacklog, "") {
		return nil, errors.New("sysctl:net.core.somaxconn: it is read when a service calls listen(), so one that runs does not notice; " +
			"sweep the listener with it, which listens again: --set backlog:ADDRESS:PORT=VALUE,VALUE")
	}
	inOrder := slices.Clone(settings)
	slices.SortStableFunc(inOrder, func(a, b Setting) int {
		return cmp.Compare(slices.Index(sweepKinds, a.Kind), slices.Index(sweepKinds, b.Kind))
	})
	return inOrder, nil
}

// eachOnce says which setting is given twice.
func eachOnce(settings []Setting) error {
	for i, s := range settings {
		first := slices.IndexFunc(settings, func(o Setting) bool { return o.Kind == s.Kind && o.Name == s.Name })
		if first == i {
			continue
		}
		var all []string
		for _, v := range slices.Concat(settings[first].Values, s.Values) {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		return fmt.Errorf("%s:%s: it is given twice; name all its values in one: --set %[1]s:%[2]s=%s", s.Kind, s.Name, strings.Join(all, ","))
	}
	return nil
}

// sweepKinds are the kinds of settings in the order in which they are made: the kernel's
// limits first, then what is bounded by them.
var sweepKinds = []string{model.ChangeSysctl, model.ChangeNginx, model.ChangePHPFPM, model.ChangeBacklog, model.ChangeNice, model.ChangePolicy,
	model.ChangeRPS, model.ChangeTxQueue}

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
	if err := settable(tools, host, settings); err != nil {
		return result, err
	}
	plan := order(len(values), repeat, seed)
	for i, point := range plan {
		p := &result.Points[point]
		seen, err := sweepOnce(ctx, tools, host, settings, values[point], undo)
		if err != nil {
			result.Restored = !errors.Is(err, ErrNotRestored)
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
	var good, tail [][]float64
	for i := range result.Points {
		p := &result.Points[i]
		g, t := measured(p.Loads)
		p.GoodRPS, p.P99 = compare.MeanOf(g), compare.MeanOf(t)
		good, tail = append(good, g), append(tail, t)
	}
	result.Findings = []model.SweepFinding{
		finding("good_rps", result.Points, good, func(p model.SweepPoint) float64 { return -p.GoodRPS.Mean }),
		finding("p99_us", result.Points, tail, func(p model.SweepPoint) float64 { return p.P99.Mean }),
	}
	return result, nil
}

func measured(loads []model.TuneLoad) (good, tail []float64) {
	for _, l := range loads {
		good, tail = append(good, *l.GoodRPS), append(tail, *l.P99)
	}
	return good, tail
}

// finding says whether the points differ in what was measured; the best has the least cost.
func finding(measure string, points []model.SweepPoint, values [][]float64, cost func(model.SweepPoint) float64) model.SweepFinding {
	f := model.SweepFinding{Measure: measure}
	by := func(a, b model.SweepPoint) int { return cmp.Compare(cost(a), cost(b)) }
	f.Best, f.Worst = slices.MinFunc(points, by).Settings, slices.MaxFunc(points, by).Settings
	f.Chance, f.Known = compare.Chance(values)
	f.Beyond = f.Known && f.Chance < 0.05 && len(points) > 1
	return f
}

// ErrNotRestored: a value that was tried is still set.
var ErrNotRestored = errors.New("not restored")

// asChange is one value of a setting as a change.
func (s Setting) asChange(value, host string) model.FixChange {
	return model.FixChange{Kind: s.Kind, Name: s.Name, Value: value, Host: host, Subject: map[string]string{"host": host}}
}

// settable says which value cannot be set, before the first run: the order of the runs is random, and the others' would be lost.
func settable(tools Tools, host string, settings []Setting) error {
	for _, s := range settings {
		for _, v := range s.Values {
			if _, err := tools.Prepare(s.asChange(v, host)); err != nil && !errors.Is(err, change.ErrAlready) {
				return err
			}
		}
	}
	return nil
}

// sweepOnce makes one combination's changes, runs, and takes them back.
func sweepOnce(ctx context.Context, tools Tools, host string, settings []Setting, values []string, undo func(context.Context, []int) error) (seen Seen, err error) {
	var ids []int
	defer func() {
		if e := undo(context.WithoutCancel(ctx), ids); e != nil {
			err = errors.Join(err, fmt.Errorf("%w; plimsoll undo --all tries again: %w", ErrNotRestored, e))
		}
	}()
	for i, s := range settings {
		step, err := tools.Prepare(s.asChange(values[i], host))
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

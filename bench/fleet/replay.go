package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// reach is how long before the window there are readings, as plimsoll asks for them.
const reach = 5 * time.Minute

// perCommit is how many readings are appended before they are committed.
const perCommit = 1_000_000

// template is a recorded run as it is replayed.
type template struct {
	dir        string
	host       string // the one that is replayed
	meta       model.Run
	series     []record.Series
	start, end int64
}

// load reads the first host of a run.
func load(dir string) (*template, error) {
	run, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	t := &template{dir: dir, meta: run.Meta()}
	if len(t.meta.Hosts) == 0 {
		return nil, fmt.Errorf("%s: it has no host", dir)
	}
	t.host = t.meta.Hosts[0].Name
	for _, w := range t.meta.Windows {
		if w.Name == model.Hold {
			t.start, t.end = w.Start, w.End
		}
	}
	if t.end-t.start < 1000 {
		return nil, fmt.Errorf("%s: its main window lasts %d ms; want a second at least", dir, t.end-t.start)
	}
	for s, err := range run.Series(math.MinInt64, math.MaxInt64, labels.MustNewMatcher(labels.MatchEqual, "host", t.host)) {
		if err != nil {
			return nil, err
		}
		t.series = append(t.series, s)
	}
	return t, nil
}

// counts says whether a series is one that only grows, by its name.
func counts(s record.Series) bool {
	name := s.Labels.Get(labels.MetricName)
	for _, end := range []string{"_total", "_count", "_sum", "_bucket"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.HasPrefix(name, "node_netstat_") || strings.HasPrefix(name, "node_vmstat_")
}

// at is a series' value so many milliseconds after the replay began: the window's, again and again.
func (t *template) at(s record.Series, after int64) (float64, bool) {
	length := t.end - t.start
	v, ok := last(s.Points, t.start+after%length)
	if first, was := last(s.Points, t.start); ok && counts(s) {
		final, _ := last(s.Points, t.end)
		if !was { // it began within the window, at zero
			first = 0
		}
		v += float64(after/length) * max(final-first, 0)
	}
	return v, ok
}

// last is the newest value at a moment.
func last(points []record.Point, at int64) (float64, bool) {
	i := sort.Search(len(points), func(i int) bool { return points[i].Time > at })
	if i == 0 {
		return 0, false
	}
	return points[i-1].Value, true
}

// replay appends one host's readings, each time a scrape.
func (f *fleet) replay(t *template, name string, add func(l labels.Labels, at int64, v float64) error) error {
	begin := f.at.Add(-f.window - reach).UnixMilli()
	one := func(l labels.Labels, value func(after int64) (float64, bool)) error {
		for at := begin; at <= f.at.UnixMilli(); at += f.scrape.Milliseconds() {
			if v, ok := value(at - begin); ok {
				if err := add(l, at, v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, s := range t.series {
		if err := one(own(s.Labels, name), func(after int64) (float64, bool) { return t.at(s, after) }); err != nil {
			return err
		}
	}
	always := func(int64) (float64, bool) { return 1, true }
	info := labels.FromStrings(labels.MetricName, "plimsoll_host_info", "machine", name, "kernel", t.meta.Hosts[0].Kernel)
	if err := one(own(info, name), always); err != nil {
		return err
	}
	for signal, st := range t.meta.Status[t.host] {
		l := labels.FromStrings(labels.MetricName, "plimsoll_signal_state", "signal", signal, "state", string(st.State))
		if err := one(own(l, name), always); err != nil {
			return err
		}
	}
	return nil
}

// own are a series' labels as a server has them of one host's exporter.
func own(l labels.Labels, host string) labels.Labels {
	b := labels.NewBuilder(l)
	b.Set("host", host)
	b.Set("instance", host+":9109")
	b.Set("job", "plimsoll")
	return b.Labels()
}

// block writes what the server has.
func (f *fleet) block(templates []*template) (err error) {
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), f.dir, tsdb.DefaultBlockDuration)
	if err != nil {
		return err
	}
	defer w.Close()
	ctx := context.Background()
	a, uncommitted := w.Appender(ctx), 0
	for n := range f.hosts {
		var before labels.Labels
		err := f.replay(templates[n%len(templates)], fmt.Sprintf("h%05d", n), func(l labels.Labels, at int64, v float64) error {
			if !labels.Equal(l, before) {
				f.series++
				before = l
			}
			f.readings++
			uncommitted++
			_, err := a.Append(0, l, at, v)
			return err
		})
		if err != nil {
			return err
		}
		if uncommitted > perCommit {
			if err := a.Commit(); err != nil {
				return err
			}
			a, uncommitted = w.Appender(ctx), 0
		}
	}
	if err := a.Commit(); err != nil {
		return err
	}
	_, err = w.Flush(ctx)
	return err
}

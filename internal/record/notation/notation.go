// Package notation makes a little run in memory of series that are written as
// Prometheus' promtool has them: name{label="value"} 0+100x12. Rules are tested so.
package notation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// MaxPoints is the most values of a run's series together; maxValues is that of one,
// so that a slip of the pen ("0+1x1000000000") is refused.
const (
	MaxPoints = 10_000_000
	maxValues = 100_000
)

// Run is a run as YAML writes it (rules/README.md, tests.yaml). Compile makes one of it.
type Run struct {
	Interval Time                 `yaml:"interval"` // between two values; 0 is a second
	Windows  map[string]Stretch   `yaml:"windows"`  // nil: hold is everything
	Series   []string             `yaml:"series"`
	Read     []string             `yaml:"read"`     // signals that were read, and there was none of it
	Missing  map[string]yaml.Node `yaml:"missing"`  // signal → absent, denied or failed
	Hosts    []string             `yaml:"hosts"`    // those that no series names
	Machines map[string]string    `yaml:"machines"` // host → what stands for its machine's boot id

	// Meta, Store, Named (the series' labels) and Points (how many all have) are there once it is compiled.
	Meta   model.Run       `yaml:"-"`
	Store  *record.Memory  `yaml:"-"`
	Named  []labels.Labels `yaml:"-"`
	Points int64           `yaml:"-"`
}

// Time is a duration such as "10s" or "500ms".
type Time time.Duration

// UnmarshalYAML reads at most a day, in whole milliseconds.
func (t *Time) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > 24*time.Hour || d%time.Millisecond != 0 {
		return fmt.Errorf("line %d: %q: want a time such as 10s or 500ms, at most a day", n.Line, n.Value)
	}
	*t = Time(d)
	return nil
}

func (t Time) ms() int64 { return time.Duration(t).Milliseconds() }

// Stretch is a window: two moments, counted from the run's first value.
type Stretch [2]Time

// Start is the time of every run's first value, in Unix milliseconds: a round number,
// far from zero, so that looking back never meets the beginning of time.
const Start = 1_000_000_000_000

// seriesParser reads promtool's notation.
var seriesParser = parser.NewParser(parser.Options{})

var windowNames = []string{model.Baseline, model.Calm, model.Ramp, model.Hold, model.Cool}

// Compile builds the run.
func (v *Run) Compile() error {
	if v.Interval == 0 {
		v.Interval = Time(time.Second)
	}
	v.Store = new(record.Memory)
	v.Meta.Plan.Interval = v.Interval.ms()
	for _, desc := range v.Series {
		if err := v.addSeries(desc); err != nil {
			return fmt.Errorf("series %s: %w", desc, err)
		}
	}
	v.Store.Sort()
	_, last, ok := v.Store.Span()
	if !ok {
		last = Start + 10*v.Interval.ms()
	}
	if v.Windows == nil {
		v.Windows = map[string]Stretch{model.Hold: {0, Time(time.Duration(last-Start) * time.Millisecond)}}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Windows)) {
		w := v.Windows[name]
		if !slices.Contains(windowNames, name) || w[1] <= w[0] {
			return fmt.Errorf("window %s: want baseline, calm, ramp, hold or cool, and an end after its start", name)
		}
		v.Meta.Windows = append(v.Meta.Windows, model.Window{
			Name: name, Start: Start + w[0].ms(), End: Start + w[1].ms(),
		})
	}
	return v.compileStatus()
}

// manyValues matches a repetition of a million values or more, which the
// parser would make in memory before they could be counted.
var manyValues = lazy.Regexp(`x[0-9]{7,}[^}]*$`)

// addSeries reads one line of promtool's notation.
func (v *Run) addSeries(desc string) error {
	if manyValues().MatchString(desc) {
		return fmt.Errorf("want at most %d values", maxValues)
	}
	lset, values, err := seriesParser.ParseSeriesDesc(desc)
	if err != nil {
		return err
	}
	if lset.Get("host") == "" {
		return errors.New("want a label host, as the recorder adds it")
	}
	if len(values) == 0 || len(values) > maxValues {
		return fmt.Errorf("%d values: want 1 to %d", len(values), maxValues)
	}
	for _, other := range v.Named {
		if labels.Equal(other, lset) {
			return errors.New("stands there twice")
		}
	}
	if v.Points += int64(len(values)); v.Points > MaxPoints {
		return fmt.Errorf("more than %d values in all", MaxPoints)
	}
	v.Named = append(v.Named, lset)
	v.Store.Add(lset, points(values, v.Interval.ms()))
	return nil
}

func points(values []parser.SequenceValue, interval int64) []record.Point {
	var list []record.Point
	for i, value := range values {
		if !value.Omitted && value.Histogram == nil {
			list = append(list, record.Point{Time: Start + int64(i)*interval, Value: value.Value})
		}
	}
	return list
}

// compileStatus fills in what became of each signal on each host.
func (v *Run) compileStatus() error {
	hosts := map[string]bool{}
	for _, h := range v.Hosts {
		hosts[h] = true
	}
	status := map[string]model.Status{}
	for _, lset := range v.Named {
		hosts[lset.Get("host")] = true
		status[lset.Get("__name__")] = model.Status{State: model.Read}
	}
	for _, name := range v.Read {
		status[name] = model.Status{State: model.Read}
	}
	for name, node := range v.Missing {
		state := model.State(node.Value)
		if !slices.Contains([]model.State{model.Absent, model.Denied, model.Failed}, state) {
			return fmt.Errorf("missing: %s: %q: want absent, denied or failed", name, node.Value)
		}
		status[name] = model.Status{State: state, Why: node.Value + " in this vector"}
	}
	for _, h := range slices.Sorted(maps.Keys(v.Machines)) {
		hosts[h] = true
		v.Meta.Hosts = append(v.Meta.Hosts, model.Host{Name: h, Machine: v.Machines[h]})
	}
	if len(hosts) == 0 {
		hosts["server"] = true
	}
	v.Meta.Status = map[string]map[string]model.Status{}
	for h := range hosts {
		v.Meta.Status[h] = status
	}
	return nil
}

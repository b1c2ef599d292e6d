// Longrun makes a long run of many hosts out of a short one of two, so that what reads runs
// can be tried on an hour without waiting for it.
//
//	go run ./bench/longrun [-seconds 3600] [-hosts 5] RUN DIR
//
// What was recorded before and after the hold window stays; the hold window is
// repeated, counters counting on, and the hosts that the load does not come from are
// copied under new names until there are so many. DIR must not exist.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

func main() {
	seconds := flag.Int64("seconds", 3600, "how long the hold window is to be")
	hosts := flag.Int("hosts", 5, "of how many hosts it is to be, the one that the load comes from among them")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := stretch(flag.Arg(0), flag.Arg(1), *seconds*1000, *hosts); err != nil {
		fmt.Fprintln(os.Stderr, "longrun:", err)
		os.Exit(1)
	}
}

// reading is a sample on its way from one run to the other.
type reading struct {
	time   int64
	value  float64
	of     *model.Signal
	values []string
	hosts  []string
	grows  float64 // how much a counter counts on with each repetition
}

// long is a run that is being made out of another.
type long struct {
	from   *record.Run
	to     *writer.Writer
	hold   model.Window
	times  int64               // how often the hold window comes
	copies map[string][]string // the names of a host's copies
}

func stretch(from, to string, hold int64, hosts int) error {
	src, err := record.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	l := &long{from: src, copies: map[string][]string{}}
	var ok bool
	if l.hold, ok = src.Window(model.Hold); !ok || l.hold.End <= l.hold.Start {
		return errors.New(from + ": it has no hold window to repeat")
	}
	l.times = max((hold+l.hold.End-l.hold.Start-1)/(l.hold.End-l.hold.Start), 1)
	meta := l.manifest(hosts)
	if l.to, err = writer.Create(to, meta); err != nil {
		return err
	}
	return errors.Join(l.fill(), l.to.Close())
}

// later is by how much what follows the hold window is moved.
func (l *long) later() int64 { return (l.times - 1) * (l.hold.End - l.hold.Start) }

// manifest is the run's, with more hosts and a longer hold window.
func (l *long) manifest(hosts int) model.Run {
	meta := l.from.Meta()
	meta.Windows = slices.Clone(meta.Windows)
	for i := range meta.Windows {
		w := &meta.Windows[i]
		if w.Start >= l.hold.End {
			w.Start += l.later()
		}
		if w.End >= l.hold.End {
			w.End += l.later()
		}
	}
	if meta.Plan.Load != nil {
		plan := *meta.Plan.Load
		plan.DurationMS = l.times * (l.hold.End - l.hold.Start)
		meta.Plan.Load = &plan
	}
	meta.Status = maps.Clone(meta.Status)
	for _, h := range slices.Clone(meta.Hosts) {
		for n := 2; h.Name != meta.Plan.Generator && len(meta.Hosts) < hosts; n++ {
			copied := h
			copied.Name, copied.Machine = fmt.Sprintf("%s-%d", h.Name, n), fmt.Sprintf("%s-%d", h.Machine, n)
			meta.Status[copied.Name] = meta.Status[h.Name]
			l.copies[h.Name] = append(l.copies[h.Name], copied.Name)
			meta.Hosts = append(meta.Hosts[:len(meta.Hosts):len(meta.Hosts)], copied)
		}
	}
	return meta
}

func (l *long) fill() error {
	readings, err := l.readings()
	if err != nil {
		return err
	}
	in := func(r reading) bool { return r.time > l.hold.Start && r.time <= l.hold.End }
	first := slices.IndexFunc(readings, in)
	if first < 0 {
		return errors.New("nothing was read in the hold window")
	}
	last := first + len(readings[first:]) - 1
	for !in(readings[last]) {
		last--
	}
	l.put(readings[:first], 0)
	for n := range l.times {
		l.put(readings[first:last+1], n)
	}
	l.put(readings[last+1:], l.times-1)
	return errors.Join(l.latencies(), l.stacks(), l.events(), l.to.Err())
}

// readings are all samples, by time.
func (l *long) readings() ([]reading, error) {
	first, last, err := l.from.Span()
	if err != nil {
		return nil, err
	}
	var list []reading
	signals := map[string]*model.Signal{}
	for s, err := range l.from.Series(first, last, labels.MustNewMatcher(labels.MatchNotEqual, labels.MetricName, "")) {
		if err != nil {
			return nil, err
		}
		host := s.Labels.Get("host")
		r := reading{hosts: append([]string{host}, l.copies[host]...)}
		var names []string
		s.Labels.Range(func(label labels.Label) {
			if label.Name != "host" && label.Name != labels.MetricName {
				names, r.values = append(names, label.Name), append(r.values, label.Value)
			}
		})
		key := s.Labels.Get(labels.MetricName) + " " + strings.Join(names, " ")
		if signals[key] == nil {
			signals[key] = &model.Signal{Name: s.Labels.Get(labels.MetricName), Labels: names}
		}
		r.of = signals[key]
		if slices.IsSortedFunc(s.Points, func(a, b record.Point) int { return cmp.Compare(a.Value, b.Value) }) {
			r.grows = s.Increase(l.hold.Start, l.hold.End)
		}
		for _, p := range s.Points {
			r.time, r.value = p.Time, p.Value
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b reading) int { return cmp.Compare(a.time, b.time) })
	return list, nil
}

// put records readings as those of the nth repetition.
func (l *long) put(list []reading, n int64) {
	moved := n * (l.hold.End - l.hold.Start)
	for i, r := range list {
		for _, host := range r.hosts {
			l.to.Sample(host, r.time+moved, r.of, r.value+float64(n)*r.grows, r.values...)
		}
		if i%10_000 == 0 {
			_ = l.to.Commit() // Err keeps it
		}
	}
	_ = l.to.Commit()
}

func (l *long) latencies() error {
	type interval struct {
		record.Interval
		encoded string
	}
	var list []interval
	for in, err := range l.from.Intervals() {
		if err != nil {
			return err
		}
		encoded, err := in.Histogram.Encode()
		if err != nil {
			return err
		}
		list = append(list, interval{in, string(encoded)})
	}
	for n := range l.times {
		moved := n * (l.hold.End - l.hold.Start)
		for _, in := range list {
			if in.Start >= l.hold.Start && in.Start < l.hold.End || in.Start < l.hold.Start && n == 0 || in.Start >= l.hold.End && n == l.times-1 {
				l.to.Interval(in.Start+moved, in.End+moved, in.Tag, in.encoded)
			}
		}
	}
	return nil
}

func (l *long) stacks() error {
	tracing := l.from.Meta().Tracing
	if tracing == nil {
		return nil
	}
	for _, name := range tracing.Profiles {
		raw, err := l.from.Stacks(name)
		if err != nil {
			return err
		}
		if err := l.to.Profile(name, raw); err != nil {
			return err
		}
	}
	return nil
}

func (l *long) events() error {
	for e, err := range l.from.Events() {
		if err != nil {
			return err
		}
		l.to.Event(e)
	}
	return nil
}

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// The bounds of a fleet: hosts in all, hosts for which one query asks, and queries at a time. A server
// answers twenty queries at a time when nobody says otherwise, and others ask as well.
const (
	maxFleet    = 20_000
	hostsAtOnce = 10
	atOnce      = 4
	// inVain is how many queries for hosts may fail, none answered between, before the rest is not asked for.
	inVain = 2 * atOnce
)

// everywhere are series that each exporter has few of, by which its hosts are found.
const everywhere = hostInfo + "|node_boot_time_seconds|node_load1|node_memory_MemTotal_bytes|nginx_up|phpfpm_up"

// Host is a host of a fleet as a run of its own, or why there is none.
type Host struct {
	Name string
	Run  *record.Run
	Err  error
}

// Asked is what a server was asked for a fleet.
type Asked struct {
	Queries, Readings int64
	// Notes are sentences about the list of hosts.
	Notes []string
}

// place is where a host's series are: the labels host ("" for none) and instance.
type place struct{ host, instance string }

// census are the places of each host.
type census map[string][]place

// Fleet takes the series of each host that the server knows in the window, some hosts at a time, and hands each
// to take, with how many there are, as a run of its own: what Fetch makes of it alone. Several
// goroutines call take. What a server refuses for some hosts together is asked for fewer.
func Fleet(ctx context.Context, q Query, signals []*model.Signal, take func(h Host, of int)) (Asked, error) {
	c, err := q.client()
	if err != nil {
		return Asked{}, err
	}
	places, notes, err := q.census(ctx, c)
	if err != nil {
		return Asked{}, err
	}
	f := fleet{q: q, c: c, signals: signals, places: places, give: func(h Host) { take(h, len(places)) }}
	f.all(ctx)
	return Asked{c.asked.queries.Load(), c.asked.readings.Load(), notes}, context.Cause(ctx)
}

// census lists the hosts that have series in the window.
func (q Query) census(ctx context.Context, c *client) (census, []string, error) {
	places, seen := census{}, map[place]bool{}
	var notes []string
	for _, ours := range []bool{false, true} {
		match, usesHost, err := q.matchers(ours)
		if err != nil {
			return nil, nil, err
		}
		got, err := c.query(ctx, fmt.Sprintf(`count by (host, instance) (last_over_time({__name__=~%q%s}[%dms]))`, everywhere, match, q.Window.Milliseconds()), q.At)
		if err != nil {
			return nil, nil, fmt.Errorf("list the hosts: %w", err)
		}
		for _, s := range got.series {
			p := place{s.Metric["host"], s.Metric["instance"]}
			if !seen[p] {
				seen[p] = true
				places[nameOf(p)] = append(places[nameOf(p)], p)
			}
		}
		if got.partial != "" {
			notes = append(notes, "the list of hosts may not be whole: "+got.partial)
		}
		if !usesHost {
			break
		}
	}
	switch {
	case len(places) == 0:
		return nil, nil, q.nothing(ctx, c)
	case len(places) > maxFleet:
		return nil, nil, fmt.Errorf("%s: %d hosts; want at most %d, --match narrows them", c.base.Redacted(), len(places), maxFleet)
	}
	return places, notes, nil
}

// nameOf is the host of a place, but for several exporters at one address.
func nameOf(p place) string { return cmp.Or(p.host, hostPart(p.instance), "unnamed") }

// fleet is a fleet that is being taken.
type fleet struct {
	q       Query
	c       *client
	signals []*model.Signal
	places  census
	give    func(Host)
	failed  atomic.Int64 // batches, since one was answered
}

// all takes all hosts, by name, some at a time.
func (f *fleet) all(ctx context.Context) {
	next := make(chan []string)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for hosts := range next {
				f.some(ctx, hosts)
			}
		})
	}
	for hosts := range slices.Chunk(slices.Sorted(maps.Keys(f.places)), hostsAtOnce) {
		next <- hosts // once ctx has ended each is given up at once
	}
	close(next)
	workers.Wait()
}

// some takes some hosts: by halves, where they are too much together.
func (f *fleet) some(ctx context.Context, hosts []string) {
	if n := f.failed.Load(); n >= inVain {
		f.none(hosts, fmt.Errorf("not asked for, since the last %d questions were in vain; the others say why", n))
		return
	}
	within, cancel := context.WithTimeoutCause(ctx, allTime, fmt.Errorf("not all was answered after %v; take a shorter --window", allTime))
	got, err := f.taken(within, hosts)
	cancel()
	switch {
	case ctx.Err() != nil:
		return
	case len(hosts) > 1 && (errors.Is(err, errTooMuch) || errors.Is(err, errBounds)):
		f.some(ctx, hosts[:len(hosts)/2])
		f.some(ctx, hosts[len(hosts)/2:])
		return
	case err != nil:
		f.failed.Add(1)
		f.none(hosts, err)
		return
	}
	f.failed.Store(0)
	f.apart(hosts, got)
}

// none says why there is nothing of these hosts.
func (f *fleet) none(hosts []string, err error) {
	for _, name := range hosts {
		f.give(Host{Name: name, Err: err})
	}
}

// taken asks for the series of these hosts.
func (f *fleet) taken(ctx context.Context, hosts []string) (*taken, error) {
	match, err := f.matchers(hosts)
	if err != nil {
		return nil, err
	}
	c := f.c.another()
	all := &taken{partial: map[string]string{}}
	if err := f.q.readings(ctx, c, collected(f.signals), match, all); err != nil {
		return nil, err
	}
	return all, f.q.takeOurs(ctx, c, f.signals, match, all)
}

// matchers select the series of these hosts, and of no job that the user did not want.
func (f *fleet) matchers(hosts []string) (string, error) {
	q := f.q
	q.Match = slices.DeleteFunc(slices.Clone(q.Match), func(m string) bool {
		part := matcherForm().FindStringSubmatch(m)
		return part != nil && part[1] == "host" // the hosts were chosen by it
	})
	match, _, err := q.matchers(true)
	return match + labelIn("instance", f.of(hosts, func(p place) string { return p.instance })) +
		labelIn("host", f.of(hosts, func(p place) string { return p.host })), err
}

// of lists the values of one label at the places of hosts.
func (f *fleet) of(hosts []string, label func(place) string) []string {
	var list []string
	for _, h := range hosts {
		for _, p := range f.places[h] {
			list = append(list, label(p))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// labelIn is a matcher, behind a comma, for any of these values.
func labelIn(label string, values []string) string {
	for i, v := range values {
		values[i] = regexp.QuoteMeta(v)
	}
	return fmt.Sprintf(",%s=~%q", label, strings.Join(values, "|"))
}

// apart gives each of these hosts what was taken of it.
func (f *fleet) apart(hosts []string, all *taken) {
	of := map[string][]series{}
	for _, s := range all.series {
		name := nameOf(place{s.Metric["host"], s.Metric["instance"]})
		of[name] = append(of[name], s)
	}
	for _, name := range hosts {
		found := relabelled(of[name], f.signals)
		names := found.names()
		if len(names) == 0 {
			f.give(Host{Name: name, Err: fmt.Errorf("%w in the window", ErrNoSeries)})
		}
		for _, one := range names { // of two exporters with the same series at one address each is a host
			run, err := f.q.made(f.c, found.only(one), all, f.signals)
			f.give(Host{Name: one, Run: run, Err: err})
		}
	}
}

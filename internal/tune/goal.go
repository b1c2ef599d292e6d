package tune

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// Goal is one condition of a service level, such as "p99<50ms".
type Goal struct {
	text string
	measure
	at    bool    // the limit itself is kept, too (<=, >=)
	limit float64 // latencies in µs, shares as ratio
}

var goalForm = lazy.Regexp(`^([a-z0-9.]+)([<>]=?)([0-9.]+)([a-zµ/%]*)$`)

// measure is what a goal may be about.
type measure struct {
	below bool   // it is kept below something, else above
	want  string // how a goal of it is written, for a message
	// bound reads the goal's number, false where it is none of this measure's.
	bound func(number float64, unit string) (float64, bool)
	of    func(*model.Load) float64
	// time says that it is one, which is 0 only where it was not recorded.
	time bool
}

// latency is a measure of what users waited, failed requests included.
func latency(name string, of func(model.Quantiles) float64) measure {
	return measure{below: true, time: true, want: "a time with its unit, " + name + "<50ms", of: func(l *model.Load) float64 { return of(l.Waited) },
		bound: func(n float64, unit string) (float64, bool) {
			d, err := time.ParseDuration(strconv.FormatFloat(n, 'f', -1, 64) + unit)
			return float64(d) / float64(time.Microsecond), err == nil && unit != ""
		}}
}

var measures = map[string]measure{
	"p50": latency("p50", func(q model.Quantiles) float64 { return q.P50 }), "p90": latency("p90", func(q model.Quantiles) float64 { return q.P90 }),
	"p95": latency("p95", func(q model.Quantiles) float64 { return q.P95 }), "p99": latency("p99", func(q model.Quantiles) float64 { return q.P99 }),
	"p999": latency("p999", func(q model.Quantiles) float64 { return q.P999 }), "p99.9": latency("p99.9", func(q model.Quantiles) float64 { return q.P999 }),
	"max":    latency("max", func(q model.Quantiles) float64 { return q.Max }),
	"good":   {want: "good replies a second, good>5000/s", bound: perSecond, of: func(l *model.Load) float64 { return l.GoodRPS }},
	"share":  {want: "a share below 100%, share>99.9% (or share>=100%)", bound: percent, of: func(l *model.Load) float64 { return l.GoodShare }},
	"errors": {below: true, want: "a share above 0%, errors<0.1% (or errors<=0%)", bound: percent, of: func(l *model.Load) float64 { return 1 - l.GoodShare }},
}

func perSecond(n float64, unit string) (float64, bool) {
	base, thousands := strings.CutPrefix(unit, "k")
	if thousands {
		n *= 1000
	}
	return n, base == "" || base == "/s"
}

func percent(n float64, unit string) (float64, bool) { return n / 100, unit == "%" && n <= 100 }

// ParseGoals reads conditions set apart by commas, all of which have to hold:
//
//	p50 p90 p95 p99 p999 max  <  a time (50ms, 1.5s, 800us)
//	good                      >  a number of good replies a second (5000/s, 5k/s)
//	share                     >  the share of requests with a good reply (99.9%)
//	errors                    <  the share of all that was tried without one (0.1%)
//
// <= and >= keep the bound itself, too.
func ParseGoals(text string) ([]Goal, error) {
	var list []Goal
	for one := range strings.SplitSeq(text, ",") {
		g, err := parseGoal(strings.ToLower(strings.Join(strings.Fields(one), "")))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(one), err)
		}
		list = append(list, g)
	}
	return list, nil
}

func parseGoal(text string) (Goal, error) {
	m := goalForm().FindStringSubmatch(text)
	if m == nil {
		return Goal{}, errors.New("want something like p99<50ms, good>5000/s, errors<0.1% or share>99.9%, set apart by commas")
	}
	what, ok := measures[m[1]]
	if !ok {
		return Goal{}, fmt.Errorf("there is no %s; want p50, p90, p95, p99, p999, max, errors, good or share", m[1])
	}
	g := Goal{text: text, measure: what, at: len(m[2]) > 1}
	number, err := strconv.ParseFloat(m[3], 64)
	if g.limit, ok = what.bound(number, m[4]); err != nil || !ok || what.below != (m[2][0] == '<') || !g.canHold() {
		return Goal{}, fmt.Errorf("want %s", what.want)
	}
	return g, nil
}

// canHold says whether any load could keep it: no latency and no share of errors is below 0, no share above all.
func (g Goal) canHold() bool {
	whole, isShare := g.bound(100, "%")
	return g.at || !(g.below && g.limit == 0) && !(!g.below && isShare && g.limit == whole)
}

// equal is by how much, of the limit, a value may differ and be it: 1 of 1,000 failed is errors of 0.1 %, and in binary neither of both.
const equal = 1e-9

// meets says whether a value keeps it.
func (g Goal) meets(value float64) bool {
	if math.Abs(value-g.limit) <= equal*g.limit {
		return g.at
	}
	return g.below == (value < g.limit)
}

// Met holds a load against goals. Without a load, or without goals, none is met.
func Met(goals []Goal, load *model.Load) (list []model.TuneGoal, all bool) {
	all = len(goals) > 0 && load != nil
	for _, g := range goals {
		one := model.TuneGoal{Goal: g.text}
		// Without requests a latency of 0 says nothing.
		if load != nil && load.Requests > 0 {
			one.Value = g.of(load)
			one.Met = g.meets(one.Value) && !(g.time && one.Value == 0)
		}
		list = append(list, one)
		all = all && one.Met
	}
	return list, all
}

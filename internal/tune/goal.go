package tune

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// Goal is one condition of a service level, such as "p99<50ms".
type Goal struct {
	text  string
	below bool    // the value has to be below the bound, else above it
	bound float64 // latencies in µs, shares as ratio
	of    func(*model.Load) float64
}

var goalForm = regexp.MustCompile(`^([a-z0-9]+)([<>])([0-9.]+)([a-zµ/%]*)$`)

// latencies are what users waited, failed requests included.
var latencies = map[string]func(*model.Load) float64{
	"p50":  func(l *model.Load) float64 { return l.Waited.P50 },
	"p90":  func(l *model.Load) float64 { return l.Waited.P90 },
	"p99":  func(l *model.Load) float64 { return l.Waited.P99 },
	"p999": func(l *model.Load) float64 { return l.Waited.P999 },
	"max":  func(l *model.Load) float64 { return l.Waited.Max },
}

// ParseGoals reads conditions set apart by commas, all of which have to hold:
//
//	p50 p90 p99 p999 max   <  a time (50ms, 1.5s, 800us)
//	good                   >  a number of good replies a second (5000/s)
//	share                  >  the share of requests with a good reply (99.9%)
//	errors                 <  the share of all that was tried without one (0.1%)
func ParseGoals(text string) ([]Goal, error) {
	var list []Goal
	for one := range strings.SplitSeq(text, ",") {
		g, err := parseGoal(strings.ReplaceAll(one, " ", ""))
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

func parseGoal(text string) (Goal, error) {
	bad := fmt.Errorf("%q: want something like p99<50ms, good>5000/s, errors<0.1%% or share>99.9%%, set apart by commas", text)
	m := goalForm.FindStringSubmatch(text)
	if m == nil {
		return Goal{}, bad
	}
	g := Goal{text: text, below: m[2] == "<"}
	number, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return Goal{}, bad
	}
	latency := latencies[m[1]]
	switch {
	case latency != nil && g.below:
		d, err := time.ParseDuration(m[3] + m[4])
		if err != nil {
			return Goal{}, bad
		}
		g.of, g.bound = latency, float64(d)/float64(time.Microsecond)
	case m[1] == "good" && !g.below && (m[4] == "/s" || m[4] == ""):
		g.of, g.bound = func(l *model.Load) float64 { return l.GoodRPS }, number
	case m[1] == "share" && !g.below && m[4] == "%" && number < 100:
		g.of, g.bound = func(l *model.Load) float64 { return l.GoodShare }, number/100
	case m[1] == "errors" && g.below && m[4] == "%" && number <= 100:
		g.of, g.bound = func(l *model.Load) float64 { return 1 - l.GoodShare }, number/100
	default:
		return Goal{}, bad
	}
	return g, nil
}

// Met holds a load against goals. Without a load, or without goals, none is met.
func Met(goals []Goal, load *model.Load) (list []model.TuneGoal, all bool) {
	all = len(goals) > 0 && load != nil
	for _, g := range goals {
		one := model.TuneGoal{Goal: g.text}
		// Without requests a latency of 0 says nothing.
		if load != nil && load.Requests > 0 {
			one.Value = g.of(load)
			one.Met = g.below == (one.Value < g.bound) && one.Value != g.bound
		}
		list = append(list, one)
		all = all && one.Met
	}
	return list, all
}

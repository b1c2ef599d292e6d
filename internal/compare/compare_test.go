package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
)

// made is a run of so many seconds around a rate: from second to second it
// wanders, as real ones do, and the run as a whole lies off by mood.
func made(random *rand.Rand, seconds int, rate, mood float64) run {
	r := run{dir: "r", load: &model.Load{GoodShare: 1}, meta: model.Run{Plan: model.Plan{Load: &model.LoadPlan{URL: "http://a/"}}}}
	rate *= math.Exp(mood * random.NormFloat64())
	drift, sum := 0.0, 0.0
	for range seconds {
		drift = 0.7*drift + 0.02*random.NormFloat64()
		good := rate * math.Exp(drift)
		sum += good
		r.seconds = append(r.seconds, model.Second{Good: int64(good), Replies: int64(good), P50: 1e6 / good, P99: 3e6 / good})
	}
	r.load.GoodRPS = sum / float64(seconds)
	r.load.Waited = model.Quantiles{P50: 1e6 / r.load.GoodRPS, P99: 3e6 / r.load.GoodRPS}
	return r
}

func side(random *rand.Rand, runs int, rate, mood float64) Side {
	var s Side
	for range runs {
		s.runs = append(s.runs, made(random, 10, rate, mood))
	}
	return s
}

// What 51 runs of five seconds of one nginx were like on a shared machine: the rate
// of seconds and of runs moves little, the latencies of seconds much more, and now
// and then a whole run is off.
var shared = []struct {
	measure         string
	ofSecond, ofRun float64
	second          func(*model.Second, float64)
	whole           func(*model.Load, float64)
}{
	{"good_rps", 0.06, 0.04, func(s *model.Second, v float64) { s.Good = int64(v) }, func(l *model.Load, v float64) { l.GoodRPS = v }},
	{"latency_p50", 0.25, 0.05, func(s *model.Second, v float64) { s.P50 = v }, func(l *model.Load, v float64) { l.Waited.P50 = v }},
	{"latency_p99", 0.10, 0.07, func(s *model.Second, v float64) { s.P99 = v }, func(l *model.Load, v float64) { l.Waited.P99 = v }},
}

func sharedRun(random *rand.Rand) run {
	r := run{dir: "r", load: &model.Load{GoodShare: 1}, seconds: make([]model.Second, 5), meta: model.Run{Plan: model.Plan{Load: &model.LoadPlan{URL: "http://a/"}}}}
	for _, m := range shared {
		level := 5000 * math.Exp(m.ofRun*random.NormFloat64())
		drift, sum := 0.0, 0.0
		for i := range r.seconds {
			drift = 0.6*drift + 0.8*m.ofSecond*random.NormFloat64()
			v := level * math.Exp(drift)
			r.seconds[i].Replies = 5000
			m.second(&r.seconds[i], v)
			sum += v / float64(len(r.seconds))
		}
		m.whole(r.load, sum)
	}
	return r
}

func TestEqualRunsOnASharedMachine(t *testing.T) {
	const trials = 1000
	random := rand.New(rand.NewPCG(5, 5))
	answers := map[string]int{}
	for range trials {
		for _, d := range Compare(Side{[]run{sharedRun(random)}}, Side{[]run{sharedRun(random)}}).Differences {
			answers[d.Name+" "+string(d.Answer)]++
		}
	}
	for _, m := range shared {
		for _, word := range []model.ComparisonAnswer{model.Better, model.Worse} {
			if n := answers[m.measure+" "+string(word)]; n > trials/20 {
				t.Errorf("%s was called %s in %d of %d", m.measure, word, n, trials)
			}
		}
	}
	if answers["good_rps not known"] > 0 {
		t.Error("five seconds are enough to tell")
	}
}

// A second without a reply has no latency; with too few that have one, none is known.
func TestSecondsWithoutReplies(t *testing.T) {
	with := func(replies ...int64) Side {
		r := run{load: &model.Load{GoodRPS: 10, GoodShare: 1, Waited: model.Quantiles{P50: 100, P99: 100}}}
		for _, n := range replies {
			r.seconds = append(r.seconds, model.Second{Replies: n, Good: n, P50: 100 * float64(min(n, 1)), P99: 100 * float64(min(n, 1))})
			if n > 0 {
				r.felt, r.feltIn = 100, append(r.feltIn, 100)
			}
		}
		return Side{[]run{r}}
	}
	for _, d := range Compare(with(10, 0, 10, 0), with(10, 10, 10, 10)).Differences {
		if d.Answer != model.NoDifference {
			t.Errorf("two seconds with replies: %+v", d)
		}
	}
	for _, d := range Compare(with(10, 0, 0, 0), with(10, 10, 10, 10)).Differences {
		if known := d.Answer != model.NotKnown; known != (d.Name == "good_rps") {
			t.Errorf("one second with replies: %+v", d)
		}
	}
}

// Of equal runs at most one in twenty may be called better, and one worse.
func TestEqualRunsAreEqual(t *testing.T) {
	const trials = 400
	for name, c := range map[string]struct {
		runs int
		mood float64
	}{
		"one run each": {1, 0.02}, "three runs each": {3, 0.05}, "five runs each": {5, 0.05},
	} {
		random := rand.New(rand.NewPCG(7, 7))
		better := map[string]int{}
		for range trials {
			got := Compare(side(random, c.runs, 5000, c.mood), side(random, c.runs, 5000, c.mood))
			for _, d := range got.Differences {
				if d.Answer == model.Better {
					better[d.Name]++
				}
			}
		}
		for name2, n := range better {
			if n > trials/20 {
				t.Errorf("%s: %s was called better in %d of %d", name, name2, n, trials)
			}
		}
	}
}

func TestTrueDifferencesAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for name, c := range map[string]struct {
		runs int
		by   float64
		want model.ComparisonAnswer
	}{
		"a quarter more, one run": {1, 1.25, model.Better}, "a quarter less, one run": {1, 0.75, model.Worse},
		"a tenth more, eight runs": {8, 1.1, model.Better}, "a tenth less, eight runs": {8, 0.9, model.Worse},
	} {
		got := Compare(side(random, c.runs, 5000, 0.02), side(random, c.runs, 5000*c.by, 0.02))
		d := got.Differences[0]
		if d.Answer != c.want || d.Low > c.by*1.05 || d.High < c.by*0.95 {
			t.Errorf("%s: %+v, want %s", name, d, c.want)
		}
		if got.Answer() != c.want {
			t.Errorf("%s: as a whole %s", name, got.Answer())
		}
	}
}

// failing makes a side of one run, in which a share of the requests fails that
// wanders from second to second.
func failing(random *rand.Rand, share float64) Side {
	r := made(random, 8, 5000, 0)
	var good, all int64
	for i := range r.seconds {
		s := &r.seconds[i]
		s.Failed = int64(share * math.Exp(0.2*random.NormFloat64()) * float64(s.Replies))
		s.Good -= s.Failed
		s.Replies -= s.Failed
		good, all = good+s.Good, all+s.Replies+s.Failed
	}
	r.load.GoodShare = float64(good) / float64(all)
	return Side{[]run{r}}
}

func TestTheLastFailuresCount(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for name, c := range map[string]struct {
		a, b float64 // shares that fail
		want model.ComparisonAnswer
	}{
		"the last of them are gone": {0.04, 0, model.Better}, "they are there": {0, 0.03, model.Worse},
		"as many, but for the mood": {0.03, 0.025, model.NoDifference}, "one run had a hiccup": {0.003, 0, model.NoDifference},
		"as many of many": {0.3, 0.29, model.NoDifference}, "many fewer of many": {0.3, 0.1, model.Better},
	} {
		d := Compare(failing(random, c.a), failing(random, c.b)).Differences[1]
		if d.Answer != c.want {
			t.Errorf("%s: %+v, want %s", name, d, c.want)
		}
	}
}

func TestNothingAndSomething(t *testing.T) {
	none, some := run{load: &model.Load{}}, run{load: &model.Load{GoodRPS: 10, GoodShare: 1}}
	got := Compare(Side{[]run{none}}, Side{[]run{some}})
	if d := got.Differences[0]; d.Answer != model.Better || d.Ratio != 0 {
		t.Errorf("from nothing to something: %+v", d)
	}
	got = Compare(Side{[]run{some}}, Side{[]run{some}})
	if d := got.Differences[0]; d.Answer != model.NotKnown {
		t.Errorf("without a single second: %+v", d)
	}
}

func histogram(values ...int64) *hdr.PackedHistogram {
	h := hdr.NewPacked(1, 3_600_000_000, 3)
	for _, v := range values {
		_ = h.RecordValue(v) // within its bounds
	}
	return h
}

func TestSuperiority(t *testing.T) {
	of := func(h *hdr.PackedHistogram) Side { return Side{[]run{{latency: h}}} }
	for want, pair := range map[float64][2]*hdr.PackedHistogram{
		1:    {histogram(100, 200), histogram(10, 20)},
		0:    {histogram(10, 20), histogram(100, 200)},
		0.5:  {histogram(10, 20), histogram(10, 20)},
		0.75: {histogram(10, 30), histogram(20, 5)},
	} {
		if got := superiority(of(pair[0]), of(pair[1])); got == nil || math.Abs(*got-want) > 1e-9 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if superiority(of(nil), of(histogram(1))) != nil {
		t.Error("where one side has no reply there are no pairs")
	}
}

func TestWhatIsNotComparable(t *testing.T) {
	a, b := run{dir: "a"}, run{dir: "b"}
	a.meta = model.Run{Plan: model.Plan{Load: &model.LoadPlan{URL: "http://a/", Connections: 1}}, Hosts: []model.Host{{Name: "h", CPUs: 2}}}
	b.meta = model.Run{Plan: model.Plan{Load: &model.LoadPlan{URL: "http://a/", Connections: 2}}, Hosts: []model.Host{{Name: "h", CPUs: 4}}}
	err := Comparable(Side{[]run{a}}, Side{[]run{b}})
	if want := "a and b: not comparable: connections: 1 and 2, CPUs of h: 2 and 4"; err == nil || err.Error() != want {
		t.Errorf("%v: want %q", err, want)
	}
	if err := Comparable(Side{[]run{a}}, Side{[]run{a, b, b}}); !errors.Is(err, ErrNotComparable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v: want one line of two", err)
	}
	if err := Comparable(Side{[]run{a}}, Side{[]run{a}}); err != nil {
		t.Error(err)
	}
}

// The order in which hosts were named makes no other machines of them.
func TestHostsAreComparedByName(t *testing.T) {
	of := func(hosts ...model.Host) Side {
		return Side{[]run{{dir: "r", meta: model.Run{Plan: model.Plan{Load: &model.LoadPlan{}}, Hosts: hosts}}}}
	}
	web, db := model.Host{Name: "web", CPUs: 2, Machine: "m1"}, model.Host{Name: "db", CPUs: 4, Machine: "m2"}
	if err := Comparable(of(web, db), of(db, web)); err != nil {
		t.Error(err)
	}
	if err := Comparable(of(web, db), of(web)); err == nil || !strings.HasSuffix(err.Error(), "hosts: db web and web") {
		t.Errorf("%v, want it to name the hosts", err)
	}
	other := db
	other.Machine = "m3"
	if err := Comparable(of(web, db), of(other, web)); err == nil || !strings.HasSuffix(err.Error(), "machine (boot id) of db: m2 and m3") {
		t.Errorf("%v, want it to tell of db alone", err)
	}
}

// Nobody is told that two loads are equal whose rows of variables may be different.
func TestValuesOfVariablesAreNotKnown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, v := range []*model.Variables{nil, {Names: []string{"id"}, Rows: 3}} {
		one := side(random, 1, 5000, 0)
		one.runs[0].meta.Plan.Load = &model.LoadPlan{Variables: v}
		told := slices.ContainsFunc(Compare(one, one).Notes, func(s string) bool { return strings.Contains(s, "--vars") })
		if told != (v != nil) {
			t.Errorf("%+v: a note on the values of variables: %v", v, told)
		}
	}
}

func TestChanges(t *testing.T) {
	moved, still := summarize([]float64{10, 12, 11}), summarize([]float64{100, 101, 99})
	a := Side{[]run{{series: map[string]summary{
		`node_sysctl_net_core_somaxconn{host="s"}`: summarize([]float64{128, 128}), "waits_total": moved, "steady": still, "gone": moved,
	}}}}
	b := Side{[]run{{series: map[string]summary{
		`node_sysctl_net_core_somaxconn{host="s"}`: summarize([]float64{4096, 4096}), "waits_total": summarize([]float64{50, 52, 51}), "steady": summarize([]float64{101, 100, 100}),
	}}}}
	signals, configuration := changes(a, b)
	if len(signals) != 1 || signals[0].Series != "waits_total" || len(configuration) != 1 || configuration[0].B != 4096 {
		t.Errorf("signals %+v, configuration %+v", signals, configuration)
	}
}

func TestStudentNeverTooNarrow(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2.9: 4.303, 30: 2.042, 100: 1.984} {
		if got := student(freedom); got < want-0.001 || got > want+0.02 {
			t.Errorf("student(%v) = %v, want %v", freedom, got, want)
		}
	}
}

func TestUsersThatAreNeverServedCount(t *testing.T) {
	few := func(p99 float64) run {
		r := made(rand.New(rand.NewPCG(4, 4)), 6, 9000, 0)
		r.load.Waited.P99 = p99
		return r
	}
	d := Compare(Side{[]run{few(2e6)}}, Side{[]run{few(86e3)}}).Differences[3]
	if d.Name != "latency_p99" || d.A != 2e6 || d.Answer != model.Better {
		t.Errorf("nobody waits for two seconds any more: %+v", d)
	}
}

// Of a thousand users a few get in and are answered in a millisecond, the others wait
// for a second and try again: nearly every request is fast, nearly every user waits.
func TestAWaitCountsForAsLongAsItLasts(t *testing.T) {
	var w waits
	w.times(26_000, 1000)
	w.times(970, 1e6)
	if closed := w.felt(false); closed < 0.95e6 || closed > 1e6 {
		t.Errorf("in a closed loop a user is found in a wait of %.0f µs", closed)
	}
	if open := w.felt(true); open < 36_000 || open > 38_000 {
		t.Errorf("in an open one the mean is %.0f µs", open)
	}
	if none := (waits{}).felt(false); none != 0 {
		t.Errorf("nobody waited, and it is %v", none)
	}
}

// users makes a side of one run of which the median, the wait of a user and the
// 99th percentile are given, in µs; unsteady is how much the wait wanders.
func users(random *rand.Rand, p50, wait, p99, unsteady float64) Side {
	r := made(random, 20, 5000, 0)
	r.load.Waited.P50, r.load.Waited.P99, r.felt, r.feltIn = p50, p99, wait, nil
	for i := range r.seconds {
		r.seconds[i].P50, r.seconds[i].P99 = p50, p99
		r.feltIn = append(r.feltIn, wait*math.Exp(unsteady*random.NormFloat64()))
	}
	return Side{[]run{r}}
}

// What users waited outweighs the median of requests, but not where it is unsteady,
// and it outweighs nothing else.
func TestTheMedianAlone(t *testing.T) {
	for name, c := range map[string]struct {
		p50, wait, p99, unsteady float64
		want                     model.ComparisonAnswer
		outweighed               bool
	}{
		"it alone is worse":                          {1.5, 1, 1, 0.01, model.NoDifference, true},
		"it is worse, and users waited less":         {1.5, 0.5, 1, 0.01, model.Better, true},
		"it is worse, and users waited as much more": {1.5, 1.5, 1, 0.01, model.Worse, false},
		"the wait is too unsteady to tell":           {1.5, 1, 1, 0.7, model.Worse, false},
		"the wait may have grown as much":            {1.2, 1.05, 1, 0.01, model.Worse, false},
		"the slowest are slower":                     {1, 0.5, 1.5, 0.01, model.Worse, false},
		"it is worse, and so are the slowest":        {1.5, 1, 1.5, 0.01, model.Worse, true},
		"it is better":                               {0.5, 1, 1, 0.01, model.Better, false},
	} {
		random := rand.New(rand.NewPCG(4, 4))
		got := Compare(users(random, 1000, 2000, 9000, c.unsteady), users(random, 1000*c.p50, 2000*c.wait, 9000*c.p99, c.unsteady))
		if outweighed := got.Outweighed(got.Differences[2]); got.Answer() != c.want || outweighed != c.outweighed {
			t.Errorf("%s: %s, outweighed %v; want %s, %v: %+v", name, got.Answer(), outweighed, c.want, c.outweighed, got.Differences)
		}
	}
}

// An attempt to connect that failed is no request in a closed loop, and somebody waited for it all the same.
func TestFailedAttemptsAreWaits(t *testing.T) {
	load := model.Load{Outcomes: map[string]int64{"2xx": 1000, "5xx": 3, "read:timeout": 7, "connect:timeout": 200}}
	load.AddUp(false)
	if n := failures(load.Outcomes); n != 207 || load.Requests != 1010 {
		t.Errorf("%d of %d ended without a reply; want 207, of which 200 are no requests", n, load.Requests)
	}
}

// Of groups with nothing between them one in twenty lies further apart than one in twenty does.
func TestChance(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	beyond, missed := 0, 0
	for range 200 {
		of := func(factor float64) (g []float64) {
			for range 3 {
				g = append(g, factor*5000*math.Exp(0.05*random.NormFloat64()))
			}
			return g
		}
		if p, known := Chance([][]float64{of(1), of(1), of(1)}); !known || p < 0.05 {
			beyond++
		}
		if p, known := Chance([][]float64{of(1), of(1.5)}); !known || p >= 0.05 {
			missed++
		}
	}
	if beyond > 20 || missed > 4 {
		t.Errorf("of 200 equal ones %d are called different, of 200 different ones %d equal", beyond, missed)
	}
	for name, groups := range map[string][][]float64{"one run each": {{1}, {2}}, "nothing varies": {{5, 5}, {5, 5}}, "nothing got through": {{0, 1}, {2, 3}}} {
		if p, known := Chance(groups); known {
			t.Errorf("%s: %v", name, p)
		}
	}
}

package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/change"
	"plimsoll/internal/model"
)

// service is a make-believe service: limits, one behind the other. The first
// that is below its need sets the rate, and is what the verdict names.
type service struct {
	limits  []limit
	values  map[string]int
	entries []change.Entry // open ones
	runs    int
	seen    map[string]Seen
	journal []string // what was done, in order
	cancel  func()   // called in run cancelAt
	at      int
}

type limit struct {
	rule   string
	need   int
	to     func(now int) int // what the rule's fix asks for
	rate   int               // good requests a second while it binds
	always bool              // it is named whatever its value is, and lifting it does nothing
	accept func(now int) model.Truth
}

func (s *service) binding() *limit {
	for i, l := range s.limits {
		if l.always || s.values[l.rule] < l.need {
			return &s.limits[i]
		}
	}
	return nil
}

func (s *service) run(ctx context.Context) (Seen, error) {
	s.runs++
	if s.cancel != nil && s.runs == s.at {
		s.cancel()
	}
	seen := Seen{Dir: strconv.Itoa(s.runs), Verdict: model.Verdict{Answer: model.AnswerHealthy}, Load: &model.Load{GoodRPS: 5000, RPS: 5000, GoodShare: 1, Requests: 1}}
	for _, l := range s.limits {
		if !l.always && s.values[l.rule] < l.need {
			seen.Load.GoodRPS = float64(l.rate)
			break
		}
		if l.always && s.values[l.rule] > 0 && l.rate > 0 {
			seen.Load.GoodRPS = float64(l.rate) // it does harm
		}
	}
	if l := s.binding(); l != nil {
		impact := 0.9
		seen.Verdict = model.Verdict{Answer: model.AnswerCause, Root: []model.Finding{{Rule: l.rule, Title: l.rule, Impact: &impact,
			Subject: map[string]string{"host": "s"}, Fix: []model.Fix{{Title: "raise " + l.rule, Risk: "low", Undo: "automatic", Restart: "none",
				Changes: []model.FixChange{{Kind: "sysctl", Name: l.rule, Value: strconv.Itoa(l.to(s.values[l.rule])), Host: "s"}}}}}}}
	}
	s.seen[seen.Dir] = seen
	return seen, nil
}

func (s *service) tools() Tools {
	s.seen = map[string]Seen{}
	return Tools{Run: s.run, Prepare: s.prepare, Apply: s.apply, LeaveOut: s.leaveOut, Compare: s.compare,
		Accepted: func(dir, rule string, _ int, _ map[string]string) (model.Truth, error) {
			for _, l := range s.limits {
				if l.rule == rule && l.accept != nil {
					return l.accept(s.values[rule]), nil
				}
				if l.rule == rule && !l.always && s.values[rule] < l.need {
					return model.False, nil
				}
			}
			return model.True, nil
		}}
}

func (s *service) compare(before, after string) (model.Comparison, error) {
	a, b := s.seen[before].Load.GoodRPS, s.seen[after].Load.GoodRPS
	d := model.Difference{Name: "good_rps", A: a, B: b, Answer: model.NoDifference}
	if a > 0 {
		d.Ratio = b / a
	}
	switch {
	case b > a*1.05:
		d.Answer = model.Better
	case b < a*0.95:
		d.Answer = model.Worse
	}
	return model.Comparison{Differences: []model.Difference{d}}, nil
}

func TestChangeOf(t *testing.T) {
	for _, c := range []struct {
		fix  model.FixChange
		want change.Change
	}{
		{model.FixChange{Kind: "nginx", Name: "worker_connections", Value: "9", ListensAt: "[::]:80"},
			change.Change{Kind: change.Nginx, Name: "worker_connections", To: "9", ListensAt: "[::]:80"}},
		{model.FixChange{Kind: "nginx", Name: "keepalive_timeout", Value: "75s", Subject: map[string]string{"host": "c", "dst": "10.0.0.2:80"}},
			change.Change{Kind: change.Nginx, Name: "keepalive_timeout", To: "75s", ListensAt: "10.0.0.2:80"}},
		{model.FixChange{Kind: "phpfpm", Name: "pm", Value: "static", Subject: map[string]string{"pool": "www@4711", "listen": "127.0.0.1:9000"}},
			change.Change{Kind: change.PHPFPM, Name: "pm", To: "static", Pool: "www@4711", ListensAt: "127.0.0.1:9000"}},
		{model.FixChange{Kind: "sysctl", Name: "x", Value: "1", Subject: map[string]string{"listen": "0.0.0.0:80"}},
			change.Change{Kind: change.Sysctl, Name: "x", To: "1"}},
	} {
		if got := ChangeOf(c.fix); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

func (s *service) prepare(x model.FixChange) (change.Step, error) {
	old := strconv.Itoa(s.values[x.Name])
	if old == x.Value {
		return change.Step{}, fmt.Errorf("%s: %w", x.Name, change.ErrAlready)
	}
	return change.Step{Change: ChangeOf(x), Host: x.Host, Old: old, New: x.Value}, nil
}

func (s *service) apply(_ context.Context, step change.Step) (change.Entry, error) {
	e := change.Entry{ID: len(s.journal) + 1, State: change.Done, Change: step.Change, Host: step.Host, Old: step.Old, New: step.New}
	s.values[step.Change.Name], _ = strconv.Atoi(step.New)
	s.entries = append(s.entries, e)
	s.journal = append(s.journal, "+"+step.Change.Name+"="+step.New)
	return e, nil
}

func (s *service) leaveOut(_ context.Context, id int) (map[int]change.Entry, error) {
	for i, e := range s.entries {
		if e.ID == id {
			s.values[e.Change.Name], _ = strconv.Atoi(e.Old)
			s.entries = append(s.entries[:i], s.entries[i+1:]...)
			s.journal = append(s.journal, "-"+e.Change.Name)
			return nil, nil
		}
	}
	return nil, errors.New("no such change")
}

func to(v int) func(int) int { return func(int) int { return v } }

func walked(t *testing.T, s *service, opt Options) model.Tuning {
	t.Helper()
	if s.values == nil {
		s.values = map[string]int{}
	}
	if opt.MaxRisk == "" {
		opt.MaxRisk = "medium"
	}
	if opt.MaxSteps == 0 {
		opt.MaxSteps = 12
	}
	got, err := Walk(t.Context(), s.tools(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// said is a walk in a line: each step's rule and what became of its change.
func said(r model.Tuning) string {
	var parts []string
	for _, s := range r.Steps {
		text := string(s.Answer)
		if s.Fix != nil {
			text = s.Fix.Rule + " " + string(s.Fix.Outcome)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func TestWalks(t *testing.T) {
	chain := []limit{{rule: "a", need: 10, to: to(100), rate: 100}, {rule: "b", need: 10, to: to(100), rate: 1000}}
	for name, c := range map[string]struct {
		service service
		opt     Options
		want    string
		did     string
		stopped string
	}{
		"two limits, one behind the other": {service{limits: chain}, Options{Apply: true},
			"a kept, b kept, healthy", "+a=100 +b=100", "healthy"},
		"nothing without --apply": {service{limits: chain}, Options{}, "a proposed", "", "nothing was changed"},
		"a limit that pays only when the next is lifted": {service{limits: []limit{
			{rule: "a", need: 10, to: to(100), rate: 100}, {rule: "b", need: 10, to: to(100), rate: 90}}}, Options{Apply: true},
			"a kept, b kept, healthy", "+a=100 +b=100 -a +a=100", "healthy"},
		"a change that did what it should and never pays": {service{limits: []limit{
			{rule: "a", need: 10, to: to(100), rate: 5000}, {rule: "b", need: 10, to: to(100), rate: 5000}}}, Options{Apply: true},
			"a undone, b undone, healthy", "+a=100 +b=100 -b -a", "healthy"},
		"a rule that fires wrongly, without effect": {service{limits: []limit{{rule: "wrong", always: true, to: to(7)}}}, Options{Apply: true},
			"wrong undone, cause", "+wrong=7 -wrong", "not for tune"},
		"a rule that fires wrongly and does harm": {service{limits: []limit{{rule: "wrong", always: true, to: to(7), rate: 10}}}, Options{Apply: true},
			"wrong undone, cause", "+wrong=7 -wrong", "not for tune"},
		"a limit that is raised and binds again": {service{limits: []limit{
			{rule: "a", need: 100, to: func(now int) int { return 4*now + 5 }, rate: 100}}}, Options{Apply: true},
			"a kept, a kept, a kept, healthy", "+a=5 +a=25 +a=105", "healthy"},
		"a fix that does not lift what it should": {service{limits: []limit{{rule: "a", need: 100, to: to(50), rate: 100}}}, Options{Apply: true},
			"a undone, cause", "+a=50 -a", "not for tune"},
		"--never":     {service{limits: chain}, Options{Apply: true, Never: []string{"sysctl"}}, "cause", "", "not for tune"},
		"--only":      {service{limits: chain}, Options{Apply: true, Only: []string{"a"}}, "a kept, cause", "+a=100", "not for tune"},
		"--max-steps": {service{limits: chain}, Options{Apply: true, MaxSteps: 1}, "a kept, cause", "+a=100", "--max-steps: 1"},
		"a goal that is met": {service{limits: chain}, Options{Apply: true, Goals: []Goal{mustGoal("good>500/s")}},
			"a kept, cause", "+a=100", "goals"},
	} {
		t.Run(name, func(t *testing.T) {
			got := walked(t, &c.service, c.opt)
			if did := strings.Join(c.service.journal, " "); did != c.did || said(got) != c.want {
				t.Errorf("said %q, did %q\nwant %q and %q", said(got), did, c.want, c.did)
			}
			if !strings.Contains(got.Stopped, c.stopped) {
				t.Errorf("stopped: %q, want %q in it", got.Stopped, c.stopped)
			}
		})
	}
}

func mustGoal(text string) Goal {
	g, err := parseGoal(text)
	if err != nil {
		panic(err)
	}
	return g
}

func TestInterruptedWalkTakesAllBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := service{values: map[string]int{}, cancel: cancel, at: 3, limits: []limit{
		{rule: "a", need: 10, to: to(100), rate: 100}, {rule: "b", need: 10, to: to(100), rate: 1000}}}
	got, err := Walk(ctx, s.tools(), Options{Apply: true, MaxRisk: "low", MaxSteps: 9})
	if !errors.Is(err, context.Canceled) || s.values["a"] != 0 || s.values["b"] != 0 || len(s.entries) != 0 {
		t.Errorf("%v, values %v", err, s.values)
	}
	if !strings.Contains(got.Stopped, "all of its 2 changes were taken back") {
		t.Error(got.Stopped)
	}
}

func TestGoals(t *testing.T) {
	load := &model.Load{Requests: 10, GoodRPS: 5000, GoodShare: 0.999, Waited: model.Quantiles{P50: 900, P95: 20_000, P99: 49_000}}
	for text, want := range map[string]bool{
		"p99<50ms": true, "p99<49ms": false, "p50<1ms,good>4999/s": true, "good>5000/s": false, "share>99%": true, "share>99.9%": false,
		"p99 < 0.05s, good > 10": true, "p99<50ms,good>6000/s": false,
		"P95<21ms": true, "p95<=20ms": true, "p95<20ms": false, "good>=5k/s": true, "good>5k/s": false, "share>=100%": false, "errors<=0%": false,
		"errors<=0.1%": true, "errors<0.1%": false, "share>=99.9%": true, // what is equal in decimals is
		"p999<1s": false, "p99.9<1s": false, // what was not recorded is not 0
	} {
		goals, err := ParseGoals(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, all := Met(goals, load); all != want {
			t.Errorf("%s: %v, want %v", text, all, want)
		}
		if _, all := Met(goals, &model.Load{}); all {
			t.Errorf("%s is met without a single request", text)
		}
	}
	for _, text := range []string{"", "p99", "p99>50ms", "p99<50", "p99<50%", "good<5/s", "share>1", "share>100%", "p98<1ms", "p99<1ms,,", "p99<1ms good>3", "p99<NaNms",
		"errors<0%", "p99<0ms", "share>=101%", "errors<0.1", "good>=5%", "p99=50ms", "rps>5"} {
		if goals, err := ParseGoals(text); err == nil {
			t.Errorf("%q was taken for %+v", text, goals)
		}
	}
}

func FuzzParseGoals(f *testing.F) {
	f.Add("p99<50ms,good>5000/s,share>99.9%")
	f.Fuzz(func(t *testing.T, text string) {
		goals, err := ParseGoals(text)
		if (err == nil) == (len(goals) == 0) {
			t.Errorf("%q: %v and %v", text, goals, err)
		}
		Met(goals, &model.Load{Requests: 1})
	})
}

func TestForbidden(t *testing.T) {
	root := model.Finding{Rule: "net.x"}
	good := model.Fix{Risk: "low", Undo: "automatic", Restart: "none", Changes: []model.FixChange{{Kind: "sysctl", Name: "x", Value: "1"}}}
	with := func(change func(*model.Fix)) model.Fix {
		f := good
		change(&f)
		return f
	}
	opt := Options{MaxRisk: "low"}
	for name, c := range map[string]struct {
		fix  model.Fix
		opt  Options
		want string
	}{
		"allowed":                {good, opt, ""},
		"a person's":             {with(func(f *model.Fix) { f.Changes = []model.FixChange{{Kind: "person", Name: "look", Value: "1"}} }), opt, "a person's"},
		"no typed change at all": {with(func(f *model.Fix) { f.Changes = nil }), opt, "a person's"},
		"no value":               {with(func(f *model.Fix) { f.Changes = []model.FixChange{{Kind: "sysctl", Name: "x"}} }), opt, "new value"},
		"no undo":                {with(func(f *model.Fix) { f.Undo = "manual" }), opt, "taken back"},
		"too risky":              {with(func(f *model.Fix) { f.Risk = "medium" }), opt, "risk medium"},
		"a restart":              {with(func(f *model.Fix) { f.Restart = "service" }), opt, "a restart of the service"},
		"never, by prefix":       {good, Options{MaxRisk: "low", Never: []string{"net."}}, "--never"},
		"only another":           {good, Options{MaxRisk: "low", Only: []string{"nginx"}}, "--only"},
		"only this kind":         {good, Options{MaxRisk: "low", Only: []string{"sysctl"}}, ""},
	} {
		if got := forbidden(root, c.fix, c.opt); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestPaid(t *testing.T) {
	d := func(name string, ratio float64, a model.ComparisonAnswer) model.Difference {
		return model.Difference{Name: name, Ratio: ratio, Answer: a}
	}
	for name, c := range map[string]struct {
		list []model.Difference
		want model.ComparisonAnswer
	}{
		"nothing moved":                                      {[]model.Difference{d("good_rps", 1.01, model.NoDifference)}, model.NoDifference},
		"noise that could hide twice as much":                {[]model.Difference{{Name: "good_rps", Ratio: 30, Low: 0.8, High: 2, Answer: model.NoDifference}, d("latency_p50", 0.4, model.NoDifference)}, model.NotKnown},
		"noise that could hide a little less":                {[]model.Difference{{Name: "good_rps", Ratio: 1.2, Low: 0.8, High: 1.9, Answer: model.NoDifference}}, model.NoDifference},
		"nothing known":                                      {[]model.Difference{d("good_rps", 0, model.NotKnown)}, model.NotKnown},
		"from nothing, with slower replies":                  {[]model.Difference{d("good_rps", 0, model.Better), d("good_share", 0, model.Better), d("wait", 50, model.Worse)}, model.Better},
		"users who waited for long are served, at some rate": {[]model.Difference{d("good_rps", 0.86, model.Worse), d("latency_p50", 62, model.Worse), d("latency_p99", 0.07, model.Better), d("wait", 0.04, model.Better)}, model.Better},
		"two thirds more, and they wait no less":             {[]model.Difference{d("good_rps", 1.68, model.Better), d("latency_p99", 4.7, model.Worse), d("wait", 1.02, model.NoDifference)}, model.Better},
		"a shorter wait for half the rate":                   {[]model.Difference{d("good_rps", 0.5, model.Worse), d("wait", 0.8, model.Better)}, model.Worse},
	} {
		if got := paid(model.Comparison{Differences: c.list}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// harmful is a service of which one limit is named whatever its value is, and
// lifting it does harm.
func harmful() *service {
	return &service{values: map[string]int{}, limits: []limit{{rule: "a.wrong", to: func(int) int { return 7 }, rate: 10, always: true,
		accept: func(int) model.Truth { return model.False }}}}
}

func TestWhatCannotBeTakenBackStands(t *testing.T) {
	s := harmful()
	tools := s.tools()
	tools.LeaveOut = func(context.Context, int) (map[int]change.Entry, error) { return nil, errors.New("no right to write") }
	got, err := Walk(t.Context(), tools, Options{Apply: true, MaxRisk: "medium", MaxSteps: 12})
	if !errors.Is(err, ErrNotUndone) || !strings.Contains(err.Error(), "no right to write") || !strings.Contains(got.Stopped, "not every change") {
		t.Errorf("%v; %s", err, got.Stopped)
	}
	if fix := got.Steps[0].Fix; fix.Outcome != model.Stands {
		t.Errorf("%+v", fix)
	}
}

// A service that broke with a change may stay broken without it.
func TestHarmThatStaysIsSeen(t *testing.T) {
	s := harmful()
	tools := s.tools()
	tools.Run = func(ctx context.Context) (Seen, error) {
		seen, err := s.run(ctx)
		if s.runs > 1 {
			load := *seen.Load
			load.GoodRPS = 0
			seen.Load = &load
			s.seen[seen.Dir] = seen
		}
		return seen, err
	}
	got, err := Walk(t.Context(), tools, Options{Apply: true, MaxRisk: "medium", MaxSteps: 12})
	if err != nil || len(got.Steps) != 2 || got.Steps[0].Fix.Outcome != model.Undone || *got.Steps[1].GoodRPS != 0 || *got.End.GoodRPS != 0 {
		t.Errorf("%v: %+v", err, got)
	}
}

// One that ends in the middle of a run leaves a comparison without an answer.
func TestAServiceThatEndsInTheMiddleIsRunAgain(t *testing.T) {
	for name, s := range map[string]*service{"undone at once": harmful(), "on trial": onTrial()} {
		tools := s.tools()
		tools.Run = func(ctx context.Context) (Seen, error) {
			seen, err := s.run(ctx)
			seen.Load.GoodShare = []float64{1, 0.4, 0}[min(s.runs, 3)-1]
			return seen, err
		}
		tools.Compare = func(string, string) (model.Comparison, error) {
			return model.Comparison{Differences: []model.Difference{{Name: "good_rps", Answer: model.NoDifference}}}, nil
		}
		got, err := Walk(t.Context(), tools, Options{Apply: true, MaxRisk: "medium", MaxSteps: 12})
		if err != nil || s.runs != 3 {
			t.Errorf("%s: %v: %d runs, %+v", name, err, s.runs, got)
		}
	}
}

// onTrial is a service whose only fix does what it should and brings nothing.
func onTrial() *service {
	return &service{values: map[string]int{}, limits: []limit{{rule: "a", need: 10, to: func(int) int { return 100 }, rate: 5000}}}
}

// watched makes of a service one whose load is a command's: nobody knows what users get.
func watched(s *service, exit func(s *service) int) Tools {
	tools := s.tools()
	run := tools.Run
	tools.Compare = nil
	tools.Run = func(ctx context.Context) (Seen, error) {
		seen, err := run(ctx)
		code := exit(s)
		seen.Load, seen.Exit = nil, &code
		return seen, err
	}
	return tools
}

func TestWalksOfACommand(t *testing.T) {
	fine := func(*service) int { return 0 }
	unseen := func(int) model.Truth { return model.Unknown }
	for name, c := range map[string]struct {
		service  service
		exit     func(*service) int
		want     string
		did      string
		sentence string // of the first change, at the end
	}{
		"a limit that comes back without the change": {service{limits: []limit{{rule: "a", need: 10, to: to(100)}}}, fine,
			"a kept, healthy", "+a=100 -a +a=100", "without it the same cause binds again, so it stays"},
		"whether it did what it should is not seen": {service{limits: []limit{{rule: "a", need: 10, to: to(100), accept: unseen}}}, fine,
			"a kept, healthy", "+a=100 -a +a=100", "without it the same cause binds again, so it stays"},
		"two limits, one behind the other": {service{limits: []limit{{rule: "a", need: 10, to: to(100)}, {rule: "b", need: 10, to: to(100)}}}, fine,
			"a kept, b kept, healthy", "+a=100 +b=100 -b +b=100 -a +a=100", "without it the same cause binds again, so it stays"},
		"a fix that lifts nothing": {service{limits: []limit{{rule: "a", need: 100, to: to(50)}}}, fine,
			"a undone, cause", "+a=50 -a", "the same cause binds as before, so it was taken back"},
		"one that is said to have done its part, and is named as before": {
			service{limits: []limit{{rule: "a", always: true, to: to(7), accept: func(int) model.Truth { return model.True }}}}, fine,
			"a undone, cause", "+a=7 -a", "nothing shows that it is needed, so it was taken back"},
		"a limit that is raised until it binds no more": {service{limits: []limit{{rule: "a", need: 20, to: func(now int) int { return 4*now + 5 }}}}, fine,
			"a kept, a kept, healthy", "+a=5 +a=25 -a +a=25", "it still binds; raised again in the next step"},
		"a change with which the command fails": {service{limits: []limit{{rule: "a", need: 10, to: to(100)}}},
			func(s *service) int { return s.values["a"] / 100 },
			"a undone, healthy", "+a=100 -a", "the command failed with it and does not fail without it"},
		"a command that fails anyhow": {service{limits: []limit{{rule: "a", need: 10, to: to(100)}}}, func(*service) int { return 3 },
			"a kept, healthy", "+a=100 -a +a=100", "without it the same cause binds again, so it stays"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &c.service
			s.values = map[string]int{}
			got, err := Walk(t.Context(), watched(s, c.exit), Options{Apply: true, MaxRisk: "low", MaxSteps: 12})
			if err != nil {
				t.Fatal(err)
			}
			if did := strings.Join(s.journal, " "); did != c.did || said(got) != c.want {
				t.Errorf("said %q, did %q\nwant %q and %q", said(got), did, c.want, c.did)
			}
			fix := got.Steps[0].Fix
			if !strings.Contains(fix.Sentence, c.sentence) {
				t.Errorf("%q, want %q in it", fix.Sentence, c.sentence)
			}
			for _, claim := range []string{"it pays", "it paid", "it brought", "the result is"} {
				if strings.Contains(fix.Sentence, claim) {
					t.Errorf("%q, and nobody knows what users got", fix.Sentence)
				}
			}
		})
	}
}

// What nobody measured is null, not zero.
func TestNumbersOfACommandAreNotKnown(t *testing.T) {
	s := &service{values: map[string]int{}, limits: []limit{{rule: "a", need: 10, to: to(100)}}}
	got, err := Walk(t.Context(), watched(s, func(*service) int { return 2 }), Options{Apply: true, MaxRisk: "low", MaxSteps: 12})
	if err != nil || len(got.Steps) != 2 || len(got.Trials) != 1 {
		t.Fatalf("%v: %+v", err, got)
	}
	for name, l := range map[string]model.TuneLoad{"step": got.Steps[0].TuneLoad, "trial": got.Trials[0].TuneLoad, "end": got.End.TuneLoad} {
		doc, err := json.Marshal(l)
		if want := `{"rps":null,"good_rps":null,"good_share":null,"p50_us":null,"p99_us":null}`; err != nil || string(doc) != want {
			t.Errorf("%s: %s, want %s", name, doc, want)
		}
	}
	if *got.Steps[0].CommandExit != 2 || *got.Trials[0].CommandExit != 2 || got.Steps[0].Fix.Paid != model.NotKnown {
		t.Errorf("%+v", got.Steps[0])
	}
}

// Without a change a machine may let nobody in: then what it brings cannot be measured, and is no less for that.
func TestAChangeWithoutWhichThereIsNoWayStays(t *testing.T) {
	cut := errors.New("ssh:web: it does not answer")
	for name, c := range map[string]struct {
		shut  func(s *service) bool
		stays bool
	}{
		"shut without it":      {func(s *service) bool { return s.values["a"] == 0 }, true},
		"something else":       {func(*service) bool { return false }, false},
		"shut with it as well": {func(*service) bool { return true }, false},
	} {
		s := &service{values: map[string]int{}, limits: []limit{ // it pays, and does not do what it should: on trial
			{rule: "a", need: 10, to: func(int) int { return 100 }, rate: 10, accept: func(int) model.Truth { return model.False }}}}
		tools := s.tools()
		tools.Shut = func(_ context.Context, err error, hosts []string) bool {
			return errors.Is(err, cut) && len(hosts) == 1 && c.shut(s)
		}
		tools.Run = func(ctx context.Context) (Seen, error) {
			seen, err := s.run(ctx)
			if s.runs > 1 && s.values["a"] == 0 {
				err = cut
			}
			return seen, err
		}
		got, err := Walk(t.Context(), tools, Options{Apply: true, MaxRisk: "medium", MaxSteps: 12})
		fix := got.Steps[0].Fix
		if !c.stays && (!errors.Is(err, cut) || len(s.entries) > 0 || fix.Outcome == model.Kept) {
			t.Errorf("%s: %v; %+v stands, %+v", name, err, s.entries, fix)
		}
		if c.stays && (err != nil || s.values["a"] != 100 || fix.Outcome != model.Kept || !strings.Contains(fix.Sentence, "no way to the machine")) {
			t.Errorf("%s: %v: a is %d, %+v", name, err, s.values["a"], fix)
		}
	}
}

// Why a fix could not be made is told each time it would be the next, and not that it was tried.
func TestAFixThatCannotBeMadeSaysWhyAgain(t *testing.T) {
	s := &service{values: map[string]int{"ports": 1}, limits: []limit{{rule: "ports", need: 9, to: to(9), rate: 10}, {rule: "sealed", need: 9, to: to(9), rate: 100}}}
	tools := s.tools()
	tools.Run = func(ctx context.Context) (Seen, error) { // the sealed one is seen from the start
		seen, err := s.run(ctx)
		if first := seen.Verdict.Root[0]; first.Rule == "ports" {
			sealed := first
			sealed.Rule, sealed.Fix = "sealed", []model.Fix{{Title: "raise sealed", Risk: "low", Undo: "automatic", Restart: "none",
				Changes: []model.FixChange{{Kind: "sysctl", Name: "sealed", Value: "9", Host: "s"}}}}
			seen.Verdict.Root = []model.Finding{sealed, first}
		}
		return seen, err
	}
	tools.Prepare = func(x model.FixChange) (change.Step, error) {
		if x.Name == "sealed" {
			return change.Step{}, errors.New("it is read-only")
		}
		return s.prepare(x)
	}
	r, err := Walk(t.Context(), tools, Options{Apply: true, MaxRisk: "medium", MaxSteps: 5})
	if err != nil || len(r.Steps) != 2 {
		t.Fatalf("%v: %+v", err, r.Steps)
	}
	for _, step := range r.Steps {
		if want := "sealed: raise sealed (it is read-only)"; !slices.Contains(step.Skipped, want) {
			t.Errorf("step %d left out %q, want %q", step.Number, step.Skipped, want)
		}
	}
}

// A finding may list fewer fixes than its rule has: each is known by its place in the rule.
func TestFixesAreKnownByTheirPlaceInTheRule(t *testing.T) {
	fix := func(index int, value string) model.Fix {
		return model.Fix{Title: "raise " + value, Index: index, Risk: "low", Undo: "automatic", Restart: "none",
			Changes: []model.FixChange{{Kind: "sysctl", Name: "a", Value: value, Host: "s"}}}
	}
	naming := func(fixes ...model.Fix) model.Verdict {
		return model.Verdict{Root: []model.Finding{{Rule: "a", Subject: map[string]string{"host": "s"}, Fix: fixes}}}
	}
	of := key(naming().Root[0])
	list, _ := candidates(naming(fix(1, "10")), Options{MaxRisk: "low"}, map[string]map[int]string{of: {0: "it did not help"}})
	if len(list) != 1 || list[0].fix.Index != 1 {
		t.Fatalf("%+v; want the second fix, though the first did not help", list)
	}
	if list, _ := candidates(naming(fix(1, "10")), Options{MaxRisk: "low"}, map[string]map[int]string{of: {1: "it did not help"}}); len(list) != 0 {
		t.Errorf("%+v; want none, since the second did not help", list)
	}
	c := candidate{naming(fix(1, "10")).Root[0], fix(1, "10")}
	for name, v := range map[string]struct {
		verdict model.Verdict
		larger  bool
	}{
		"the first, which was not listed before, asks for more": {naming(fix(0, "20"), fix(1, "10")), false},
		"the second does":                         {naming(fix(0, "5"), fix(1, "20")), true},
		"the second is not listed any more":       {naming(fix(0, "20")), false},
		"the second alone is listed, and does so": {naming(fix(1, "20")), true},
	} {
		if again, larger := asksForMore(v.verdict, c); !again || larger != v.larger {
			t.Errorf("%s: again %v, larger %v; want %v", name, again, larger, v.larger)
		}
	}
}

package lab

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"plimsoll/internal/model"
)

// TestOptions say what is to be tried, and how often.
type TestOptions struct {
	Options
	Cases []*Case
	// Modes are those that each case is tried in, whatever Options says; none means the case's own.
	Modes []Mode
	// Times is how many trials each case gets in each mode; they are shuffled by Seed.
	Times int
	Seed  uint64
	// Dir is the test's folder. Each trial makes one of its own in it.
	Dir string
	// Moved compares a case's run with its twin's; nil leaves the twins out.
	Moved func(c *Case, faulty, twin string) (*Moved, error)
	// Before and After are told of each trial; done counts those that ended.
	Before func(t *Trial, done, all int)
	After  func(*Trial)
}

// Test runs cases and judges them. A trial that fails is one of the results,
// and the others go on. The error is that of the lab itself, or that it was
// interrupted; the trials up to then are returned beside it.
func (l *Lab) Test(ctx context.Context, opt TestOptions) ([]*Trial, error) {
	turns := opt.turns()
	rand.New(rand.NewPCG(opt.Seed, 0)).Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	unlock, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer unlock()
	trials := []*Trial{}
	for i, next := range turns {
		if opt.Before != nil {
			opt.Before(next.t, i, len(turns))
		}
		t := next.t
		err := l.try(ctx, next.c, t, opt)
		if ctx.Err() != nil {
			return trials, fmt.Errorf("interrupted after %d of %d trials: %w", len(trials), len(turns), ctx.Err())
		}
		if err != nil {
			t.Failure = err.Error()
		}
		trials = append(trials, t)
		if err := keepTrial(opt.Dir, t); err != nil {
			return trials, err
		}
		if opt.After != nil {
			opt.After(t)
		}
	}
	return trials, nil
}

// turn is a trial that is to be made.
type turn struct {
	c *Case
	t *Trial
}

// turns are all trials to make, unshuffled. What a case refuses, or this machine lacks for it, is one of them, once.
func (opt TestOptions) turns() []turn {
	modes := opt.Modes
	if len(modes) == 0 {
		modes = []Mode{ModeOwn}
	}
	var list []turn
	for _, c := range opt.Cases {
		for _, m := range modes {
			refused := cmp.Or(c.Refuses(m), lacks(c.needs(m == ModeWatch || m == ModeWatchCommand)))
			for n := range opt.Times {
				if n == 0 || refused == "" {
					list = append(list, turn{c, &Trial{Case: c.ID, Number: n + 1, Mode: m, Refused: refused}})
				}
			}
		}
	}
	return list
}

// try makes one trial. With an error the trial holds what there is.
func (l *Lab) try(ctx context.Context, c *Case, t *Trial, opt TestOptions) (err error) {
	began := time.Now()
	defer func() { t.Seconds = time.Since(began).Seconds() }()
	here := t.dir()
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return fmt.Errorf("folder for the recordings: %w", err)
	}
	if err := os.Mkdir(filepath.Join(opt.Dir, here), 0o755); err != nil {
		return fmt.Errorf("folder for the recordings (take a new one for each test): %w", err)
	}
	if t.Refused != "" {
		return nil
	}
	opt.Mode = t.Mode
	if t.Faulty, err = l.shoot(ctx, c, nil, filepath.Join(here, "faulty"), opt); err != nil {
		return err
	}
	for i, n := range c.Truth.Then {
		if !n.Hidden {
			continue
		}
		shot, err := l.shoot(ctx, c, c.mendsUpTo(i+1), filepath.Join(here, fmt.Sprintf("then-%d", i+1)), opt)
		if err != nil {
			return err
		}
		t.Then = append(t.Then, shot)
	}
	if opt.Moved == nil || c.Truth.Answer != model.AnswerCause {
		return nil
	}
	twin := filepath.Join(here, "twin")
	if t.Twin, err = l.shoot(ctx, c, c.mendIDs(), twin, opt); err != nil {
		return err
	}
	t.compareTwin(c, opt.Dir, opt.Moved)
	return nil
}

// compareTwin says whether the fault moved the service, where anything tells: of
// another tool's load Plimsoll has no measure, only a case may have one.
func (t *Trial) compareTwin(c *Case, dir string, moved func(c *Case, faulty, twin string) (*Moved, error)) {
	if t.Mode != ModeOwn && t.Mode != ModeRun && c.Twin == nil {
		return
	}
	m, err := moved(c, filepath.Join(dir, t.Faulty.Dir), filepath.Join(dir, t.Twin.Dir))
	if err != nil {
		m = &Moved{Why: err.Error()}
	}
	t.Moved = m
}

// shoot makes one run.
func (l *Lab) shoot(ctx context.Context, c *Case, mends []string, dir string, opt TestOptions) (*Shot, error) {
	one := opt.Options
	one.Mends = mends
	one.Args = append([]string{"--dir", filepath.Join(opt.Dir, dir)}, opt.Args...)
	res, err := l.runCase(ctx, c, one)
	if err != nil {
		return nil, err
	}
	s := newShot(c, mends, dir, &res.Report)
	s.VerdictSeconds = res.VerdictSeconds
	return s, nil
}

// newShot judges the report of a recorded run.
func newShot(c *Case, mends []string, dir string, rep *model.Report) *Shot {
	res := judge(c, mends, rep)
	s := &Shot{Dir: dir, Mends: mends, Truth: res.Truth, Answer: res.Answer, Named: []string{}, Wrong: res.Wrong,
		Outcome: res.Truth.outcome(rep.Verdict, res.Wrong), Sentence: rep.Verdict.Sentence}
	seen := map[string]bool{}
	for i, f := range rep.Verdict.Root {
		if !seen[f.Rule] && (i == 0 || f.Answer == model.Confirmed) {
			seen[f.Rule] = true
			s.Named = append(s.Named, f.Rule)
		}
	}
	if ld := rep.Load; ld != nil {
		s.GoodRPS, s.GoodShare, s.P99 = &ld.GoodRPS, &ld.GoodShare, &ld.Waited.P99
	}
	return s
}

// JudgeAgain judges the recordings of a trial anew, with the case's truth as it
// is today. judge makes the report of a run directory.
func (l *Lab) JudgeAgain(dir string, t *Trial, judge func(dir string) (model.Report, error), moved func(c *Case, faulty, twin string) (*Moved, error)) error {
	c, err := l.Case(t.Case)
	if err != nil {
		return err
	}
	for _, s := range t.Shots() {
		rep, err := judge(filepath.Join(dir, s.Dir))
		if err != nil {
			return err
		}
		again := newShot(c, s.Mends, s.Dir, &rep)
		again.VerdictSeconds = s.VerdictSeconds
		*s = *again
	}
	if t.Faulty != nil && t.Twin != nil {
		t.compareTwin(c, dir, moved)
	}
	return nil
}

// Package tune walks the loop: run a load, name what holds it back, change one
// thing, run the same load again, keep what helped. What it decides is in
// decide.go and knows no machine; what it does goes through Tools.
package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"plimsoll/internal/change"
	"plimsoll/internal/model"
)

// Seen is one run with its verdict.
type Seen struct {
	Dir     string
	Verdict model.Verdict
	// Load is nil where it was not ours but a command's; Exit is then how that
	// ended, else nil.
	Load *model.Load
	Exit *int
}

// failed says whether the load was a command's, and that ended with an error.
func (s Seen) failed() bool { return s.Exit != nil && *s.Exit != 0 }

// failsMore says whether a larger share of the requests failed than in the run
// before. A service that ends in the middle of a run leaves seconds too unlike
// each other for Compare to answer Worse.
func (s Seen) failsMore(before Seen) bool {
	const more = 0.01 // of the requests; fewer may fail by chance
	return s.Load != nil && before.Load != nil && s.Load.GoodShare < before.Load.GoodShare-more
}

// ErrNotUndone says that a change of a walk that ended early stands all the same.
var ErrNotUndone = errors.New("not every change could be taken back")

// Tools are what the loop works with. All are called from one goroutine.
type Tools struct {
	// Run drives the same load each time, and judges it.
	Run func(ctx context.Context) (Seen, error)
	// Accepted says whether a rule's fix, by its index, did in the run what it should.
	Accepted func(dir, rule string, fix int, subject map[string]string) (model.Truth, error)
	// Compare compares the second run with the first by what users got. It is nil
	// where the load is not ours: then nobody knows that.
	Compare func(before, after string) (model.Comparison, error)
	// Prepare looks at a change and makes nothing; Apply makes it.
	Prepare func(c model.FixChange) (change.Step, error)
	Apply   func(ctx context.Context, s change.Step) (change.Entry, error)
	// LeaveOut takes one change back, whatever came on top of it; what had to be
	// made anew for that is returned, by its old number.
	LeaveOut func(ctx context.Context, id int) (map[int]change.Entry, error)
	// Shut, if set, says of a run's error that the machine of one of these hosts did not let us in to look at it,
	// and does not let us in now.
	Shut func(ctx context.Context, err error, hosts []string) bool
	// Show is told of each step when nothing more happens to it for now, Judge of
	// what was on trial when its end is known.
	Show, Judge func(model.TuneStep)
}

// tuner is one walk.
type tuner struct {
	Tools
	opt    Options
	result model.Tuning
	seen   Seen // the newest run of what is set now
	// spent says why a fix is not tried again, by finding and index; see candidates.
	spent map[string]map[int]string
	made  int
	// entries are the changes of this walk that stand, by their number.
	entries map[int]change.Entry
	// before is, by step, the run that its change was made after.
	before map[int]Seen
	fixes  map[int]candidate
}

// Walk walks until nothing is left to do, and says why that is so. When it is
// interrupted, or cannot go on, all changes of the walk are taken back: what is
// half way was never measured as a whole.
func Walk(ctx context.Context, tools Tools, opt Options) (model.Tuning, error) {
	t := &tuner{Tools: tools, opt: opt, spent: map[string]map[int]string{}, entries: map[int]change.Entry{},
		before: map[int]Seen{}, fixes: map[int]candidate{}}
	t.result = model.Tuning{Applied: opt.Apply, Steps: []model.TuneStep{}, Trials: []model.TuneTrial{},
		Last: []model.TuneLine{}, Person: []string{}, Goals: []model.TuneGoal{}}
	err := t.walk(ctx)
	if err == nil {
		err = t.trials(ctx)
	}
	if err != nil {
		n := len(t.entries)
		undone := t.takeBack(context.WithoutCancel(ctx))
		t.result.Stopped = stoppedBy(ctx, n, undone)
		if undone != nil {
			err = fmt.Errorf("%w\n%w; %s: %w", err, ErrNotUndone, tryAgain(undone), undone)
		}
	}
	t.finish()
	return t.result, err
}

func stoppedBy(ctx context.Context, changes int, undone error) string {
	why := "it could not go on"
	if ctx.Err() != nil {
		why = "it was interrupted"
	}
	switch {
	case undone != nil:
		return why + ", and not every change could be taken back; " + tryAgain(undone)
	case changes > 0:
		return fmt.Sprintf("%s; all of its %d changes were taken back", why, changes)
	}
	return why + "; nothing is changed"
}

// tryAgain says what to do about changes that could not be taken back.
func tryAgain(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "plimsoll undo --all as root tries again"
	}
	return "plimsoll undo --all tries again"
}

// run is Run, and an error when it was interrupted: half a run proves nothing.
func (t *tuner) run(ctx context.Context) (Seen, error) {
	seen, err := t.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	return seen, err
}

func (t *tuner) walk(ctx context.Context) error {
	seen, err := t.run(ctx)
	if err != nil {
		return err
	}
	for {
		t.seen = seen
		step := t.begin()
		if t.result.Stopped = t.enough(); t.result.Stopped != "" {
			t.show(step)
			return nil
		}
		c, plan, found := t.next(step)
		if !found {
			t.result.Stopped = nothingLeft(*step)
			t.show(step)
			return nil
		}
		step.Fix = describe(c, plan)
		t.fixes[step.Number] = c
		if !t.opt.Apply {
			t.result.Stopped = "nothing was changed; with --apply it is made, and the same load run again"
			t.show(step)
			return nil
		}
		if seen, err = t.try(ctx, step, c); err != nil {
			return err
		}
		t.show(step)
	}
}

// begin adds the row of the newest run.
func (t *tuner) begin() *model.TuneStep {
	v := t.seen.Verdict
	step := model.TuneStep{Number: len(t.result.Steps) + 1, Dir: t.seen.Dir, Answer: v.Answer, Sentence: v.Sentence,
		TuneLoad: model.TuneLoadOf(t.seen.Load), CommandExit: t.seen.Exit, Skipped: []string{}}
	if len(v.Root) > 0 {
		step.Root = &v.Root[0]
	}
	t.result.Steps = append(t.result.Steps, step)
	return &t.result.Steps[len(t.result.Steps)-1]
}

func (t *tuner) show(step *model.TuneStep) {
	if t.Show != nil {
		t.Show(*step)
	}
}

// enough says why there is nothing more to do, "" if there is.
func (t *tuner) enough() string {
	_, all := Met(t.opt.Goals, t.seen.Load)
	switch {
	case all:
		return "the goals of --slo are met"
	case t.seen.Verdict.Answer == model.AnswerHealthy:
		return "healthy: nothing holds the load back"
	case t.seen.Verdict.Answer == model.AnswerCapacity:
		return "capacity: the machine does the service's work and has no more to give"
	case t.seen.Verdict.Answer == model.AnswerUnclear:
		return "unclear: what holds the load back, if anything does, cannot be told"
	case t.made == t.opt.MaxSteps:
		return fmt.Sprintf("--max-steps: %d changes were made", t.made)
	}
	return ""
}

func nothingLeft(step model.TuneStep) string {
	if len(step.Skipped) == 0 {
		return "no fix is known for what holds the load back"
	}
	return "what is left is not for tune to change"
}

// next finds the first fix that can be made now.
func (t *tuner) next(step *model.TuneStep) (candidate, []change.Step, bool) {
	list, skipped := candidates(t.seen.Verdict, t.opt, t.spent)
	step.Skipped = append(step.Skipped, skipped...)
	for _, c := range list {
		plan, err := t.plan(c)
		if err == nil && len(plan) > 0 {
			root := c.root
			step.Root = &root
			return c, plan, true
		}
		why := "it is so already"
		if err != nil {
			why = err.Error()
		}
		step.Skipped = append(step.Skipped, fmt.Sprintf("%s: %s (%s)", c.root.Rule, c.fix.Title, why))
		t.spend(c, why)
	}
	return candidate{}, nil, false
}

func (t *tuner) spend(c candidate, why string) {
	of := key(c.root)
	if t.spent[of] == nil {
		t.spent[of] = map[int]string{}
	}
	t.spent[of][c.fix.Index] = why
}

// plan looks at all changes of a fix, and leaves out those that are so already.
func (t *tuner) plan(c candidate) ([]change.Step, error) {
	var plan []change.Step
	for _, x := range c.fix.Changes {
		s, err := t.Prepare(x)
		if errors.Is(err, change.ErrAlready) {
			continue
		}
		if err != nil {
			return nil, err
		}
		plan = append(plan, s)
	}
	return plan, nil
}

// try makes a fix, runs the load again and judges. It returns the newest run of
// what is set then: that after the change, or again that before it; but where the
// change did harm, only another run tells whether taking it back has ended that.
func (t *tuner) try(ctx context.Context, step *model.TuneStep, c candidate) (Seen, error) {
	before := t.seen
	t.before[step.Number] = before
	if err := t.makeFix(ctx, step.Fix, c); err != nil {
		if ctx.Err() != nil {
			return before, err
		}
		step.Fix.Outcome, step.Fix.Sentence = model.Refused, "it could not be made: "+err.Error()
		t.spend(c, step.Fix.Sentence)
		return before, t.leaveOut(context.WithoutCancel(ctx), step.Fix)
	}
	t.made++
	after, err := t.run(ctx)
	if err != nil {
		return before, err
	}
	if err := t.weigh(step.Fix, c, before, after); err != nil {
		return before, err
	}
	if step.Fix.Outcome != model.Undone {
		return after, nil
	}
	t.spend(c, "tried in vain")
	err = t.leaveOut(ctx, step.Fix)
	if err != nil || step.Fix.Paid != model.Worse && !after.failsMore(before) {
		return before, err
	}
	return t.run(ctx)
}

// makeFix makes the changes one by one, each looked at right before: one may
// need another (a backlog is cut to somaxconn).
func (t *tuner) makeFix(ctx context.Context, fix *model.TuneFix, c candidate) error {
	fix.Changes = []model.TuneChange{}
	for _, x := range c.fix.Changes {
		s, err := t.Prepare(x)
		if errors.Is(err, change.ErrAlready) {
			continue
		}
		if err != nil {
			return err
		}
		e, err := t.Apply(ctx, s)
		if e.ID > 0 && (err == nil || e.Open()) {
			t.entries[e.ID] = e
			one := changeOf(s)
			one.ID = e.ID
			fix.Changes = append(fix.Changes, one)
		}
		if err != nil {
			return err
		}
	}
	if len(fix.Changes) == 0 {
		return change.ErrAlready
	}
	return nil
}

func (t *tuner) weigh(fix *model.TuneFix, c candidate, before, after Seen) error {
	accept, err := t.Accepted(after.Dir, c.root.Rule, c.fix.Index, c.root.Subject)
	if err != nil {
		return err
	}
	comparison, err := t.compare(before, after)
	if err != nil {
		return err
	}
	again, larger := asksForMore(after.Verdict, c)
	fix.Accept, fix.Paid, fix.Effect = accept, paid(comparison), comparison.Differences
	fix.Outcome, fix.Sentence = judge(evidence{accept: accept, paid: fix.Paid, again: again, larger: larger})
	return nil
}

// compare compares the second run with the first; of loads that are not ours
// there is nothing to compare.
func (t *tuner) compare(before, after Seen) (model.Comparison, error) {
	if t.Compare == nil {
		return model.Comparison{Differences: []model.Difference{}}, nil
	}
	return t.Compare(before.Dir, after.Dir)
}

// leaveOut takes the changes of a fix back, the newest first. One may need what
// another gives back, so those that failed are tried again as long as that helps.
func (t *tuner) leaveOut(ctx context.Context, fix *model.TuneFix) error {
	var left []*model.TuneChange
	for i := range slices.Backward(fix.Changes) {
		if fix.Changes[i].ID != 0 {
			left = append(left, &fix.Changes[i])
		}
	}
	for {
		var errs []error
		var failed []*model.TuneChange
		for _, c := range left {
			again, err := t.LeaveOut(ctx, c.ID)
			t.renumber(again)
			if err != nil {
				errs, failed = append(errs, fmt.Errorf("take back change %d (%s): %w", c.ID, c.What, err)), append(failed, c)
				continue
			}
			delete(t.entries, c.ID)
		}
		if len(failed) == 0 || len(failed) == len(left) {
			return errors.Join(errs...)
		}
		left = failed
	}
}

// renumber notes the new numbers of changes that were made anew.
func (t *tuner) renumber(again map[int]change.Entry) {
	for old, e := range again {
		delete(t.entries, old)
		t.entries[e.ID] = e
		for i := range t.result.Steps {
			fix := t.result.Steps[i].Fix
			for k := range changesOf(fix) {
				if fix.Changes[k].ID == old {
					fix.Changes[k].ID = e.ID
				}
			}
		}
	}
}

func changesOf(fix *model.TuneFix) []model.TuneChange {
	if fix == nil {
		return nil
	}
	return fix.Changes
}

// trials judges what is on trial, the newest first, by leaving it out.
func (t *tuner) trials(ctx context.Context) error {
	for i := range slices.Backward(t.result.Steps) {
		step := &t.result.Steps[i]
		if step.Fix == nil || step.Fix.Outcome != model.OnTrial {
			continue
		}
		if later := t.raisedLater(step); later > 0 {
			step.Fix.Outcome, step.Fix.Sentence = model.Kept, fmt.Sprintf("step %d raised it further, and is judged for both", later)
		} else if err := t.trial(ctx, step); err != nil {
			return err
		}
		if t.Judge != nil {
			t.Judge(*step)
		}
	}
	return nil
}

// raisedLater is the later step that stands and changed the same settings, 0 for none.
func (t *tuner) raisedLater(step *model.TuneStep) int {
	for _, other := range t.result.Steps[step.Number:] {
		if other.Fix == nil || other.Fix.Outcome != model.Kept {
			continue
		}
		same := func(c model.TuneChange) bool {
			return slices.ContainsFunc(other.Fix.Changes, func(d model.TuneChange) bool { return d.What == c.What && d.Host == c.Host })
		}
		if !slices.ContainsFunc(step.Fix.Changes, func(c model.TuneChange) bool { return !same(c) }) {
			return other.Number
		}
	}
	return 0
}

func (t *tuner) trial(ctx context.Context, step *model.TuneStep) error {
	paidNot := step.Fix.Paid == model.NoDifference || step.Fix.Paid == model.Worse
	if t.isNewest(step.Fix) && paidNot && !t.seen.failsMore(t.before[step.Number]) {
		// The run before it is the run without it: no need for another. Where nobody
		// knows what it brought, only another tells whether the cause comes back.
		t.seen = t.before[step.Number]
		step.Fix.Outcome, step.Fix.Sentence = model.Undone, "it brought nothing, so it was taken back"
		return t.leaveOut(ctx, step.Fix)
	}
	if err := t.leaveOut(ctx, step.Fix); err != nil {
		return err
	}
	hosts := hostsOf(step.Fix)
	without, err := t.run(ctx)
	if err != nil && t.shut(ctx, err, hosts) {
		return t.reopen(ctx, step, err, hosts)
	}
	if err != nil {
		return err
	}
	comparison, err := t.compare(t.seen, without)
	if err != nil {
		return err
	}
	c := t.fixes[step.Number]
	again, _ := asksForMore(without.Verdict, c)
	if anyway, _ := asksForMore(t.seen.Verdict, c); anyway {
		again = false // it is named with the change as well, so that says nothing
	}
	trial := model.TuneTrial{Step: step.Number, Dir: without.Dir, TuneLoad: model.TuneLoadOf(without.Load), CommandExit: without.Exit, Effect: comparison.Differences}
	trial.Kept, trial.Sentence = missed(paid(comparison), again, t.seen.failed() && !without.failed())
	t.result.Trials = append(t.result.Trials, trial)
	step.Fix.Outcome, step.Fix.Sentence = model.Undone, trial.Sentence
	if !trial.Kept {
		t.seen = without
		return nil
	}
	step.Fix.Outcome = model.Kept
	if paid(comparison) == model.Worse {
		step.Fix.Sentence = "it pays now that the other limits are lifted: " + trial.Sentence
	}
	return t.makeFix(ctx, step.Fix, c)
}

// hostsOf are those that a fix changes.
func hostsOf(fix *model.TuneFix) (hosts []string) {
	for _, c := range fix.Changes {
		hosts = append(hosts, c.Host)
	}
	return hosts
}

func (t *tuner) shut(ctx context.Context, err error, hosts []string) bool {
	return t.Shut != nil && ctx.Err() == nil && t.Shut(ctx, err, hosts)
}

// reopen makes a fix again without which a machine let nobody in. Where it lets nobody in with it either, it was not that.
func (t *tuner) reopen(ctx context.Context, step *model.TuneStep, why error, hosts []string) error {
	if err := t.makeFix(ctx, step.Fix, t.fixes[step.Number]); err != nil {
		return errors.Join(why, err)
	}
	if t.shut(ctx, why, hosts) || ctx.Err() != nil {
		return errors.Join(why, ctx.Err())
	}
	step.Fix.Outcome, step.Fix.Sentence = model.Kept, "it stays, since without it there is no way to the machine: "+why.Error()
	return nil
}

// isNewest says whether nothing that stands was changed after this fix, so that
// the newest run is the one right after it.
func (t *tuner) isNewest(fix *model.TuneFix) bool {
	newest := 0
	for id := range t.entries {
		newest = max(newest, id)
	}
	return slices.ContainsFunc(fix.Changes, func(c model.TuneChange) bool { return c.ID == newest }) && len(t.result.Trials) == 0
}

// takeBack undoes everything that this walk changed, the newest first. What could
// not be is tried again as long as others could: it may have needed them.
func (t *tuner) takeBack(ctx context.Context) error {
	var err error
	for left := len(t.entries) + 1; len(t.entries) > 0 && len(t.entries) < left; {
		left = len(t.entries)
		err = t.takeBackOnce(ctx)
	}
	stands := t.entries
	t.entries = map[int]change.Entry{}
	for i := range t.result.Steps {
		fix := t.result.Steps[i].Fix
		switch {
		case slices.ContainsFunc(changesOf(fix), func(c model.TuneChange) bool { _, ok := stands[c.ID]; return ok }):
			fix.Outcome, fix.Sentence = model.Stands, "it could not be taken back"
		case fix != nil && fix.Outcome != model.Refused && fix.Outcome != model.Undone:
			fix.Outcome, fix.Sentence = model.Undone, "it was taken back, since the walk ended early"
		}
	}
	return err
}

// takeBackOnce tries each change once; those that stand stay in entries.
func (t *tuner) takeBackOnce(ctx context.Context) error {
	var errs []error
	todo := maps.Clone(t.entries)
	for len(todo) > 0 {
		newest := slices.Max(slices.Collect(maps.Keys(todo)))
		delete(todo, newest)
		again, err := t.LeaveOut(ctx, newest)
		errs = append(errs, err)
		if err == nil {
			delete(t.entries, newest)
		}
		t.renumber(again)
		for old, e := range again {
			delete(todo, old)
			todo[e.ID] = e
		}
	}
	return errors.Join(errs...)
}

// finish adds what a person has to know at the end.
func (t *tuner) finish() {
	t.result.End = model.TuneEnd{Dir: t.seen.Dir, Answer: t.seen.Verdict.Answer, Sentence: t.seen.Verdict.Sentence, TuneLoad: model.TuneLoadOf(t.seen.Load)}
	t.result.Goals, _ = Met(t.opt.Goals, t.seen.Load)
	place := map[change.Change]int{}
	for _, id := range slices.Sorted(maps.Keys(t.entries)) {
		c := t.entries[id].Change
		file, line, ok := change.Lasting(c)
		if !ok {
			continue
		}
		setting := c
		setting.To = ""
		if i, raised := place[setting]; raised {
			t.result.Last[i] = model.TuneLine{File: file, Line: line}
			continue
		}
		place[setting] = len(t.result.Last)
		t.result.Last = append(t.result.Last, model.TuneLine{File: file, Line: line})
	}
	if n := len(t.result.Steps); n > 0 {
		t.result.Person = append(t.result.Person, t.result.Steps[n-1].Skipped...)
	}
}

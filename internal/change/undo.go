package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"plimsoll/internal/host"
)

// Result is what became of an entry that was to be taken back.
type Result struct {
	Entry Entry
	// Sentences say what was done, and what was not there any more.
	Sentences []string
}

// Undo takes a change back. ErrChanged: somebody else has changed the setting
// since; it is left alone unless force. What has ended with its process,
// namespace or boot is said to be so, and is no error. What could be taken back
// of an entry is, also where the rest could not: then it stays open, and may be
// undone again.
func (j *Journal) Undo(ctx context.Context, id int, force bool) (Result, error) {
	if err := j.follow(); err != nil {
		return Result{}, err
	}
	e, err := j.find(id)
	if err != nil {
		return Result{}, err
	}
	r := Result{Entry: e}
	if !e.Open() {
		return r, fmt.Errorf("change %d (%s) was taken back already", id, e.Change)
	}
	if err = j.undo(ctx, &r, force); err != nil {
		return r, fmt.Errorf("undo %d (%s on %s): %w", id, e.Change, e.Host, err)
	}
	return r, nil
}

func (j *Journal) undo(ctx context.Context, r *Result, force bool) error {
	e := r.Entry
	if upon := j.upon(e); upon != 0 {
		return fmt.Errorf("change %d was made upon it: plimsoll undo %d first, or undo --all", upon, upon)
	}
	plan := e.plan(target.get, e.Boot != bootID(), force)
	r.Sentences = plan.said
	if plan.stop {
		return errors.Join(plan.errs...)
	}
	todo := plan.todo(e)
	if err := j.takeBackParts(ctx, e, todo, r); err != nil {
		return errors.Join(append(plan.errs, err)...)
	}
	if len(plan.errs) > 0 {
		return errors.Join(plan.errs...)
	}
	said, err := e.heirs(slices.Concat(plan.live, plan.gone))
	if err != nil {
		return err
	}
	if len(plan.live) > 0 {
		r.say("%s is %s again", what(e), quoted(e.Old))
	}
	r.Sentences = append(r.Sentences, said...)
	e.close(Undone, strings.Join(r.Sentences, "; "))
	if err := j.write(e); err != nil {
		return fmt.Errorf("it was taken back, but could not be noted: %w", err)
	}
	r.Entry = e
	return nil
}

// takeBackParts restores those parts of an entry that are to be taken back. What
// is left on the way is noted, so that the next try knows it for ours.
func (j *Journal) takeBackParts(ctx context.Context, e, todo Entry, r *Result) error {
	note := func() error {
		for i := range e.Parts {
			for _, p := range todo.Parts {
				if e.Parts[i].Target.same(p.Target) {
					e.Parts[i].Between = p.Between
				}
			}
		}
		return j.write(e)
	}
	if todo.foresee(len(todo.files()) > 0) {
		if err := note(); err != nil {
			return fmt.Errorf("nothing was taken back: %w", err)
		}
	}
	if len(todo.files()) > 0 {
		now, err := todo.Service.settled(ctx)
		if err != nil {
			return err
		}
		if now == nil {
			r.say("%s does not run; its files are as they were", todo.Service.Kind)
		}
	}
	if err := todo.restore(ctx, false); err != nil {
		return errors.Join(err, note())
	}
	return nil
}

// upon is the newest change that was made upon an entry and stands, 0 for none:
// what it found was what this one set.
func (j *Journal) upon(e Entry) int {
	for _, o := range slices.Backward(j.entries) {
		if o.ID > e.ID && o.Open() && o.overlaps(e) {
			return o.ID
		}
	}
	return 0
}

func (r *Result) say(format string, args ...any) {
	r.Sentences = append(r.Sentences, fmt.Sprintf(format, args...))
}

func what(e Entry) string {
	c := e.Change
	c.To = ""
	return strings.TrimSuffix(c.String(), " = ")
}

func quoted(s string) string {
	if s == "" {
		return "as it was"
	}
	return s
}

// plan is what is to be done to take an entry back.
type plan struct {
	live []part // to be written
	gone []part // what has ended; its children may not have
	said []string
	errs []error
	// stop: nothing is to be written at all, since a part that others changed does
	// not do without the rest.
	stop     bool
	rebooted bool
}

// plan looks at what a change has set, through read: what is there to be taken
// back, and what somebody else has changed since. It touches nothing.
func (e Entry) plan(read func(target) (string, error), rebooted, force bool) plan {
	pl := plan{rebooted: rebooted}
	say := func(format string, args ...any) { pl.said = append(pl.said, fmt.Sprintf(format, args...)) }
	for _, p := range e.Parts {
		if rebooted && p.Target.untilReboot() {
			say("%s", p.afterReboot(read))
			continue
		}
		now, err := read(p.Target)
		switch {
		case errors.Is(err, errGone) && p.Target.Kind == inFile && !force: // the file is where it was, and used when its container is started again
			pl.errs = append(pl.errs, fmt.Errorf("%w; start that service again, with its container if it has one, then plimsoll undo; if there is none any more, --force gives the file up", err))
			pl.stop = true
			continue
		case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
			say("%s: %v", p.Target, err)
			pl.gone = append(pl.gone, p)
			continue
		case err == nil && p.ours(now):
		case err == nil && force:
			say("%s had been changed by somebody else since", p.Target)
		default:
			pl.errs = append(pl.errs, p.foreign(now, err))
			pl.stop = pl.stop || len(e.files()) > 0
			continue
		}
		pl.live = append(pl.live, p)
	}
	return pl
}

// afterReboot says what a reboot has made of a value that does not outlast one. Our
// own may be there again since somebody wrote it down, as tune advises.
func (p part) afterReboot(read func(target) (string, error)) string {
	if p.Target.Kind == inKernel && string(p.New) != string(p.Old) {
		if now, err := read(p.Target); err == nil && now == string(p.New) {
			return fmt.Sprintf("a reboot has taken %s back, and something has set it to %s again since (/etc/sysctl.d, a unit); it was %s", p.Target, now, p.Old)
		}
	}
	return fmt.Sprintf("a reboot has taken %s back", p.Target)
}

// foreign says why a part is left alone.
func (p part) foreign(now string, err error) error {
	switch {
	case err != nil:
		return err
	case p.Target.Kind == inFile:
		return fmt.Errorf("%s was edited: %w; take that edit out, or --force to put the file back as it was before", p.Target, ErrChanged)
	}
	return fmt.Errorf("%s was set to %q and is %q now: %w; --force to set it to %q", p.Target, p.New, now, ErrChanged, p.Old)
}

// todo is the entry with what is to be written alone.
func (pl plan) todo(e Entry) Entry {
	e.Parts = slices.Clone(pl.live)
	if e.Service == nil {
		return e
	}
	own := *e.Service // a reload may make another process of it
	if pl.rebooted {  // numbers of an older boot say nothing
		own.process, own.Net, own.identity = process{}, netns{Spec: own.Net.Spec}, identity{Exe: own.Exe, Elsewhere: own.Elsewhere}
	}
	e.Service = &own
	return e
}

// UndoAll takes all changes back that are open, see UndoThese.
func (j *Journal) UndoAll(ctx context.Context, force bool) ([]Result, error) {
	var ids []int
	for _, e := range j.entries {
		if e.Open() {
			ids = append(ids, e.ID)
		}
	}
	return j.UndoThese(ctx, ids, force)
}

// UndoThese takes changes back, the newest first, and goes on after an error. One
// may need what another gives back (a queue of 4096 a somaxconn of 4096), so those
// that failed are tried again as long as that helps; the error is about what
// stands at the end.
func (j *Journal) UndoThese(ctx context.Context, ids []int, force bool) (results []Result, err error) {
	left := slices.Sorted(slices.Values(ids))
	slices.Reverse(left)
	for {
		var errs []error
		var failed []int
		for _, id := range left {
			r, err := j.Undo(ctx, id, force)
			if err != nil {
				errs, failed = append(errs, err), append(failed, id)
				continue
			}
			results = append(results, r)
		}
		if len(failed) == 0 || len(failed) == len(left) || ctx.Err() != nil {
			return results, errors.Join(errs...)
		}
		left = failed
	}
}

// LeaveOut takes back a change that others lie upon, of the same file or
// setting: those are taken back first and made again afterwards, as new entries,
// which it returns by the number of the old one. One that has become void is not
// made again.
func (j *Journal) LeaveOut(ctx context.Context, id int) (again map[int]Entry, err error) {
	if err := j.follow(); err != nil {
		return nil, err
	}
	below, err := j.find(id)
	if err != nil {
		return nil, err
	}
	stack := []Entry{below}
	for _, e := range j.Entries() {
		if e.ID > id && e.Open() && slices.ContainsFunc(stack, e.overlaps) {
			stack = append(stack, e)
		}
	}
	for _, e := range slices.Backward(stack) {
		if _, err := j.Undo(ctx, e.ID, false); err != nil {
			return nil, err
		}
	}
	again = map[int]Entry{}
	for _, e := range stack[1:] {
		// Taking back what lay beneath may have made another process of the service.
		if _, err := e.follow(); err != nil {
			return again, fmt.Errorf("make change %d again: %w", e.ID, err)
		}
		made, err := j.repeat(ctx, e)
		if errors.Is(err, ErrAlready) {
			continue
		}
		if err != nil {
			return again, fmt.Errorf("make change %d again: %w", e.ID, err)
		}
		again[e.ID] = made
	}
	return again, nil
}

func (j *Journal) repeat(ctx context.Context, e Entry) (Entry, error) {
	h, err := host.Open(e.Host, e.Spec)
	if err != nil {
		return Entry{}, err
	}
	defer h.Close()
	s, err := Prepare(h, e.Change)
	if err != nil {
		return Entry{}, err
	}
	return j.Apply(ctx, s)
}

// overlaps says whether two changes set the same value.
func (e Entry) overlaps(o Entry) bool {
	theirs := o.targets()
	return slices.ContainsFunc(e.targets(), func(p target) bool { return slices.ContainsFunc(theirs, p.same) })
}

// targets are all that a change has set, also those of the processes that its
// services go on as.
func (e Entry) targets() (list []target) {
	for _, p := range e.Parts {
		list = append(list, p.Target)
		for i := range e.Masters {
			m := &e.Masters[i]
			if p.Target.ofProcess() && m.First == *p.Target.Process && m.process != m.First {
				heir := p.Target
				heir.Process = &m.process
				list = append(list, heir)
			}
		}
	}
	return list
}

// follow follows all open entries, and notes what was restarted meanwhile under
// a somaxconn that may be ours: once that is taken back, nobody could tell.
func (j *Journal) follow() error {
	for _, e := range j.Entries() {
		if !e.Open() || e.Boot != bootID() {
			continue
		}
		// Whose service cannot be told from others says so when it is taken back.
		moved, _ := e.follow()
		e.Parts = slices.Clone(e.Parts)
		if capped := e.foresee(false); moved || capped {
			if err := j.write(e); err != nil {
				return err
			}
		}
	}
	return nil
}

package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"plimsoll/internal/probe"
)

// Result is what became of an entry that was to be taken back.
type Result struct {
	Entry Entry
	// Sentences say what was done, and what was not there any more.
	Sentences []string
}

// Undo takes a change back. ErrChanged: somebody else has changed the setting
// since; it is left alone unless force. What has ended with its process,
// namespace or boot is said to be so, and is no error.
func (j *Journal) Undo(ctx context.Context, id int, force bool) (Result, error) {
	e, err := j.find(id)
	if err != nil {
		return Result{}, err
	}
	r := Result{Entry: e}
	if !e.Open() {
		return r, fmt.Errorf("change %d (%s) was taken back already", id, e.Change)
	}
	fail := func(err error) (Result, error) {
		return r, fmt.Errorf("undo %d (%s on %s): %w", id, e.Change, e.Host, err)
	}
	live, err := r.sift(force)
	if err != nil {
		return fail(err)
	}
	todo := e
	todo.Parts = live
	if e.Boot != bootID() && todo.Service != nil { // numbers of an older boot say nothing
		old := *todo.Service
		old.process, old.Net = process{}, netns{Spec: old.Net.Spec}
		todo.Service = &old
	}
	if len(todo.files()) > 0 && todo.Service.again() == nil {
		r.say("%s does not run; its files are as they were", todo.Service.Sort)
	}
	if err := todo.restore(ctx, false); err != nil {
		return fail(err)
	}
	if len(live) > 0 {
		r.say("%s is %s again", what(e), quoted(e.Old))
	}
	e.close(Undone, strings.Join(r.Sentences, "; "))
	if err := j.write(e); err != nil {
		return fail(fmt.Errorf("it was taken back, but could not be noted: %w", err))
	}
	r.Entry = e
	return r, nil
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

// sift looks at what a change has set: it returns the parts that are there to
// be taken back, and refuses what somebody else has changed since.
func (r *Result) sift(force bool) (live []part, err error) {
	rebooted := r.Entry.Boot != bootID()
	var errs []error
	for _, p := range r.Entry.Parts {
		if rebooted && p.Place.untilReboot() {
			r.say("a reboot has taken %s back", p.Place)
			continue
		}
		now, err := p.Place.get()
		switch {
		case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
			r.say("%s: %v", p.Place, err)
			continue
		case err != nil:
			errs = append(errs, err)
		case p.ours(now):
		case force:
			r.say("%s had been changed by somebody else since", p.Place)
		case p.Place.Sort == inFile:
			errs = append(errs, fmt.Errorf("%s was edited: %w; take that edit out, or --force to put the file back as it was before", p.Place, ErrChanged))
		default:
			errs = append(errs, fmt.Errorf("%s was set to %q and is %q now: %w; --force to set it to %q", p.Place, p.New, now, ErrChanged, p.Old))
		}
		live = append(live, p)
	}
	return live, errors.Join(errs...)
}

// UndoAll takes all changes back that are open, the newest first. It goes on
// after an error.
func (j *Journal) UndoAll(ctx context.Context, force bool) ([]Result, error) {
	var results []Result
	var errs []error
	for _, e := range slices.Backward(j.Entries()) {
		if !e.Open() {
			continue
		}
		r, err := j.Undo(ctx, e.ID, force)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		results = append(results, r)
	}
	return results, errors.Join(errs...)
}

// LeaveOut takes back a change that others lie upon, of the same file or
// setting: those are taken back first and made again afterwards, as new entries,
// which it returns by the number of the old one. One that has become void is not
// made again.
func (j *Journal) LeaveOut(ctx context.Context, id int) (again map[int]Entry, err error) {
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
	h, err := probe.OpenHost(e.Host, e.Spec)
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
	for _, p := range e.Parts {
		for _, q := range o.Parts {
			if p.Place.same(q.Place) {
				return true
			}
		}
	}
	return false
}

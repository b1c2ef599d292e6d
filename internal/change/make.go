package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// Apply writes a step into the journal, makes it, and checks that it is in
// effect. After an error nothing is changed; where that could not be reached,
// the error says so, and the entry stays pending for Undo. The entry's ID is 0
// when nothing was written.
func (j *Journal) Apply(ctx context.Context, s Step) (Entry, error) {
	for _, p := range s.parts {
		now, err := p.Place.get()
		if err != nil {
			return Entry{}, fmt.Errorf("%s: %w; nothing was changed", s.Change, err)
		}
		if now != string(p.Old) {
			return Entry{}, fmt.Errorf("%s: %s: %w; nothing was changed, look again", s.Change, p.Place, ErrChanged)
		}
	}
	e := Entry{ID: 1, State: Pending, Change: s.Change, Host: s.Host, Spec: s.Spec, Old: s.Old, New: s.New, Scope: s.Scope, Restart: s.Restart,
		Time: time.Now().UTC(), Boot: bootID(), Parts: s.parts, Service: s.service}
	if n := len(j.entries); n > 0 {
		e.ID = j.entries[n-1].ID + 1
	}
	if err := j.write(e); err != nil {
		return Entry{}, fmt.Errorf("%s: nothing was changed: %w", s.Change, err)
	}
	err := e.make(ctx)
	if err == nil {
		e.State = Done
		if err = j.write(e); err == nil {
			return e, nil
		}
	}
	return j.takeBack(e, fmt.Errorf("%s: %w", s.Change, err))
}

// takeBack undoes what make has done before it failed.
func (j *Journal) takeBack(e Entry, why error) (Entry, error) {
	ctx := context.Background() // whoever cancels the change wants this all the same
	err := e.restore(ctx, true)
	if err == nil {
		closed := e
		closed.close(Failed, why.Error())
		if err = j.write(closed); err == nil {
			return closed, why
		}
	}
	e.State, e.Why = Pending, why.Error()
	return e, fmt.Errorf("%w\nand it could not be taken back: %w; put that right, then plimsoll undo %d", why, err, e.ID)
}

// close ends an entry. What was needed to take it back goes: configuration files
// may hold secrets.
func (e *Entry) close(state State, why string) {
	e.State, e.Why, e.Parts, e.Service = state, why, nil, nil
}

// files are the parts that are files; others are the rest.
func (e Entry) files() (list []part) {
	for _, p := range e.Parts {
		if p.Place.Sort == inFile {
			list = append(list, p)
		}
	}
	return list
}

func (e Entry) others() (list []part) {
	for _, p := range e.Parts {
		if p.Place.Sort != inFile {
			list = append(list, p)
		}
	}
	return list
}

// make sets the new values: files first, since a reload may touch the rest.
func (e Entry) make(ctx context.Context) error {
	if err := e.makeFiles(ctx); err != nil {
		return err
	}
	for _, p := range e.others() {
		if err := p.write(string(p.New)); err != nil {
			return err
		}
	}
	return nil
}

// write sets a value and looks whether it took.
func (p part) write(v string) error {
	now, err := p.Place.get()
	if err != nil || now == v {
		return err
	}
	if err := p.Place.set(v); err != nil {
		return err
	}
	if now, err = p.Place.get(); err != nil {
		return err
	}
	if now != v && !p.Place.threadsOf(now, v) {
		return fmt.Errorf("set %s to %q: it took it for %q: %w", p.Place, v, now, ErrNotPossible)
	}
	return nil
}

func (e Entry) makeFiles(ctx context.Context) error {
	files := e.files()
	if len(files) == 0 {
		return nil
	}
	var drafts []*draft
	for _, p := range files {
		d, err := confFile{place: p.Place}.prepare(string(p.New))
		if err != nil {
			return err
		}
		defer d.Close()
		drafts = append(drafts, d)
	}
	if err := e.Service.test(ctx, drafts); err != nil {
		return err
	}
	for _, d := range drafts {
		if err := d.put(); err != nil {
			return err
		}
	}
	if e.Service.NoReload {
		return nil
	}
	return e.Service.reload(ctx)
}

// restore sets the old values. After a change that failed, nginx goes on with
// what it had, so that it is no error when it does not reload the old files.
func (e Entry) restore(ctx context.Context, failed bool) error {
	if err := e.restoreFiles(ctx, failed); err != nil {
		return err
	}
	for _, p := range slices.Backward(e.others()) {
		if err := p.write(string(p.Old)); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}

func (e Entry) restoreFiles(ctx context.Context, failed bool) error {
	moved := !failed
	if moved && len(e.files()) > 0 && !e.Service.NoReload {
		if s := e.Service.again(); s != nil {
			if err := s.testable(); err != nil {
				return err
			}
		}
	}
	for _, p := range e.files() {
		f := confFile{place: p.Place}
		now, err := f.get()
		if errors.Is(err, errGone) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && now != string(p.Old) {
			moved = true
			err = f.restore(string(p.Old), p.File)
		}
		if err = errors.Join(err, f.clean()); err != nil {
			return err
		}
	}
	if len(e.files()) == 0 || !moved || e.Service.NoReload {
		return nil
	}
	s := e.Service.again()
	if s == nil {
		return nil
	}
	err := s.test(ctx, nil)
	if err == nil {
		err = s.reload(ctx)
	}
	if failed && s.Sort == Nginx && errors.Is(err, ErrRefused) && len(s.look()) > 0 {
		return nil
	}
	return err
}

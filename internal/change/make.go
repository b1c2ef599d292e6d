package change

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Apply writes a step into the journal, makes it, and checks that it is in
// effect. After an error nothing is changed; where that could not be reached,
// the error says so, and the entry stays pending for Undo. The entry's ID is 0
// when nothing was written.
func (j *Journal) Apply(ctx context.Context, s Step) (Entry, error) {
	for _, p := range s.parts {
		now, err := p.Target.get()
		if err != nil {
			return Entry{}, fmt.Errorf("%s: %w; nothing was changed", s.Change, err)
		}
		if now != string(p.Old) {
			return Entry{}, fmt.Errorf("%s: %s: %w; nothing was changed, look again", s.Change, p.Target, ErrChanged)
		}
	}
	e := Entry{ID: j.next, State: Pending, Change: s.Change, Host: s.Host, Spec: s.Spec, Old: s.Old, New: s.New, Scope: s.Scope, Restart: s.Restart,
		Time: time.Now().UTC(), Boot: bootID(), Since: ticks(), Parts: s.parts, Service: s.service, Masters: s.masters}
	if err := j.begin(e); err != nil {
		return Entry{}, fmt.Errorf("%s: nothing was changed: %w", s.Change, err)
	}
	var before process
	if e.Service != nil {
		before = e.Service.process
	}
	err := e.make(ctx)
	if e.Service != nil && e.Service.process != before { // a reload has made another process of it
		e.Change.goOn(before, e.Service.process)
		e.reach()
	}
	if err == nil {
		e.State = Done
		if err = j.write(e); err == nil {
			return e, nil
		}
	}
	return j.takeBack(e, fmt.Errorf("%s: %w", s.Change, err))
}

// begin notes a change that is about to be made, if it could be taken back later.
func (j *Journal) begin(e Entry) error {
	if e.ID > maxID {
		return fmt.Errorf("the journal %s has had its last number (%d); choose another directory", j.dir.path, maxID)
	}
	if err := unlessRoot(j.run); err != nil {
		return err
	}
	if err := e.check(); err != nil { // what is read is held against the same
		return fmt.Errorf("it could not be taken back, since the journal would not know it again: %w: %w", err, ErrNotPossible)
	}
	return j.write(e)
}

// takeBack undoes what make has done before it failed.
func (j *Journal) takeBack(e Entry, why error) (Entry, error) {
	ctx := context.Background() // whoever cancels the change wants this all the same
	err := e.restore(ctx, true)
	if err == nil {
		_, err = e.heirs(e.Parts)
	}
	if err == nil {
		closed := e
		closed.close(Failed, why.Error())
		if err = j.write(closed); err == nil {
			return closed, why
		}
	}
	e.State, e.Why = Pending, why.Error()
	if noted := j.write(e); noted != nil {
		err = errors.Join(err, noted)
	}
	return e, fmt.Errorf("%w\nand it could not be taken back: %w; put that right, then plimsoll undo %d", why, err, e.ID)
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

func (e Entry) makeFiles(ctx context.Context) error {
	files := e.files()
	if len(files) == 0 {
		return nil
	}
	var drafts []*draft
	for _, p := range files {
		d, err := p.Target.file().prepare(string(p.New))
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

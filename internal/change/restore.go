package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
)

// restore sets the old values. After a change that failed, nginx goes on with what
// it had, so that it is no error when it does not reload the old files.
func (e Entry) restore(ctx context.Context, failed bool) error {
	for _, p := range e.others() {
		if err := p.capped(len(e.files()) > 0); err != nil {
			return err
		}
	}
	if err := e.restoreFiles(ctx, failed); err != nil {
		return err
	}
	return restoreValues(e.others())
}

// restoreValues sets the old values, the last one that was set first. One may
// depend on another (a quota on its period): what does not take is tried again
// once others have, until none does.
func restoreValues(parts []*part) error {
	for {
		var errs []error
		var left []*part
		for _, p := range slices.Backward(parts) {
			if err := p.write(string(p.Old)); err != nil && !errors.Is(err, errGone) && !errors.Is(err, fs.ErrNotExist) {
				errs, left = append(errs, err), append(left, p)
			}
		}
		if len(left) == 0 || len(left) == len(parts) {
			return errors.Join(errs...)
		}
		slices.Reverse(left)
		parts = left
	}
}

// capped says why a listener would not get its old backlog now. It is asked before
// anything is touched: half of the way back nobody could tell whose value is there.
func (p *part) capped(relisten bool) error {
	if p.Target.Kind != inSocket || p.Target.Net == nil {
		return nil
	}
	now, err := p.Target.get()
	if errors.Is(err, errGone) {
		return nil
	}
	most, err2 := p.Target.Net.somaxconn()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if atoi(string(p.Old)) > most && (relisten || now != string(p.Old)) {
		return fmt.Errorf("%s was %s long, and net.core.somaxconn, which is %d there now, allows no more than that; set that back first (plimsoll undo --all does, where it was changed by plimsoll): %w",
			p.Target, p.Old, most, ErrNotPossible)
	}
	return nil
}

// foresee notes what the kernel makes of the queues that listeners are given while
// net.core.somaxconn is what it is: by the reload that is to come, or, without one,
// by a restart that has been since.
func (e Entry) foresee(reload bool) (changed bool) {
	for _, p := range e.others() {
		if p.Target.Kind != inSocket || p.Target.Net == nil {
			continue
		}
		most, err := p.Target.Net.somaxconn()
		if err != nil {
			continue // whoever reads the value itself says so
		}
		allowed := strconv.Itoa(most)
		if now, err := p.Target.get(); !reload && (err != nil || now != allowed) {
			continue
		}
		for _, v := range append([]string{string(p.Old)}, p.Between...) {
			if n := atoi(v); n > most || n < 0 {
				changed = p.between(allowed) || changed
			}
		}
	}
	return changed
}

func (e Entry) restoreFiles(ctx context.Context, failed bool) error {
	files := e.files()
	if len(files) == 0 {
		return nil
	}
	if !failed {
		now, err := e.Service.settled(ctx)
		if err != nil {
			return err
		}
		if now != nil {
			err = now.putBack(ctx, files)
			*e.Service = *now
			return err
		}
	}
	moved := false
	for _, p := range files {
		f := p.Target.file()
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
	if !moved || !failed || e.Service.NoReload {
		return nil
	}
	return e.Service.takeOver(ctx)
}

// takeOver has the service, as it runs now, read the files that it had before a change that
// failed. An nginx that goes on with what it had is well.
func (s *service) takeOver(ctx context.Context) error {
	now, err := s.settled(ctx)
	if err != nil || now == nil {
		return err
	}
	err = now.test(ctx, nil)
	if err == nil {
		err = now.reload(ctx)
	}
	*s = *now
	if s.Kind == Nginx && errors.Is(err, ErrRefused) && len(s.look()) > 0 {
		return nil
	}
	return err
}

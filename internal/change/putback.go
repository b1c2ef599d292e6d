package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"plimsoll/internal/host"
)

// putBack gives a service that runs its old files back. Much may have become of the others
// meanwhile, so it is looked at and tested as a change is: whose the files are that it would read
// then, by the arguments with which it runs now, and whether it takes them. Else nothing is put
// back, for a service that runs would not start again.
func (s *service) putBack(ctx context.Context, files []*part) error {
	drafts, err := s.draftsOf(files)
	defer func() {
		for _, d := range drafts {
			d.Close()
		}
	}()
	if err == nil {
		err = s.wouldRead(files)
	}
	if err == nil {
		err = s.test(ctx, drafts)
	}
	if err != nil {
		for _, d := range drafts {
			err = errors.Join(err, removeIn(d.dir(), d.temp()))
		}
		if len(drafts) > 0 {
			err = fmt.Errorf("nothing was put back: %w", err)
		}
		return err
	}
	for i, d := range drafts {
		if err := d.put(); err != nil {
			for _, rest := range drafts[i+1:] {
				err = errors.Join(err, removeIn(rest.dir(), rest.temp()))
			}
			return fmt.Errorf("%d of %d files were put back, and %s was not reloaded: %w", i, len(drafts), s, err)
		}
	}
	if s.NoReload {
		return nil
	}
	return s.reload(ctx)
}

// draftsOf writes the old files beside those that are not as they were.
func (s *service) draftsOf(files []*part) (drafts []*draft, err error) {
	for _, p := range files {
		f := p.Target.file()
		now, err := f.get()
		if err != nil { // it was there a moment ago: through another process it is
			return drafts, fmt.Errorf("%s: %w; try again", p.Target, err)
		}
		if now == string(p.Old) {
			if err := f.clean(); err != nil {
				return drafts, err
			}
			continue
		}
		d, err := f.prepare(string(p.Old))
		if err != nil {
			return drafts, err
		}
		drafts = append(drafts, d)
		if err := d.timeOf(p.File); err != nil {
			return drafts, err
		}
	}
	return drafts, nil
}

// wouldRead looks at the configuration that the service would have with its old files, and takes
// over the arguments with which it runs now. A file that it would not read has to be as we left it.
func (s *service) wouldRead(files []*part) error {
	h, err := s.Net.open()
	if err != nil {
		return err
	}
	defer h.Close()
	of := map[fileID][]byte{}
	for _, p := range files {
		at, err := p.Target.file().walk(nil)
		if err != nil {
			return err
		}
		of[fileID{at.Stat.Dev, at.Stat.Ino}] = p.Old
		at.Close()
	}
	read := map[fileID]bool{}
	now, err := s.instance(h, nil)
	if now == nil {
		return err
	}
	then, err := s.instance(h, func(info fs.FileInfo) ([]byte, bool) {
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil, false
		}
		id := fileID{st.Dev, st.Ino}
		read[id] = true
		old, ok := of[id]
		return old, ok
	})
	if err != nil {
		return s.refuseUser(fmt.Errorf("with its old file: %w", err))
	}
	s.Test = then.Test
	if now.unread == nil {
		then.listens = now.listens // it listens where it was told last
	}
	if err := s.trustWith(then.configuration); err != nil {
		return err
	}
	return asLeft(files, read)
}

// instance is the service as it runs, and its configuration.
func (s *service) instance(h *host.Host, instead func(fs.FileInfo) ([]byte, bool)) (*instance, error) {
	running, _, err := s.running(h, instead)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(running, func(r *instance) bool { return r.process == s.process })
	if i < 0 {
		return nil, fmt.Errorf("%s is not found where it ran; try again: %w", s, ErrChanged)
	}
	return running[i], running[i].unread
}

// asLeft says which file the service does not read, and somebody else has written.
func asLeft(files []*part, read map[fileID]bool) error {
	for _, p := range files {
		f := p.Target.file()
		at, err := f.walk(nil)
		if err != nil {
			return err
		}
		id := fileID{at.Stat.Dev, at.Stat.Ino}
		at.Close()
		now, err := f.get()
		if err == nil && !read[id] && !p.ours(now) {
			return fmt.Errorf("%s is no file of its configuration, and not as it was left: %w", p.Target, ErrChanged)
		}
	}
	return nil
}

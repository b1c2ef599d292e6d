package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"plimsoll/internal/model"
)

const (
	// shelfDepth is how deep below a shelf runs lie: those of a walk in its folder, those
	// of the lab in a trial's folder.
	shelfDepth = 3
	// maxVerdict is the most of a kept verdict that is read; one of a hundred hosts takes
	// some megabytes.
	maxVerdict = 64 << 20
)

// Kept is a run that lies on a shelf. Its series are not opened.
type Kept struct {
	// ID is its path below the shelf.
	ID string
	// Dir is its directory.
	Dir    string
	Meta   model.Run
	folder func() (*folder, error) // opens the directory again
}

// Shelf is a directory of runs, held open: what lies under its name later is not looked at. It and what is in it may be
// anybody's, so each step below it is taken from the one before, and no link is followed.
type Shelf struct {
	held *os.File
	path string
}

// OpenShelf opens a directory of runs.
func OpenShelf(dir string) (*Shelf, error) {
	held, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	return &Shelf{held, dir}, nil
}

// Close lets go of the directory; its runs cannot be opened any more.
func (s *Shelf) Close() error { return s.held.Close() }

// List lists the runs below dir as Shelf.List does; a directory that is not there has none.
func List(dir string) (list []Kept, skipped []error, err error) {
	s, err := OpenShelf(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	list, skipped, err = s.List()
	for i, k := range list {
		list[i].folder = func() (*folder, error) {
			again, err := OpenShelf(dir)
			if err != nil {
				return nil, err
			}
			f, err := again.folder(k.ID)
			return f, errors.Join(err, again.Close())
		}
	}
	return list, skipped, errors.Join(err, s.Close())
}

// List lists the runs, the oldest first. What looks like a run and cannot be read is in skipped, a sentence each.
func (s *Shelf) List() (list []Kept, skipped []error, err error) {
	top, err := stepIn(s.held, ".", s.path)
	if err != nil {
		return nil, nil, fmt.Errorf("list the runs: %w", err)
	}
	if err := s.look(top, "", 0, &list, &skipped); err != nil {
		return nil, nil, fmt.Errorf("list the runs: %w", err)
	}
	slices.SortStableFunc(list, func(a, b Kept) int {
		if a.Meta.Started != b.Meta.Started {
			return int(min(max(a.Meta.Started-b.Meta.Started, -1), 1))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list, skipped, nil
}

// look looks for runs in an open directory, which it closes.
func (s *Shelf) look(here *os.File, id string, depth int, list *[]Kept, skipped *[]error) (err error) {
	defer func() { err = errors.Join(err, here.Close()) }()
	at := filepath.Join(s.path, id)
	meta, err := manifestOf(here, at)
	switch {
	case err == nil:
		*list = append(*list, Kept{ID: id, Dir: at, Meta: meta, folder: func() (*folder, error) { return s.folder(id) }})
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		*skipped = append(*skipped, err)
		return nil
	case depth == shelfDepth:
		return nil
	}
	entries, err := here.ReadDir(-1)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if !e.IsDir() { // nor is a link followed
			continue
		}
		below, err := stepIn(here, e.Name(), filepath.Join(at, e.Name()))
		if err == nil {
			err = s.look(below, path.Join(id, e.Name()), depth+1, list, skipped)
		}
		if err != nil {
			*skipped = append(*skipped, err)
		}
	}
	return nil
}

func manifestOf(held *os.File, path string) (meta model.Run, err error) {
	f, err := folderOf(held, path)
	if err != nil {
		return model.Run{}, fmt.Errorf("open the run in %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.manifest()
}

// folder opens the directory of a run, step by step.
func (s *Shelf) folder(id string) (_ *folder, err error) {
	here, err := stepIn(s.held, ".", s.path)
	for rest := id; err == nil && rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		before := here
		here, err = stepIn(before, name, filepath.Join(s.path, id))
		err = errors.Join(err, before.Close())
	}
	if err != nil {
		return nil, err
	}
	f, err := folderOf(here, filepath.Join(s.path, id))
	return f, errors.Join(err, here.Close())
}

// Direct lists the runs that lie right in the directory, as --repeat makes them, by their names. One that cannot be
// read is an error, and so is a link: left out, a run would be missed by nobody.
func (s *Shelf) Direct() (list []Kept, err error) {
	top, err := stepIn(s.held, ".", s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, top.Close()) }()
	entries, err := top.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		at := filepath.Join(s.path, e.Name())
		if e.Type() == fs.ModeSymlink { // what it leads to is not looked at: that may be a file system that holds us up
			return nil, fmt.Errorf("%s: a link; in a folder of runs none is followed: put the run itself there, or take the link away", at)
		}
		if !e.IsDir() {
			continue
		}
		k := Kept{ID: e.Name(), Dir: at, folder: func() (*folder, error) { return s.folder(e.Name()) }}
		switch k.Meta, err = k.manifest(); {
		case err == nil:
			list = append(list, k)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return list, nil
}

func (k Kept) manifest() (meta model.Run, err error) {
	f, err := k.folder()
	if err != nil {
		return model.Run{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.manifest()
}

// Open opens the run as record.Open does. Another one that lies there by now is an error.
func (k Kept) Open() (*Run, error) {
	f, err := k.folder()
	if err != nil {
		return nil, err
	}
	r, err := f.run(k.Dir)
	if err == nil && r.meta.Started != k.Meta.Started {
		err = errors.Join(fmt.Errorf("%s: another run lies there by now than when it was listed; list the runs again", k.Dir), r.Close())
		return nil, err
	}
	return r, err
}

// Verdict is what a run's directory says of the run, and not judged again; nil where
// nothing is kept.
func (k Kept) Verdict() (v *model.Verdict, err error) {
	f, err := k.folder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	raw, err := f.read(VerdictFile, maxVerdict)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var doc struct {
		Verdict model.Verdict `json:"verdict"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name(VerdictFile), err)
	}
	return &doc.Verdict, nil
}

// Bytes is how much the run's files hold.
func (k Kept) Bytes() (sum int64, err error) {
	f, err := k.folder()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	err = fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := f.root.Lstat(name)
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

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

// Kept is a run that lies on a shelf, a directory of runs. Its series are not opened.
type Kept struct {
	// ID is its path below the shelf.
	ID string
	// Dir is its directory.
	Dir  string
	Meta model.Run
}

// Shelf lists the runs below dir, the oldest first; a directory that is not there has
// none. What looks like a run and cannot be read is in skipped, a sentence each.
func Shelf(dir string) (list []Kept, skipped []error, err error) {
	var look func(id string, depth int) error
	look = func(id string, depth int) error {
		here := filepath.Join(dir, id)
		meta, err := manifestIn(here)
		switch {
		case err == nil:
			list = append(list, Kept{ID: id, Dir: here, Meta: meta})
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			skipped = append(skipped, err)
			return nil
		case depth == shelfDepth:
			return nil
		}
		entries, err := os.ReadDir(here)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.IsDir() { // nor is a link followed
				continue
			}
			if err := look(path.Join(id, e.Name()), depth+1); err != nil {
				skipped = append(skipped, err)
			}
		}
		return nil
	}
	if err := look("", 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

func manifestIn(dir string) (meta model.Run, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return model.Run{}, fmt.Errorf("open the run in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.manifest()
}

// Verdict is what a run's directory says of the run, and not judged again; nil where
// nothing is kept.
func (k Kept) Verdict() (v *model.Verdict, err error) {
	f, err := openFolder(k.Dir)
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
	err = filepath.WalkDir(k.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

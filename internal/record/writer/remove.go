package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"plimsoll/internal/record"
)

// Remove removes the run, or the folder of runs, that is called id on the shelf, with all
// that is in it. A link in it is removed and not followed. What holds no run is left
// alone: somebody else put it there.
func Remove(shelf, id string) (err error) {
	list, _, err := record.List(shelf)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(k record.Kept) bool { return k.ID == id || strings.HasPrefix(k.ID, id+"/") }) {
		return fmt.Errorf("%s: no run of this name in %s; plimsoll runs list shows them: %w", id, shelf, fs.ErrNotExist)
	}
	dir, err := walk(shelf, false)
	if err != nil {
		return fmt.Errorf("remove the run %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return fmt.Errorf("remove the run %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if !slices.ContainsFunc(list, func(k record.Kept) bool { return k.ID == id }) {
		if err := onlyRuns(root, id, list); err != nil {
			return err
		}
	}
	return root.RemoveAll(id)
}

// beside is what Plimsoll leaves beside the runs of a folder.
var beside = []string{"tuning.json", "trial.json"}

// onlyRuns says what in a folder of runs somebody else has put there.
func onlyRuns(root *os.Root, id string, list []record.Kept) error {
	folder, err := root.Open(id)
	if err != nil {
		return err
	}
	entries, err := folder.ReadDir(-1)
	if err = errors.Join(err, folder.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		at := id + "/" + e.Name()
		isRun := func(k record.Kept) bool { return k.ID == at }
		holdsRuns := func(k record.Kept) bool { return strings.HasPrefix(k.ID, at+"/") }
		switch {
		case slices.Contains(beside, e.Name()), slices.ContainsFunc(list, isRun):
		case slices.ContainsFunc(list, holdsRuns):
			if err := onlyRuns(root, at, list); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s holds %s, which is no run's; take it out, or remove the runs one by one", id, e.Name())
		}
	}
	return nil
}

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// undo takes back everything in the journal, last change first. What is
// already gone is fine, so it can be repeated; when something could not be
// taken back, the journal stays for the next try.
func (l *Lab) undo() error {
	entries, err := l.readJournal()
	if err != nil {
		return fmt.Errorf("%w; see %s", err, l.journalPath())
	}
	// The setting that the whole machine feels comes first, whatever else fails.
	err = l.undoKinds(entries, "machine_sysctl", "claim", "process", "cgroup", "netns", "dir")
	if err != nil {
		return fmt.Errorf("lab: not everything could be undone (%s keeps the list; try `plimsoll lab down` again): %w", l.journalPath(), err)
	}
	if err := os.Remove(l.journalPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lab: remove journal: %w", err)
	}
	return nil
}

// undoKinds takes back the entries of these kinds, one kind after the other.
func (l *Lab) undoKinds(entries []entry, kinds ...string) error {
	var errs []error
	for _, do := range kinds {
		if do == "claim" && errors.Join(errs...) != nil {
			continue // a setting that is not restored stays claimed
		}
		for _, e := range slices.Backward(entries) {
			if e.Do == do {
				errs = append(errs, l.undoEntry(e))
			}
		}
	}
	return errors.Join(errs...)
}

func (l *Lab) undoEntry(e entry) error {
	switch e.Do {
	case "machine_sysctl":
		return l.restoreSysctl(e)
	case "claim":
		return l.release(e.Name)
	case "process":
		return endProcess(e)
	case "cgroup":
		return l.removeCgroup(e)
	case "netns":
		return deleteNetNS(e.Name)
	case "dir":
		path := filepath.Clean(e.Path)
		if !strings.HasPrefix(path, l.stateDir()+string(filepath.Separator)) && !strings.HasPrefix(path, l.diskDir("")) {
			return fmt.Errorf("journal names directory %s, which is not below %s and no %s…: left alone", e.Path, l.stateDir(), l.diskDir(""))
		}
		if err := os.RemoveAll(e.Path); err != nil {
			return fmt.Errorf("remove work directory: %w", err)
		}
	}
	return nil
}

func deleteNetNS(name string) error {
	if _, err := os.Stat(netnsPath(name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if out, err := exec.Command("ip", "netns", "delete", name).CombinedOutput(); err != nil {
		return fmt.Errorf("delete network namespace %s: %s: %w", name, bytes.TrimSpace(out), err)
	}
	return nil
}

// disarm takes the machine-wide changes back, and leaves the rest of the case standing.
func (l *Lab) disarm() error {
	entries, err := l.readJournal()
	if err != nil {
		return err
	}
	return l.undoKinds(entries, "machine_sysctl", "claim")
}

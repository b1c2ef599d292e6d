package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// entry is one line of the journal: a change, written before it is made.
type entry struct {
	// Do is "case", "dir", "netns", "process", "cgroup", "claim" or "machine_sysctl".
	Do string `json:"do"`
	// Name is the case's id, the namespace's, the process's or the setting's name.
	Name string `json:"name"`
	// Path is the directory that was made, the cgroup's among them.
	Path string `json:"path,omitempty"`
	// PID and Start (clock ticks since boot, field 22 of /proc/PID/stat) are
	// one process for as long as the machine is up.
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
	// NetNS is the namespace in which the process was started.
	NetNS string `json:"netns,omitempty"`
	// Old is the setting's value before.
	Old string `json:"old,omitempty"`
}

func (l *Lab) journalPath() string { return filepath.Join(l.stateDir(), "journal.jsonl") }

// note appends an entry. One write, so that a killed lab leaves whole lines
// (and parseJournal drops a last one that is not).
func (l *Lab) note(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: encode %s %s: %w", e.Do, e.Name, err)
	}
	f, err := os.OpenFile(l.journalPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_SYNC, 0o600)
	if err != nil {
		return fmt.Errorf("journal: nothing was changed: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("journal: nothing was changed: %w", err)
	}
	return nil
}

// parseJournal reads the entries of a journal. A last line without its end was
// cut off before its change was made, and is left out.
func parseJournal(r io.Reader) ([]entry, error) {
	data, err := io.ReadAll(io.LimitReader(r, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	var entries []entry
	s := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; s.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("journal line %d: expected a JSON object: %w", n, err)
		}
		entries = append(entries, e)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return entries, nil
}

func (l *Lab) readJournal() ([]entry, error) {
	f, err := os.Open(l.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	defer f.Close()
	return parseJournal(f)
}

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

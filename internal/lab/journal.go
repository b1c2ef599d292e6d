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
	"path/filepath"
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

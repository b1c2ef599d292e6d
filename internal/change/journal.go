package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// State is how far a change has come.
type State string

// The states. Of a pending one nobody knows whether it was made: plimsoll ended
// while it made it, or could not take it back.
const (
	Pending State = "pending"
	Done    State = "done"
	Undone  State = "undone"
	Failed  State = "failed" // it did not work out and was taken back at once
)

// Entry is a change in the journal.
type Entry struct {
	ID     int    `json:"id"` // 1, 2, … in the order in which they were made
	State  State  `json:"state"`
	Change Change `json:"change"`
	// Host is the host's name and Spec what probe.OpenHost was given.
	Host string `json:"host"`
	Spec string `json:"spec"`
	// Old and New are the values, for people.
	Old     string    `json:"old"`
	New     string    `json:"new"`
	Scope   Scope     `json:"scope"`
	Restart Restart   `json:"restart"`
	Time    time.Time `json:"time"`
	// Why is a sentence on why it failed, or what was found when it was taken back.
	Why string `json:"why,omitempty"`

	// What follows is what Undo needs; of an entry that is not Open it is gone.

	Boot    string   `json:"boot"` // the kernel's boot id
	Parts   []part   `json:"parts,omitempty"`
	Service *service `json:"service,omitempty"`
}

// Open says whether there is something to take back.
func (e Entry) Open() bool { return e.State == Pending || e.State == Done }

// Journal is a directory with a file for each change. It is one process's at a
// time; it is not safe for concurrent use.
type Journal struct {
	dir     string
	lock    *os.File
	entries []Entry
}

// DefaultDir is where the journal is kept: for root with the machine's state,
// else in the user's home directory.
func DefaultDir(home string, root bool) string {
	if root {
		return "/var/lib/plimsoll/changes"
	}
	return filepath.Join(home, ".local/state/plimsoll/changes")
}

// Open takes the journal in dir, which it makes when it is not there. It is
// ErrLocked while another process has it; the lock ends with that process,
// however it ends.
func Open(dir string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the journal of changes: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal of changes: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the journal of changes %s: %w", dir, err)
		}
		b := make([]byte, 20)
		n, _ := f.ReadAt(b, 0)
		return nil, fmt.Errorf("%w (process %s holds %s); wait until it has ended", ErrLocked, strings.TrimSpace(string(b[:n])), dir)
	}
	j := &Journal{dir: dir, lock: f}
	// Who holds it is for the message above alone, so it may fail.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	if err := j.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// read takes over what is in the directory, and removes what a crash left.
func (j *Journal) read() error {
	left, err := filepath.Glob(filepath.Join(j.dir, "*.tmp"))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("the journal of changes: remove what a crash left: %w", err)
		}
	}
	j.entries, err = ReadEntries(j.dir)
	return err
}

// ReadEntries reads the journal in dir without taking it. A directory that is
// not there has no entries.
func ReadEntries(dir string) ([]Entry, error) {
	names, err := filepath.Glob(filepath.Join(dir, "[0-9]*.json"))
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, name := range names { // sorted, and the numbers have leading zeros
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the journal of changes: %w", err)
		}
		e, err := parseEntry(b)
		if err != nil {
			return nil, fmt.Errorf("read the journal of changes: %s: %w", name, err)
		}
		list = append(list, e)
	}
	return list, nil
}

func parseEntry(b []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(b, &e); err != nil {
		return Entry{}, fmt.Errorf("want an entry in JSON: %w", err)
	}
	switch e.State {
	case Pending, Done, Undone, Failed:
	default:
		return Entry{}, fmt.Errorf("want a state such as %s, got %q", Done, e.State)
	}
	if e.ID < 1 {
		return Entry{}, fmt.Errorf("want an id, got %d", e.ID)
	}
	return e, nil
}

// Close gives the journal up; the changes stay.
func (j *Journal) Close() error { return j.lock.Close() }

// Entries lists all changes, the oldest first. The slice is the caller's.
func (j *Journal) Entries() []Entry { return append([]Entry(nil), j.entries...) }

// write puts an entry on the disk, for good, before it returns.
func (j *Journal) write(e Entry) error {
	b, err := json.MarshalIndent(e, "", "\t")
	if err != nil {
		return fmt.Errorf("write the journal of changes: %w", err)
	}
	name := filepath.Join(j.dir, fmt.Sprintf("%08d.json", e.ID))
	if err := writeSafely(name, append(b, '\n')); err != nil {
		return fmt.Errorf("write the journal of changes: %w", err)
	}
	if n := len(j.entries); n > 0 && j.entries[n-1].ID >= e.ID {
		for i := range j.entries {
			if j.entries[i].ID == e.ID {
				j.entries[i] = e
			}
		}
		return nil
	}
	j.entries = append(j.entries, e)
	return nil
}

// writeSafely writes a file so that after a crash the old or the new one is there.
func writeSafely(name string, b []byte) error {
	temp := name + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(name))
}

// find is the entry with a number.
func (j *Journal) find(id int) (Entry, error) {
	for _, e := range j.entries {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("no change %d in the journal %s; plimsoll tune --status lists them", id, j.dir)
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

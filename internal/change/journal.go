package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Journal is a directory with a file for each change. It is one process's at a
// time; it is not safe for concurrent use.
type Journal struct {
	dir     *folder
	run     string // where the machine's lock is
	machine *machineLock
	lock    *os.File
	entries []Entry
	skipped []error
	next    int // the number of the next change
}

// ErrNoEntry: the journal has no change of that number.
var ErrNoEntry = errors.New("no such change")

const (
	maxID      = 99_999_999
	maxSkipped = 20
)

// DefaultDir is where the journal is kept: for root with the machine's state,
// else where the user's programs keep theirs ($XDG_STATE_HOME, or in $HOME);
// "" when neither is known.
func DefaultDir(state, home string, root bool) string {
	switch {
	case root:
		return "/var/lib/plimsoll/changes"
	case filepath.IsAbs(state):
		return filepath.Join(state, "plimsoll/changes")
	case filepath.IsAbs(home):
		return filepath.Join(home, ".local/state/plimsoll/changes")
	}
	return ""
}

// Open takes the journal in dir, which it makes when it is not there, and the
// machine's lock below run (/run): nobody else changes the machine until Close.
// It is ErrLocked while another process has one of the two; both end with that
// process, however it ends.
func Open(dir, run string) (*Journal, error) {
	machine, err := lockMachine(run)
	if err != nil {
		return nil, err
	}
	j := &Journal{run: run, machine: machine}
	if err := j.open(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("the journal of changes: %w", err), j.Close())
	}
	return j, nil
}

func (j *Journal) open(dir string) (err error) {
	if j.dir, err = openFolder(dir, true); err != nil {
		return err
	}
	if j.lock, err = j.dir.open(lockName, unix.O_RDWR|unix.O_CREAT); err != nil {
		return err
	}
	if err = flock(j.lock, lockPatience); err != nil { // by one with another /run
		return fmt.Errorf("%w (it holds %s); wait until it has ended", err, dir)
	}
	names, err := j.dir.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if entryName().MatchString(name) && strings.HasSuffix(name, tempEnd) {
			if err := j.dir.remove(name); err != nil {
				return fmt.Errorf("remove what a crash left: %w", err)
			}
		}
	}
	j.entries, j.skipped, err = j.dir.entries(names)
	j.next = nextID(names)
	return err
}

// ReadEntries reads the journal in dir without taking it. A directory that is not
// there has no entries. Files that are no entries are passed over: skipped says
// which and what to do.
func ReadEntries(dir string) (list []Entry, skipped []error, err error) {
	f, err := openFolder(dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the journal of changes: %w", err)
	}
	defer f.Close()
	names, err := f.names()
	if err == nil {
		list, skipped, err = f.entries(names)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the journal of changes: %w", err)
	}
	return list, skipped, nil
}

// entries reads those of the files that are entries. A broken one is never
// deleted: it may hold the only copy of what was.
func (f *folder) entries(names []string) (list []Entry, skipped []error, err error) {
	var size int64
	left := 0
	for _, name := range names { // sorted, and the numbers have leading zeros
		if !isEntry(name) {
			continue
		}
		e, n, err := f.entry(name)
		if size += n; size > maxJournal {
			return nil, nil, fmt.Errorf("%s holds more than %d bytes, which no journal does; choose another directory", f.path, maxJournal)
		}
		switch {
		case err == nil:
			list = append(list, e)
		case errors.Is(err, fs.ErrNotExist): // closed journals may be tidied up
		case len(skipped) < maxSkipped:
			skipped = append(skipped, fmt.Errorf("%s is left out: %w; see what it says about what was before, put that right by hand, then move the file away", filepath.Join(f.path, name), err))
		default:
			left++
		}
	}
	if left > 0 {
		skipped = append(skipped, fmt.Errorf("%d more files in %s are left out", left, f.path))
	}
	return list, skipped, nil
}

func (f *folder) entry(name string) (e Entry, size int64, err error) {
	if !entryName().MatchString(name) {
		return e, 0, errors.New("no entry has such a name, want eight digits")
	}
	b, err := f.read(name, maxEntry)
	if err != nil {
		return e, 0, err
	}
	if len(b) == 0 {
		return e, 0, errors.New("it is empty")
	}
	e, err = parseEntry(b)
	if err == nil && fileName(e.ID) != name {
		err = fmt.Errorf("it says that it is change %d, want the number in its name", e.ID)
	}
	return e, int64(len(b)), err
}

func fileName(id int) string { return fmt.Sprintf("%08d.json", id) }

// nextID is a number that no file has, a broken one neither.
func nextID(names []string) int {
	most := 0
	for _, name := range names {
		if entryName().MatchString(name) {
			most = max(most, atoi(name[:8]))
		}
	}
	return most + 1
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
	if e.ID < 1 || e.ID > maxID {
		return Entry{}, fmt.Errorf("want an id from 1 to %d, got %d", maxID, e.ID)
	}
	if !e.Open() {
		e.close(e.State, e.Why)
		return e, nil
	}
	if err := e.check(); err != nil {
		return Entry{}, fmt.Errorf("no change of ours looks like it: %w", err)
	}
	return e, nil
}

// Close gives the journal up; the changes stay.
func (j *Journal) Close() error {
	var errs []error
	if j.lock != nil {
		errs = append(errs, j.lock.Close())
	}
	if j.dir != nil {
		errs = append(errs, j.dir.Close())
	}
	return errors.Join(append(errs, j.machine.close())...)
}

// Entries lists all changes, the oldest first. The slice is the caller's.
func (j *Journal) Entries() []Entry { return append([]Entry(nil), j.entries...) }

// Skipped says which files of the journal are no entries, and what to do.
func (j *Journal) Skipped() []error { return append([]error(nil), j.skipped...) }

// write puts an entry on the disk, for good, before it returns. A new one has to have room.
func (j *Journal) write(e Entry) error {
	at := slices.IndexFunc(j.entries, func(o Entry) bool { return o.ID == e.ID })
	b, err := json.MarshalIndent(e, "", "\t")
	if err == nil && len(b) >= maxEntry {
		err = fmt.Errorf("change %d needs %d bytes, and one may have %d", e.ID, len(b), maxEntry)
	}
	if err == nil && at < 0 {
		err = j.dir.room(int64(len(b)))
	}
	if err == nil {
		err = j.dir.write(fileName(e.ID), append(b, '\n'))
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the journal of changes: %w", err)
	case at >= 0:
		j.entries[at] = e
	default:
		j.entries, j.next = append(j.entries, e), e.ID+1
	}
	return nil
}

// find is the entry with a number.
func (j *Journal) find(id int) (Entry, error) {
	for _, e := range j.entries {
		if e.ID == id {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("change %d: %w in the journal %s; plimsoll tune --status lists them", id, ErrNoEntry, j.dir.path)
}

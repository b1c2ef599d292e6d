package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer/store"
)

// ringParts is in how many parts a ring's log is kept: one more than that are there, since
// the oldest falls away as a whole.
const ringParts = 8

// takePatience is for how long a process is waited for that was killed and has not ended yet.
const takePatience = 5 * time.Second

// ErrTaken says that another process records in a ring.
var ErrTaken = errors.New("another plimsoll watch keeps its last minutes there")

// Ring is a run directory without an end: the oldest parts of its log fall away, so that it holds the
// newest minutes. It can be opened at any time, as a run that was cut off.
type Ring struct {
	*Writer
	keep, most int64 // milliseconds, bytes
	parts      []part
	copying    bool
}

// part is what was recorded between two turns.
type part struct {
	number int   // of the series' parts
	file   int   // the log's first file of it
	begin  int64 // Unix milliseconds
	events int64 // where its events begin in their file
	notes  int   // and its notes among those of the run
	bytes  int64 // of its log and events, once it has ended
}

// OpenRing begins a ring in dir, which is new, or was a ring before. What is left in it of a
// process that was killed is handed to rescue first, with the directory, and removed.
func OpenRing(dir string, run model.Run, keep time.Duration, most int64, rescue func(dir string) error) (*Ring, error) {
	held, err := walk(dir, true)
	if err != nil {
		return nil, fmt.Errorf("keep the last minutes in %s: %w", dir, err)
	}
	left, err := leftIn(held) // before it is taken: one that is somebody's keeps its mode, it may be / itself
	if err != nil {
		return nil, fmt.Errorf("keep the last minutes in %s: %w", dir, errors.Join(err, held.Close()))
	}
	open, err := take(held)
	if err != nil {
		return nil, fmt.Errorf("keep the last minutes in %s: %w", dir, err)
	}
	if err := emptied(open, dir, left, rescue); err != nil {
		return nil, fmt.Errorf("keep the last minutes in %s: %w", dir, errors.Join(err, open.close()))
	}
	run.Format, run.Closed, run.Status = record.Format, false, map[string]map[string]model.Status{}
	w := &Writer{dir: dir, open: open, run: run, cut: map[string]map[string]bool{}, packets: map[string]*os.File{}}
	if err := w.begin(); err != nil {
		return nil, errors.Join(w.explain(err), w.release(), open.close())
	}
	return &Ring{Writer: w, keep: keep.Milliseconds(), most: most}, nil
}

// leftIn says whether a ring was left in a directory. What holds something else is none of ours.
func leftIn(held *os.File) (bool, error) {
	names, err := held.Readdirnames(-1)
	if err == nil && len(names) > 0 && !slices.Contains(names, record.ManifestFile) {
		err = errors.New("it holds something, and is no ring; name a directory that is new or empty")
	}
	return len(names) > 0, err
}

// emptied takes a directory for this process alone, until it is closed, and empties it of a ring.
func emptied(open *runDir, dir string, left bool, rescue func(string) error) error {
	err := unix.Flock(int(open.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for end := time.Now().Add(takePatience); errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(end); {
		time.Sleep(takePatience / 100)
		err = unix.Flock(int(open.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrTaken
	case err != nil || !left:
		return err
	}
	return errors.Join(rescue(dir), clearOut(open)) // what cannot be rescued now never can
}

func clearOut(open *runDir) error {
	entries, err := fs.ReadDir(open.root.FS(), ".")
	for _, e := range entries {
		if e.Name() != record.ManifestFile {
			err = errors.Join(err, open.root.RemoveAll(e.Name()))
		}
	}
	if err != nil { // it goes last: what holds something else alone is taken for no ring
		return err
	}
	return open.root.RemoveAll(record.ManifestFile)
}

// takeBack removes a run directory of which nothing came.
func takeBack(open *runDir, dir string) error {
	if err := clearOut(open); err != nil {
		return err
	}
	above, err := walk(filepath.Dir(filepath.Clean(dir)), false)
	if err != nil {
		return err
	}
	return errors.Join(unix.Unlinkat(int(above.Fd()), filepath.Base(dir), unix.AT_REMOVEDIR), above.Close())
}

// Commit is Writer.Commit, and lets what is too old fall away.
func (r *Ring) Commit() error {
	if err := r.Writer.Commit(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.closed || r.newest == 0 {
		return r.err
	}
	if len(r.parts) == 0 { // what starting takes is not of it
		r.parts = []part{{begin: r.newest}}
		r.fail(r.retell())
	} else if open := r.parts[len(r.parts)-1]; r.newest-open.begin >= r.keep/ringParts || r.bytes(open) >= r.most/ringParts {
		r.fail(r.turn())
		r.fail(r.drop())
	}
	return r.err
}

// bytes is about how much of the log and of the events is of the newest part.
func (r *Ring) bytes(open part) int64 {
	file, size := r.series.log.At()
	return int64(file-open.file)*store.SegmentSize + int64(size) + r.told - open.events
}

// turn begins a part.
func (r *Ring) turn() error {
	ended := &r.parts[len(r.parts)-1]
	ended.bytes = r.bytes(*ended)
	file, err := r.series.turn()
	if err != nil {
		return err
	}
	events, err := r.events.Stat()
	if err != nil {
		return err
	}
	r.parts = append(r.parts, part{number: r.series.part, file: file, begin: r.newest + 1, events: events.Size(), notes: len(r.run.Notes)})
	r.cut = map[string]map[string]bool{}
	return nil
}

// drop lets the oldest parts fall away, but not under a copy.
func (r *Ring) drop() error {
	gone, bytes := 0, int64(0)
	for _, p := range r.parts {
		bytes += p.bytes
	}
	for gone+2 < len(r.parts) && (r.parts[gone+1].begin <= r.newest-r.keep || bytes > r.most) {
		bytes -= r.parts[gone].bytes
		gone++
	}
	if gone == 0 || r.copying {
		return nil
	}
	oldest := r.parts[gone]
	r.parts = slices.Clone(r.parts[gone:])
	r.run.Notes = slices.Clone(r.run.Notes[oldest.notes:])
	if err := r.dropEvents(oldest.events); err != nil {
		return err
	}
	for i := range r.parts {
		r.parts[i].notes -= oldest.notes
		r.parts[i].events -= oldest.events
	}
	r.series.forget(oldest.number)
	if err := r.retell(); err != nil { // first: a window must not begin before the samples
		return err
	}
	return r.series.log.Drop(oldest.file)
}

// dropEvents lets the first bytes of the events fall away.
func (r *Ring) dropEvents(bytes int64) error {
	if bytes == 0 {
		return nil
	}
	old, err := r.open.root.Open(record.EventsFile)
	if err != nil {
		return err
	}
	err = replaceWith(r.open.root, record.EventsFile, false, func(out io.Writer) error {
		_, err := io.Copy(out, io.NewSectionReader(old, bytes, maxEvents))
		return err
	})
	if err = errors.Join(err, old.Close(), r.events.Close()); err != nil {
		return err
	}
	r.told -= bytes
	r.events, err = r.open.root.OpenFile(record.EventsFile, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

// retell has the manifest say from when on there is something.
func (r *Ring) retell() error {
	r.run.Started = r.parts[0].begin
	r.run.Windows = []model.Window{{Name: model.Hold, Start: r.run.Started}}
	return r.writeManifest()
}

// Kept is for how long it goes back, and about how many bytes its log and events have.
func (r *Ring) Kept() (back time.Duration, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) == 0 {
		return 0, 0
	}
	bytes = r.bytes(r.parts[len(r.parts)-1])
	for _, p := range r.parts {
		bytes += p.bytes
	}
	return time.Duration(r.newest-r.parts[0].begin) * time.Millisecond, bytes
}

// CopyTo makes a run directory of what it holds; change changes its manifest, and finish closes it: Finish, or a process that calls it.
// Where that fails the run is there all the same (CutOff). Recording goes on meanwhile.
func (r *Ring) CopyTo(dir string, change func(*model.Run), finish func(dir string) error) error {
	run, files, err := r.freeze(change)
	if err != nil {
		return err
	}
	err = copyRun(r.open, dir, run, files, false, finish)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copying = false
	if !r.closed {
		r.fail(r.drop())
	}
	return errors.Join(err, r.err)
}

// freeze ends the newest part, and returns the manifest and the log's files of all that there is. Nothing falls away
// until the copy is made.
func (r *Ring) freeze(change func(*model.Run)) (model.Run, []string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil || r.closed:
		return model.Run{}, nil, errors.Join(fs.ErrClosed, r.err)
	case r.copying:
		return model.Run{}, nil, errors.New("a copy is being made; ask again when that is done")
	case len(r.parts) == 0:
		return model.Run{}, nil, errors.New("nothing was recorded yet; ask again in some seconds")
	}
	r.flush()
	first := r.parts[0].file
	r.fail(r.turn())
	run := r.run
	run.Windows = []model.Window{{Name: model.Hold, Start: r.run.Started, End: r.newest}}
	change(&run)
	raw, err := json.Marshal(run) // what it points to goes on changing
	if err = errors.Join(r.err, err); err != nil {
		return run, nil, err
	}
	var still model.Run
	if err := json.Unmarshal(raw, &still); err != nil {
		return run, nil, err
	}
	r.run.Tracing, r.copying = nil, true
	var files []string
	for n := first; n < r.parts[len(r.parts)-1].file; n++ {
		files = append(files, fmt.Sprintf("%08d", n))
	}
	return still, files, nil
}

// Rescue makes a run directory of a ring that was left behind by a process that was killed. change changes its
// manifest, and tells whether it is worth that; finish closes it.
func Rescue(ring, dir string, change func(*model.Run) bool, finish func(dir string) error) error {
	left, err := record.Open(ring)
	if err != nil {
		return err
	}
	run := left.Meta()
	_, _, empty := left.Span()
	if err := left.Close(); err != nil || empty != nil || len(run.Windows) == 0 || !change(&run) {
		return err
	}
	open, err := openRunDir(ring)
	if err != nil {
		return err
	}
	files, err := logFiles(open.root)
	if err == nil {
		err = copyRun(open, dir, run, files, true, finish)
	}
	return errors.Join(err, open.close())
}

func logFiles(root *os.Root) (files []string, err error) {
	entries, err := fs.ReadDir(root.FS(), path.Join(record.SeriesDir, record.WALDir))
	for _, e := range entries {
		if _, bad := strconv.Atoi(e.Name()); bad == nil {
			files = append(files, e.Name())
		}
	}
	return files, err
}

// CutOff says that a run was made that could not be closed, and why. It stays one that was cut off, and opens as such: its log tells the same.
type CutOff struct{ Err error }

func (c CutOff) Error() string {
	return fmt.Sprintf("it stays a run that was cut off, since it could not be closed: %v", c.Err)
}

// Unwrap gives the cause.
func (c CutOff) Unwrap() error { return c.Err }

// copyRun makes a run directory of these files of a log, and of the events and stacks beside it, and has it closed. What is dropped where
// that fails is tried whatever room there seems to be.
func copyRun(from *runDir, dir string, run model.Run, files []string, dropped bool, finish func(string) error) (err error) {
	to, err := makeRunDir(dir)
	if err != nil {
		return err
	}
	w := &Writer{dir: dir, open: to, run: run}
	defer func() {
		if err != nil && !errors.As(err, new(CutOff)) {
			err = errors.Join(w.explain(err), takeBack(to, dir))
		}
		err = errors.Join(err, to.close())
	}()
	names := copied(run, files)
	if !dropped {
		if err := roomFor(from.root, names, to); err != nil {
			return err
		}
	}
	if err := w.writeManifest(); err != nil {
		return err
	}
	if err := to.root.MkdirAll(path.Join(record.SeriesDir, record.WALDir), 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(from.root, to, name); err != nil {
			return err
		}
	}
	return w.closedBy(finish, dropped)
}

// closedBy has a copy closed. Its log is whole before, and what closes it is killed, refused or too slow just when a machine
// suffers; so the copy stays. But on a full disk it would take the room of others: there it stays only if it cannot be made again (dropped).
func (w *Writer) closedBy(finish func(dir string) error, dropped bool) error {
	failed := finish(w.dir)
	if failed == nil || errors.Is(failed, unix.ENOSPC) && !dropped {
		return failed
	}
	left, err := record.Open(w.dir)
	if err != nil {
		return errors.Join(failed, err)
	}
	closed := left.Meta().Closed // it failed, or was killed, after that
	if err := left.Close(); err != nil || closed {
		return err
	}
	cut := CutOff{failed}
	w.run.Notes = append(w.run.Notes, cut.Error())
	if err := errors.Join(w.open.root.RemoveAll(path.Join(record.SeriesDir, cutDir)), w.writeManifest()); err != nil {
		cut.Err = errors.Join(failed, err) // the manifest is that of before: it is replaced in one step
	}
	return cut
}

// Finish closes a copy: blocks are made of its log, which takes several times the memory of recording. So a watch that stays leaves that
// to a process of its own.
func Finish(dir string) (err error) {
	left, err := record.Manifest(dir)
	if err != nil || left.Closed {
		return err
	}
	w := &Writer{dir: dir, run: left}
	if w.open, err = openRunDir(dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = named{err, strings.ReplaceAll(err.Error(), w.open.path(), dir)}
		}
		err = errors.Join(err, w.open.close())
	}()
	s := series{run: w.open.path(), dir: path.Join(w.open.path(), record.SeriesDir), pieceSamples: pieceSamples}
	if err := w.cutSeries(&s); err != nil {
		return err
	}
	w.run.Closed = true
	return w.writeManifest()
}

// copied are the files of a run of which a copy is made.
func copied(run model.Run, files []string) []string {
	names := []string{record.EventsFile}
	for _, f := range files {
		names = append(names, path.Join(record.SeriesDir, record.WALDir, f))
	}
	if run.Tracing != nil {
		for _, p := range run.Tracing.Profiles {
			names = append(names, p+record.ProfileEnd)
		}
	}
	return names
}

// roomFor says what is needed, twice the files at most, and what is there where a directory has no room for a copy of these files, and for the
// blocks that are made of them beside it: that is looked at first, since half a copy would take the room that others need.
func roomFor(from *os.Root, names []string, to *runDir) error {
	var need, has uint64
	for _, name := range names {
		info, err := from.Stat(name)
		if err != nil {
			return err
		}
		need += 2 * uint64(info.Size())
	}
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(to.dir.Fd()), &disk); err != nil {
		return fmt.Errorf("look for free space: %w", err)
	}
	if has = disk.Bavail * uint64(disk.Bsize); has < need {
		return fmt.Errorf("about %.1f MB are needed for it, and %.1f MB are free on its disk; free some space, or have runs elsewhere: %w", float64(need)/1e6, float64(has)/1e6, unix.ENOSPC)
	}
	return nil
}

func copyFile(from *os.Root, to *runDir, name string) (err error) {
	in, err := from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := to.create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Path leads to its directory, whatever that is called by now.
func (r *Ring) Path() string { return r.open.path() }

// Discard ends the ring, and removes what it holds.
func (r *Ring) Discard() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	err := errors.Join(r.release(), clearOut(r.open), r.open.close())
	r.endListening()
	return err
}

// Package record is the run directory: the only room that knows its layout.
// This package reads; package writer, below it, writes. README.md describes
// each file, who writes it and what a cut-off one looks like.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/storage"

	"plimsoll/internal/model"
)

// maxManifest is the most of run.json that is read; a status for each of some
// hundred signals on a hundred hosts takes half of it.
const maxManifest = 8 << 20

// maxParts is the most hosts, windows, summaries of tools or thresholds of a site that a run may have.
const maxParts = 1000

// Run is a recorded run, open for reading. Its methods may be called by
// several goroutines; Close must be the last.
type Run struct {
	folder *folder // nil of a run that lies in no directory
	dir    string
	meta   model.Run
	stored
	intervals atomic.Pointer[[]Interval] // of latency.hlog, once they were gone through
}

// Open opens the run in dir. A run that was cut off opens up to its last
// committed round; windows it left open end with the last sample. Nothing is
// written. The directory may be anybody's: what is no plain file in it, leads
// out of it, or is larger than a run's can be, is an error.
func Open(dir string) (*Run, error) {
	f, err := openFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no run here; plimsoll run makes one: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("open the run in %s: %w", dir, err)
	}
	return f.run(dir)
}

// run opens the run that lies in f, which is closed with it.
func (f *folder) run(dir string) (*Run, error) {
	r := &Run{folder: f, dir: dir}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// OnlyOurs says whether nobody but us made, or can change, the run's directory and its manifest. What is asked is the directory
// that was opened and not a path, so that nobody can put another run in its place meanwhile.
func (r *Run) OnlyOurs() bool {
	return r.folder != nil && r.folder.onlyOurs(".") && r.folder.onlyOurs(ManifestFile)
}

func (r *Run) open() (err error) {
	if r.meta, err = r.folder.manifest(); err != nil {
		return err
	}
	if r.stored, err = r.folder.openSeries(); err != nil {
		return err
	}
	r.closeWindows()
	if err := r.checkTimes(); err != nil {
		return fmt.Errorf("%s: %w", r.folder.name(ManifestFile), err)
	}
	return nil
}

// InMemory makes a run of a manifest and series that lie in no directory.
func InMemory(meta model.Run, m *Memory) *Run {
	r := &Run{meta: meta, stored: stored{series: m}}
	r.first, r.last, r.sampled = m.Span()
	return r
}

// Manifest reads the manifest of the run in a directory, and nothing else.
func Manifest(dir string) (meta model.Run, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return model.Run{}, fmt.Errorf("open the run in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.manifest()
}

func (f *folder) manifest() (model.Run, error) {
	raw, err := f.rawManifest()
	if err != nil {
		return model.Run{}, err
	}
	return f.parseManifest(raw)
}

func (f *folder) rawManifest() ([]byte, error) {
	raw, err := f.read(ManifestFile, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no run here; plimsoll run makes one: %w", f.path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("open the run in %s: %w", f.path, err)
	}
	return raw, nil
}

func (f *folder) parseManifest(raw []byte) (model.Run, error) {
	meta, err := parseManifest(raw)
	if err != nil {
		return model.Run{}, fmt.Errorf("%s: %w", f.name(ManifestFile), err)
	}
	return meta, nil
}

// parseManifest reads run.json. The layout's number is looked at first, since
// nothing else need be the same in a newer one.
func parseManifest(raw []byte) (model.Run, error) {
	var head struct {
		Format  int    `json:"format"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return model.Run{}, fmt.Errorf("the manifest is cut short or damaged, so the run cannot be read; take a copy of it that is whole, or run again: %w", err)
	}
	if head.Format > Format {
		return model.Run{}, fmt.Errorf("layout %d, written by Plimsoll %s; this Plimsoll reads layouts up to %d, use a newer one", head.Format, head.Version, Format)
	}
	if head.Format < 1 {
		return model.Run{}, errors.New("no layout number; this is no run's manifest")
	}
	if err := countParts(raw); err != nil {
		return model.Run{}, err
	}
	var meta model.Run
	if err := json.Unmarshal(raw, &meta); err != nil {
		return model.Run{}, fmt.Errorf("the manifest is damaged, so the run cannot be read: %w", err)
	}
	return meta, nil
}

// countParts refuses a manifest of more hosts, windows, summaries or thresholds than a run has:
// an empty one takes three bytes there and a hundred in memory.
func countParts(raw []byte) error {
	var parts struct {
		Hosts   []json.RawMessage `json:"hosts"`
		Windows []json.RawMessage `json:"windows"`
		Tools   []json.RawMessage `json:"tool_summaries"`
		Site    struct {
			Thresholds []json.RawMessage `json:"thresholds"`
		} `json:"site"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("the manifest is damaged, so the run cannot be read: %w", err)
	}
	if most := max(len(parts.Hosts), len(parts.Windows), len(parts.Tools), len(parts.Site.Thresholds)); most > maxParts {
		return fmt.Errorf("%d hosts, %d windows, %d summaries of tools and %d thresholds, want at most %d of each; this is no run's manifest",
			len(parts.Hosts), len(parts.Windows), len(parts.Tools), len(parts.Site.Thresholds), maxParts)
	}
	return nil
}

// closeWindows ends what a run that was cut off left open.
func (r *Run) closeWindows() {
	for i := range r.meta.Windows {
		if w := &r.meta.Windows[i]; w.End == 0 && r.sampled {
			w.End = max(r.last, w.Start)
		}
	}
}

// slack is how far a window may reach beyond the samples, in milliseconds; the
// rounds at its ends are samples. Where the only host is lost, two minutes of silence pass until that is known.
const slack = 150_000

// checkTimes refuses windows that nothing was sampled in, and a run that is longer
// than any, since what is asked of a run goes through its windows step by step. A
// time between readings that is much shorter than the readings are apart is set to
// what they tell.
func (r *Run) checkTimes() error {
	if !r.sampled {
		return nil
	}
	if span := float64(r.last) - float64(r.first); span > float64(longest.Milliseconds()) || r.first < 0 {
		return fmt.Errorf("its samples are from %d to %d ms; a run takes %v at the most", r.first, r.last, longest)
	}
	for _, w := range r.meta.Windows {
		if w.Start < r.first-slack || w.End > r.last+slack || w.End < w.Start {
			return fmt.Errorf("window %s from %d to %d ms; the run's samples are from %d to %d", w.Name, w.Start, w.End, r.first, r.last)
		}
	}
	if r.readings == 0 || r.meta.Plan.Interval <= 0 {
		return nil
	}
	// Of a busy machine not every round was taken; not one in ten is no interval.
	if apart := (r.last - r.first) / int64(r.readings); r.meta.Plan.Interval < apart/10 {
		r.meta.Notes = append(r.meta.Notes, fmt.Sprintf("the run says that it was read every %d ms; it was judged as one that was read every %d ms, since no series has more readings than that",
			r.meta.Plan.Interval, apart/10))
		r.meta.Plan.Interval = apart / 10
	}
	return nil
}

// Dir is the run's directory, as it was given to Open.
func (r *Run) Dir() string { return r.dir }

// Meta is the run's manifest. The caller must not change what it points to.
func (r *Run) Meta() model.Run { return r.meta }

// Queryable gives the run's series to Prometheus' engine.
func (r *Run) Queryable() storage.Queryable { return r.series }

// Span returns the times of the run's first and last sample, in Unix
// milliseconds. A run without any is an error.
func (r *Run) Span() (first, last int64, err error) {
	if !r.sampled {
		return 0, 0, fmt.Errorf("%s: the run holds no sample; it ended before its first round", r.dir)
	}
	return r.first, r.last, nil
}

// Close releases the run's files.
func (r *Run) Close() error {
	var err error
	if r.closeSeries != nil {
		err = r.closeSeries()
	}
	if r.folder != nil {
		err = errors.Join(err, r.folder.close())
	}
	return err
}

// Last has the run's only window be the last part of its samples.
func (r *Run) Last(d time.Duration) {
	r.meta.Windows = []model.Window{{Name: model.Hold, Start: max(r.first, r.last-d.Milliseconds()), End: r.last}}
}

// Window returns the last window of that name.
func (r *Run) Window(name string) (model.Window, bool) {
	for _, w := range slices.Backward(r.meta.Windows) {
		if w.Name == name {
			return w, true
		}
	}
	return model.Window{}, false
}

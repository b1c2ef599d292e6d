// Package record is the run directory: the only room that knows its layout.
// This package reads; package writer, below it, writes. README.md describes
// each file, who writes it and what a cut-off one looks like.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/prometheus/storage"

	"plimsoll/internal/model"
)

// Format is the layout that this program writes, and the newest it reads.
const Format = 1

// The files of a run.
const (
	ManifestFile = "run.json"
	SeriesDir    = "series"
	WALDir       = "wal" // in SeriesDir, while recording
	LatencyFile  = "latency.hlog"
	EventsFile   = "events.jsonl"
	VerdictFile  = "verdict.json"
	ProfileEnd   = ".pb.gz" // after the name of what was sampled: cpu, offcpu
)

// maxManifest is the most of run.json that is read; a status for each of some
// hundred signals on some hosts takes a hundredth of it.
const maxManifest = 64 << 20

// Run is a recorded run, open for reading. Its methods may be called by
// several goroutines; Close must be the last.
type Run struct {
	dir         string
	meta        model.Run
	series      storage.Queryable
	first, last int64
	sampled     bool
	close       func() error
}

// Open opens the run in dir. A run that was cut off opens up to its last
// committed round; windows it left open end with the last sample. Nothing is written.
func Open(dir string) (*Run, error) {
	meta, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{dir: dir, meta: meta}
	if err := r.openSeries(); err != nil {
		return nil, err
	}
	r.closeWindows()
	return r, nil
}

// InMemory makes a run of a manifest and series that lie in no directory.
func InMemory(meta model.Run, m *Memory) *Run {
	r := &Run{meta: meta, series: m}
	r.first, r.last, r.sampled = m.Span()
	return r
}

func readManifest(dir string) (model.Run, error) {
	path := filepath.Join(dir, ManifestFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return model.Run{}, fmt.Errorf("%s: no run here; plimsoll run makes one: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return model.Run{}, fmt.Errorf("open the run in %s: %w", dir, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return model.Run{}, fmt.Errorf("open the run in %s: %w", dir, err)
	}
	if info.Size() > maxManifest {
		return model.Run{}, fmt.Errorf("%s: %d bytes, want at most %d; this is no run's manifest", path, info.Size(), maxManifest)
	}
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(f); err != nil {
		return model.Run{}, fmt.Errorf("read %s: %w", path, err)
	}
	meta, err := parseManifest(raw.Bytes())
	if err != nil {
		return model.Run{}, fmt.Errorf("%s: %w", path, err)
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
	var meta model.Run
	if err := json.Unmarshal(raw, &meta); err != nil {
		return model.Run{}, fmt.Errorf("the manifest is damaged, so the run cannot be read: %w", err)
	}
	return meta, nil
}

// closeWindows ends what a run that was cut off left open.
func (r *Run) closeWindows() {
	for i := range r.meta.Windows {
		if w := &r.meta.Windows[i]; w.End == 0 && r.sampled {
			w.End = max(r.last, w.Start)
		}
	}
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
	if r.close == nil {
		return nil
	}
	return r.close()
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

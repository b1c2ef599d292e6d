package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	walrecord "github.com/prometheus/prometheus/tsdb/record"

	"plimsoll/internal/model"
)

// Growing is a run that is still recorded, of which some series are read on now and then: whoever opened it anew each time
// would read all of it again. One goroutine uses it, and the runs that it gives.
type Growing struct {
	dir     string
	folder  *folder
	names   map[string]bool
	memory  *logMemory
	sorted  int // series
	reader  logReader
	segment string // that is read, "" before the first
	raw     []byte // of the manifest
	meta    model.Run
	apart   func(read func())
}

// Grow opens the run that is being recorded in dir, for the series of these names alone. All that reads its files is given to apart,
// which does it before it returns: there the recorder may be held up, and nowhere else.
func Grow(dir string, names []string, apart func(read func())) (*Growing, error) {
	var f *folder
	var err error
	if apart(func() { f, err = openFolder(dir) }); err != nil {
		return nil, fmt.Errorf("open the run in %s: %w", dir, err)
	}
	g := &Growing{dir: dir, folder: f, apart: apart, names: map[string]bool{}, memory: newLogMemory(f.name(SeriesDir))}
	for _, n := range names {
		g.names[n] = true
	}
	g.reader = logReader{dec: walrecord.NewDecoder(labels.NewSymbolTable(), nil), to: Log{Series: g.add, Sample: g.append}}
	return g, nil
}

// Close releases the run's files.
func (g *Growing) Close() error { return g.folder.close() }

// Run is the run as it stands, until it is asked for again.
func (g *Growing) Run() (*Run, error) {
	meta, err := g.manifest()
	if err != nil {
		return nil, err
	}
	if err := g.readOn(); err != nil {
		return nil, fmt.Errorf("read on in %s: %w", g.dir, err)
	}
	if len(g.memory.series) > g.sorted {
		g.memory.Sort()
		g.sorted = len(g.memory.series)
	}
	r := &Run{dir: g.dir, meta: meta, stored: stored{series: &g.memory.Memory, readings: g.memory.readings()}}
	r.first, r.last, r.sampled = g.memory.Span()
	r.closeWindows()
	return r, r.checkTimes()
}

// manifest is that of the run. It is taken apart only when it is another than before: that is a twentieth of a verdict on two hosts.
func (g *Growing) manifest() (meta model.Run, err error) {
	var raw []byte
	if g.apart(func() { raw, err = g.folder.rawManifest() }); err != nil {
		return meta, err
	}
	if !bytes.Equal(raw, g.raw) {
		if meta, err = g.folder.parseManifest(raw); err != nil {
			return meta, err
		}
		g.meta, g.raw = meta, raw
	}
	meta = g.meta
	meta.Windows, meta.Notes = slices.Clone(meta.Windows), slices.Clip(meta.Notes) // the run ends them, and adds to them
	return meta, nil
}

func (g *Growing) add(ref uint64, lset labels.Labels) error {
	if !g.names[lset.Get(labels.MetricName)] {
		return nil
	}
	return g.memory.add(ref, lset)
}

func (g *Growing) append(ref uint64, p Point) error {
	if g.memory.refs[ref] == nil {
		return nil
	}
	return g.memory.append(ref, p)
}

// readOn reads what was written since. What is torn is being written: it, and what follows, is read the next time.
func (g *Growing) readOn() error {
	dir := path.Join(SeriesDir, WALDir)
	var segments []string
	var err error
	if g.apart(func() { segments, err = g.folder.segments(dir) }); err != nil {
		return err
	}
	for _, name := range segments[max(slices.Index(segments, g.segment), 0):] {
		if name != g.segment {
			g.segment, g.reader.at = name, 0
		}
		in := growingFile{apart: g.apart}
		if g.apart(func() { in.File, _, err = g.folder.open(path.Join(dir, name)) }); err != nil {
			return err
		}
		if err := errors.Join(g.reader.segment(in), in.Close()); errors.Is(err, errTorn) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// growingFile is a file that is read apart.
type growingFile struct {
	*os.File
	apart func(read func())
}

// Read does so.
func (f growingFile) Read(p []byte) (n int, err error) {
	f.apart(func() { n, err = f.File.Read(p) })
	return n, err
}

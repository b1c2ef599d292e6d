package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/record"
	"plimsoll/internal/record/writer/store"
)

const (
	// cutDir is where blocks are made, in record.SeriesDir.
	cutDir = "cut.tmp"
	// pieceSamples is how many samples a block gets, so that the memory it takes
	// to make them does not grow with the length of the run. Of tens of thousands of series, what a
	// block takes for each of them is dearer than the samples where there are fewer.
	pieceSamples = 4_000_000
)

// cutSeries makes blocks of a log, and notes what had no place in them.
func (w *Writer) cutSeries(s *series) error {
	late, err := s.cut()
	if late > 0 {
		w.note(fmt.Sprintf("%d samples of the log were left out of the run's blocks: each was not after the one before it in a series of the same labels", late))
	}
	return err
}

// cut makes blocks of the log, and removes it in one step: as long as it is
// there, it is what counts. It says how many samples it left out.
func (s *series) cut() (late int, err error) {
	tmp := filepath.Join(s.dir, cutDir)
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	pieces, late, err := s.cutInto(tmp)
	if err != nil {
		return late, fmt.Errorf("cut the series into blocks: %w", err)
	}
	if len(pieces) == 0 {
		return late, nil // the empty log stays; there is nothing to make a block of
	}
	for _, name := range pieces {
		if err := os.Rename(filepath.Join(tmp, name), filepath.Join(s.dir, name)); err != nil {
			return late, err
		}
	}
	if err := store.SyncDir(s.dir); err != nil { // else a power cut could leave neither log nor blocks
		return late, err
	}
	return late, os.Rename(filepath.Join(s.dir, record.WALDir), filepath.Join(tmp, record.WALDir))
}

// cutInto makes blocks of the log in the directory tmp and returns their names, and how many samples are in none.
func (s *series) cutInto(tmp string) (blocks []string, late int, err error) {
	c := cutter{tmp: tmp, most: s.pieceSamples, named: map[uint64]*cutSeries{}, latest: new(cutSeries), piece: store.NewPiece()}
	if err := record.ReadLog(s.run, record.Log{Series: c.series, Sample: c.sample}); err != nil {
		return nil, 0, err
	}
	if err := c.endPiece(); err != nil {
		return nil, 0, err
	}
	return c.blocks, c.late, nil
}

// cutter makes blocks of what it reads from a log.
type cutter struct {
	tmp    string
	most   int                   // samples of a piece
	named  map[uint64]*cutSeries // by their numbers
	latest *cutSeries            // that had a sample last
	piece  *store.Piece          // in the making
	blocks []string              // names of those made so far
	late   int                   // samples that were left out
}

// cutSeries is a series of the log.
type cutSeries struct {
	ref    uint64
	within *store.Series // that of its labels, nil where it has none
	after  *cutSeries    // the one that had a sample after it the last time: most rounds are in the order of the one before
}

func (c *cutter) series(ref uint64, lset labels.Labels) error {
	s := c.named[ref]
	if s == nil { // each part of a ring's log declares its series again
		s = &cutSeries{ref: ref}
		c.named[ref] = s
	}
	if lset.IsEmpty() {
		s.within = nil
	} else {
		s.within = c.piece.Named(lset)
	}
	return nil
}

// known returns a series by its number in the log, one without labels where it was not declared.
func (c *cutter) known(ref uint64) *cutSeries {
	s := c.latest.after
	if s == nil || s.ref != ref {
		if s = c.named[ref]; s == nil {
			s = &cutSeries{ref: ref}
			c.named[ref] = s
		}
		c.latest.after = s
	}
	c.latest = s
	return s
}

func (c *cutter) sample(ref uint64, p record.Point) error {
	s := c.known(ref)
	if s.within == nil {
		return errors.New("a sample of a series that the log does not name")
	}
	added, err := c.piece.Add(s.within, p)
	if err != nil {
		return err
	}
	if !added {
		c.late++
	}
	if c.piece.Samples() == c.most {
		return c.endPiece()
	}
	return nil
}

// endPiece makes a block of what came since the last one.
func (c *cutter) endPiece() error {
	if c.piece.Samples() == 0 {
		return nil
	}
	name, err := c.piece.Write(c.tmp)
	if err != nil {
		return err
	}
	c.blocks = append(c.blocks, name)
	debug.FreeOSMemory() // else what is left of this piece lies beside the next
	return nil
}

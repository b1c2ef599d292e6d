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

// cut makes blocks of the log, and removes it in one step: as long as it is
// there, it is what counts.
func (s *series) cut() (err error) {
	tmp := filepath.Join(s.dir, cutDir)
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	pieces, err := s.cutInto(tmp)
	if err != nil {
		return fmt.Errorf("cut the series into blocks: %w", err)
	}
	if len(pieces) == 0 {
		return nil // the empty log stays; there is nothing to make a block of
	}
	for _, name := range pieces {
		if err := os.Rename(filepath.Join(tmp, name), filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(s.dir, record.WALDir), filepath.Join(tmp, record.WALDir))
}

// cutInto makes blocks of the log in the directory tmp and returns their names.
func (s *series) cutInto(tmp string) ([]string, error) {
	c := cutter{tmp: tmp, most: s.pieceSamples, named: map[uint64]*cutSeries{}, latest: new(cutSeries), piece: store.NewPiece()}
	if err := record.ReadLog(s.run, record.Log{Series: c.series, Sample: c.sample}); err != nil {
		return nil, err
	}
	if err := c.endPiece(); err != nil {
		return nil, err
	}
	return c.blocks, nil
}

// cutter makes blocks of what it reads from a log.
type cutter struct {
	tmp    string
	most   int // samples of a piece
	named  map[uint64]*cutSeries
	latest *cutSeries   // that had a sample last
	piece  *store.Piece // in the making
	blocks []string     // names of those made so far
}

// cutSeries is a series of the log.
type cutSeries struct {
	ref    uint64
	labels labels.Labels
	within *store.Series // what it is in the piece in the making, nil before it has a sample there
	after  *cutSeries    // the one that had a sample after it the last time: most rounds are in the order of the one before
}

func (c *cutter) series(ref uint64, lset labels.Labels) error {
	if known := c.named[ref]; known != nil { // each part of a ring's log declares its series again
		known.labels, known.within = lset, nil
		return nil
	}
	c.named[ref] = &cutSeries{ref: ref, labels: lset}
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
		var err error
		if s.within, err = c.piece.Named(s.labels); err != nil {
			return err
		}
	}
	if err := c.piece.Add(s.within, p); err != nil {
		return err
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
	c.piece = store.NewPiece()
	for _, s := range c.named {
		s.within = nil
	}
	debug.FreeOSMemory() // else what is left of this piece lies beside the next
	return nil
}

package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"golang.org/x/sys/unix"

	"plimsoll/internal/record"
)

const (
	// cutDir is where blocks are made, in record.SeriesDir.
	cutDir = "cut.tmp"
	// stripes of the head's locks; one goroutine fills it.
	stripes = 64
	// longRun in milliseconds is longer than any run: time cuts no block off.
	longRun = 1000 * 24 * 3600 * 1000
	// cutBatch samples are committed at once when a block is cut.
	cutBatch = 20_000
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
func (s *series) cutInto(tmp string) (_ []string, err error) {
	c := cutter{tmp: tmp, most: s.pieceSamples, named: map[uint64]*cutSeries{}, latest: new(cutSeries)}
	defer func() { err = errors.Join(err, c.dropPiece()) }()
	if c.compactor, err = tsdb.NewLeveledCompactor(context.Background(), nil, quiet, []int64{longRun}, nil, nil); err != nil {
		return nil, err
	}
	if err := record.ReadLog(s.run, record.Log{Series: c.series, Sample: c.sample}); err != nil {
		return nil, err
	}
	if err := c.endPiece(); err != nil {
		return nil, err
	}
	return c.pieces, nil
}

var quiet = slog.New(slog.DiscardHandler)

// cutter makes blocks of what it reads from a log.
type cutter struct {
	compactor *tsdb.LeveledCompactor
	tmp       string
	most      int // samples of a piece
	named     map[uint64]*cutSeries
	latest    *cutSeries // that had a sample last
	pieces    []string   // names of the blocks made so far
	begun     int        // pieces, of which one may come to no block

	// These are of the piece in the making; head is nil when there is none.
	head *tsdb.Head
	dir  string // the head's own
	app  storage.Appender
	n    int
}

// cutSeries is a series of the log.
type cutSeries struct {
	ref    uint64
	labels labels.Labels
	// inPiece is its number in the head of a piece: of the one that was begun as such.
	inPiece storage.SeriesRef
	piece   int
	after   *cutSeries // the one that had a sample after it the last time: most rounds are in the order of the one before
}

func (c *cutter) series(ref uint64, lset labels.Labels) error {
	if known := c.named[ref]; known != nil { // each part of a ring's log declares its series again
		known.labels, known.inPiece = lset, 0
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
	if c.head == nil {
		if err := c.beginPiece(); err != nil {
			return err
		}
	}
	s := c.known(ref)
	if s.piece != c.begun {
		s.inPiece, s.piece = 0, c.begun
	}
	var err error
	if s.inPiece, err = c.app.Append(s.inPiece, s.labels, p.Time, p.Value); err != nil {
		return fmt.Errorf("%s: %w", s.labels, err)
	}
	c.n++
	switch {
	case c.n == c.most:
		return c.endPiece()
	case c.n%cutBatch == 0:
		if err := c.app.Commit(); err != nil {
			return err
		}
		c.app = c.head.Appender(context.Background())
	}
	return nil
}

func (c *cutter) beginPiece() error {
	c.begun++
	c.dir = filepath.Join(c.tmp, "head")
	opts := tsdb.DefaultHeadOptions()
	opts.ChunkRange = longRun
	opts.ChunkDirRoot = c.dir
	opts.StripeSize = stripes
	opts.IsolationDisabled = true
	head, err := tsdb.NewHead(nil, quiet, nil, nil, opts, tsdb.NewHeadStats())
	if err != nil {
		return err
	}
	if err := head.Init(math.MinInt64); err != nil {
		return errors.Join(err, head.Close())
	}
	c.head, c.app, c.n = head, head.Appender(context.Background()), 0
	return nil
}

// endPiece makes a block of what came since beginPiece.
func (c *cutter) endPiece() error {
	if c.head == nil {
		return nil
	}
	if err := c.app.Commit(); err != nil {
		return err
	}
	// A block's end is exclusive.
	made, err := c.compactor.Write(c.tmp, c.head, c.head.MinTime(), c.head.MaxTime()+1, nil)
	if err != nil {
		return err
	}
	for _, id := range made {
		c.pieces = append(c.pieces, id.String())
	}
	return c.dropPiece()
}

// closeHead closes a head. It writes what nobody reads any more, and panics where the disk has no room for that.
func closeHead(head *tsdb.Head) (err error) {
	defer func() {
		p := recover()
		if full, ok := p.(error); ok && errors.Is(full, unix.ENOSPC) {
			err = full
		} else if p != nil {
			panic(p)
		}
	}()
	return head.Close()
}

// dropPiece gives the memory and the files of the piece in the making back.
func (c *cutter) dropPiece() error {
	if c.head == nil {
		return nil
	}
	err := closeHead(c.head)
	c.head, c.app = nil, nil
	debug.FreeOSMemory() // else what is left of this piece lies beside the next
	return errors.Join(err, os.RemoveAll(c.dir))
}

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
	// to make them does not grow with the length of the run.
	pieceSamples = 1_000_000
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
	c := cutter{tmp: tmp, most: s.pieceSamples, named: map[uint64]labels.Labels{}}
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
	named     map[uint64]labels.Labels
	pieces    []string // names of the blocks made so far

	// These are of the piece in the making; head is nil when there is none.
	head *tsdb.Head
	dir  string // the head's own
	app  storage.Appender
	refs map[uint64]storage.SeriesRef
	n    int
}

func (c *cutter) series(ref uint64, lset labels.Labels) error {
	c.named[ref] = lset
	return nil
}

func (c *cutter) sample(ref uint64, p record.Point) error {
	if c.head == nil {
		if err := c.beginPiece(); err != nil {
			return err
		}
	}
	got, err := c.app.Append(c.refs[ref], c.named[ref], p.Time, p.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", c.named[ref], err)
	}
	c.refs[ref] = got
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
	c.head, c.app, c.refs, c.n = head, head.Appender(context.Background()), map[uint64]storage.SeriesRef{}, 0
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
	c.head, c.app, c.refs = nil, nil, nil
	debug.FreeOSMemory() // else what is left of this piece lies beside the next
	return errors.Join(err, os.RemoveAll(c.dir))
}

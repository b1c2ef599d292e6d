package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// maxLabels is the most bytes of labels that a block's series have, and a run's.
const maxLabels = 64 << 20

// blockStore has the series of all of a run's blocks. Of each it holds the labels and where the
// chunks are, 24 bytes for each of them; the chunks stay in their files. The library would read
// the labels in each block's index anew for every query, which of an hour with its sixty blocks
// was half of what a page cost.
type blockStore struct {
	Memory
	keptFalls
	adding sync.Mutex                      // several blocks are opened at a time
	known  map[labels.Labels]*memorySeries // while blocks are added
	named  uint64
	files  chunkFiles
	views  []view
}

func newBlockStore() *blockStore { return &blockStore{known: map[labels.Labels]*memorySeries{}} }

// addFiles adds a block's files of chunks, and returns where they are among all.
func (s *blockStore) addFiles(files chunkFiles) (base int) {
	s.adding.Lock()
	defer s.adding.Unlock()
	base = len(s.files)
	s.files = append(s.files, files...)
	return base
}

// addViews adds what is to be let go of in the end.
func (s *blockStore) addViews(views []view) {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.views = append(s.views, views...)
}

// add adds what a block has of a series; base is where the block's files are among all.
func (s *blockStore) add(lset labels.Labels, metas []chunks.Meta, base int) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	of := s.known[lset]
	if of == nil {
		if s.named += lset.ByteSize(); s.named > maxLabels {
			return fmt.Errorf("the labels of the run's series are more than %d bytes", maxLabels)
		}
		of = &memorySeries{labels: lset.Copy(), source: s}
		s.known[of.labels] = of
		s.series = append(s.series, of)
	}
	for _, m := range metas {
		file, at := chunks.BlockChunkRef(m.Ref).Unpack()
		ref := chunks.NewBlockChunkRef(uint64(base+file), uint64(at))
		of.packed = append(of.packed, packed{m.MinTime, m.MaxTime, chunks.ChunkRef(ref)})
	}
	return nil
}

// finish is to be called after the last block. Blocks come by their names, which is their order
// only to a millisecond.
func (s *blockStore) finish() error {
	s.known = nil
	s.gather()
	for _, of := range s.series {
		slices.SortFunc(of.packed, func(a, b packed) int { return cmp.Compare(a.first, b.first) })
		for i, p := range of.packed {
			if p.last < p.first || i > 0 && p.first <= of.packed[i-1].last {
				return fmt.Errorf("%s: its chunks do not follow one another in time, as those of a run do; take a copy of the run that is whole, or run again", of.labels)
			}
		}
	}
	s.Sort()
	return nil
}

// gather puts where all chunks are into one piece: the room that each series had for more was a fifth of what an hour's report held, and
// what is held the collector goes through again and again.
func (s *blockStore) gather() {
	count := 0
	for _, of := range s.series {
		count += len(of.packed)
	}
	all := make([]packed, 0, count)
	for _, of := range s.series {
		from := len(all)
		all = append(all, of.packed...)
		of.packed = all[from:len(all):len(all)]
	}
}

func (s *blockStore) chunk(ref chunks.ChunkRef) (chunkenc.Chunk, error) { return s.files.chunk(ref) }

func (s *blockStore) close() error {
	var errs []error
	for _, v := range s.views {
		errs = append(errs, v.close())
	}
	s.views = nil
	return errors.Join(errs...)
}

package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/encoding"
	walrecord "github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/util/compression"
)

// The bounds of a write-ahead log that is read. The writer's own are far below:
// a record is a round, some hundred kB, and a segment 16 MiB.
const (
	maxLog     = 4 << 30
	maxSegment = 128 << 20
	maxRecord  = 32 << 20
)

// The form of a log's files: pages of records, each in parts that begin with a type,
// a length and a sum.
const (
	LogPage       = 32 << 10
	LogPartHeader = 7
	LogFull       = 1
	LogFirst      = 2
	LogMiddle     = 3
	LogLast       = 4
	partType      = 7 // the bits of it
	LogSnappy     = 8 // another, of a record that is packed
)

// errTorn ends the reading of a log: what follows never counted.
var errTorn = errors.New("the log is torn")

// Log is what ReadLog calls back for: a series, a sample of one.
type Log struct {
	Series func(ref uint64, lset labels.Labels) error
	Sample func(ref uint64, p Point) error
}

// ReadLog reads the write-ahead log of our own run in dir from its start and calls
// back for each series and sample, in the order written. It ends, without an
// error, where the log was cut off: what follows a torn record never counted.
func ReadLog(dir string, to Log) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.readLog(path.Join(SeriesDir, WALDir), math.MaxInt64, to), f.close())
}

// readLog reads the segments in a directory of the run, of room bytes at most. The library's own reader
// goes by paths, and makes room for whatever a record claims to hold.
func (f *folder) readLog(dir string, room int64, to Log) error {
	segments, err := f.segments(dir)
	if err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	l := logReader{to: to, dec: walrecord.NewDecoder(labels.NewSymbolTable(), nil)}
	for _, name := range segments {
		in, size, err := f.open(path.Join(dir, name))
		if err != nil {
			return fmt.Errorf("read the write-ahead log: %w", err)
		}
		room -= size
		if size > maxSegment || room < 0 {
			err = fmt.Errorf("%s: a log of more than %d bytes, or a segment of more than %d; this is no run's", f.name(dir), int64(maxLog), maxSegment)
		} else {
			l.at = 0
			err = l.segment(in)
		}
		if err = errors.Join(err, in.Close()); errors.Is(err, errTorn) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name(path.Join(dir, name)), err)
		}
	}
	return nil
}

// segments lists the log's files; their names are numbers, in the order written.
func (f *folder) segments(dir string) ([]string, error) {
	entries, err := f.list(dir)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	var names []string
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			numbers[e.Name()] = n
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return numbers[a] - numbers[b] })
	return names, nil
}

// logReader puts records together of the parts in the pages of a log.
type logReader struct {
	to      Log
	dec     walrecord.Decoder
	at      int64 // in the segment
	page    [LogPage]byte
	record  []byte // of the parts so far
	parts   int
	plain   []byte
	labels  labels.ScratchBuilder
	samples []walrecord.RefSample
}

// segment reads a segment on from where it was left.
func (l *logReader) segment(in io.ReadSeeker) error {
	if _, err := in.Seek(l.at, io.SeekStart); err != nil {
		return err
	}
	for {
		room := LogPage - int(l.at%LogPage)
		n, err := io.ReadFull(in, l.page[:room])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		used, err := l.readPage(l.page[:n])
		if err == nil && n == room {
			used = room // zeros fill the page up
		}
		if l.at += int64(used); err != nil || n < room {
			return err
		}
	}
}

// readPage reads the parts in a page, or in the rest of one, and says how many bytes of it they were.
func (l *logReader) readPage(page []byte) (used int, err error) {
	for rest := page; len(rest) > 0 && rest[0]&partType != 0; rest = page[used:] {
		if len(rest) < LogPartHeader {
			return used, errTorn
		}
		kind, size := rest[0], int(binary.BigEndian.Uint16(rest[1:]))
		if LogPartHeader+size > len(rest) {
			return used, errTorn
		}
		part := rest[LogPartHeader : LogPartHeader+size]
		if crc32.Checksum(part, castagnoli) != binary.BigEndian.Uint32(rest[3:]) {
			return used, errTorn
		}
		if err := l.part(kind, part); err != nil {
			return used, err
		}
		used += LogPartHeader + size
	}
	return used, nil
}

// part adds a part to its record, and reads that when it is whole.
func (l *logReader) part(kind byte, data []byte) error {
	begins := kind&partType == LogFull || kind&partType == LogFirst
	if begins != (l.parts == 0) || kind&partType > LogLast || len(l.record)+len(data) > maxRecord {
		return errTorn
	}
	l.record = append(l.record, data...)
	l.parts++
	if kind&partType == LogFirst || kind&partType == LogMiddle {
		return nil
	}
	rec := l.record
	l.record, l.parts = l.record[:0], 0
	if kind&LogSnappy != 0 {
		size, n := binary.Uvarint(rec)
		if n <= 0 || size > maxRecord {
			return errTorn
		}
		var err error
		if rec, err = compression.Decode(compression.Snappy, rec, nil); err != nil {
			return errTorn
		}
	}
	return l.read(rec)
}

// read calls back for what a record holds. A form of record that the writer never
// writes is skipped.
func (l *logReader) read(rec []byte) (err error) {
	switch l.dec.Type(rec) {
	case walrecord.Series:
		return l.readSeries(encoding.Decbuf{B: rec[1:]})
	case walrecord.Samples:
		if l.samples, err = l.dec.Samples(rec, l.samples[:0]); err != nil {
			return errTorn
		}
		for _, s := range l.samples {
			if err := l.to.Sample(uint64(s.Ref), Point{Time: s.T, Value: s.V}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSeries reads a record of series: of each its number, how many labels it has,
// and these. The library's decoder goes on for as many as are claimed.
func (l *logReader) readSeries(d encoding.Decbuf) error {
	for d.Len() > 0 {
		ref := d.Be64()
		l.labels.Reset()
		for n := d.Uvarint(); n > 0 && d.Err() == nil; n-- {
			l.labels.Add(string(d.UvarintBytes()), string(d.UvarintBytes()))
		}
		if d.Err() != nil {
			return errTorn
		}
		if err := l.to.Series(ref, l.labels.Labels()); err != nil {
			return err
		}
	}
	return nil
}

// Package store writes what Prometheus' tsdb reads: blocks, by the parts of it that know their form, and the log before
// them. The tsdb as a whole imports the clients of three clouds, and its log what only tests need; every start of
// ours would pay for both.
package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/util/compression"

	"plimsoll/internal/record"
)

// SegmentSize is how large the log's files become, in bytes.
const SegmentSize = 16 << 20

// Log is a write-ahead log, in files that are numbered. A record is in one file. Who is killed while it is
// written, or a disk that fills up, may leave a part of it: readers end there.
type Log struct {
	dir            string
	file           *os.File
	oldest, newest int        // of its files
	size           int        // of the newest, in bytes
	ended          chan error // has one when the files before the newest are synced and closed
	out            []byte
	buf            compression.EncodeBuffer
}

// NewLog begins a log in a directory that is not there, or empty.
func NewLog(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, ended: make(chan error, 1), buf: compression.NewSyncEncodeBuffer()}
	l.ended <- nil
	return l, l.open(0)
}

func (l *Log) name(number int) string { return filepath.Join(l.dir, fmt.Sprintf("%08d", number)) }

func (l *Log) open(number int) error {
	f, err := os.OpenFile(l.name(number), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		l.file, l.newest, l.size = f, number, 0
	}
	return err
}

// Next begins a new file. A page in the midst of a log is whole, so what is left of the last one is filled with zeros.
// It is synced while recording goes on: nobody who reads a host may wait for a disk.
func (l *Log) Next() error {
	last, pages := l.file, (l.size+record.LogPage-1)/record.LogPage
	if err := l.open(l.newest + 1); err != nil {
		return err
	}
	filled, before, ended := last.Truncate(int64(pages)*record.LogPage), l.ended, make(chan error, 1)
	l.ended = ended
	go func() { ended <- errors.Join(<-before, syncFile(last), last.Close()) }()
	return filled
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add writes a record. Where that fails, nothing of it stays.
func (l *Log) Add(rec []byte) error {
	packed, err := compression.Encode(compression.Snappy, rec, l.buf)
	if err != nil {
		return err
	}
	kind := byte(0)
	if len(packed) < len(rec) {
		rec, kind = packed, record.LogSnappy
	}
	pages := len(rec)/(record.LogPage-record.LogPartHeader) + 2 // at most
	if l.size > 0 && l.size+len(rec)+pages*2*record.LogPartHeader > SegmentSize {
		if err := l.Next(); err != nil {
			return err
		}
	}
	l.parts(rec, kind)
	if _, err := l.file.WriteAt(l.out, int64(l.size)); err != nil {
		return errors.Join(err, l.file.Truncate(int64(l.size)))
	}
	l.size += len(l.out)
	return nil
}

// parts puts a record as it stands in the file into l.out: in parts, each within a page, behind what fills up a page
// in which none would have room.
func (l *Log) parts(rec []byte, kind byte) {
	l.out = l.out[:0]
	for first := true; first || len(rec) > 0; first = false {
		room := record.LogPage - (l.size+len(l.out))%record.LogPage
		if room <= record.LogPartHeader {
			l.out = append(l.out, make([]byte, room)...)
			room = record.LogPage
		}
		part := rec[:min(len(rec), room-record.LogPartHeader)]
		rec = rec[len(part):]
		of := byte(record.LogMiddle)
		switch {
		case first && len(rec) == 0:
			of = record.LogFull
		case first:
			of = record.LogFirst
		case len(rec) == 0:
			of = record.LogLast
		}
		l.out = append(l.out, of|kind)
		l.out = binary.BigEndian.AppendUint16(l.out, uint16(len(part)))
		l.out = binary.BigEndian.AppendUint32(l.out, crc32.Checksum(part, castagnoli))
		l.out = append(l.out, part...)
	}
}

// At is the number of the newest file, and how many bytes it has.
func (l *Log) At() (number, size int) { return l.newest, l.size }

// Drop removes the files before that of a number.
func (l *Log) Drop(before int) error {
	for ; l.oldest < before; l.oldest++ {
		if err := os.Remove(l.name(l.oldest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close returns when all files are synced.
func (l *Log) Close() error { return errors.Join(<-l.ended, syncFile(l.file), l.file.Close()) }

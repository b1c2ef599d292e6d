// Package logtail follows a growing log file by offset. It does bounded work a
// round, follows rotation (rename and create) and truncation, and never hands
// out half a line.
package logtail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/rooted"
)

// BufferSize is a good length of the buffer that Round reads into; a line
// longer than the buffer is skipped.
const BufferSize = 256 << 10

// quietRounds is for how many rounds a rotated file must stay unchanged, after
// the new one is being written, until it is let go: its writer goes on in the
// old file until it is told to open the new one.
const quietRounds = 5

// Tail follows one log file. It is not safe for concurrent use.
type Tail struct {
	at      Place
	cur     *follower
	old     *follower // rotated away, still being written; nil when there is none
	quiet   int       // rounds in which old did not grow
	skipped int64
}

// Place is where a log is: the file that a process with the root directory Root
// (such as /proc/PID/root) calls Name, no link leading out of there; where Root is
// "", the file Name of ours, such as an open one of a process (/proc/PID/fd/2).
type Place struct{ Root, Name string }

// find looks what stands there, without opening it for reading.
func (p Place) find() (*os.File, fs.FileInfo, error) {
	var f *os.File
	if p.Root == "" {
		var err error
		if f, err = os.OpenFile(p.Name, unix.O_PATH, 0); err != nil {
			return nil, nil, err
		}
	} else {
		found, err := rooted.Open(p.Root, p.Name)
		if err != nil {
			return nil, nil, err
		}
		found.Dir.Close()
		f = found.File
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// stat is what stands there now.
func (p Place) stat() (fs.FileInfo, error) {
	f, info, err := p.find()
	if err == nil {
		f.Close()
	}
	return info, err
}

// Open begins to follow the regular file at a place, from its end: the first line
// handed out is the first that is completed from now on. Anything else than a
// regular file is an error: reading a pipe would take its data away.
func Open(at Place) (*Tail, error) {
	f, err := openFollower(at)
	if err != nil {
		return nil, err
	}
	if err := f.seekEnd(); err != nil {
		f.Close()
		return nil, fmt.Errorf("find the end of %s: %w", at.Name, err)
	}
	return &Tail{at: at, cur: f}, nil
}

// Earlier hands to line each whole line of the last limit bytes before the first that Round hands out. It is for
// after Open: what stands there says how things are, and is no news.
func (t *Tail) Earlier(limit int64, line func([]byte)) error {
	b := make([]byte, min(t.cur.off, limit))
	n, err := t.cur.f.ReadAt(b, t.cur.off-int64(len(b)))
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the end of %s: %w", t.at.Name, err)
	}
	before := follower{midline: int64(len(b)) < t.cur.off}
	before.take(b[:n], false, line)
	return nil
}

// Round hands to line each line completed since the last round, without its
// newline; the bytes are valid during the call only. It reads at most limit
// bytes of a file: when more was written, the older part is skipped and
// counted. buf is the buffer to read into (see BufferSize); several tails may share it.
func (t *Tail) Round(buf []byte, limit int64, line func([]byte)) error {
	if t.old != nil {
		if err := t.drain(buf, limit, line); err != nil {
			return err
		}
	}
	if err := t.read(t.cur, buf, limit, line); err != nil {
		return err
	}
	next, err := t.rotated()
	if err != nil || next == nil {
		return err
	}
	if t.old != nil {
		t.old.Close()
	}
	t.old, t.cur, t.quiet = t.cur, next, 0
	return t.read(t.cur, buf, limit, line)
}

// drain reads what still comes into the rotated file and lets it go once
// nothing does.
func (t *Tail) drain(buf []byte, limit int64, line func([]byte)) error {
	before := t.old.off
	if err := t.read(t.old, buf, limit, line); err != nil {
		return err
	}
	if t.old.off != before || t.cur.off == 0 {
		t.quiet = 0
		return nil
	}
	if t.quiet++; t.quiet < quietRounds {
		return nil
	}
	t.old.Close()
	t.old = nil
	return nil
}

func (t *Tail) read(f *follower, buf []byte, limit int64, line func([]byte)) error {
	skipped, err := f.read(buf, limit, line)
	t.skipped += skipped
	if err != nil {
		return fmt.Errorf("follow %s: %w", t.at.Name, err)
	}
	return nil
}

// rotated opens the file that now stands at the path, if it is another one.
func (t *Tail) rotated() (*follower, error) {
	info, err := t.at.stat()
	if errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(info, t.cur.info) {
		return nil, nil // renamed and not yet made anew, or the same
	}
	if err != nil {
		return nil, err
	}
	next, err := openFollower(t.at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return next, err
}

// Skipped is how many bytes were never handed out since Open: we were too far
// behind, or a line was longer than the buffer.
func (t *Tail) Skipped() int64 { return t.skipped }

// Path is the name given to Open.
func (t *Tail) Path() string { return t.at.Name }

// Close ends following.
func (t *Tail) Close() error {
	if t.old != nil {
		t.old.Close()
	}
	return t.cur.Close()
}

// follower reads one file, whatever its name has become.
type follower struct {
	f    *os.File
	info fs.FileInfo
	off  int64
	// midline: off is inside a line whose beginning was skipped.
	midline bool
}

func openFollower(at Place) (*follower, error) {
	there, info, err := at.find()
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("follow %s: want a regular file, got %s", at.Name, info.Mode().Type())
	}
	f, err := rooted.Reopen(there, at.Name)
	if err != nil {
		return nil, err
	}
	return &follower{f: f, info: info}, nil
}

func (f *follower) Close() error { return f.f.Close() }

// seekEnd goes to the beginning of the file's last, unfinished line.
func (f *follower) seekEnd() error {
	size := f.info.Size()
	tail := make([]byte, min(size, 64<<10))
	n, err := f.f.ReadAt(tail, size-int64(len(tail)))
	if err != nil && err != io.EOF {
		return err
	}
	f.off = size
	if i := bytes.LastIndexByte(tail[:n], '\n'); i >= 0 {
		f.off = size - int64(len(tail)) + int64(i) + 1
	} else if len(tail) == 64<<10 {
		f.midline = true
	} else {
		f.off = 0
	}
	return nil
}

// read hands out the lines completed since the last read and returns how many
// bytes it skipped.
func (f *follower) read(buf []byte, limit int64, line func([]byte)) (skipped int64, err error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	if size < f.off { // truncated: what stands there now is new
		f.off, f.midline = 0, false
	}
	if behind := size - f.off; behind > limit {
		skipped = behind - limit
		f.off, f.midline = size-limit, true
	}
	for f.off < size {
		n, err := f.f.ReadAt(buf[:min(int64(len(buf)), size-f.off)], f.off)
		if err != nil && err != io.EOF {
			return skipped, err
		}
		used, lost := f.take(buf[:n], n == len(buf), line)
		skipped += lost
		if used == 0 {
			break // the last line is not complete yet
		}
		f.off += int64(used)
	}
	return skipped, nil
}

// take hands out the whole lines of b and returns how many bytes it is done
// with, and how many of these it had to skip. full says that b cannot get longer.
func (f *follower) take(b []byte, full bool, line func([]byte)) (used int, lost int64) {
	if f.midline {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return len(b), int64(len(b))
		}
		f.midline = false
		used, lost = i+1, int64(i+1)
	}
	for {
		i := bytes.IndexByte(b[used:], '\n')
		if i < 0 {
			break
		}
		line(b[used : used+i])
		used += i + 1
	}
	if used == 0 && full {
		f.midline = true
		return len(b), int64(len(b))
	}
	return used, lost
}

package logtail

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// forgetAfter is for how long a log is followed that nobody logs to any more:
// a restart of its service must not lose lines.
const forgetAfter = 30 * time.Second

// Set is the logs that one reader follows. T is what the reader needs to know
// about a log to understand its lines. A Set is not safe for concurrent use.
type Set[T any] struct {
	logs map[key]*Log[T]
	gone map[string]int64 // skipped bytes of logs that were forgotten, by name
	buf  []byte
}

// key names a log file for good: as its writer calls it, and in whose root directory.
type key struct {
	dev, ino uint64
	name     string
}

// Log is one log of a Set.
type Log[T any] struct {
	Name  string // as its writer calls it
	About T
	// Lost is how many bytes of lines the reader could not understand; it counts them.
	Lost int64
	// Err is what went wrong in the last round; nil when it was read.
	Err  error
	tail *Tail
	seen time.Time
}

// NewSet makes an empty Set.
func NewSet[T any]() *Set[T] {
	return &Set[T]{logs: map[key]*Log[T]{}, gone: map[string]int64{}, buf: make([]byte, BufferSize)}
}

// Follow makes sure that the log which w calls name is followed, from its end
// if it is new, and notes that it is still in use at now. about replaces what
// was known of it.
func (s *Set[T]) Follow(w *Writer, name string, about T, now time.Time) error {
	at, err := w.Locate(name)
	if name == "stderr" || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		name = at.Name // of this very process
	}
	var st unix.Stat_t
	if statErr := unix.Stat(w.root, &st); statErr != nil {
		return &fs.PathError{Op: "stat", Path: w.root, Err: statErr}
	}
	k := key{st.Dev, st.Ino, name}
	l := s.logs[k]
	if err != nil {
		if l != nil {
			return nil // being rotated: what its writer has open is still followed
		}
		return err
	}
	if l == nil {
		tail, err := Open(at)
		if err != nil {
			return fmt.Errorf("follow %s's log %s: %w", w.Service, name, err)
		}
		l = &Log[T]{Name: name, tail: tail}
		s.logs[k] = l
	}
	// A service that was started anew has another /proc/PID/root.
	l.tail.at = at
	l.seen, l.About = now, about
	return nil
}

// Forget lets go of logs that have not been in use for a while.
func (s *Set[T]) Forget(now time.Time) {
	for k, l := range s.logs {
		if now.Sub(l.seen) > forgetAfter {
			s.gone[l.Name] += l.skipped()
			l.tail.Close()
			delete(s.logs, k)
		}
	}
}

// All are the logs that are followed, in no order.
func (s *Set[T]) All() iter.Seq[*Log[T]] { return maps.Values(s.logs) }

// Round hands to line the lines completed since the last round, of every log;
// at most limit bytes of each are read (see Tail.Round).
func (s *Set[T]) Round(limit int64, line func(l *Log[T], line []byte)) {
	for _, l := range s.logs {
		l.Err = l.tail.Round(s.buf, limit, func(b []byte) { line(l, b) })
	}
}

// Skipped is how many bytes of each log are missing from what was handed out
// or understood, by the log's name, forgotten logs included.
func (s *Set[T]) Skipped() map[string]int64 {
	total := maps.Clone(s.gone)
	for _, l := range s.logs {
		total[l.Name] += l.skipped()
	}
	return total
}

func (l *Log[T]) skipped() int64 { return l.Lost + l.tail.Skipped() }

// Close ends following all logs.
func (s *Set[T]) Close() error {
	var err error
	for _, l := range s.logs {
		err = errors.Join(err, l.tail.Close())
	}
	return err
}

// Package printed passes on what a watched command prints, as it is, and has what load
// tools say of their runs read on the way. What it keeps does not grow with what is
// printed; and the command never waits for the reading: where that is behind, a piece is
// passed on and not read.
package printed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/loadtool"
	"plimsoll/internal/model"
)

const (
	// pieceSize is how much is passed on at once.
	pieceSize = 32 << 10
	// behind is by how many pieces the reading may be behind: the newest are read, since a
	// summary comes last.
	behind = 16
	// idle is for how many times as long as reading a piece took nothing is read: it takes
	// an eighth of a CPU at most, which is 5 MB a second of lines.
	idle = 7
	// mostLeft is the most that a command can have left in a pipe: the largest that the
	// kernel gives to anybody. What somebody else goes on to print into it has no end.
	mostLeft = 1 << 20
)

// Output is what one command prints.
type Output struct {
	streams []*stream
	resized func() // no longer follows the terminal's size
}

// Listen returns what a command is to print to in the place of stdout and stderr: a
// terminal where they are one, so that it prints what it would have, else pipes. Where
// no load tool that we know runs in the command, or there is an error, it is stdout and
// stderr themselves; the Output may be used all the same.
func Listen(argv []string, stdout, stderr io.Writer) (o *Output, out, err io.Writer, failed error) {
	o = &Output{resized: func() {}}
	if loadtool.New(argv) == nil {
		return o, stdout, stderr, nil
	}
	first, failed := o.open(argv, stdout)
	if failed != nil {
		return o, stdout, stderr, failed
	}
	if stderr == stdout || sameTerminal(stdout, stderr) {
		return o, first, first, nil
	}
	second, failed := o.open(argv, stderr)
	if failed != nil { // then neither: a terminal has one order of lines
		o.Started()
		o.Ended()
		return &Output{resized: func() {}}, stdout, stderr, failed
	}
	return o, first, second, nil
}

// open makes one stream, and returns the command's end of it.
func (o *Output) open(argv []string, to io.Writer) (*os.File, error) {
	s := newStream(argv, to)
	var err error
	if t := terminal(to); t != nil {
		if s.from, s.theirs, err = openTerminal(t); err != nil {
			return nil, fmt.Errorf("make a terminal for the command: %w", err)
		}
		stop, before := followSize(t, s.from), o.resized
		o.resized = func() { stop(); before() }
	} else if s.from, s.theirs, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe for the command: %w", err)
	}
	o.streams = append(o.streams, s)
	go s.pass()
	go s.listen()
	return s.theirs, nil
}

// Started is to be called when the command was started, or could not be.
func (o *Output) Started() {
	for _, s := range o.streams {
		s.theirs.Close()
	}
}

// Ended is to be called when the command has ended. What it printed has been passed on
// then. It returns what load tools said, oldest first by stream; dropped is how many
// summaries there were before those, and unread whether pieces were not read.
func (o *Output) Ended() (list []model.ToolSummary, dropped int, unread bool) {
	for _, s := range o.streams {
		_ = s.from.SetReadDeadline(time.Now()) // it may have come to its end
	}
	for _, s := range o.streams {
		<-s.passed
		<-s.read
		s.from.Close()
		said, n := s.reader.Summaries()
		list, dropped, unread = append(list, said...), dropped+n, unread || s.unread
	}
	o.resized()
	return list, dropped, unread
}

// stream is one that the command prints to.
type stream struct {
	from, theirs *os.File // our end, and the command's
	to           io.Writer
	passed, read chan struct{} // closed when all is
	reader       *loadtool.Reader
	unread       bool // something was not read

	mu     sync.Mutex
	pieces [][]byte      // to be read
	spare  [][]byte      // that were
	missed bool          // something was there before pieces
	more   chan struct{} // holds one when there is something new
}

func newStream(argv []string, to io.Writer) *stream {
	if to == nil {
		to = io.Discard
	}
	return &stream{to: to, reader: loadtool.New(argv), passed: make(chan struct{}), read: make(chan struct{}), more: make(chan struct{}, 1)}
}

// pass passes on what comes until the command has ended, or nobody takes it any more.
func (s *stream) pass() {
	defer close(s.passed)
	piece := make([]byte, pieceSize)
	left := mostLeft
	for left > 0 {
		n, err := s.from.Read(piece)
		if errors.Is(err, os.ErrDeadlineExceeded) { // it has ended: what it left is there at once
			n, err = s.rest(piece[:min(left, pieceSize)])
			left -= n
		}
		if n > 0 {
			if _, err := s.to.Write(piece[:n]); err != nil {
				s.from.Close() // so that the command learns it, as it would have
				return
			}
			s.hand(piece[:n])
		}
		if err != nil {
			return
		}
	}
}

// rest reads without waiting.
func (s *stream) rest(piece []byte) (n int, err error) {
	if e := control(s.from, func(fd int) { n, err = unix.Read(fd, piece) }); e != nil {
		return 0, e
	}
	if n <= 0 {
		return 0, io.EOF
	}
	return n, err
}

// hand gives a piece to be read, in the place of the oldest if that is too far behind.
func (s *stream) hand(piece []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	switch {
	case len(s.pieces) == behind:
		b, s.missed = s.pieces[0], true
		s.pieces = append(s.pieces[:0], s.pieces[1:]...)
	case len(s.spare) > 0:
		b, s.spare = s.spare[len(s.spare)-1], s.spare[:len(s.spare)-1]
	}
	s.pieces = append(s.pieces, append(b[:0], piece...))
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// next returns the oldest piece, nil if there is none, and whether something is missing before it.
func (s *stream) next() (piece []byte, missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pieces) == 0 {
		return nil, false
	}
	piece, missed = s.pieces[0], s.missed
	s.pieces, s.missed = append(s.pieces[:0], s.pieces[1:]...), false
	return piece, missed
}

// listen reads the pieces, at leisure until the last was passed on.
func (s *stream) listen() {
	defer close(s.read)
	for {
		piece, missed := s.next()
		if piece == nil {
			select {
			case <-s.more:
				continue
			case <-s.passed:
			}
			if piece, missed = s.next(); piece == nil {
				return
			}
		}
		began := time.Now()
		if missed {
			s.unread = true
			s.reader.Skip()
		}
		_, _ = s.reader.Write(piece) // it never fails
		s.mu.Lock()
		s.spare = append(s.spare, piece)
		s.mu.Unlock()
		select {
		case <-time.After(idle * time.Since(began)):
		case <-s.passed:
		}
	}
}

package far

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"plimsoll/internal/change"
	"plimsoll/internal/host"
)

// server makes the changes that are asked for.
type server struct {
	open    func() (*change.Journal, error)
	journal *change.Journal // nil: nothing is to be changed
	made    []int           // what it made and has not taken back
	keep    bool
}

// Serve does what is asked for on in, until that ends, ctx is done or nothing is heard for a minute.
// Then it takes back what it made, unless it was told to keep it: whoever asked is gone, and
// a change may have cut the way. What cannot be taken back stands in the journal.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open func() (*change.Journal, error)) error {
	s := &server{open: open}
	lines, failed := make(chan []byte), make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go func() { failed <- read(in, lines, done) }()
	var err error
	for going := true; going && err == nil; {
		select {
		case line := <-lines:
			err = s.say(out, line)
		case err = <-failed:
			going = false
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(silence):
			err = fmt.Errorf("nothing was heard for %v", silence)
		}
	}
	if s.journal == nil {
		return err
	}
	if !s.keep && len(s.made) > 0 {
		_, undone := s.journal.UndoThese(context.Background(), s.made, false)
		err = errors.Join(err, undone)
	}
	return errors.Join(err, s.journal.Close())
}

// read hands on one line after the other; the end of in is no error.
func read(in io.Reader, lines chan<- []byte, done <-chan struct{}) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 4096), maxLine)
	for scan.Scan() {
		select {
		case lines <- slices.Clone(scan.Bytes()):
		case <-done:
			return nil
		}
	}
	return scan.Err()
}

// say answers a question.
func (s *server) say(out io.Writer, line []byte) error {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return fmt.Errorf("read what is to be changed: %w", err)
	}
	a, err := s.do(context.Background(), q) // what is begun is ended, whoever is gone
	a.Failure = failureOf(err)
	b, err := json.Marshal(a)
	if err == nil {
		_, err = out.Write(append(b, '\n'))
	}
	return err
}

var errNoJournal = errors.New("the journal was not opened first")

func (s *server) do(ctx context.Context, q question) (a answer, err error) {
	switch q.Do {
	case doPing:
		return a, nil
	case doHello:
		return s.hello(q)
	case doPrepare:
		step, err := prepare(q)
		return answer{Step: &step}, err
	}
	if s.journal == nil {
		return a, errNoJournal
	}
	switch q.Do {
	case doApply:
		return s.apply(ctx, q)
	case doLeaveOut:
		again, err := s.journal.LeaveOut(ctx, q.ID)
		s.note(again, err, q.ID)
		for id, e := range again {
			again[id] = public(e)
		}
		return answer{Again: again}, err
	case doUndo:
		_, err := s.journal.UndoThese(ctx, q.IDs, false)
		s.note(nil, nil, q.IDs...)
		return a, err
	case doKeep:
		s.keep = true
		return a, nil
	}
	return a, fmt.Errorf("%q is nothing that is done here", q.Do)
}

// note keeps what is to be taken back: what was made anew, and no more what was left out.
// What could not be taken back is tried again at the end, which finds it open or not.
func (s *server) note(again map[int]change.Entry, err error, left ...int) {
	for old, e := range again {
		s.made = slices.DeleteFunc(s.made, func(id int) bool { return id == old })
		s.made = append(s.made, e.ID)
	}
	if err == nil {
		s.made = slices.DeleteFunc(s.made, func(id int) bool { return slices.Contains(left, id) && !s.stands(id) })
	}
}

func (s *server) stands(id int) bool {
	return slices.ContainsFunc(s.journal.Entries(), func(e change.Entry) bool { return e.ID == id && e.Open() })
}

func (s *server) hello(q question) (a answer, err error) {
	a.Protocol = protocol
	if q.Protocol != protocol {
		return a, errVersion(q.Protocol)
	}
	if !q.Journal || s.journal != nil {
		return a, nil
	}
	if s.journal, err = s.open(); err != nil {
		s.journal = nil
		return a, err
	}
	for _, e := range s.journal.Entries() {
		if e.Open() {
			a.Standing++
		}
	}
	for _, err := range s.journal.Skipped() {
		a.Skipped = append(a.Skipped, err.Error())
	}
	return a, nil
}

func prepare(q question) (change.Step, error) {
	h, err := host.Open(q.Host, q.Spec)
	if err != nil {
		return change.Step{}, err
	}
	defer h.Close()
	return change.Prepare(h, q.Change)
}

// apply looks again, and makes a change that is what was shown.
func (s *server) apply(ctx context.Context, q question) (a answer, err error) {
	step, err := prepare(q)
	if err != nil {
		return a, err
	}
	if step.Old != q.Old || step.New != q.New {
		return a, fmt.Errorf("%s: it is %q now, and %q was shown: %w; nothing was changed, look again", q.Change, step.Old, q.Old, change.ErrChanged)
	}
	e, err := s.journal.Apply(ctx, step)
	if e.ID > 0 && e.Open() {
		s.made = append(s.made, e.ID)
	}
	e = public(e)
	return answer{Entry: &e}, err
}

// public is an entry without what taking it back needs: files may hold secrets.
func public(e change.Entry) change.Entry {
	e.Parts, e.Service, e.Masters = nil, nil, nil
	return e
}

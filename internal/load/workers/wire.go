// Package workers has several workers, here or on other machines, play one load together: Serve is a worker's main
// function, Fleet the end that directs them. README.md describes what they say to each other.
package workers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// order is what a worker is told, one a line.
type order struct {
	Plan *model.LoadPlan `json:"plan,omitempty"` // make this ready; what was made ready before is given up
	// May says that strangers may be loaded, Watched that the target's silence is no reason to refuse.
	May     bool  `json:"may,omitempty"`
	Watched bool  `json:"watched,omitempty"`
	Clock   int64 `json:"clock,omitempty"`    // say what time it is; a number, which comes back
	Start   int64 `json:"start_ns,omitempty"` // begin at this time of the worker's clock, Unix nanoseconds
	Stop    bool  `json:"stop,omitempty"`     // send nothing more
}

// word is what a worker says, one a line.
type word struct {
	Clock  *clockWord   `json:"clock,omitempty"`
	Ready  *readyWord   `json:"ready,omitempty"`
	Failed *failedWord  `json:"failed,omitempty"` // the plan, or its load
	Record *load.Record `json:"record,omitempty"`
}

type clockWord struct {
	ID    int64 `json:"id"`
	Heard int64 `json:"heard_ns"`
	Said  int64 `json:"said_ns"`
}

type readyWord struct {
	Version string   `json:"version"`
	PID     int      `json:"pid"`
	Notes   []string `json:"notes,omitempty"` // for the user
}

type failedWord struct {
	Code int    `json:"code"` // what this would end with by itself
	Text string `json:"text"`
}

// maxWord is the most bytes of a line.
const maxWord = 64 << 20

// maxText is the most bytes of a sentence.
const maxText = 4096

// lines says one line after the other, without waiting for who reads them.
type lines struct {
	to   io.Writer
	mu   sync.Mutex
	more *sync.Cond
	wait [][]byte
	size int
	err  error
}

// maxWaiting is the most bytes that wait to be read; a record has some 10 kB.
const maxWaiting = 32 << 20

var errUnread = errors.New("nobody reads what is said")

func newLines(to io.Writer) *lines {
	l := &lines{to: to}
	l.more = sync.NewCond(&l.mu)
	go l.write()
	return l
}

// say puts a line behind the others.
func (l *lines) say(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+len(text) > maxWaiting {
		l.end(errUnread)
	}
	if l.err != nil {
		return l.err
	}
	l.wait, l.size = append(l.wait, append(text, '\n')), l.size+len(text)+1
	l.more.Broadcast()
	return nil
}

func (l *lines) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.wait) == 0 && l.err == nil {
			l.more.Wait()
		}
		if l.err != nil {
			return
		}
		text := l.wait[0]
		l.wait = l.wait[1:]
		l.mu.Unlock()
		_, err := l.to.Write(text)
		l.mu.Lock()
		l.size -= len(text)
		if err != nil {
			l.end(err)
		}
		l.more.Broadcast()
	}
}

// flush waits until all is said, or cannot be.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.size > 0 && l.err == nil {
		l.more.Wait()
	}
}

// close says nothing more.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(io.ErrClosedPipe)
}

func (l *lines) end(err error) {
	if l.err == nil {
		l.err, l.wait = err, nil
	}
	l.more.Broadcast()
}

// hear reads lines until they end, or do wants no more.
func hear[T any](from io.Reader, do func(T) error) error {
	in := bufio.NewScanner(from)
	in.Buffer(nil, maxWord)
	for in.Scan() {
		var v T
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			said := in.Bytes()
			return fmt.Errorf("want a line of JSON, got %q: something else than Plimsoll writes there: %w", bytes.TrimSpace(said[:min(len(said), 60)]), err)
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return in.Err()
}

func short(s string) string { return s[:min(len(s), maxText)] }

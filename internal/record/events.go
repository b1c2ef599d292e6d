package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"plimsoll/internal/model"
)

// maxEvent is the longest line of events.jsonl that is read.
const maxEvent = 1 << 20

// Events yields what happened, in the order recorded. An error ends it. A run
// without events.jsonl had none.
func (r *Run) Events() iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		f, _, err := r.folder.open(EventsFile)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(model.Event{}, fmt.Errorf("open the run's events: %w", err))
			return
		}
		defer f.Close()
		for e, err := range parseEvents(f) {
			if err != nil {
				err = fmt.Errorf("%s: %w", r.folder.name(EventsFile), err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// parseEvents reads one JSON object a line. A last line without its newline is
// one that was being written when the run was cut off, and is left out.
func parseEvents(in io.Reader) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		lines := bufio.NewReaderSize(in, 64<<10)
		for n := 1; ; n++ {
			line, err := readLine(lines, maxEvent)
			if errors.Is(err, io.EOF) {
				return
			}
			var e model.Event
			if err == nil {
				err = json.Unmarshal(line, &e)
			}
			if err != nil {
				yield(model.Event{}, fmt.Errorf("line %d: want one event in JSON: %w", n, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// readLine returns the next whole line, of at most so many bytes; io.EOF where
// none follows.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > most:
			return nil, fmt.Errorf("longer than %d bytes", most)
		}
	}
}

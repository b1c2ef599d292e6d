package flight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/secret"
)

// The pauses before what could not be uploaded is tried again: the first, and the longest.
const (
	firstPause   = 10 * time.Second
	longestPause = 10 * time.Minute
)

// upload keeps the runs that were made elsewhere as well, until ctx ends: those that are there already, and each when it is
// made. What cannot be put there stays where it is and is tried again; nobody waits for it.
func (f *Recorder) upload(ctx context.Context) {
	done := map[string]bool{}
	for pause := firstPause; ; {
		again := make(<-chan time.Time)
		if err := f.uploadAll(ctx, done); err == nil {
			pause = firstPause
		} else {
			f.opt.Note(layout.Line(secret.Text(fmt.Sprintf("upload what was made, again in %v: %v", pause, err))))
			again = time.After(pause)
			pause = min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.fresh:
		case <-again:
		}
	}
}

// uploadAll uploads what is not done.
func (f *Recorder) uploadAll(ctx context.Context, done map[string]bool) error {
	f.making.Lock() // a run that is being made is not whole
	list, err := f.opt.Made()
	f.making.Unlock()
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, dir := range list {
		left[dir] = done[dir]
	}
	clear(done) // also what was removed meanwhile
	var errs []error
	for _, dir := range list {
		if !left[dir] {
			err := f.opt.Upload(ctx, dir)
			if ctx.Err() != nil {
				return nil // the next watch does the rest
			}
			if err != nil {
				f.numbers.notUploaded.Inc()
				errs = append(errs, err)
			}
			left[dir] = err == nil
		}
		if left[dir] {
			done[dir] = true
		}
	}
	f.waiting.Store(int64(len(list) - len(done)))
	return errors.Join(errs...)
}

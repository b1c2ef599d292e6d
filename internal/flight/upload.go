package flight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
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
	f.making.Lock() // a run of ours that is being made has no verdict yet
	list, err := f.opt.Whole()
	f.making.Unlock()
	if err != nil {
		return err
	}
	maps.DeleteFunc(done, func(dir string, _ bool) bool { return !slices.Contains(list, dir) }) // it was removed
	left := slices.DeleteFunc(list, func(dir string) bool { return done[dir] })
	f.waiting.Store(int64(len(left)))
	var errs []error
	for _, dir := range left {
		address, err := f.opt.Upload(ctx, dir)
		if ctx.Err() != nil {
			return nil // the next watch does the rest
		}
		if err != nil && !isGone(dir) {
			f.numbers.notUploaded.Inc()
			errs = append(errs, err)
			continue
		}
		if address != "" {
			f.opt.Note(layout.Line("uploaded: " + address))
		}
		done[dir] = true
		f.waiting.Add(-1)
	}
	return errors.Join(errs...)
}

// isGone says whether a run was removed: then it need not be uploaded.
func isGone(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

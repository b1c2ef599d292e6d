package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
)

// The most of a file named on the command line that is read, in bytes.
const (
	maxBody       = 64 << 20
	maxToken      = 64 << 10
	maxThresholds = 1 << 20
)

// softLimit is from how much memory on garbage is collected more often, in bytes. What
// is read of a run, a profile or a server may be anybody's; the bounds of what is held
// at a time are below it.
const softLimit = 350 << 20

// readsAnybodys is to be called before something is read that may be anybody's.
func readsAnybodys() { debug.SetMemoryLimit(softLimit) }

// readInput reads a file that was named on the command line, or what comes out of
// a pipe. It waits for no FIFO that nobody writes to, and has an end with one that
// has none.
func readInput(path string, most int64) (_ []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: more than %d bytes, which is more than is read of it", path, most)
	}
	return raw, err
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// The most of a file named on the command line that is read, in bytes.
const (
	maxBody       = 64 << 20
	maxToken      = 64 << 10
	maxThresholds = 1 << 20
)

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

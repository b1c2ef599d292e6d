package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
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

// pipePatience is how long a pipe is waited for whose other end is open.
const pipePatience = 20 * time.Second

// readInput reads a file that was named on the command line, or what comes out of
// a pipe. It waits for no FIFO that nobody writes to, for no writer without end,
// and reads no more than most bytes.
func readInput(path string, most int64) (_ []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.SetReadDeadline(time.Now().Add(pipePatience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: its writer was not done after %v; write it to a file first", path, pipePatience)
	}
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: more than %d bytes, which is more than is read of it", path, most)
	}
	return raw, err
}

// readToken returns the bearer token in a file: a line of printable ASCII. What the
// file says is shown in no error.
func readToken(path string) (string, error) {
	raw, err := readInput(path, maxToken)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("%s: it is empty; want a line with the token", path)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: want one line of printable ASCII, the token alone", path)
	}
	return token, nil
}

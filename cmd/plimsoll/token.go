package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"plimsoll/internal/input"
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

// readerGarbage is by how many percent of what lives in it the heap grows between two collections below softLimit. Judging an hour leaves
// two gigabytes of garbage while a hundred megabytes live: of each collection that is spared the report comes sooner, and softLimit bounds
// what that takes.
const readerGarbage = 200

// readsAnybodys is to be called before something is read that may be anybody's.
func readsAnybodys() {
	debug.SetMemoryLimit(softLimit)
	if os.Getenv("GOGC") == "" { // else whoever started us knows better
		debug.SetGCPercent(readerGarbage)
	}
}

// readToken returns the bearer token in a file: a line of printable ASCII. What the
// file says is shown in no error.
func readToken(path string) (string, error) {
	raw, err := input.Read(path, maxToken)
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

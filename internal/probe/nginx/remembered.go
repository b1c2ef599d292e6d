package nginx

import (
	"bytes"
	"net/url"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/rooted"
)

// files is where a file is that an instance says is missing.
type files struct {
	root  string // the instance's root directory, as we see it
	plain string // see nginx.Settings.PlainRoot
}

// mayRemember says that an instance remembers what was missing, as far as its configuration is known.
func (in *instance) mayRemember() bool {
	return in.conf == nil || in.conf.RemembersMissing > 0
}

// filesOf is nil where an instance does not remember what was missing: then it
// has just looked, and a file that is there now has come since.
func filesOf(in *instance) *files {
	if in.conf.RemembersMissing == 0 {
		return nil
	}
	return &files{in.root, in.conf.PlainRoot}
}

const (
	// looksInRound bounds how many files are looked for in one round.
	looksInRound = 100
	// settled is how long a file must have been as it is. One that came between a
	// request and our look was missing; a log's buffer may keep the line back a while.
	settled = time.Minute
)

// remembered counts the lines about files that are missing by nginx's word alone.
type remembered struct {
	lines   uint64
	opened  time.Time // when we began to look
	now     time.Time
	settled map[lookedAt]bool // of this round
}

type lookedAt struct {
	files files
	name  string
}

func newRemembered() *remembered {
	return &remembered{opened: time.Now(), settled: map[lookedAt]bool{}}
}

func (r *remembered) begin(now time.Time) {
	r.now = now
	clear(r.settled)
}

// take counts a line about the file name, absolute; "" is none.
func (r *remembered) take(f *files, name string) {
	if !path.IsAbs(name) {
		return
	}
	key := lookedAt{*f, name}
	there, known := r.settled[key]
	if !known && len(r.settled) < looksInRound {
		there = r.there(f.root, name)
		r.settled[key] = there
	}
	if there {
		r.lines++
	}
}

// there says whether a regular file is there that has not changed of late.
func (r *remembered) there(root, name string) bool {
	f, err := rooted.Open(root, name)
	if err != nil {
		return false
	}
	defer f.Close()
	if f.Stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	changed := time.Unix(f.Stat.Ctim.Unix())
	return changed.Before(r.opened) || r.now.Sub(changed) >= settled
}

// askedFile is the file below root that a request's first line asks for; "" where
// that cannot be told: an escaped line, another method, a directory.
func askedFile(root string, line []byte) string {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, ok := bytes.Cut(rest, []byte(" "))
	if !ok || !bytes.HasPrefix(version, []byte("HTTP/")) || string(method) != "GET" && string(method) != "HEAD" || bytes.ContainsRune(target, '\\') {
		return ""
	}
	target, _, _ = bytes.Cut(target, []byte("?"))
	name, err := url.PathUnescape(string(target))
	if err != nil || len(name) == 0 || name[0] != '/' || name[len(name)-1] == '/' {
		return ""
	}
	return path.Join(root, path.Clean(name))
}

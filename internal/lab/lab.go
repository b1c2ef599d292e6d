// Package lab causes real faults on purpose, in network namespaces of its own
// with a real nginx and PHP-FPM in them, drives the built plimsoll binary at
// them from outside, and compares its verdict with the truth that each case
// states. It knows nothing of how Plimsoll works inside.
//
// Whatever it changes is written to a journal before it is changed, so that an
// interrupted, failed or killed lab is cleaned up by the next one.
package lab

import (
	"io/fs"
	"path/filepath"
)

// Lab brings cases up and takes them down. One case is up at a time for each Prefix.
type Lab struct {
	// Cases holds <id>/case.yaml and the templates that they name.
	Cases fs.FS
	// Prefix names everything the lab makes: namespaces PREFIX-client and
	// PREFIX-server, and its state below /run/PREFIX. "" means plimsoll-lab.
	Prefix string
}

func (l *Lab) prefix() string {
	if l.Prefix == "" {
		return "plimsoll-lab"
	}
	return l.Prefix
}

func (l *Lab) stateDir() string { return filepath.Join("/run", l.prefix()) }

// diskDir is where a case's files on a real disk are; /run may be memory.
func (l *Lab) diskDir(name string) string { return filepath.Join(diskRoot, l.prefix()+"."+name) }

const diskRoot = "/var/tmp"

// workName names a case's directories. All cases share it: a path that held the
// case's own name would tell whoever practises what was done to the host.
const workName = "case"

package main

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
)

// world is everything outside that the program may touch by name.
type world struct {
	args           []string // without the program's own name
	env            func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer // they clean what is written; see layout.Writer
	// commandOut and commandErr are the same uncleaned: for a command of the
	// user's own, and for what one process of ours tells another.
	commandOut, commandErr io.Writer
	stdoutTTY              bool
	stderrTTY              bool
	width                  int                        // columns of the terminal; 0 when there is none
	terminal               func() (columns, rows int) // of standard error's; nil when there is none
	etc                    string                     // the site's own files
	executable             string                     // path of this binary, to start the load engine from
	locks                  string                     // where the machine's lock is
	changing               atomic.Bool                // see mayChange
	passwords              *passwords                 // of other machines; nil where nobody can be asked
	giveWay                func() error               // has a judge of what lasts give way to everything else; see lowerOthers
}

func theWorld() *world {
	w := &world{
		args: os.Args[1:], env: os.Getenv,
		stdin: os.Stdin, stdout: layout.NewWriter(os.Stdout), stderr: layout.NewWriter(os.Stderr),
		commandOut: os.Stdout, commandErr: os.Stderr,
		stdoutTTY: isTerminal(os.Stdout), stderrTTY: isTerminal(os.Stderr),
		etc: "/etc/plimsoll", executable: "/proc/self/exe", locks: "/run", giveWay: lowerOthers,
	}
	if path, err := os.Executable(); err == nil {
		w.executable = path
	}
	if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil {
		w.width = int(size.Col)
	}
	if w.stderrTTY && isTerminal(os.Stdin) {
		w.passwords = &passwords{known: map[string]string{}, read: readPassword}
	}
	if w.stderrTTY {
		w.terminal = func() (columns, rows int) {
			size, err := unix.IoctlGetWinsize(int(os.Stderr.Fd()), unix.TIOCGWINSZ)
			if err != nil {
				return 0, 0
			}
			return int(size.Col), int(size.Row)
		}
	}
	return w
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// version is set when a release is linked.
var version = "0.1.0-dev"

// Command plimsoll tells what holds a service back. This package is the
// command line alone: it parses, wires the rooms together, prints, and picks
// the exit code.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
	"plimsoll/internal/secret"
)

func main() { start(theWorld()) }

// start runs the program until it is done or told to end.
func start(w *world) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // it is under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second ^C ends the program at once
	os.Exit(run(ctx, w))
}

// version is set when a release is linked.
var version = "0.1.0-dev"

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
	width                  int    // columns of the terminal; 0 when there is none
	etc                    string // the site's own files
	executable             string // path of this binary, to start the load engine from
	locks                  string // where the machine's lock is
}

func theWorld() *world {
	w := &world{
		args: os.Args[1:], env: os.Getenv,
		stdin: os.Stdin, stdout: layout.NewWriter(os.Stdout), stderr: layout.NewWriter(os.Stderr),
		commandOut: os.Stdout, commandErr: os.Stderr,
		stdoutTTY: isTerminal(os.Stdout), stderrTTY: isTerminal(os.Stderr),
		etc: "/etc/plimsoll", executable: "/proc/self/exe", locks: "/run",
	}
	if path, err := os.Executable(); err == nil {
		w.executable = path
	}
	if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil {
		w.width = int(size.Col)
	}
	return w
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// linkOut says what os.Root means when it refuses a name; it has no error of its own
// for that to go by.
const linkOut = "a link on its way leads out of the directory that was named, and nothing outside of that is read; put a copy in the link's place"

// run does what the arguments ask for and returns the exit code.
func run(ctx context.Context, w *world) int {
	root := newRoot(w)
	root.SetArgs(w.args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if code, quiet := passedOn(err); quiet {
		return code
	}
	// The load engine's process put the name before its last words already. A
	// second line is indented: what stands in it may be from outside, and is not
	// to look like a message of its own.
	text := secret.Text(strings.TrimPrefix(err.Error(), "plimsoll: "))
	if isAny(err, syscall.EMFILE) {
		text += outOfFiles()
	}
	text = strings.ReplaceAll(text, "path escapes from parent", linkOut)
	fmt.Fprintln(w.stderr, "plimsoll:", layout.Indent(strings.TrimRight(text, "\n"), "  "))
	return codeOf(err)
}

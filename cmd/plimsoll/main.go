// Command plimsoll tells what holds a service back. This package is the
// command line alone: it parses, wires the rooms together, prints, and picks
// the exit code.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

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
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, ends...)
	ctx, cancel := context.WithCancel(context.Background())
	go w.heed(signals, cancel)
	os.Exit(run(ctx, w))
}

// linkOut says what os.Root means when it refuses a name; it has no error of its own
// for that to go by.
const linkOut = "a link on its way leads out of the directory that was named, and nothing outside of that is read; put a copy in the link's place"

// run does what the arguments ask for and returns the exit code.
func run(ctx context.Context, w *world) int {
	root := newRoot(w)
	root.SetArgs(runWords(w.args, valueFlags(root, w.args)))
	err := root.ExecuteContext(ctx)
	if out, cleans := w.stdout.(*layout.Writer); cleans && err == nil {
		err = out.Lost()
	}
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
	text = strings.ReplaceAll(text, "nothing to judge: context canceled", "nothing to judge") // interrupted, as it says
	text = strings.ReplaceAll(text, "context canceled", "it was interrupted")
	text = strings.ReplaceAll(text, "path escapes from parent", linkOut)
	fmt.Fprintln(w.stderr, "plimsoll:", layout.Indent(strings.TrimRight(text, "\n"), "  "))
	return codeOf(err)
}

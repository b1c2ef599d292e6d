package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/session"
	"plimsoll/internal/ssh"
)

const (
	guestName   = "guest"
	changesName = "changes"
)

// overSSH is what the way to a machine that ssh reaches begins with.
const overSSH = "ssh:"

const (
	// guestTime is how long a guest may take to end once nobody listens.
	guestTime = 5 * time.Second
	// guestSilence is after how long without a word from whoever sent it a guest takes him for gone, who says something
	// every guestPing: a machine that loses its power ends no connection.
	guestSilence = 2 * time.Minute
	guestPing    = 5 * time.Second
)

// guest runs a command of this binary on a machine to which it was sent. First it removes
// itself there. It ends when its input does, or when nothing is heard: then whoever sent it is gone.
func guest(w *world) *cobra.Command {
	return &cobra.Command{Use: guestName, Short: "run a command on a machine to which this binary was sent", Hidden: true, DisableFlagParsing: true,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			removeGuest(w.executable)
			w.executable = "/proc/self/exe"
			ctx := c.Context()
			if !slices.Contains([]string{collectorName, changesName, engineName}, args[0]) {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go func() {
					untilSilent(w.stdin, guestSilence)
					cancel()
					time.Sleep(guestTime)
					if !w.changing.Load() { // an undo is not left half way
						os.Exit(exitInterrupted)
					}
				}()
			}
			root := c.Root()
			root.SetArgs(args)
			return root.ExecuteContext(ctx)
		}}
}

// untilSilent waits for the end of in, or until nothing was heard on it for so long.
func untilSilent(in io.Reader, silence time.Duration) {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for b := make([]byte, 64); ; {
			if _, err := in.Read(b); err != nil {
				return
			}
			heard <- struct{}{}
		}
	}()
	for {
		select {
		case _, more := <-heard:
			if !more {
				return
			}
		case <-time.After(silence):
			return
		}
	}
}

// tell says something to a guest now and then, as long as it hears that and done is not closed.
func tell(guest io.Writer, done <-chan struct{}) {
	tick := time.NewTicker(guestPing)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if _, err := guest.Write([]byte{'\n'}); err != nil {
				return
			}
		}
	}
}

// removeGuest removes a binary that was sent, and the directory that was made for it, by
// its name; any other binary stays. What is left is the sender's to remove.
func removeGuest(path string) {
	if dir := filepath.Dir(path); filepath.Base(path) == "plimsoll" && strings.HasPrefix(filepath.Base(dir), ".plimsoll.") {
		_ = os.Remove(path)
		_ = os.Remove(dir)
	}
}

// send runs a command on the machine to which a way leads.
func send(ctx context.Context, w *world, via string, words ...string) (*ssh.Guest, error) {
	to, err := ssh.ParseDestination(strings.TrimPrefix(via, overSSH))
	if err != nil {
		return nil, err
	}
	var ask ssh.Ask
	if w.passwords != nil {
		ask = func(ctx context.Context) string { return w.passwords.of(ctx, via) }
	}
	g, err := ssh.Start(ctx, to, ask, append([]string{guestName}, words...)...)
	if err == nil && g.Note != "" && w.passwords != nil {
		w.passwords.wrong(via)
	}
	return g, err
}

// letsIn says whether the machine to which a way leads lets us in anew.
func letsIn(ctx context.Context, via string) error {
	to, err := ssh.ParseDestination(strings.TrimPrefix(via, overSSH))
	if err != nil {
		return err
	}
	return ssh.LetsIn(ctx, to)
}

// maxRelayed is the most bytes of what another machine prints that are passed on.
const maxRelayed = 64 << 20

// relay runs a command on the machine to which a way leads, and passes on what it prints
// and how it ends. When ctx is done it is asked to end, and what it says yet is passed on.
func relay(ctx context.Context, w *world, via string, words ...string) error {
	g, err := send(ctx, w, via, words...)
	if err != nil {
		return fail(exitUnreachable, fmt.Errorf("%s: %w", via, err))
	}
	if g.Note != "" {
		fmt.Fprintf(w.stderr, "%s: looked at as %s\n", via, g.Note)
	}
	stop := context.AfterFunc(ctx, func() { _ = g.CloseInput() })
	defer stop()
	done := make(chan struct{})
	defer close(done)
	go tell(g, done)
	n, err := io.Copy(w.stdout, io.LimitReader(g, maxRelayed))
	if n == maxRelayed {
		err = fmt.Errorf("%s prints more than %d bytes", via, maxRelayed)
	}
	err = errors.Join(err, g.Close())
	var ended ssh.EndError
	if errors.As(err, &ended) && ended.Code > 0 && ended.Code < 255 {
		return fail(ended.Code, fmt.Errorf("%s: %s", via, strings.TrimPrefix(ended.Said, "plimsoll: ")))
	}
	return err
}

// reachCollector starts a collector where a host's spec says that there is to be one.
func reachCollector(w *world) func(ctx context.Context, via string) (session.Way, error) {
	return func(ctx context.Context, via string) (session.Way, error) {
		if via == session.OwnProcess {
			p, err := spawn(w, collectorName)
			return session.Way{ReadWriteCloser: p}, err
		}
		g, err := send(ctx, w, via, collectorName)
		if err != nil {
			return session.Way{}, err
		}
		return session.Way{ReadWriteCloser: g, Note: g.Note}, nil
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plimsoll/internal/collect"
	"plimsoll/internal/flight"
	"plimsoll/internal/input"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// keepFlags are those of the last minutes that a watch that stays keeps.
type keepFlags struct {
	keep    time.Duration
	dir     string
	most    int
	webhook string
	hookAt  string // a file in which it stands
	bucket  bucketFlag
}

// keptEvery is the time between two rounds where the last minutes are kept and nobody says.
const keptEvery = time.Second

// The bounds of --keep.
const (
	leastKept = time.Minute
	mostKept  = 6 * time.Hour
	// maxWebhook is how long a webhook's address may be, in bytes.
	maxWebhook = 4 << 10
)

func (f *keepFlags) add(c *cobra.Command, w *world) {
	fs := c.Flags()
	durationFlag(fs, &f.keep, "keep", "", 0, "with --listen: keep the last minutes on disk (256 MiB at most), and make a run of them when plimsoll snapshot asks for one, or the last minute has become a cause; rounds are 1s apart then")
	fs.Lookup("keep").DefValue = ""
	f.addDir(c, w)
	fs.IntVar(&f.most, "keep-runs", 24, "with --keep: make no run where `N` that were made so are there")
	fs.StringVar(&f.webhook, "webhook", "", "with --keep: tell this `URL` of each run, in JSON; who may list processes sees it")
	f.bucket.add(c, "with --keep: put each run into object storage as well, as this `FILE` says, which not everybody may read")
	fs.StringVar(&f.hookAt, "webhook-file", "", "with --keep: the same, and the URL stands in this `FILE`, which not everybody may read")
}

// addDir adds the flag that says where they are kept.
func (f *keepFlags) addDir(c *cobra.Command, w *world) {
	c.Flags().StringVar(&f.dir, "keep-dir", "", "`DIRECTORY` in which the last minutes are kept (default last-minutes, beside that of the runs)")
}

// place is where the last minutes are kept.
func (f *keepFlags) place(w *world) string {
	if f.dir != "" {
		return f.dir
	}
	return filepath.Join(filepath.Dir(filepath.Clean(w.runsDir())), "last-minutes")
}

// keptOnly are the flags that only make sense with --keep.
var keptOnly = []string{"keep-dir", "keep-runs", "webhook", "webhook-file", "bucket"}

// check checks the flags.
func (f *keepFlags) check(c *cobra.Command) error {
	if f.keep == 0 {
		for _, name := range keptOnly {
			if c.Flags().Changed(name) {
				return usage(c.CommandPath(), "--%s goes with --keep", name)
			}
		}
		return nil
	}
	if f.keep < leastKept || f.keep > mostKept {
		return usage(c.CommandPath(), "--keep %v: want %v to %v", f.keep, leastKept, mostKept)
	}
	if f.most < 1 {
		return usage(c.CommandPath(), "--keep-runs %d: want at least 1", f.most)
	}
	return errors.Join(f.checkWebhook(c), f.bucket.check(c))
}

// checkWebhook checks the webhook's address, and takes it out of its file where it stands in one. It is in no message: who knows it can write there.
func (f *keepFlags) checkWebhook(c *cobra.Command) error {
	flag := "--webhook"
	direct, inFile := c.Flags().Changed("webhook"), c.Flags().Changed("webhook-file")
	switch {
	case direct && inFile:
		return usage(c.CommandPath(), "--webhook and --webhook-file are one address; leave one of both out")
	case direct && f.webhook == "": // as of a variable that is not set: it would tell nobody, and nobody would know
		return usage(c.CommandPath(), "--webhook is empty; want a URL like https://chat.example/hook")
	case inFile && f.hookAt == "":
		return usage(c.CommandPath(), "--webhook-file is empty; want the name of a file with a URL in it")
	case inFile:
		text, err := input.ReadSecret(f.hookAt, maxWebhook)
		if err != nil {
			return fail(exitMissing, fmt.Errorf("--webhook-file: %w", err))
		}
		flag = "--webhook-file " + f.hookAt
		if f.webhook = strings.TrimSpace(string(text)); f.webhook == "" {
			return usage(c.CommandPath(), "%s: it is empty; want a URL like https://chat.example/hook", flag)
		}
	}
	if u, err := url.Parse(f.webhook); f.webhook != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return usage(c.CommandPath(), "%s: want a URL like https://chat.example/hook", flag)
	}
	return nil
}

// recorder makes what keeps the last minutes.
func (f *keepFlags) recorder(w *world, config collect.Config, note func(string)) *flight.Recorder {
	plan := model.Plan{Mode: "watch", Interval: config.Interval.Milliseconds()}
	var upload func(context.Context, string) (string, error)
	if f.bucket.opened != nil {
		upload = func(ctx context.Context, dir string) (string, error) {
			return f.bucket.opened.Upload(ctx, machineName(), dir)
		}
	}
	return flight.New(flight.Options{Upload: upload, Dir: f.place(w), Keep: f.keep, Run: model.Run{Version: version, Plan: plan}, Most: f.most, Webhook: f.webhook, Note: note,
		NewRun: func() string { return w.newRun(time.Now()) }, Made: w.snapshots, Whole: w.wholeSnapshots,
		Judge: func(ctx context.Context, dir string, last time.Duration) (flight.Judgement, error) {
			return judgeApart(ctx, w, dir, last)
		},
		Finish: func(ctx context.Context, dir string) error { return closeApart(ctx, w, dir) },
	})
}

// snapshots lists the runs of last minutes that are there.
func (w *world) snapshots() ([]string, error) { return w.snapshotsThat(false) }

// wholeSnapshots lists those of them that nobody makes any more.
func (w *world) wholeSnapshots() ([]string, error) { return w.snapshotsThat(true) }

func (w *world) snapshotsThat(closed bool) (dirs []string, err error) {
	list, _, err := record.List(w.runsDir())
	for _, k := range list {
		if k.Meta.Plan.Snapshot != "" && (k.Meta.Closed || !closed) {
			dirs = append(dirs, k.Dir)
		}
	}
	return dirs, err
}

const (
	// judgeTime is for how long a verdict is waited for, and maxVerdict how long its document may be.
	judgeTime  = 5 * time.Minute
	maxVerdict = 32 << 20
)

// apart runs a command of ours in a process of its own, whose memory is given back; patient is one that gives way to everything else. It
// says what that took in CPU time.
func apart(ctx context.Context, w *world, patient bool, out io.Writer, args ...string) (cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	c := exec.CommandContext(ctx, w.executable, args...)
	talk := &atMost{most: 4 << 10}
	c.Stdout, c.Stderr = out, talk
	c.Env = []string{"GOMAXPROCS=1", "GOGC=50"}
	start := c.Start
	if patient {
		start = func() error { return startLow(c) }
	}
	if err := start(); err != nil {
		return 0, err
	}
	if err = c.Wait(); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it was ended after %v: %w", judgeTime, err)
		}
		if said := strings.TrimSpace(talk.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, layout.Line(said))
		}
		err = fmt.Errorf("%s in a process of its own: %w", args[0], err)
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), err
}

// startLow starts a process all of whose threads give way to others. That is a thread's, and goes on to those that it
// starts; so the one that starts the process has it first. It cannot raise it again without rights, and so ends with its goroutine.
func startLow(c *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) // it is done all the same
		started <- c.Start()
	}()
	return <-started
}

// finisherName is the command of the process that closes a run of last minutes.
const finisherName = "close-run"

// closeApart closes a run in a process of its own, which says by its exit code that the disk has no room for that.
func closeApart(ctx context.Context, w *world, dir string) error {
	_, err := apart(ctx, w, false, nil, finisherName, dir)
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == exitRunDir {
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	return err
}

func runFinisher() *cobra.Command {
	return &cobra.Command{Use: finisherName + " DIR", Short: "close a run of last minutes (Plimsoll's own child)", Hidden: true, Args: oneArgument("a run's directory"),
		RunE: func(_ *cobra.Command, args []string) error { return writer.Finish(args[0]) }}
}

// judgeApart judges what lies in a directory, or the last part of it, giving way to everything else. The verdict on all of it is left there.
func judgeApart(ctx context.Context, w *world, dir string, last time.Duration) (j flight.Judgement, err error) {
	args := []string{"diagnose", dir, "--json"}
	if last > 0 {
		args = append(args, "--last", last.String())
	}
	out := &atMost{most: maxVerdict}
	if j.CPU, err = apart(ctx, w, true, out, args...); err != nil {
		return j, err
	}
	var r model.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return j, fmt.Errorf("its verdict cannot be read: %w", err)
	}
	j.Answer, j.Sentence = r.Verdict.Answer, r.Verdict.Sentence
	for _, f := range r.Verdict.Root {
		if !slices.Contains(j.Rules, f.Rule) {
			j.Rules = append(j.Rules, f.Rule)
		}
	}
	if last == 0 {
		err = writer.Verdict(dir, out.Bytes())
	}
	return j, err
}

// atMost is what somebody writes, up to so many bytes.
type atMost struct {
	bytes.Buffer
	most int
}

// Write refuses what is too much.
func (a *atMost) Write(p []byte) (int, error) {
	if a.Len()+len(p) > a.most {
		return 0, syscall.EFBIG
	}
	return a.Buffer.Write(p)
}

const snapshotLong = `Asks the watch that stays on this machine (plimsoll watch --listen HOST:PORT
--keep 10m) for a run of its last minutes: what it kept, and a burst in which all
tracers watch, which takes ten seconds. It prints the run's directory; show,
report and the others open it as any other. Root and the watch's own user may ask.`

// snapshotDocument is what snapshot --json prints.
type snapshotDocument struct {
	Dir string `json:"dir"`
}

func snapshotCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "snapshot", Short: "make a run of the last minutes of a watch that stays", Long: snapshotLong, Args: noArguments,
		Example: "  plimsoll watch --listen 127.0.0.1:9109 --keep 10m &\n  plimsoll snapshot && plimsoll show last"}
	var f keepFlags
	f.addDir(c, w)
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		dir, err := flight.Ask(f.place(w))
		if err != nil {
			return fail(exitMissing, err)
		}
		if *asJSON {
			return printJSON(w.stdout, snapshotDocument{dir})
		}
		_, err = fmt.Fprintln(w.stdout, layout.Line(dir))
		return err
	}
	return withExits(c, exitOK, exitUsage, exitMissing)
}

package main

import (
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/session"
)

const watchLong = `Watches without a load of Plimsoll's own: for -d, or while CMD runs, which may be
your own load tool. Then it prints the verdict, as run does, but without what only
our own load can tell: requests, latency and the share that was lost. "Nothing
found" is unclear then, and not healthy, unless nginx's access log says that the
requests were answered in little time.

CMD is connected to this terminal: what it writes is passed on as it is, and so is
its exit code. With --json its standard output goes to standard error, so that
there is one JSON document alone. Where a load tool that Plimsoll knows runs in
CMD (wrk, wrk2, ab, hey, oha, h2load, k6, vegeta, fortio, siege, JMeter,
bombardier), what it prints is read on its way: it goes through a pipe, or a
terminal of its own where it is shown on one, and the summary is part of the run,
as that tool's word, on which no verdict rests. Its arguments are recorded;
what looks like a password or a key in them is masked. ^C ends watching and
asks CMD to end; what was seen until then is judged. If Plimsoll is killed, CMD
is ended, too, with all that it started.

With --of PROGRAM it says where the time of that one program goes, with all that
it starts: computing, waiting for a CPU, a disk and which file, a lock, which
peer, memory, asleep by its own will; so that the parts are all of its time, and
what would make it faster. "--of command -- make" asks about CMD itself
(docs/program.md).`

const watchExample = `  plimsoll watch -d 60s
  plimsoll watch -- wrk -t2 -c200 -d10 http://127.0.0.1/
  plimsoll watch --host server=netns:srv --json -- ab -n 10000 http://10.0.0.2/
  plimsoll watch --of import.py -d 30s
  plimsoll watch --of command -- ./nightly-backup
  plimsoll watch --listen 127.0.0.1:9109`

func watchCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "watch [-d DURATION] [--of PROGRAM] [--listen HOST:PORT | -- CMD...]", Short: "watch alone, or while your own load tool runs", Long: watchLong, Example: watchExample,
		DisableFlagsInUseLine: true}
	var watch watchFlags
	watch.add(c)
	var d time.Duration
	durationFlag(c.Flags(), &d, "duration", "d", 0, "how long to watch (default 60s; with CMD, until it ends)")
	c.Flags().Lookup("duration").DefValue = "" // its usage says what it is
	of, page, at := programFlag(c), reportFlag(c), liveFlag(c)
	var how printFlags
	how.add(c)
	var gate gateFlags
	gate.add(c, false)
	var stays exporterFlags
	stays.add(c, w)
	c.Args = onlyBehindDashes
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && !c.Flags().Changed("duration") {
			d = time.Minute
		}
		if d <= 0 && c.Flags().Changed("duration") {
			return usage(c.CommandPath(), "-d 0: want more than 0")
		}
		opt, err := watch.options(c.CommandPath(), w, time.Now())
		if err != nil {
			return err
		}
		if opt.Program, err = programOf(c.CommandPath(), *of, len(args) > 0); err != nil {
			return err
		}
		opt.CommandLine = retyped(c, args)
		shown, err := liveStage(c.CommandPath(), w, *at)
		if err != nil {
			return err
		}
		defer shown.close()
		std := session.WatchIO{Stdin: w.stdin, Stdout: w.commandOut, Stderr: w.commandErr}
		if how.json {
			std.Stdout = w.commandErr
		}
		var end func()
		if len(args) == 0 {
			end = w.follow(&opt, shown, &watch.site)
		} else { // a command has the terminal for itself
			end = w.play(&opt, shown, nil, &watch.site)
		}
		code, err := session.Watch(c.Context(), opt, d, args, std)
		end()
		if err != nil {
			return err
		}
		r, err := judgeAndKeep(opt.Dir, &watch.site)
		if err == nil {
			shown.ended(r, opt.Dir)
			err = w.print(r, how, w.nameOf(opt.Dir))
		}
		if err == nil {
			err = writePage(*page, []string{opt.Dir}, &watch.site)
		}
		switch {
		case err != nil:
			return err
		case code != 0:
			return codePassed(code)
		}
		return gate.judge(w, r, nil)
	}
	c.RunE = stays.orElse(w, &watch, &d, gate.around(w, c.RunE))
	return withFiles(withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitRunDir, exitRules, exitInterrupted), runFiles)
}

// onlyBehindDashes takes a command, with -- before it.
func onlyBehindDashes(c *cobra.Command, args []string) error {
	if len(args) > 0 && c.ArgsLenAtDash() != 0 {
		return usage(c.CommandPath(), "%q: write -- before the command", args[0])
	}
	return nil
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plimsoll/internal/judge"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

// soFar is what would be said of a run if it ended now.
type soFar struct {
	Answer   model.Answer  `json:"answer"`
	Sentence string        `json:"sentence"`
	Way      []sheet.Stage `json:"way,omitempty"` // of a request, by that verdict
	// CPU is what finding that out took, all threads and garbage included.
	CPU time.Duration `json:"cpu_ns"`
	// Failed is why nothing can be said; "" if something is.
	Failed string `json:"failed,omitempty"`
}

// way is the way of a request, of nil too.
func (s *soFar) way() []sheet.Stage {
	if s == nil {
		return nil
	}
	return s.Way
}

// oldAfter is from which age on a verdict so far is shown with it.
const oldAfter = 10 * time.Second

// verdictSoFar is the last one that was found.
type verdictSoFar struct {
	said *soFar // nil before anything could be said
	at   time.Time
	lost string // why none is found any more, "" while that may be
}

// text is what is told of it.
func (v verdictSoFar) text(now time.Time) string {
	text := "so far"
	if v.lost != "" {
		text = "not judged any more while it lasts (" + v.lost + ")"
	}
	if v.said == nil {
		if v.lost == "" {
			text += ": not judged yet"
		}
		return text
	}
	if age := now.Sub(v.at); age > oldAfter {
		text += fmt.Sprintf(", as of %.0f s ago", age.Seconds())
	}
	return text + ": " + v.said.Sentence
}

// lastingName is the command of the process that judges a run while it lasts.
const lastingName = "judge-so-far"

// lastingWords are its command line for the run in dir, by the rules of site.
func lastingWords(dir string, site *siteFlags) []string {
	return append(append([]string{lastingName}, site.words()...), "--", dir)
}

// lastingJudge is that process: for each line of its input it says in a line what it finds, and it ends with its input. It is apart from
// the one that records, which its garbage would hold up, and it runs where nobody else wants to.
func lastingJudge(w *world) *cobra.Command {
	c := &cobra.Command{Use: lastingName + " DIR", Short: "judge a run while it lasts (Plimsoll's own child)", Hidden: true, Args: oneArgument("a run's directory")}
	var site siteFlags
	site.add(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		// So that it has a name of its own in ps, top and our own process table.
		_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-judge"), 0)
		l := lastingRun{dir: args[0], site: &site, files: make(chan func())}
		readsAnybodys()
		runtime.LockOSThread() // of all threads this one alone is not lowered; whoever is locked starts none
		defer runtime.UnlockOSThread()
		if err := w.giveWay(); err != nil {
			return err
		}
		asked, answered := lines(w.stdin), make(chan error, 1)
		go func() { answered <- l.answer(asked, w.commandOut) }()
		return l.readFiles(asked.ended, answered)
	}
	return c
}

// questions come in, one a line, until they end.
type questions struct {
	come  chan struct{}
	ended chan struct{} // closed at once then, also while one is being answered
}

func lines(in io.Reader) questions {
	q := questions{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(q.come)
		defer close(q.ended)
		for list := bufio.NewScanner(in); list.Scan(); {
			q.come <- struct{}{}
		}
	}()
	return q
}

// lastingRun is a run that still lasts, as its judge knows it.
type lastingRun struct {
	dir     string
	site    *siteFlags
	rules   ruleset.Rules   // with those of a site
	unread  error           // why they could not be read
	set     ruleset.Rules   // that are in force
	growing *record.Growing // nil before the run was there
	files   chan func()     // what reads the run's files
}

// readFiles does what reads the run's files, until nobody asks any more or can be answered. While the recorder appends to the log,
// a reader may hold what it waits for (on XFS the inode's lock, in read()); one that was preempted there in the idle class would hold it
// until a CPU is free. So the files are read by the caller's thread, which is in the normal class; what is in them is looked at by others.
// That thread cannot be lowered between: without rights nobody comes back.
func (l *lastingRun) readFiles(nobodyAsks <-chan struct{}, answered <-chan error) error {
	for {
		select {
		case read := <-l.files:
			read()
		case err := <-answered:
			return err
		case <-nobodyAsks: // who asked is gone: what is being judged is for nobody
			return nil
		}
	}
}

// ofFiles has something read by the thread that reads files, and waits for it.
func (l *lastingRun) ofFiles(read func()) {
	done := make(chan struct{})
	l.files <- func() {
		defer close(done)
		read()
	}
	<-done
}

// answer judges the run each time that it is asked to.
func (l *lastingRun) answer(asked questions, to io.Writer) error {
	defer l.close()
	l.rules, l.unread = l.site.extended() // before anybody asks: then the load is not there yet
	l.rules.Signals()                     // what is found out of expressions when it is asked for is asked for now
	out := json.NewEncoder(to)
	for range asked.come {
		if err := out.Encode(l.judge()); err != nil {
			return err
		}
	}
	return nil
}

func (l *lastingRun) judge() soFar {
	before := ownTime()
	s, err := l.find()
	if err != nil {
		s.Failed = err.Error()
	}
	s.CPU = ownTime() - before
	return s
}

func (l *lastingRun) find() (s soFar, err error) {
	if l.growing == nil {
		if err := l.open(); err != nil {
			return s, err
		}
	}
	run, err := l.growing.Run()
	if err != nil {
		return s, err
	}
	v, err := judge.SoFar(run, l.set)
	if err != nil {
		return s, err
	}
	return soFar{Answer: v.Answer, Sentence: v.Sentence, Way: wayOf(run, v)}, nil
}

// open reads the run's rules, and begins to read the run.
func (l *lastingRun) open() error {
	var meta model.Run
	var err error
	if l.ofFiles(func() { meta, err = record.Manifest(l.dir) }); err != nil {
		return err
	}
	if l.set, _, err = l.site.setFor(meta, func() (ruleset.Rules, error) { return l.rules, l.unread }); err != nil {
		return err
	}
	l.growing, err = record.Grow(l.dir, append(l.set.Signals(), sheet.WaySignals...), l.ofFiles)
	return err
}

func (l *lastingRun) close() {
	if l.growing != nil {
		_ = l.growing.Close() // it was only read
	}
}

// ownTime is how much CPU time this process took.
func ownTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it fails for no process of ours
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wayOf is the way of a request; one that cannot be read is read the next time.
func wayOf(run *record.Run, v model.Verdict) []sheet.Stage {
	list, err := sheet.Way(run, v)
	if err != nil {
		return nil
	}
	return list
}

// teller is the other end of a process that judges a run while it lasts.
type teller struct {
	cmd   *exec.Cmd
	ask   io.WriteCloser
	said  *json.Decoder
	talk  *atMost
	kill  context.CancelFunc
	gone  chan struct{} // closed when the process is
	ended error         // how, when it is gone
}

// startTeller has the run in dir judged, by the rules of site, when it is there. The process lowers itself: one that is started by a thread
// in the idle class begins, where no CPU is free, when one is, and this process starts nothing else before.
func startTeller(w *world, dir string, site *siteFlags) (*teller, error) {
	ctx, kill := context.WithCancel(context.Background())
	t := &teller{cmd: exec.CommandContext(ctx, w.executable, lastingWords(dir, site)...), talk: &atMost{most: 4 << 10}, kill: kill, gone: make(chan struct{})}
	t.cmd.Env = []string{"GOMAXPROCS=1"}
	t.cmd.Stderr = t.talk
	var err error
	if t.ask, err = t.cmd.StdinPipe(); err != nil {
		kill()
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err == nil {
		err = t.cmd.Start()
	}
	if err != nil {
		kill()
		return nil, err
	}
	t.said = json.NewDecoder(out)
	go func() {
		defer close(t.gone)
		t.ended = t.cmd.Wait()
	}()
	return t, nil
}

// now is what would be said now. It waits for that.
func (t *teller) now() (s soFar, err error) {
	if _, err = fmt.Fprintln(t.ask); err == nil {
		err = t.said.Decode(&s)
	}
	if err == nil {
		return s, nil
	}
	t.end()
	select {
	case <-t.gone:
		return s, fmt.Errorf("the process that judges ended: %w%s", cmp.Or(t.ended, err), saidFirst(t.talk.String()))
	default:
		return s, err
	}
}

// saidFirst is what a process that failed said first, behind a colon; "" for nothing.
func saidFirst(text string) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return ": " + layout.Line(line)
	}
	return ""
}

// endTime is for how long it is waited for that the process has ended: for that it needs CPU time in the idle class, and where no CPU is
// free the verdict would wait for it.
const endTime = 200 * time.Millisecond

// end ends the process, which has nothing to leave behind; what it is at is not waited for.
func (t *teller) end() {
	t.kill()
	select {
	case <-t.gone:
	case <-time.After(endTime):
	}
}

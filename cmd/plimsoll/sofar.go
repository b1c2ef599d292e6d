package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plimsoll/internal/judge"
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

// text is the sentence, of nil too.
func (s *soFar) text() string {
	if s == nil {
		return "so far: not judged yet"
	}
	return "so far: " + s.Sentence
}

// way is the way of a request, of nil too.
func (s *soFar) way() []sheet.Stage {
	if s == nil {
		return nil
	}
	return s.Way
}

// lastingName is the command of the process that judges a run while it lasts.
const lastingName = "judge-lasting"

// lastingJudge is that process: for each line of its input it says in a line what it finds, and it ends with its input. It is apart from
// the one that records, which its garbage would hold up, and it runs where nobody else wants to.
func lastingJudge(w *world) *cobra.Command {
	c := &cobra.Command{Use: lastingName + " DIR", Short: "judge a run while it lasts (Plimsoll's own child)", Hidden: true, Args: oneArgument("a run's directory")}
	var site siteFlags
	site.add(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		// So that it has a name of its own in ps, top and our own process table.
		_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-judge"), 0)
		l := lastingRun{dir: args[0], site: &site}
		defer l.close()
		l.rules, l.unread = site.extended() // before anybody asks: then the load is not there yet
		out := json.NewEncoder(w.commandOut)
		for asked := bufio.NewScanner(w.stdin); asked.Scan(); {
			if err := out.Encode(l.judge()); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// lastingRun is a run that still lasts, as its judge knows it.
type lastingRun struct {
	dir     string
	site    *siteFlags
	rules   ruleset.Rules   // with those of a site
	unread  error           // why they could not be read
	set     ruleset.Rules   // that are in force
	growing *record.Growing // nil before the run was there
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
	meta, err := record.Manifest(l.dir)
	if err != nil {
		return err
	}
	if l.set, _, err = l.site.setFor(meta, func() (ruleset.Rules, error) { return l.rules, l.unread }); err != nil {
		return err
	}
	l.growing, err = record.Grow(l.dir, append(l.set.Signals(), sheet.WaySignals...))
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
	cmd  *exec.Cmd
	ask  io.WriteCloser
	said *json.Decoder
}

// startTeller has the run in dir judged, by the rules of site, when it is there.
func startTeller(w *world, dir string, site *siteFlags) (*teller, error) {
	t := &teller{cmd: exec.Command(w.executable, append([]string{lastingName, dir}, site.words()...)...)}
	t.cmd.Env = []string{"GOMAXPROCS=1", "GOGC=50"}
	var err error
	if t.ask, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.said = json.NewDecoder(out)
	if err := startLow(t.cmd, idleClass); err != nil {
		return nil, err
	}
	return t, nil
}

// idleClass has the caller's thread run only where nobody else wants to: whoever wakes up takes its place at once, as the least
// priority alone would not have it.
func idleClass() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}

// now is what would be said now. It waits for that.
func (t *teller) now() (s soFar, err error) {
	if _, err := fmt.Fprintln(t.ask); err != nil {
		return s, err
	}
	err = t.said.Decode(&s)
	return s, err
}

// end ends the process; what it is at is not waited for.
func (t *teller) end() {
	if t == nil {
		return
	}
	_ = errors.Join(t.ask.Close(), t.cmd.Process.Kill(), t.cmd.Wait()) // it has nothing to leave behind
}

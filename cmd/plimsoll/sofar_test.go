package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// tellerOf starts a judge of the run in dir, in a process of its own: this program by that name.
func tellerOf(t *testing.T, program, dir string) *teller {
	t.Helper()
	w, _, _ := testWorld()
	var err error
	w.executable, err = exec.LookPath(program)
	ok(t, err)
	judge, err := startTeller(w, dir, &siteFlags{})
	ok(t, err)
	t.Cleanup(judge.end)
	return judge
}

// gone waits until the process is.
func gone(t *testing.T, judge *teller) {
	t.Helper()
	select {
	case <-judge.gone:
	case <-time.After(patience):
		t.Fatal("the process is still there")
	}
}

// beginRun begins a run that can be judged.
func beginRun(t *testing.T, dir string) {
	t.Helper()
	const start = 1_700_000_000_000
	w, err := writer.Create(dir, model.Run{Started: start, Plan: model.Plan{Interval: 1000}, Hosts: []model.Host{{Name: "a"}}})
	ok(t, err)
	t.Cleanup(func() { _ = w.Close() })
	ok(t, w.Update(func(r *model.Run) { r.Windows = []model.Window{{Name: model.Hold, Start: start}} }))
	cpu := &model.Signal{Name: "node_cpu_seconds_total", Kind: model.Counter, Labels: []string{"cpu", "mode"}}
	for i := range int64(6) {
		w.Sample("a", start+i*1000, cpu, float64(i), "0", "idle")
		ok(t, w.Commit())
	}
}

// Each line that is asked is answered by one, also before there is anything to judge, and wherever the run is. The process ends when
// nobody can ask any more.
func TestARunIsJudgedWhileItLasts(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"run", "-x"} {
		judge := tellerOf(t, "plimsoll", dir)
		s, err := judge.now()
		ok(t, err)
		if s.Failed == "" || s.Sentence != "" {
			t.Errorf("%s: of no run: %+v", dir, s)
		}
		beginRun(t, dir)
		for range 2 {
			s, err := judge.now()
			ok(t, err)
			if s.Failed != "" || s.Answer == "" || s.Sentence == "" || s.CPU <= 0 {
				t.Errorf("%s: of a run that lasts: %+v", dir, s)
			}
		}
		ok(t, judge.ask.Close())
		gone(t, judge)
		if judge.ended != nil {
			t.Errorf("%s: %v", dir, judge.ended)
		}
	}
}

// While the log is read the recorder may wait, so one thread is in the normal class; all others give way at once, and those
// that are started while it judges.
func TestTheJudgeOfARunThatLastsGivesWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	beginRun(t, dir)
	judge := tellerOf(t, "plimsoll-giving-way", dir)
	waitUntilItGivesWay(t, judge)
	answered := make(chan error, 1)
	go func() {
		_, err := judge.now()
		answered <- err
	}()
	select {
	case err := <-answered:
		ok(t, err)
	case <-time.After(time.Second): // where no CPU is free it takes long
	}
	if normal, idle, others := policies(t, judge.cmd.Process.Pid); normal != 1 || idle == 0 || others > 0 {
		t.Errorf("of a process that judges %d threads are in the normal class, %d in the idle class, %d in others; want one in the normal class", normal, idle, others)
	}
}

func waitUntilItGivesWay(t *testing.T, judge *teller) {
	t.Helper()
	for {
		normal, idle, others := policies(t, judge.cmd.Process.Pid)
		if normal == 1 && idle > 0 && others == 0 {
			return
		}
		select {
		case <-judge.gone:
			t.Fatalf("it ended: %v", judge.ended)
		case <-time.After(10 * time.Millisecond): // it has just begun
		}
	}
}

// policies counts the threads of a process by their class.
func policies(t *testing.T, pid int) (normal, idle, others int) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	ok(t, err)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		ok(t, err)
		attr, err := unix.SchedGetAttr(tid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		ok(t, err)
		switch attr.Policy {
		case unix.SCHED_NORMAL:
			normal++
		case unix.SCHED_IDLE:
			idle++
		default:
			others++
		}
	}
	return normal, idle, others
}

// Who asked and is gone is not judged for: what is being judged then may take long in the idle class.
func TestWhoJudgesEndsWithWhoAsks(t *testing.T) {
	asks := make(chan struct{})
	close(asks)
	l := lastingRun{files: make(chan func())}
	ok(t, l.readFiles(asks, nil))
	broken := errors.New("nobody reads")
	answered := make(chan error, 1)
	answered <- broken
	if err := l.readFiles(nil, answered); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

// What is not found any more is told, and why; a process that fails for good is ended, for it keeps what it has read.
func TestThatARunIsNotJudgedAnyMoreIsTold(t *testing.T) {
	t.Parallel() // it waits
	for what, c := range map[string]struct {
		before func(*teller) error
		want   string
	}{
		"a process that ended": {func(judge *teller) error { return judge.cmd.Process.Kill() }, "the process that judges ended: signal: killed"},
		"no run there":         {func(*teller) error { return nil }, "no run here"},
	} {
		judge := tellerOf(t, "plimsoll", t.TempDir())
		ok(t, c.before(judge))
		p := &playing{screen: &screen{}, run: lasting(t)}
		p.judge(t.Context(), judge)
		gone(t, judge)
		if got := p.verdict.text(time.Now()); p.verdict.said != nil || !strings.Contains(got, "not judged any more") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestAVerdictSoFarHasItsAge(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		ago  time.Duration
		said string
		lost string
		want string
	}{
		{want: "so far: not judged yet"},
		{lost: "killed", want: "not judged any more while it lasts (killed)"},
		{said: "A.", ago: 10 * time.Second, want: "so far: A."},
		{said: "A.", ago: 42 * time.Second, want: "so far, as of 42 s ago: A."},
		{said: "A.", ago: 42 * time.Second, lost: "killed", want: "not judged any more while it lasts (killed), as of 42 s ago: A."},
	} {
		v := verdictSoFar{at: now.Add(-c.ago), lost: c.lost}
		if c.said != "" {
			v.said = &soFar{Sentence: c.said}
		}
		if got := v.text(now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

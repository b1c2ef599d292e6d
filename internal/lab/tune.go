package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// TuneResult is what came of tuning a case and taking it back.
type TuneResult struct {
	Case string `json:"case"`
	// Came is what tune came to, "" where a walk failed.
	Came TuneCame `json:"came"`
	// Why says of a case that was skipped why.
	Why    string       `json:"why,omitempty"`
	Tuning model.Tuning `json:"tuning"`
	// Different is what was not as before after everything was taken back.
	Different []string `json:"different"`
	// Twin is what the case gives with all its mends, nil when that was not asked
	// for, or the load is not Plimsoll's own.
	Twin *model.TuneLoad `json:"twin"`
	Pass bool            `json:"pass"`
	// Wrong are the sentences that say why Pass is false.
	Wrong []string `json:"wrong"`
}

// TuneCame is what tune came to.
type TuneCame string

// What tune may come to.
const (
	TuneFixed   TuneCame = "fixed"      // nothing holds the load back any more
	TunePerson  TuneCame = "a person's" // what is left is a person's to decide, and tune says so
	TuneSkipped TuneCame = "skipped"    // nobody drives a load that tune could repeat
)

// settle is how long a service may take to be again what it was, once its old
// configuration is back: old workers end when their last request is done.
const settle = 10 * time.Second

// near is how far behind the mended case a tuned one may stay. Each is measured once, minutes
// apart: five loads in a row of one state differed by 7 %, and two such by up to 14 %.
const near = 0.8

// Tune brings a case up, has the binary tune it, takes back what that changed,
// and compares the hosts' state with the one before. With twin the case is then
// run with all its mends, to see how far tuning came.
func (l *Lab) Tune(ctx context.Context, id string, opt Options, twin bool, show io.Writer) (*TuneResult, error) {
	c, err := l.tuneable(id, opt)
	if err != nil {
		return nil, err
	}
	if c.Load.alone() {
		why := "its users come by themselves; tune needs a load that it can start, a URL or a tool"
		return &TuneResult{Case: c.ID, Came: TuneSkipped, Why: why, Pass: true, Wrong: []string{}, Different: []string{}}, nil
	}
	unlock, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer unlock()
	res, err := l.tuneCase(ctx, c, opt, show)
	if err != nil || !twin || c.Load.URL == "" {
		return res, err
	}
	for _, m := range c.Mends {
		opt.Mends = append(opt.Mends, m.ID)
	}
	mended, err := l.runCase(ctx, c, opt)
	if err != nil {
		return res, err
	}
	load := model.TuneLoadOf(mended.Report.Load)
	res.Twin = &load
	got, want := res.Tuning.End.GoodRPS, load.GoodRPS
	if res.Came == TuneFixed && got != nil && want != nil && *got < near**want {
		res.wrong("it came to %.0f good replies a second; the mended case gives %.0f", *got, *want)
	}
	return res, nil
}

// tuneable is a case, whose load is held as long as asked.
func (l *Lab) tuneable(id string, opt Options) (*Case, error) {
	c, err := l.Case(id)
	if err == nil && opt.Hold > 0 {
		c.Load.Duration = Duration(opt.Hold)
	}
	return c, err
}

func (r *TuneResult) wrong(format string, args ...any) {
	r.Pass, r.Wrong = false, append(r.Wrong, fmt.Sprintf(format, args...))
}

func (l *Lab) tuneCase(ctx context.Context, c *Case, opt Options, show io.Writer) (res *TuneResult, err error) {
	defer func() {
		if undone := l.undo(); undone != nil {
			err = errors.Join(err, undone)
		}
	}()
	t, err := l.bench(ctx, c, opt)
	if err != nil {
		return nil, err
	}
	res = &TuneResult{Case: c.ID, Pass: true, Wrong: []string{}, Different: []string{}}
	if res.Tuning, err = t.walk(ctx, show); err != nil {
		return nil, err
	}
	end, err := readJSON[model.Report](filepath.Join(res.Tuning.End.Dir, record.VerdictFile))
	if err != nil {
		return nil, err
	}
	res.judge(c.Truth, end.Verdict.Root)
	different, err := t.takeBack(ctx)
	for _, d := range different {
		res.Different = append(res.Different, d)
		res.wrong("after undo: %s", d)
	}
	return res, err
}

// judge holds what tune came to against the truth; roots are the causes that
// its last run named.
func (r *TuneResult) judge(t Truth, roots []model.Finding) {
	end := r.Tuning.End
	if t.Answer == model.AnswerCause && end.Answer != model.AnswerCause && !r.changed() {
		r.wrong("nothing was changed, and all the same the verdict is %s: %s", end.Answer, end.Sentence)
	}
	if t.Answer != model.AnswerCause {
		for _, s := range r.Tuning.Steps {
			if s.Fix != nil {
				r.wrong("step %d changed something (%s), though nothing is wrong", s.Number, s.Fix.Title)
			}
		}
	}
	if end.Answer != model.AnswerCause {
		r.Came = TuneFixed
		if !slices.Contains(append(t.Mended, model.AnswerHealthy, model.AnswerCapacity), end.Answer) {
			r.wrong("the verdict at the end is %s: %s", end.Answer, end.Sentence)
		}
		return
	}
	r.Came = TunePerson
	for i, f := range roots {
		switch {
		case i > 0 && f.Answer != model.Confirmed:
		case slices.Contains(t.Person, f.Rule):
		case !slices.Contains(t.roots(), f.Rule):
			r.wrong("at the end %s is named, and is not the truth", f.Rule)
		case automatic(f):
			r.wrong("at the end %s still holds it back, and has a fix that tune can make", f.Rule)
		}
	}
	if len(r.Tuning.Person) == 0 {
		r.wrong("tune stopped (%s), and says nothing of what a person has to decide", r.Tuning.Stopped)
	}
}

// changed says whether any step made a change.
func (r *TuneResult) changed() bool {
	return slices.ContainsFunc(r.Tuning.Steps, func(s model.TuneStep) bool { return s.Fix != nil })
}

// automatic says whether a finding has a fix that a program can make and take back.
func automatic(f model.Finding) bool {
	return slices.ContainsFunc(f.Fix, func(x model.Fix) bool { return x.Undo == "automatic" })
}

// tuneBench is a case that is up, and the state that it was in then.
type tuneBench struct {
	l      *Lab
	c      *Case
	opt    Options
	values values
	before snapshot
	args   []string
	// dir is for the runs, journal for the changes: not those of the machine's own use.
	dir, journal string
	far          *elsewhere // the server is a machine of its own; nil: it is here
}

func (l *Lab) bench(ctx context.Context, c *Case, opt Options) (*tuneBench, error) {
	v, err := l.up(ctx, c, opt.Mends)
	if err != nil {
		return nil, err
	}
	if err := l.arm(ctx, c, v); err != nil {
		return nil, err
	}
	t := &tuneBench{l: l, c: c, opt: opt, values: v, dir: runDir(), journal: filepath.Join(v["dir"], "journal")}
	if err := os.MkdirAll(t.journal, 0o700); err != nil {
		return nil, fmt.Errorf("journal of the case: %w", err)
	}
	flags, server := append([]string{"--apply", "--journal", t.journal, "--dir", t.dir}, opt.Args...), "netns:"+l.netns("server")
	if opt.SSH {
		if t.far, err = l.elsewhere(ctx, v); err != nil {
			return nil, err
		}
		server, t.journal = overSSH, t.far.journal
	}
	if t.args, err = c.Load.tuneArgs(v, server, flags...); err != nil {
		return nil, err
	}
	t.before, err = t.atRest(ctx)
	return t, err
}

// atRest is what two looks found alike: a worker that has just been forked, and has no CPU yet, has not set its limits.
func (t *tuneBench) atRest(ctx context.Context) (snapshot, error) {
	until := time.Now().Add(settle)
	var last snapshot
	for {
		now, err := t.l.snapshot(ctx, t.c, t.values["dir"])
		if err != nil || last != nil && len(last.diff(now)) == 0 || time.Now().After(until) {
			return now, err
		}
		last = now
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func runDir() string {
	return filepath.Join("plimsoll-runs", fmt.Sprintf("tune-%s-%04x", time.Now().UTC().Format("20060102T150405Z"), rand.N(1<<16)))
}

// command is the binary on the client, ready to be started.
func (t *tuneBench) command(show io.Writer, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", t.l.netns("client"), t.opt.Binary}, args...)...)
	cmd.Stdout, cmd.Stderr = show, t.opt.Talk
	if t.far != nil {
		cmd.Env = t.far.first(cmd.Environ())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// walk tunes, and returns what came of it.
func (t *tuneBench) walk(ctx context.Context, show io.Writer) (model.Tuning, error) {
	ran := t.drive(ctx, show, t.args...)
	got, err := readJSON[model.Tuning](filepath.Join(t.tuneDir(), "tuning.json"))
	if ran = ended(ran, got); ran != nil {
		return got, ran
	}
	return got, err
}

// ended says of the end of a tune whether it is an error here: that nothing of the load
// succeeded at last is its exit code 1, and may be a case's truth.
func ended(ran error, got model.Tuning) error {
	var exit *exec.ExitError
	if errors.As(ran, &exit) && exit.ExitCode() == 1 && got.End.Failed() {
		return nil
	}
	return ran
}

// drive runs the binary on the client to its end; ^C reaches it as it reaches us.
func (t *tuneBench) drive(ctx context.Context, show io.Writer, args ...string) error {
	runtime.LockOSThread() // the child gets its signal when its parent thread ends
	defer runtime.UnlockOSThread()
	cmd := t.command(show, args...)
	var said bytes.Buffer
	if cmd.Stderr == nil { // nobody listens, but why it failed must not be lost
		cmd.Stderr = &said
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", t.opt.Binary, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGINT) })
	defer stop()
	if err := cmd.Wait(); err != nil {
		failed := fmt.Errorf("plimsoll %s: %w", args[0], err)
		if said.Len() > 0 {
			failed = fmt.Errorf("%w; it said: %s", failed, lastLines(said.String(), 5))
		}
		return errors.Join(ctx.Err(), failed)
	}
	return ctx.Err()
}

// different lists what is not as it was before, once the services have settled.
func (t *tuneBench) different(ctx context.Context) ([]string, error) {
	until := time.Now().Add(settle)
	for {
		now, err := t.l.snapshot(ctx, t.c, t.values["dir"])
		if err != nil {
			return nil, err
		}
		list := t.before.diff(now)
		if len(list) == 0 || time.Now().After(until) {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// readJSON reads a file that the binary wrote.
func readJSON[T any](path string) (doc T, err error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		return doc, fmt.Errorf("read what tune did: %s: %w", path, err)
	}
	return doc, nil
}

// KillResult is what was left of one tune that was killed.
type KillResult struct {
	After time.Duration `json:"after_ns"`
	// Begun is how many changes its journal had by then.
	Begun int      `json:"changes_begun"`
	Wrong []string `json:"wrong"`
}

// Kill has a case tuned so many times and kills each tune at a random moment;
// each time undo has to bring the hosts back to the state before. The case stays
// up all the while, so whatever is left behind shows up in the next comparison.
// A first tune, which show is told of, is left alone: it tells when changes are made.
// Cancelled, it returns what there is, and the context's error.
func (l *Lab) Kill(ctx context.Context, id string, opt Options, times int, seed uint64, show io.Writer, each func(int, KillResult)) (results []KillResult, err error) {
	c, err := l.tuneable(id, opt)
	if err != nil {
		return nil, err
	}
	unlock, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() {
		if ctx.Err() != nil { // whatever else failed then, failed of that
			err = ctx.Err()
		}
		if undone := l.undo(); undone != nil {
			err = errors.Join(err, undone)
		}
	}()
	t, err := l.bench(ctx, c, opt)
	if err != nil {
		return nil, err
	}
	base := t.dir
	defer os.RemoveAll(base)
	moments, err := t.pattern(ctx, base, show)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, seed))
	for i := range times {
		t.setDir(filepath.Join(base, fmt.Sprint(i+1)))
		r, err := t.kill(ctx, moments.draw(random))
		if err != nil {
			return results, err
		}
		results = append(results, r)
		each(i+1, r)
	}
	return results, nil
}

// moments are what a tune that nobody kills does: how long it takes, and how many
// changes it makes.
type moments struct {
	end     time.Duration
	changes int
}

// moment is so long after the journal has so many changes; 0 is the start.
type moment struct {
	changes int
	after   time.Duration
}

// making is how long a change may take, reloads included.
const making = 300 * time.Millisecond

// draw is a moment to kill at: every other one anywhere in the tune, since
// anything may be going on then; the others while a change is made, since that is
// short and seldom, and no two tunes keep the same time.
func (m moments) draw(random *rand.Rand) moment {
	if random.IntN(2) == 0 {
		return moment{0, time.Duration(random.Int64N(int64(m.end)))}
	}
	return moment{1 + random.IntN(m.changes), time.Duration(random.Int64N(int64(making)))}
}

// pattern tunes the case once to its end and undoes that, to see when the
// changes are made.
func (t *tuneBench) pattern(ctx context.Context, base string, show io.Writer) (moments, error) {
	t.setDir(filepath.Join(base, "pattern"))
	begin := time.Now()
	if _, err := t.walk(ctx, show); err != nil {
		return moments{}, err
	}
	m := moments{end: time.Since(begin)}
	entries, err := t.changes()
	if err != nil {
		return m, err
	}
	m.changes = len(entries)
	if len(entries) == 0 {
		return m, fmt.Errorf("a tune of %s with runs as short as these changes nothing, so there is nothing to interrupt; make them longer (-d)", t.c.ID)
	}
	wrong, err := t.takeBack(ctx)
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("after a tune that nobody killed: %s", strings.Join(wrong, "; "))
	}
	return m, err
}

// setDir says where the next tune keeps its runs.
func (t *tuneBench) setDir(dir string) { t.args[slices.Index(t.args, "--dir")+1] = dir }

// tuneDir is where the next tune keeps its runs.
func (t *tuneBench) tuneDir() string { return t.args[slices.Index(t.args, "--dir")+1] }

// changes are the files of the journal.
func (t *tuneBench) changes() ([]string, error) {
	return filepath.Glob(filepath.Join(t.journal, "[0-9]*.json"))
}

// takeBack undoes what stands and says what is not as it was; the journal is
// empty afterwards.
func (t *tuneBench) takeBack(ctx context.Context) (wrong []string, err error) {
	if err := t.undo(ctx); err != nil {
		wrong = append(wrong, err.Error())
	}
	different, err := t.different(ctx)
	return append(wrong, different...), errors.Join(err, os.RemoveAll(t.journal), os.MkdirAll(t.journal, 0o700))
}

// undo has the binary take back what stands. On another machine the process whose way here was cut may
// be at that still: then the journal is held, and undo says so.
func (t *tuneBench) undo(ctx context.Context) error {
	if t.far == nil {
		return t.drive(ctx, nil, "undo", "--all", "--journal", t.journal)
	}
	for until := time.Now().Add(settle); ; {
		err := t.drive(ctx, nil, "undo", "--all", "--host", "server="+overSSH)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != isHeld || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (t *tuneBench) kill(ctx context.Context, when moment) (KillResult, error) {
	r := KillResult{Wrong: []string{}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	cmd := t.command(nil, t.args...)
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start %s: %w", t.opt.Binary, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed, so this is an error in any case
		close(ended)
	}()
	t.await(ctx, when, ended)
	_ = cmd.Process.Kill() // it may have ended by itself
	<-ended
	r.After = time.Since(begin)
	begun, err := t.changes()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return r, err
	}
	r.Begun = len(begun)
	wrong, err := t.takeBack(ctx)
	r.Wrong = append(r.Wrong, wrong...)
	return r, errors.Join(err, ctx.Err()) // an undo that was interrupted proves nothing
}

// await waits for a moment of a tune, or its end.
func (t *tuneBench) await(ctx context.Context, when moment, ended <-chan struct{}) {
	const poll = time.Millisecond
	over := func(d time.Duration) bool {
		select {
		case <-ended:
			return true
		case <-ctx.Done():
			return true
		case <-time.After(d):
			return false
		}
	}
	for {
		begun, err := t.changes()
		if err != nil || len(begun) >= when.changes {
			over(when.after)
			return
		}
		if over(poll) {
			return
		}
	}
}

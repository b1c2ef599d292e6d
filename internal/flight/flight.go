// Package flight keeps the last minutes of a watch that stays on disk, in a ring, and makes runs of them: when
// somebody asks for one, when a cause is found, and of what a killed process left.
package flight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

const (
	// mostBytes is what a ring takes on disk, about. What it holds then can be read into memory.
	mostBytes = 256 << 20
	// judgeEvery is the shortest time between two verdicts, and judgedLast what each is about.
	judgeEvery = time.Minute
	judgedLast = time.Minute
	// costs is how many times as long as a verdict took in CPU time none is made: it takes a two-hundredth of a core.
	costs = 199
	// apart is the least time between two runs that are made by themselves.
	apart = time.Hour
	// burstTime is for how long all tracers watch before a run is made.
	burstTime = 10 * time.Second
	// again is how long after an error a ring is opened anew.
	again = time.Minute
)

// The reasons for which a run is made.
const (
	whyAsked  = "asked"
	whyCause  = "cause"
	whyKilled = "killed"
)

// Judgement is a verdict in short, and what it took.
type Judgement struct {
	Answer   model.Answer
	Sentence string
	Rules    []string
	CPU      time.Duration
}

// Options are those of a recorder.
type Options struct {
	// Dir is the ring's, and Keep how far it goes back.
	Dir  string
	Keep time.Duration
	// Run is the manifest of what is recorded, but for its hosts.
	Run model.Run
	// NewRun names the directory of a run that is to be made; Made lists those that were made so, of which there may be Most.
	// Whole are those of them that are closed: others are still being made, by whomever, or were cut off.
	NewRun func() string
	Made   func() ([]string, error)
	Whole  func() ([]string, error)
	Most   int
	// Judge judges the last part of what lies in a directory, 0 for all of it; Keep leaves the verdict there.
	Judge func(ctx context.Context, dir string, last time.Duration) (Judgement, error)
	// Finish closes what lies in a directory, by a process of its own: what that takes is not the watch's.
	Finish func(ctx context.Context, dir string) error
	// Upload, if set, puts a run elsewhere as well, and says where; what is there already it leaves alone.
	Upload func(ctx context.Context, dir string) (address string, err error)
	// Webhook is told of each run, "" for nobody.
	Webhook string
	// Every is the shortest time between two verdicts, 0 for a minute.
	Every time.Duration
	Note  func(sentence string)
}

// Recorder is a flight recorder: the Log of a collector, which waits for nothing but the disk.
type Recorder struct {
	opt     Options
	ring    atomic.Pointer[writer.Ring] // nil where it cannot record
	hosts   []model.Host
	asks    chan chan made
	hook    chan announcement
	fresh   chan struct{} // a run was made
	making  sync.Mutex    // held while one is made
	waiting atomic.Int64  // those that are still to be uploaded
	numbers *numbers
	causes  string    // the rules of the last verdict that was a cause, "" of another
	newest  time.Time // when a run was made by itself
	socket  *net.UnixListener
}

// made is a run that was made, or why it was not.
type made struct {
	Dir string `json:"dir,omitempty"`
	Err string `json:"error,omitempty"`
}

// DirError says that the last minutes cannot be kept where they were to be.
type DirError struct{ Err error }

func (e DirError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e DirError) Unwrap() error { return e.Err }

// New makes a recorder; nothing is recorded before Open.
func New(opt Options) *Recorder {
	opt.Every = cmp.Or(opt.Every, judgeEvery)
	f := &Recorder{opt: opt, asks: make(chan chan made), hook: make(chan announcement, 1), fresh: make(chan struct{}, 1)}
	f.numbers = newNumbers(f)
	return f
}

// Open begins to record these hosts. What a process that was killed left becomes a run first.
func (f *Recorder) Open(hosts []collect.Host) error {
	for _, h := range hosts {
		f.hosts = append(f.hosts, h.Host)
	}
	if err := f.open(); err != nil {
		return DirError{err}
	}
	return nil
}

func (f *Recorder) open() error {
	run := f.opt.Run
	run.Hosts, run.Started = f.hosts, time.Now().UnixMilli()
	r, err := writer.OpenRing(f.opt.Dir, run, f.opt.Keep, mostBytes, f.rescue)
	if err != nil {
		return err
	}
	if f.socket != nil { // that of the ring before
		_ = f.socket.Close()
	}
	f.socket, err = listen(r.Path())
	f.ring.Store(r) // from now on it may be given up, and the socket goes with it
	if err != nil {
		f.opt.Note(fmt.Sprintf("nobody can ask for a run of %s: %v", f.opt.Dir, err))
		return nil
	}
	go f.answer(f.socket)
	return nil
}

// rescue makes a run of what was left behind. That it cannot stops nothing.
func (f *Recorder) rescue(ring string) error {
	if err := f.room(); err != nil {
		f.numbers.skipped.WithLabelValues("all").Inc()
		f.opt.Note(fmt.Sprintf("what an earlier watch left in %s is dropped: %v", ring, err))
		return nil
	}
	dir, some := f.opt.NewRun(), false
	err := writer.Rescue(ring, dir, func(run *model.Run) bool {
		some = true
		run.Plan.Snapshot = whyKilled
		run.Notes = append(run.Notes, "the watch that recorded this was killed, or the machine went down; this is what it had kept until then")
		return true
	}, func(dir string) error { return f.opt.Finish(context.Background(), dir) })
	err = f.isCutOff(dir, err)
	switch {
	case err != nil:
		f.numbers.skipped.WithLabelValues("failed").Inc()
		f.opt.Note(fmt.Sprintf("what an earlier watch left in %s cannot be kept: %v", ring, err))
	case some:
		f.tell(dir, whyKilled, Judgement{})
	}
	return nil
}

// room says why there is none for one more run.
func (f *Recorder) room() error {
	list, err := f.opt.Made()
	if err == nil && len(list) >= f.opt.Most {
		err = fmt.Errorf("%d runs that were made so are there, and at most %d may be; plimsoll runs rm removes them", len(list), f.opt.Most)
	}
	return err
}

// Run makes runs until ctx ends, and then ends recording. burst has all tracers watch for a while.
func (f *Recorder) Run(ctx context.Context, burst func(context.Context, time.Duration) error) error {
	defer f.end()
	go f.announce(ctx)
	if f.opt.Upload != nil {
		go f.upload(ctx)
	}
	next := time.NewTimer(f.opt.Every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case reply := <-f.asks:
			reply <- f.asked(ctx, burst)
		case <-next.C:
			next.Reset(f.turn(ctx, burst))
		}
	}
}

// end ends recording. What was kept is of no use to anybody: who wants it asks before.
func (f *Recorder) end() {
	if f.socket != nil {
		_ = f.socket.Close()
	}
	if r := f.ring.Swap(nil); r != nil {
		_ = r.Discard() // what is left is taken for what a killed process left
	}
}

// asked makes a run since somebody asks for one.
func (f *Recorder) asked(ctx context.Context, burst func(context.Context, time.Duration) error) made {
	dir, err := f.make(ctx, whyAsked, 0, burst)
	if err != nil {
		return made{Err: err.Error()}
	}
	f.tell(dir, whyAsked, Judgement{})
	return made{Dir: dir}
}

// turn judges the last minute, makes a run where it has become a cause, and returns when to do so again.
func (f *Recorder) turn(ctx context.Context, burst func(context.Context, time.Duration) error) time.Duration {
	if f.ring.Load() == nil {
		if err := f.open(); err != nil {
			f.opt.Note(err.Error())
		}
		return again
	}
	j, err := f.opt.Judge(ctx, f.opt.Dir, judgedLast)
	if err != nil {
		if ctx.Err() == nil {
			f.opt.Note(fmt.Sprintf("judge the last minute: %v", err))
		}
		return max(f.opt.Every, costs*j.CPU)
	}
	f.numbers.verdicts.WithLabelValues(string(j.Answer)).Inc()
	if f.becomes(j) {
		f.makeOf(ctx, j, burst)
	}
	return max(f.opt.Every, costs*j.CPU)
}

// becomes says whether a verdict is a cause that the one before was not.
func (f *Recorder) becomes(j Judgement) bool {
	causes := ""
	if j.Answer == model.AnswerCause {
		causes = strings.Join(slices.Sorted(slices.Values(j.Rules)), " ")
	}
	was := f.causes
	f.causes = causes
	return causes != "" && causes != was
}

// makeOf makes a run of a cause, where there may be one more.
func (f *Recorder) makeOf(ctx context.Context, j Judgement, burst func(context.Context, time.Duration) error) {
	if !f.newest.IsZero() && time.Since(f.newest) < apart {
		f.numbers.skipped.WithLabelValues("hour").Inc()
		return
	}
	dir, err := f.make(ctx, whyCause, judgedLast+burstTime, burst)
	if err != nil {
		f.opt.Note(fmt.Sprintf("keep the last minutes of a cause (%s): %v", j.Sentence, err))
		return
	}
	f.newest = time.Now()
	f.tell(dir, whyCause, j)
}

// make makes a run of what is kept and of a burst. Its main window is the last part of it, 0 for all.
func (f *Recorder) make(ctx context.Context, why string, last time.Duration, burst func(context.Context, time.Duration) error) (string, error) {
	if err := f.room(); err != nil {
		f.numbers.skipped.WithLabelValues("all").Inc()
		return "", err
	}
	ring := f.ring.Load()
	if ring == nil {
		return "", errors.New("nothing is recorded: the disk is full, or cannot be written; the watch's own messages say why")
	}
	watched := fmt.Sprintf("the dear tracers watched in the last %v alone", burstTime)
	if err := burst(ctx, burstTime); err != nil {
		watched = fmt.Sprintf("the dear tracers did not watch: %v", err)
	}
	f.making.Lock()
	defer f.making.Unlock()
	dir := f.opt.NewRun()
	err := ring.CopyTo(dir, func(run *model.Run) {
		run.Plan.Snapshot = why
		w := &run.Windows[0]
		if last > 0 {
			w.Start = max(w.Start, w.End-last.Milliseconds())
		}
		run.Notes = append(run.Notes, watched)
	}, func(dir string) error { return f.opt.Finish(context.WithoutCancel(ctx), dir) }) // one that is begun is waited for
	if err := f.isCutOff(dir, err); err != nil {
		f.numbers.skipped.WithLabelValues("failed").Inc()
		return "", err
	}
	if _, err := f.opt.Judge(ctx, dir, 0); err != nil {
		f.opt.Note(fmt.Sprintf("judge %s: %v", dir, err))
	}
	return dir, nil
}

// isCutOff tells of a run that was made and could not be closed, which is no error, and returns any other one.
func (f *Recorder) isCutOff(dir string, err error) error {
	var cut writer.CutOff
	if !errors.As(err, &cut) {
		return err
	}
	f.opt.Note(layout.Line(fmt.Sprintf("%s: %v", dir, cut)))
	return nil
}

// tell says that a run was made.
func (f *Recorder) tell(dir, why string, j Judgement) {
	f.numbers.made.WithLabelValues(why).Inc()
	f.opt.Note("made a run of the last minutes: " + layout.Line(dir))
	select {
	case f.fresh <- struct{}{}:
	default: // all that is there is looked at
	}
	if f.opt.Webhook == "" {
		return
	}
	select {
	case f.hook <- f.announcement(dir, why, j):
	default:
		f.numbers.unheard.Inc()
	}
}

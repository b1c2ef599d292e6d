package far

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"plimsoll/internal/change"
)

// Journal is the journal of another machine, in which changes are made and noted there.
// Its entries hold nothing by which they could be taken back from here. It is safe for
// concurrent use.
type Journal struct {
	// Standing is how many changes of an earlier time stand there; Skipped says what in
	// that journal is no entry.
	Standing int
	Skipped  []string
	// Door, if set, is whether the machine lets us in anew: what is changed there may cut our way in, and the
	// connection that there is would not show it.
	Door func(context.Context) error

	via  string
	pipe io.ReadWriteCloser
	stop chan struct{}
	ping sync.WaitGroup

	mu   sync.Mutex
	in   *bufio.Scanner
	err  error // why nothing is heard any more
	made bool  // something was changed
}

// Open greets the process at the far end of a pipe; via is what the user calls the way
// there. With changes it takes the journal there, and the machine's lock. Close closes
// the pipe, also when Open fails.
func Open(pipe io.ReadWriteCloser, via string, changes bool) (*Journal, error) {
	j := &Journal{via: via, pipe: pipe, stop: make(chan struct{}), in: bufio.NewScanner(pipe)}
	j.in.Buffer(make([]byte, 4096), maxLine)
	a, err := j.ask(question{Do: doHello, Protocol: protocol, Journal: changes})
	if err == nil && a.Protocol != protocol {
		err = fmt.Errorf("%s: %w", via, errVersion(a.Protocol))
	}
	if err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	j.Standing, j.Skipped = a.Standing, a.Skipped
	j.ping.Go(j.keepUp)
	return j, nil
}

// keepUp says something now and then, so that the other end knows that we are there.
func (j *Journal) keepUp() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-tick.C:
			_, _ = j.ask(question{Do: doPing})
		}
	}
}

// ask asks one question. A pipe on which no answer comes is of no use any more.
func (j *Journal) ask(q question) (a answer, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return a, j.err
	}
	cut := func(why error) (answer, error) {
		j.err = fmt.Errorf("%s: the way there is cut (%w); what was changed there is taken back there, or stands in its journal: plimsoll undo --host there=%[1]s --all", j.via, why)
		return answer{}, j.err
	}
	late := time.AfterFunc(patienceFor(q.Do), func() { _ = j.pipe.Close() })
	defer late.Stop()
	b, err := json.Marshal(q)
	if err == nil {
		_, err = j.pipe.Write(append(b, '\n'))
	}
	if err != nil {
		return cut(err)
	}
	if !j.in.Scan() {
		err := j.in.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return cut(err)
	}
	if err := json.Unmarshal(j.in.Bytes(), &a); err != nil {
		return cut(fmt.Errorf("no answer of Plimsoll's: %w", err))
	}
	if err := a.err(); err != nil {
		return a, fmt.Errorf("%s: %w", j.via, err)
	}
	return a, nil
}

// Prepare looks at a change there and makes nothing.
func (j *Journal) Prepare(host, spec string, c change.Change) (change.Step, error) {
	a, err := j.ask(question{Do: doPrepare, Host: host, Spec: spec, Change: c})
	if err == nil && a.Step == nil {
		err = fmt.Errorf("%s: it says nothing of %s", j.via, c)
	}
	if err != nil {
		return change.Step{}, err
	}
	step := *a.Step
	step.Change, step.Host, step.Spec = c, host, spec
	return step, nil
}

// ErrShut is of a change with which the machine lets nobody in that it let in before.
var ErrShut = errors.New("nobody is let in with it")

// Apply makes a change there, if it still is what Prepare showed; see change.Journal.Apply. One that shuts
// the door is ErrShut, and stands: to be taken back while the connection that there is still carries that. Where it
// does not, the other end hears nothing, and takes it back by itself.
func (j *Journal) Apply(ctx context.Context, s change.Step) (change.Entry, error) {
	if j.Door == nil {
		return j.apply(s)
	}
	before := j.Door(ctx)
	if ctx.Err() != nil { // the door takes seconds, and a ^C meanwhile comes before the change
		return change.Entry{}, fmt.Errorf("%s: %s: it was not made: %w", j.via, s.Change, ctx.Err())
	}
	e, err := j.apply(s)
	if err != nil || before != nil {
		return e, err // who is not let in before the change learns nothing from the door
	}
	shut := j.Door(ctx)
	if shut == nil || ctx.Err() != nil {
		return e, nil
	}
	if _, err := j.ask(question{Do: doPing}); err != nil {
		return e, err
	}
	return e, fmt.Errorf("%s: %s: %w (%w), so it is taken back", j.via, s.Change, ErrShut, shut)
}

func (j *Journal) apply(s change.Step) (change.Entry, error) {
	j.made = true
	a, err := j.ask(question{Do: doApply, Host: s.Host, Spec: s.Spec, Change: s.Change, Old: s.Old, New: s.New})
	if a.Entry == nil && err == nil {
		err = fmt.Errorf("%s: it does not say what became of %s", j.via, s.Change)
	}
	if a.Entry == nil {
		return change.Entry{}, err
	}
	return *a.Entry, err
}

// LeaveOut is change.Journal.LeaveOut there.
func (j *Journal) LeaveOut(_ context.Context, id int) (map[int]change.Entry, error) {
	a, err := j.ask(question{Do: doLeaveOut, ID: id})
	return a.Again, err
}

// Undo takes these changes back there.
func (j *Journal) Undo(ids []int) error {
	_, err := j.ask(question{Do: doUndo, IDs: ids})
	return err
}

// Close has what was made stay, and ends the process there.
func (j *Journal) Close() error {
	close(j.stop)
	j.ping.Wait()
	var err error
	if j.made {
		_, err = j.ask(question{Do: doKeep})
	}
	return errors.Join(err, j.pipe.Close())
}

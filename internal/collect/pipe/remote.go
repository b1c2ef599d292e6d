package pipe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// How long is waited for the other end of a pipe: for what it answers at once, for a
// round, to open and start and end, and until a silent one is given up.
const (
	soon      = time.Second
	roundTime = 5 * time.Second
	longTime  = time.Minute
	// silence is longer than networks mostly stay away: what is read meanwhile waits in the outbox.
	silence    = 2 * time.Minute
	pingEvery  = 5 * time.Second
	timesAsked = 8 // to measure a clock first
)

// errSilent is of a pipe on which nothing comes.
var errSilent = fmt.Errorf("nothing was heard for %v", silence)

// DialError says that there is no collector at the far end of a pipe, or none that
// understands us.
type DialError struct {
	Via string
	Err error
}

func (e DialError) Error() string { return fmt.Sprintf("collector %s: %v", e.Via, e.Err) }

// Unwrap gives the cause.
func (e DialError) Unwrap() error { return e.Err }

// Remote is a collector in another process, at the far end of a pipe. A pipe that
// stalls, or is cut, ends no run: what that cost is said in notes and statuses. Its
// methods are called from one goroutine.
type Remote struct {
	via   string
	pipe  io.ReadWriteCloser
	out   *outbox
	now   func() time.Time
	asked collect.Config
	hosts []collect.Host
	here  string
	ended chan struct{} // closed when nothing comes any more
	pings sync.WaitGroup

	mu      sync.Mutex
	waiting map[int64]func(answer)
	ids     int64
	recv    *receiver // nil before Start
	version string
	clock   clock.Book
	cost    collect.Cost
	closing bool
	why     error // why it ended
}

// Dial greets the collector at the far end of a pipe, and measures its clock. via is
// what the user calls the way there; now is the run's clock. The pipe is closed by
// Close, also when Dial fails.
func Dial(pipe io.ReadWriteCloser, via string, now func() time.Time) (*Remote, error) {
	r := &Remote{via: via, pipe: pipe, out: newOutbox(pipe, roomForRecords), now: now, ended: make(chan struct{}),
		waiting: map[int64]func(answer){}}
	go r.listen()
	if err := r.greet(); err != nil {
		if closed := r.hangUp(); r.why == nil {
			err = errors.Join(err, closed)
		}
		return nil, DialError{via, err}
	}
	r.pings.Go(r.ping)
	return r, nil
}

func (r *Remote) greet() error {
	for range timesAsked {
		a, err := r.ask(hello, longTime)
		if a.Protocol != 0 && a.Protocol != protocol {
			err = errVersion("the collector ("+short(a.Version)+")", a.Protocol, "this Plimsoll", protocol)
		}
		if err != nil {
			return err
		}
		r.version = short(a.Version)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock.Settle(r.now())
	return nil
}

var hello = command{Do: doHello, Protocol: protocol}

// ping keeps a pipe on which there is nothing to say from being taken for one that is
// cut, at both ends.
func (r *Remote) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ended:
			return
		case <-tick.C:
			r.send(hello, func(answer) {})
		}
	}
}

// Open has the collector open its hosts.
func (r *Remote) Open(c collect.Config) error {
	a, err := r.ask(command{Do: doOpen, Config: &c}, longTime)
	if err != nil {
		return err
	}
	if len(a.Hosts) < len(c.Hosts) || len(a.Hosts) > len(c.Hosts)+1 {
		return DialError{r.via, fmt.Errorf("asked to observe %d hosts, it names %d", len(c.Hosts), len(a.Hosts))}
	}
	for i, h := range a.Hosts {
		if i < len(c.Hosts) && h.Name != c.Hosts[i].Name || i == len(c.Hosts) && h.Name != c.Here {
			return DialError{r.via, fmt.Errorf("it names a host %q that it was not asked to observe", short(h.Name))}
		}
	}
	r.asked, r.hosts, r.here = c, a.Hosts, a.Here
	return nil
}

// Hosts are those that it observes.
func (r *Remote) Hosts() []collect.Host { return r.hosts }

// Here is the name of the host on which the collector runs, "" if it was not asked for.
func (r *Remote) Here() string { return r.here }

// Start has it begin to observe; what it records goes to log.
func (r *Remote) Start(_ context.Context, log collect.Log) error {
	var names []string
	for _, h := range r.hosts {
		names = append(names, h.Name)
	}
	r.mu.Lock()
	r.recv = newReceiver(log, r.now, names, r.clock.Ahead())
	r.recv.capture = r.asked.Packets != ""
	r.mu.Unlock()
	_, err := r.ask(command{Do: doStart}, longTime)
	return err
}

// Settle is Local's. Where no answer comes soon it is as if there had been one: the
// edge is late then.
func (r *Remote) Settle() time.Time {
	a, err := r.ask(command{Do: doSettle}, soon)
	if err != nil {
		return time.Time{}
	}
	at := time.UnixMilli(a.Time).Add(-r.ahead())
	if latest := r.now().Add(soon); at.After(latest) { // all hosts' windows begin after it, and none tells what it has yet to record
		return latest
	}
	return at
}

func (r *Remote) ahead() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Ahead()
}

// Edge is Local's, but for the round it waits some seconds only. One that was read
// late has the time at which it was, and is noted.
func (r *Remote) Edge(_ context.Context, e collect.Edge) (time.Time, error) {
	asked := e.Time.Add(r.ahead()).UnixMilli()
	at := e.Time
	_, err := r.askTo(command{Do: doEdge, Time: asked, Window: e.Window}, roundTime, func(a answer) {
		if a.Cost != nil {
			r.cost = *a.Cost
		}
		if a.Failure != nil {
			return
		}
		if late := time.Duration(a.Time-asked) * time.Millisecond; late != 0 {
			r.recv.log.Note(fmt.Sprintf("hosts %q were read %v late at the edge of %s: their collector heard of it so late",
				r.recv.names, late, edgeName(e)))
		}
		// All rounds before are recorded, so that none is told by two clocks.
		r.clock.Settle(r.now())
		r.recv.ahead = r.clock.Ahead()
	})
	var failed *failure
	if errors.As(err, &failed) {
		return at, fmt.Errorf("collector %s: %w", r.via, err)
	}
	return at, nil
}

func edgeName(e collect.Edge) string {
	if e.Window == "" {
		return "the end"
	}
	return e.Window
}

// Err is nil: that a pipe is cut ends no run.
func (r *Remote) Err() error { return nil }

// Cost is what its process has used, as of the last edge.
func (r *Remote) Cost() (collect.Cost, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cost, nil
}

// Ignore is Local's.
func (r *Remote) Ignore(pid int) error {
	_, err := r.ask(command{Do: doIgnore, PID: pid}, soon)
	return err
}

// Command is Local's.
func (r *Remote) Command(pid int) error {
	_, err := r.ask(command{Do: doCommand, PID: pid}, soon)
	return err
}

// About is what the manifest says of it.
func (r *Remote) About() model.Collector {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := model.Collector{Version: r.version, Clock: r.clock.Readings(), CPUSeconds: r.cost.CPUSeconds, MaxRSS: r.cost.MaxRSS}
	for _, h := range r.hosts {
		c.Hosts = append(c.Hosts, h.Name)
	}
	if r.recv != nil {
		c.Rounds, c.DroppedSamples = r.recv.round.Number, r.recv.dropped
	}
	if r.why != nil && !r.closing {
		c.Cut = r.why.Error()
	}
	return c
}

// Close ends observing; what the sources kept comes over the pipe first. Where it was
// cut there is nothing to wait for.
func (r *Remote) Close() error {
	if r.recv == nil {
		return r.hangUp()
	}
	_, err := r.askTo(command{Do: doClose}, silence, func(a answer) {
		if a.Cost != nil {
			r.cost = *a.Cost
		}
		if a.Dropped != nil {
			r.recv.drop(*a.Dropped, a.Said/1e6)
		}
		r.clock.Settle(r.now())
		r.closing = true
	})
	var failed *failure
	if !errors.As(err, &failed) {
		err = nil // that nobody answered is said in the run
	}
	hung := r.hangUp()
	if !r.closing {
		hung = nil // said in the run, too
	}
	return errors.Join(err, r.recv.err, hung)
}

// hangUp closes the pipe and waits until nothing comes any more.
func (r *Remote) hangUp() error {
	r.out.fail(io.ErrClosedPipe)
	err := r.pipe.Close()
	<-r.ended
	r.pings.Wait()
	return err
}

// ask sends a command and waits for its answer, so long at most.
func (r *Remote) ask(c command, most time.Duration) (answer, error) {
	return r.askTo(c, most, func(answer) {})
}

// askTo has do called with the answer as well, which may come after it has returned;
// r.mu is held then.
func (r *Remote) askTo(c command, most time.Duration, do func(answer)) (answer, error) {
	came := make(chan answer, 1)
	r.send(c, func(a answer) {
		do(a)
		came <- a
	})
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case a := <-came:
		return a, a.err()
	case <-r.ended:
		select {
		case a := <-came:
			return a, a.err()
		default:
			return answer{}, r.why
		}
	case <-timer.C:
		return answer{}, fmt.Errorf("%s: no answer within %v", c.Do, most)
	}
}

func (r *Remote) send(c command, do func(answer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= manyCommands/2 { // it is deaf; those before wait for it, too
		return
	}
	r.ids++
	c.ID = r.ids
	asked := r.now()
	r.waiting[c.ID] = func(a answer) {
		r.clock.Read(asked, r.now(), a.Heard, a.Said)
		do(a)
	}
	r.out.must(jsonFrame(isCommand, c))
}

// listen takes what comes, until nothing does.
func (r *Remote) listen() {
	defer close(r.ended)
	var silent error // r.mu
	given := time.AfterFunc(silence, func() {
		r.mu.Lock()
		silent = errSilent
		r.mu.Unlock()
		_ = r.pipe.Close() // so that reading it fails
	})
	defer given.Stop()
	in := bufio.NewReaderSize(r.pipe, valuesAtOnce)
	var buf []byte
	for {
		k, payload, err := readFrame(in, &buf)
		given.Reset(silence)
		r.mu.Lock()
		if err == nil {
			err = r.take(k, payload)
		}
		if err != nil && silent != nil {
			err = silent
		}
		if err != nil {
			r.why = err
			r.mu.Unlock()
			r.end()
			return
		}
		r.mu.Unlock()
	}
}

func (r *Remote) take(k kind, payload []byte) error {
	if k != isAnswer {
		if r.recv == nil {
			return fmt.Errorf("a frame of kind %q before it was asked to start", k)
		}
		return r.recv.take(k, payload)
	}
	a, err := parse[answer](payload)
	if err != nil {
		return fmt.Errorf("an answer: %w", err)
	}
	if do := r.waiting[a.ID]; do != nil {
		delete(r.waiting, a.ID)
		do(a)
	}
	return nil
}

// end says what was lost by the pipe's end, unless it was asked for.
func (r *Remote) end() {
	said := r.pipe.Close() // how its process ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == io.EOF {
		r.why = errors.New("it ended")
	}
	if said != nil {
		r.why = fmt.Errorf("%w (%w)", r.why, said)
	}
	if !r.closing && r.recv != nil {
		r.recv.cut(r.why)
	}
}

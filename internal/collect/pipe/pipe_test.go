package pipe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// book is a Log that keeps what it is told as lines, and finds what no recorder may be told.
type book struct {
	t testing.TB

	mu      sync.Mutex
	lines   []string
	samples int
	last    map[string]int64 // by series
	state   map[string]model.Status
}

func newBook(t testing.TB) *book {
	return &book{t: t, last: map[string]int64{}, state: map[string]model.Status{}}
}

func (b *book) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

func (b *book) Sample(host string, t int64, s *model.Signal, v float64, labels ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := fmt.Sprintf("%s %s%q", host, s.Name, labels)
	if len(labels) != len(s.Labels) || math.IsNaN(v) {
		b.t.Errorf("%s: labels %q, value %v", key, s.Labels, v)
	}
	if before, known := b.last[key]; known && t <= before {
		b.t.Errorf("%s: %d after %d", key, t, before)
	}
	b.last[key] = t
	b.samples++
}

func (b *book) Event(e model.Event) { b.say("event %d %s %s", e.Time, e.Host, e.Text) }
func (b *book) Note(s string)       { b.say("note %s", s) }
func (b *book) Status(host, signal string, st model.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[host+" "+signal] = st
}
func (b *book) Interval(start, end int64, tag, encoded string) {
	b.say("interval %d %d %s %s", start, end, tag, encoded)
}
func (b *book) Profile(name string, data []byte) error {
	b.say("file %s %d", name, len(data))
	return nil
}
func (b *book) Packets(host string, part []byte) error {
	b.say("packets %s %d", host, len(part))
	return nil
}
func (b *book) Traced(t model.Tracing) { b.say("traced %s %v", t.Level, t.Profiles) }
func (b *book) Commit(r collect.Round) error {
	b.say("round %d %d edge=%v", r.Number, r.Time.UnixMilli(), r.Edge)
	return nil
}

var (
	gauge   = &model.Signal{Name: "g", Labels: []string{"dev"}}
	counted = &model.Signal{Name: "c_total", Labels: []string{"kind", "by"}, StartsAtZero: true}
)

// at is a time in the life of these tests, in milliseconds.
const at = 1_700_000_000_000

func then() time.Time { return time.UnixMilli(at) }

// record reads frames into a receiver until one of those rounds came.
func record(r *receiver, in *bufio.Reader, until func(roundFrame) bool) error {
	var buf []byte
	for {
		k, payload, err := readFrame(in, &buf)
		if err != nil {
			return err
		}
		if err := r.take(k, payload); err != nil {
			return err
		}
		if k == isRound && until(r.round) {
			return nil
		}
	}
}

// What a collector records is recorded here: all of it, at the times of our clock.
func TestWhatIsRecordedThere(t *testing.T) {
	there, here := io.Pipe()
	out := newOutbox(here, 1<<20)
	defer out.fail(io.ErrClosedPipe)
	s, b := newSender(out), newBook(t)
	r := newReceiver(b, then, []string{"a", "b"}, 250*time.Millisecond)
	r.capture = true
	for i := range int64(2) {
		s.Sample("a", at+i, gauge, float64(i), "eth0")
		s.Sample("b", at+i, counted, math.Inf(1), "k", strings.Repeat("x", 300))
	}
	s.Event(model.Event{Time: at + 250, Host: "a", Kind: "log", Text: "line"})
	s.Status("a", "g", model.Status{State: model.Denied, Why: "no right"})
	s.Note("a sentence")
	check(t, s.Commit(collect.Round{Number: 1, Time: time.UnixMilli(at + 1)}))
	s.Traced(model.Tracing{Level: "full", Profiles: []string{"cpu"}})
	check(t, s.Profile("cpu", make([]byte, 2*fileAtOnce+1)))
	check(t, s.Profile("empty", nil))
	check(t, s.Packets("b", make([]byte, fileAtOnce+1)))
	check(t, s.Commit(collect.Round{Number: 2, Time: time.UnixMilli(at + 2), Edge: true}))
	check(t, record(r, bufio.NewReader(there), func(f roundFrame) bool { return f.Number == 2 }))
	want := []string{"event 1700000000000 a line", "note a sentence",
		"round 1 1699999999751 edge=false", "traced full [cpu]", "file cpu 524289", "file empty 0", "packets b 262144", "packets b 1", "round 2 1699999999752 edge=true"}
	if d := cmp.Diff(want, b.lines); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	wantLast := map[string]int64{`a g["eth0"]`: at - 249, fmt.Sprintf(`b c_total["k" %q]`, strings.Repeat("x", 300)): at - 249}
	if d := cmp.Diff(wantLast, b.last); d != "" || b.samples != 4 || b.state["a g"] != (model.Status{State: model.Denied, Why: "no right"}) {
		t.Errorf("%d samples, statuses %v; -want +got\n%s", b.samples, b.state, d)
	}
}

// A pipe that nobody reads costs no more memory than it may; what it did not take is
// counted, and is a gap.
func TestAPipeThatNobodyReads(t *testing.T) {
	const room, series = 64 << 10, 1000
	there, here := io.Pipe()
	out := newOutbox(here, room)
	defer out.fail(io.ErrClosedPipe)
	s, b := newSender(out), newBook(t)
	r := newReceiver(b, then, []string{"a"}, 0)
	s.Status("a", "g", model.Status{State: model.Read})
	number := 0
	round := func() {
		number++
		now := at + int64(number)*1000
		for i := range series {
			s.Sample("a", now, gauge, 1, fmt.Sprint(i))
		}
		s.Event(model.Event{Time: now, Host: "a", Text: "line"})
		check(t, s.Commit(collect.Round{Number: number, Time: time.UnixMilli(now)}))
		out.mu.Lock()
		defer out.mu.Unlock()
		if out.bytes > room {
			t.Fatalf("%d bytes wait, want at most %d", out.bytes, room)
		}
	}
	for range 100 {
		round()
	}
	told := make(chan error, 1)
	go func() {
		told <- record(r, bufio.NewReader(there), func(f roundFrame) bool { return f.Dropped != nil })
	}()
	for over := false; !over; {
		select {
		case err := <-told:
			check(t, err)
			over = true
		default:
			round()
		}
	}
	if sent := r.round.Number * series; b.samples+int(r.dropped) != sent || r.dropped < 50*series {
		t.Errorf("%d samples sent until round %d, %d recorded and %d told as dropped", sent, r.round.Number, b.samples, r.dropped)
	}
	notes := slices.DeleteFunc(slices.Clone(b.lines), func(l string) bool { return !strings.HasPrefix(l, "note") })
	if len(notes) != 1 || !strings.Contains(notes[0], `hosts ["a"]: from `) || !strings.Contains(notes[0], fmt.Sprintf("%d samples", r.dropped)) {
		t.Errorf("%q", notes)
	}
	if st := b.state["a g"]; st.State != model.Failed || !strings.Contains(st.Why, "not to the end: from") {
		t.Errorf("status %+v", st)
	}
	// That it is read now does not mean that it was read all the time.
	check(t, r.take(isStatus, jsonFrame(isStatus, statusFrame{"a", "g", model.Status{State: model.Read}})[5:]))
	if st := b.state["a g"]; st.State != model.Failed {
		t.Errorf("read again: status %+v", st)
	}
}

// What was dropped last, after which no round came, is told with the end.
func TestWhatWasDroppedLastIsTold(t *testing.T) {
	_, here := io.Pipe()
	out := newOutbox(here, 1000)
	defer out.fail(io.ErrClosedPipe)
	s := newSender(out)
	for i := range int64(3) {
		for dev := range 100 {
			s.Sample("a", at+i, gauge, 1, fmt.Sprint(dev))
		}
		check(t, s.Commit(collect.Round{Number: int(i + 1), Time: time.UnixMilli(at + i)}))
	}
	if l := s.rest(); l == nil || l.Rounds != 3 || l.Samples == 0 || l.Samples > 300 || l.From != at {
		t.Errorf("%+v", l)
	}
}

// What cannot be dropped has some room more; beyond that the pipe counts as cut.
func TestThereIsAnEndToWhatCannotBeDropped(t *testing.T) {
	_, here := io.Pipe()
	out := newOutbox(here, 1000)
	s := newSender(out)
	for i := range 100 {
		s.Status("a", fmt.Sprint("g", i), model.Status{State: model.Read})
		out.mu.Lock()
		if out.bytes > 1500 {
			t.Fatalf("%d bytes wait", out.bytes)
		}
		out.mu.Unlock()
	}
	<-out.failed
	if !errors.Is(out.err, errFull) || out.wait([]byte("x")) == nil || out.offer([]byte("x")) {
		t.Errorf("%v", out.err)
	}
}

// ends are those of a pipe between a session and whatever plays the collector.
func ends() (session io.ReadWriteCloser, collector io.ReadWriteCloser) {
	a, b := io.Pipe()
	c, d := io.Pipe()
	return end{a, d, func() { b.Close() }}, end{c, b, func() { d.Close() }}
}

type end struct {
	*io.PipeReader
	*io.PipeWriter
	other func()
}

func (e end) Close() error {
	e.other()
	return errors.Join(e.PipeWriter.Close(), e.PipeReader.Close())
}

// dialled is what Dial makes of a far side that does so.
func dialled(t *testing.T, far func(io.ReadWriteCloser)) (*Remote, error) {
	t.Helper()
	here, there := ends()
	done := make(chan struct{})
	go func() {
		defer close(done)
		far(there)
	}()
	r, err := Dial(here, "process", time.Now)
	if err != nil {
		<-done
	}
	return r, err
}

func TestTheFarSideIsAnother(t *testing.T) {
	for name, c := range map[string]struct {
		far  func(io.ReadWriteCloser)
		want string
	}{
		"a newer one": {func(p io.ReadWriteCloser) {
			defer p.Close()
			in, buf := bufio.NewReader(p), []byte(nil)
			for id := int64(1); ; id++ {
				if _, _, err := readFrame(in, &buf); err != nil {
					return
				}
				p.Write(jsonFrame(isAnswer, answer{ID: id, Protocol: 2, Version: "9.0", Failure: &failure{Text: "no"}}))
			}
		}, "collector process: the collector (9.0) speaks version 2 of the protocol, and this Plimsoll version 1; have the same Plimsoll at both ends"},
		"a login's greeting": {func(p io.ReadWriteCloser) {
			defer p.Close()
			io.WriteString(p, "Welcome to this host!\n")
			io.Copy(io.Discard, p)
		}, `collector process: want a frame of 1 to 1048576 bytes, got "Welcome to this host!\n": something else than Plimsoll writes there`},
		"nobody": {func(p io.ReadWriteCloser) { p.Close() }, "collector process: it ended"},
		"half a frame": {func(p io.ReadWriteCloser) {
			p.Write([]byte{0, 0, 1})
			p.Close()
		}, "collector process: unexpected EOF"},
		"what answers with records": {func(p io.ReadWriteCloser) {
			defer p.Close()
			p.Write(jsonFrame(isNote, "x"))
			io.Copy(io.Discard, p)
		}, `collector process: a frame of kind 'N' before it was asked to start`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dialled(t, c.far)
			var dial DialError
			if err == nil || err.Error() != c.want || !errors.As(err, &dial) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// What no collector says ends its pipe and reaches no recorder, which is that of all hosts.
func TestWhatNoCollectorSays(t *testing.T) {
	for name, c := range map[string]struct {
		kind    kind
		payload []byte
		want    error
	}{
		"latencies":                {'I', []byte(`{"start_ms":1,"end_ms":2,"tag":"response","histogram":"x"}`), errNoKind},
		"packets of its own":       {isPackets, append(appendString(nil, "a"), 1), errNotAsked},
		"a round of another year":  {isRound, fmt.Appendf(nil, `{"number":1,"t_ms":%d}`, at+400*24*3600*1000), errNoValue},
		"a round before all times": {isRound, []byte(`{"number":1,"t_ms":-1}`), errNoValue},
	} {
		b := newBook(t)
		r := newReceiver(b, then, []string{"a"}, 0)
		if err := r.take(c.kind, c.payload); !errors.Is(err, c.want) || len(b.lines) > 0 {
			t.Errorf("%s: %v, and %q was recorded; want %v", name, err, b.lines, c.want)
		}
	}
}

// Where it says that it has recorded up to another year, the windows of the other hosts do not begin then.
func TestNobodySettlesInTheFuture(t *testing.T) {
	r, err := dialled(t, func(p io.ReadWriteCloser) {
		defer p.Close()
		in, buf := bufio.NewReader(p), []byte(nil)
		for id := int64(1); ; id++ {
			if _, _, err := readFrame(in, &buf); err != nil {
				return
			}
			now := time.Now().UnixNano()
			p.Write(jsonFrame(isAnswer, answer{ID: id, Protocol: protocol, Heard: now, Said: now, Time: at + 400*24*3600*1000*10}))
		}
	})
	check(t, err)
	if got, now := r.Settle(), r.now(); got.After(now.Add(soon)) {
		t.Errorf("settled up to %v, and it is %v", got, now)
	}
	check(t, r.Close())
}

// asked sends commands to a collector and returns the answers.
func asked(t *testing.T, commands ...command) (answers []answer, err error) {
	t.Helper()
	var in []byte
	for i, c := range commands {
		c.ID = int64(i + 1)
		in = append(in, jsonFrame(isCommand, c)...)
	}
	there, here := io.Pipe()
	s := newServer(here)
	ended := make(chan error, 1)
	stdin, keep := io.Pipe()
	go func() { ended <- s.serve(stdin) }()
	go keep.Write(in)
	r, buf := bufio.NewReader(there), []byte(nil)
	for range commands {
		_, payload, err := readFrame(r, &buf)
		check(t, err)
		a, err := parse[answer](payload)
		check(t, err)
		answers = append(answers, a)
	}
	keep.Close()
	return answers, <-ended
}

func newServer(out io.Writer) *server {
	s := &server{version: "test", now: time.Now, out: newOutbox(out, 1<<20), todo: make(chan heard, manyCommands)}
	s.open = func(c collect.Config) (*collect.Local, error) {
		c.Hosts, c.Here = nil, ""
		return collect.Open(c, nil, s.now)
	}
	return s
}

func TestTheSessionIsAnother(t *testing.T) {
	open := command{Do: doOpen, Config: &collect.Config{Interval: time.Second}}
	answers, err := asked(t, open, command{Do: doHello, Protocol: 2}, open, hello, command{Do: doSettle},
		command{Do: doOpen, Config: &collect.Config{}}, open, command{Do: doStart}, command{Do: "dance"}, command{Do: doClose})
	check(t, err)
	for i, want := range []string{
		"the session has not said yet which protocol it speaks",
		"the session speaks version 2 of the protocol, and the collector (test) version 1; have the same Plimsoll at both ends",
		"the session has not said yet which protocol it speaks",
		"", `"settle": the collector was not told yet what to observe`, "an interval of 0s: want at least 10ms", "", "", `"dance" is nothing that a collector does`, "",
	} {
		got := ""
		if err := answers[i].err(); err != nil {
			got = err.Error()
		}
		if got != want || answers[i].ID != int64(i+1) {
			t.Errorf("answer %d (id %d): %q, want %q", i, answers[i].ID, got, want)
		}
	}
}

// An error of the other end is here what it was there.
func TestFailuresKeepTheirClass(t *testing.T) {
	for _, want := range []error{errNoKind, fmt.Errorf("x: %w", io.ErrUnexpectedEOF)} {
		raw := jsonFrame(isAnswer, answer{Failure: failureOf(want)})
		a, err := parse[answer](raw[5:])
		check(t, err)
		if a.err().Error() != want.Error() {
			t.Errorf("%v, want %v", a.err(), want)
		}
	}
}

package far

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/change"
)

// place is a machine's process in this one, with a journal of its own and a network
// namespace to change.
type place struct {
	spec, dir, run string
	served         chan error
	near           net.Conn
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making a network namespace needs root")
	}
	name := "plimsoll-far-" + strconv.Itoa(os.Getpid())
	for _, args := range [][]string{{"netns", "add", name}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v %s", args, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", name).Run() })
	dir := t.TempDir()
	return &place{spec: "netns:" + name, dir: filepath.Join(dir, "journal"), run: dir}
}

func (p *place) journal() (*change.Journal, error) { return change.Open(p.dir, p.run) }

func (p *place) open(t *testing.T) *Journal {
	t.Helper()
	near, there := net.Pipe()
	p.near, p.served = near, make(chan error, 1)
	go func() { p.served <- errors.Join(Serve(t.Context(), there, there, p.journal), there.Close()) }()
	j, err := Open(near, "ssh:web", true)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (p *place) value(t *testing.T) string {
	t.Helper()
	s, err := p.step()
	if err != nil && !errors.Is(err, change.ErrAlready) {
		t.Fatal(err)
	}
	return s.Old
}

var wanted = change.Change{Kind: change.Sysctl, Name: "net.ipv4.tcp_fin_timeout", To: "17"}

func (p *place) step() (change.Step, error) {
	return prepare(question{Host: "web", Spec: p.spec, Change: change.Change{Kind: wanted.Kind, Name: wanted.Name, To: "19"}})
}

func (p *place) standing(t *testing.T) (list []change.Entry) {
	t.Helper()
	all, _, err := change.ReadEntries(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Open() {
			list = append(list, e)
		}
	}
	return list
}

// made makes the change, and checks that it is made.
func (p *place) made(t *testing.T, j *Journal) change.Entry {
	t.Helper()
	s, err := j.Prepare("web", p.spec, wanted)
	if err != nil || s.Old == "" || s.New != "17" || s.Host != "web" || s.Undo == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	e, err := j.Apply(t.Context(), s)
	if err != nil || e.ID == 0 || !e.Open() || len(e.Parts) > 0 || p.value(t) != "17" {
		t.Fatalf("%+v, %v; it is %s", e, err, p.value(t))
	}
	return e
}

func TestChangesThereStayWhenKept(t *testing.T) {
	p := newPlace(t)
	before := p.value(t)
	j := p.open(t)
	e := p.made(t, j)
	if _, err := j.Prepare("web", p.spec, wanted); !errors.Is(err, change.ErrAlready) {
		t.Errorf("%v, want ErrAlready", err)
	}
	if _, err := j.Apply(t.Context(), change.Step{Change: wanted, Host: "web", Spec: p.spec, Old: before, New: "17"}); !errors.Is(err, change.ErrAlready) {
		t.Errorf("%v, want ErrAlready", err)
	}
	other := wanted
	other.To = "23"
	if _, err := j.Apply(t.Context(), change.Step{Change: other, Host: "web", Spec: p.spec, Old: before, New: "23"}); !errors.Is(err, change.ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if err := errors.Join(j.Close(), <-p.served); err != nil {
		t.Fatal(err)
	}
	if list := p.standing(t); len(list) != 1 || list[0].ID != e.ID || p.value(t) != "17" {
		t.Errorf("%+v; it is %s", list, p.value(t))
	}
	// Later, from elsewhere, and without what was known here.
	j = p.open(t)
	if j.Standing != 1 {
		t.Errorf("%d stand", j.Standing)
	}
	if again, err := j.LeaveOut(t.Context(), e.ID); err != nil || len(again) > 0 || p.value(t) != before {
		t.Errorf("%v, %v; it is %s, want %s", again, err, p.value(t), before)
	}
	if _, err := j.LeaveOut(t.Context(), 99); !errors.Is(err, change.ErrNoEntry) {
		t.Errorf("%v, want ErrNoEntry", err)
	}
	if err := errors.Join(j.Close(), <-p.served); err != nil {
		t.Fatal(err)
	}
}

// Whoever asked is gone: half a walk is no result, and a change may have cut the way.
func TestACutWayTakesBackWhatWasMade(t *testing.T) {
	p := newPlace(t)
	before := p.value(t)
	j := p.open(t)
	p.made(t, j)
	_ = p.near.Close()
	if err := <-p.served; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if p.value(t) != before || len(p.standing(t)) > 0 {
		t.Errorf("it is %s, want %s; %+v stands", p.value(t), before, p.standing(t))
	}
	if _, err := j.Apply(context.Background(), change.Step{}); err == nil || !strings.Contains(err.Error(), "ssh:web: the way there is cut") {
		t.Errorf("%v", err)
	}
	_ = j.Close()
}

func TestOneChangesAtATime(t *testing.T) {
	p := newPlace(t)
	held, err := p.journal()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	near, there := net.Pipe()
	go func() { _ = errors.Join(Serve(t.Context(), there, there, p.journal), there.Close()) }()
	if _, err := Open(near, "ssh:web", true); !errors.Is(err, change.ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
}

// Whatever is said to it, it answers or ends, and nothing is changed without a journal.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"do":"hello","protocol":1}` + "\n" + `{"do":"prepare","host":"a","spec":"local","change":{"kind":"sysctl","name":"net.core.somaxconn","to":"1"}}` + "\n"))
	f.Add([]byte(`{"do":"apply"}` + "\n{}\nx"))
	f.Fuzz(func(t *testing.T, said []byte) {
		var out bytes.Buffer
		_ = Serve(t.Context(), bytes.NewReader(said), &out, func() (*change.Journal, error) { return nil, errors.New("none") })
		for line := range bytes.Lines(out.Bytes()) {
			var a answer
			if err := json.Unmarshal(line, &a); err != nil || a.Entry != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

// answers is a far end that says what it likes.
type answers struct {
	io.Reader
}

func (answers) Write(b []byte) (int, error) { return len(b), nil }
func (answers) Close() error                { return nil }

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"protocol":1}` + "\n" + `{"step":{"Old":"1","New":"2"}}` + "\n" + `{"entry":{"id":1,"state":"done"}}` + "\n"))
	f.Add([]byte(`{"protocol":2}` + "\nx\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		j, err := Open(answers{bytes.NewReader(said)}, "ssh:x", true)
		if err != nil {
			return
		}
		s, _ := j.Prepare("web", "local", wanted)
		_, _ = j.Apply(context.Background(), s)
		_, _ = j.LeaveOut(context.Background(), 1)
		_ = j.Close()
	})
}

// A change with which nobody is let in any more is an error that stands, so that it is taken back.
func TestAChangeThatShutsTheDoor(t *testing.T) {
	p := newPlace(t)
	before := p.value(t)
	j := p.open(t)
	shut := errors.New("no answer")
	j.Door = func(context.Context) error {
		if p.value(t) != before {
			return shut
		}
		return nil
	}
	s, err := j.Prepare("web", p.spec, wanted)
	if err != nil {
		t.Fatal(err)
	}
	e, err := j.Apply(t.Context(), s)
	if !errors.Is(err, ErrShut) || !errors.Is(err, shut) || !e.Open() || p.value(t) != "17" {
		t.Fatalf("%+v, %v; it is %s", e, err, p.value(t))
	}
	if _, err := j.LeaveOut(t.Context(), e.ID); err != nil || p.value(t) != before {
		t.Errorf("%v; it is %s, want %s", err, p.value(t), before)
	}
	// Who was not let in before it either learns nothing from the door.
	j.Door = func(context.Context) error { return shut }
	p.made(t, j)
	if err := errors.Join(j.Close(), <-p.served); err != nil {
		t.Fatal(err)
	}
}

// Where it cuts the connection that there is as well, the other end takes it back.
func TestAChangeThatCutsTheWay(t *testing.T) {
	p := newPlace(t)
	before := p.value(t)
	j := p.open(t)
	j.Door = func(context.Context) error {
		if p.value(t) != before {
			_ = p.near.Close()
			return errors.New("no answer")
		}
		return nil
	}
	s, err := j.Prepare("web", p.spec, wanted)
	if err != nil {
		t.Fatal(err)
	}
	e, err := j.Apply(t.Context(), s)
	if errors.Is(err, ErrShut) || err == nil || !strings.Contains(err.Error(), "the way there is cut") || !e.Open() {
		t.Errorf("%+v, %v", e, err)
	}
	if err := <-p.served; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if p.value(t) != before || len(p.standing(t)) > 0 {
		t.Errorf("it is %s, want %s; %+v stands", p.value(t), before, p.standing(t))
	}
	_ = j.Close()
}

// After a ^C while the door is tried nothing is made.
func TestNothingIsMadeOfWhatIsInterrupted(t *testing.T) {
	p := newPlace(t)
	before := p.value(t)
	j := p.open(t)
	s, err := j.Prepare("web", p.spec, wanted)
	if err != nil {
		t.Fatal(err)
	}
	for name, door := range map[string]error{"let in": nil, "not let in": context.Canceled} {
		ctx, cancel := context.WithCancel(t.Context())
		j.Door = func(context.Context) error { cancel(); return door }
		if e, err := j.Apply(ctx, s); !errors.Is(err, context.Canceled) || e.ID != 0 || p.value(t) != before {
			t.Errorf("%s: %+v, %v; it is %s", name, e, err, p.value(t))
		}
	}
	if err := errors.Join(j.Close(), <-p.served); err != nil || len(p.standing(t)) > 0 {
		t.Errorf("%v; %+v stands", err, p.standing(t))
	}
}

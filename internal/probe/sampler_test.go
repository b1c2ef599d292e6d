package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// book keeps what is recorded, a line each.
type book struct {
	mu    sync.Mutex
	lines []string
}

func (b *book) add(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

func (b *book) Sample(host string, t int64, s *model.Signal, v float64, labels ...string) {
	b.add("sample %s %d %s%v %v", host, t, s.Name, labels, v)
}
func (b *book) Event(e model.Event) { b.add("event %s %d %s %s", e.Host, e.Time, e.Kind, e.Text) }
func (b *book) Status(host, signal string, st model.Status) {
	b.add("status %s %s %s %s", host, signal, st.State, st.Why)
}
func (b *book) Note(sentence string) { b.add("note %s", sentence) }

// take returns the sorted lines since the last take.
func (b *book) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	slices.Sort(lines)
	return lines
}

// tree makes a recorded host of machine boot.
func tree(t *testing.T, name, boot string) *host.Host {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/sys/kernel/random/boot_id": boot + "\n",
		"proc/sys/kernel/osrelease":      "6.18.0\n",
		"proc/stat":                      "cpu  1\ncpu0 1\ncpu1 1\nintr 1\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return host.Recorded(name, root)
}

// fake is a Reader made of functions.
type fake struct {
	read func(out *Out) error
	poll func() bool
}

func (f *fake) Read(out *Out) error { return f.read(out) }
func (f *fake) Close() error        { return nil }
func (f *fake) Poll() bool          { return f.poll != nil && f.poll() }

func fakeProbe(name string, read func(h *host.Host, out *Out) error, signals ...*model.Signal) Probe {
	return Probe{Name: name, Signals: signals, Open: func(h *host.Host) (Reader, error) {
		return &fake{read: func(out *Out) error { return read(h, out) }}, nil
	}}
}

func start(t *testing.T, rec Recorder, hosts []*host.Host, probes ...Probe) *Sampler {
	t.Helper()
	s := NewSampler(hosts, probes, NewStatusBook(rec), time.Second)
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

func readRound(t *testing.T, s *Sampler, second int, force bool) {
	t.Helper()
	if err := s.Round(context.Background(), time.Unix(int64(second), 0), force); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, b *book, what string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.take()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestMachineProbesAreReadOncePerMachineAndRecordedForEachHost(t *testing.T) {
	rec, sig := &book{}, &model.Signal{Name: "m"}
	reads := 0
	p := fakeProbe("m", func(_ *host.Host, out *Out) error {
		reads++
		out.Put(sig, float64(reads))
		return nil
	}, sig)
	p.Scope = PerMachine
	s := start(t, rec, []*host.Host{tree(t, "client", "a"), tree(t, "server", "a")}, p)
	readRound(t, s, 1, false)
	check(t, rec, "one machine", "sample client 1000 m[] 1", "sample server 1000 m[] 1",
		"status client m read ", "status server m read ")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStatusIsRecordedWhenItChanges(t *testing.T) {
	rec, a, b := &book{}, &model.Signal{Name: "a"}, &model.Signal{Name: "b"}
	var err, errB error
	s := start(t, rec, []*host.Host{tree(t, "server", "x")}, fakeProbe("p", func(_ *host.Host, out *Out) error {
		out.Mark(b, errB)
		return err
	}, a, b))
	errB = host.Absent("no b here")
	readRound(t, s, 1, false)
	check(t, rec, "first", "status server a read ", "status server b absent no b here")
	readRound(t, s, 2, false)
	check(t, rec, "nothing new")
	err = fmt.Errorf("read x: %w", fs.ErrPermission)
	errB = nil
	readRound(t, s, 3, false)
	check(t, rec, "a fails after it was read, b comes",
		"note host server: p could not be read at 00:00:03: read x: permission denied",
		"status server a failed it was read before, but not to the end: read x: permission denied",
		"status server b read ")
	readRound(t, s, 4, false)
	check(t, rec, "still failing")
	err = nil
	readRound(t, s, 5, false)
	check(t, rec, "a is back", "status server a read ")
}

// Nothing seen in a long time without eyes is no fact, though it ends well.
func TestALongTimeWithoutReadingStaysInTheStatus(t *testing.T) {
	rec, a := &book{}, &model.Signal{Name: "a"}
	var err error
	s := start(t, rec, []*host.Host{tree(t, "server", "x")}, fakeProbe("p", func(_ *host.Host, out *Out) error { return err }, a))
	readRound(t, s, 1, false)
	err = errors.New("it hangs")
	readRound(t, s, 2, false)
	readRound(t, s, 9, false)
	rec.take()
	err = nil
	readRound(t, s, 10, false)
	const gap = "status server a failed it could not be read for 8s until 00:00:10: it hangs"
	check(t, rec, "read again after 8 s", gap)
	readRound(t, s, 11, false)
	check(t, rec, "and once more")
}

func TestWhatWasNotLookedAtKeepsItsStatus(t *testing.T) {
	rec, a, b := &book{}, &model.Signal{Name: "a"}, &model.Signal{Name: "b"}
	look := true
	s := start(t, rec, []*host.Host{tree(t, "server", "x")}, fakeProbe("p", func(_ *host.Host, out *Out) error {
		if !look {
			out.Keep(a)
			return nil
		}
		out.Mark(a, host.Absent("no a here"))
		return nil
	}, a, b))
	readRound(t, s, 1, false)
	check(t, rec, "looked", "status server a absent no a here", "status server b read ")
	look = false
	readRound(t, s, 2, false)
	look = true
	readRound(t, s, 3, false)
	check(t, rec, "nothing new")
}

func TestAProbeThatCannotRunIsTriedAgainAtTheEdgesOfWindows(t *testing.T) {
	rec, sig := &book{}, &model.Signal{Name: "a"}
	can := error(host.Absent("not loaded"))
	p := fakeProbe("p", func(_ *host.Host, out *Out) error {
		out.Put(sig, 7)
		return nil
	}, sig)
	p.CanRun = func(*host.Host) error { return can }
	s := start(t, rec, []*host.Host{tree(t, "server", "x")}, p)
	check(t, rec, "start", "status server a absent not loaded")
	can = nil
	readRound(t, s, 1, false)
	check(t, rec, "an ordinary round")
	readRound(t, s, 2, true)
	check(t, rec, "a forced round", "sample server 2000 a[] 7", "status server a read ")
}

func TestSlowProbesAreSkippedUnlessForced(t *testing.T) {
	rec, sig := &book{}, &model.Signal{Name: "a"}
	var intervals []time.Duration
	p := fakeProbe("p", func(_ *host.Host, out *Out) error {
		intervals = append(intervals, out.Interval())
		return nil
	}, sig)
	p.Every = 5 * time.Second
	s := start(t, rec, []*host.Host{tree(t, "server", "x")}, p)
	for second := 1; second <= 12; second++ {
		readRound(t, s, second, second == 8)
	}
	want := []time.Duration{0, 5 * time.Second, 2 * time.Second} // seconds 1, 6, 8
	if diff := cmp.Diff(want, intervals); diff != "" {
		t.Errorf("intervals (-want +got):\n%s", diff)
	}
}

// A poll that sees something, also one of those that are further apart while there is
// nothing, brings the others nearer again.
func TestPollersArePolledBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, sig := &book{}, &model.Signal{Name: "polls"}
		polls := 0
		var busy atomic.Bool
		p := Probe{Name: "p", Signals: []*model.Signal{sig}, Open: func(*host.Host) (Reader, error) {
			return &fake{poll: func() bool { polls++; return busy.Load() }, read: func(out *Out) error {
				out.Put(sig, float64(polls))
				return nil
			}}, nil
		}}
		began := time.Now()
		s := start(t, rec, []*host.Host{tree(t, "server", "x")}, p)
		for n, tc := range []struct {
			what  string
			busy  bool
			until time.Duration
			want  string
		}{
			{"in the first second", false, 1050 * time.Millisecond, "10"},
			{"after five quiet seconds, and two more", false, 7050 * time.Millisecond, "58"},
			{"busy from the next one on", true, 8 * time.Second, "66"},
			{"quiet again, for the first second", false, 9 * time.Second, "76"},
		} {
			busy.Store(tc.busy)
			time.Sleep(time.Until(began.Add(tc.until)))
			readRound(t, s, n+1, false)
			want := []string{fmt.Sprintf("sample server %d000 polls[] %s", n+1, tc.want)}
			if n == 0 {
				want = append(want, "status server polls read ")
			}
			check(t, rec, tc.what, want...)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAHostThatHangsIsLeftOutAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, sig := &book{}, &model.Signal{Name: "a"}
		hang := make(chan struct{})
		p := fakeProbe("p", func(h *host.Host, out *Out) error {
			if h.Name == "server" {
				<-hang
			}
			out.Put(sig, 1)
			return nil
		}, sig)
		s := start(t, rec, []*host.Host{tree(t, "client", "x"), tree(t, "server", "y")}, p)
		begun := time.Now()
		readRound(t, s, 1, false)
		if took := time.Since(begun); took != patience {
			t.Errorf("the round took %v, want %v", took, patience)
		}
		const sentence = "host server did not answer within 5s (at probe p); its numbers are missing from then on"
		check(t, rec, "hanging", "note "+sentence, "sample client 1000 a[] 1", "status client a read ", "status server a failed "+sentence)
		readRound(t, s, 2, false)
		check(t, rec, "still hanging, the round does not wait", "sample client 2000 a[] 1")
		close(hang)
		synctest.Wait()
		check(t, rec, "what came late is dropped")
		readRound(t, s, 3, false)
		check(t, rec, "back", "sample client 3000 a[] 1", "sample server 3000 a[] 1", "status server a read ")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRoundEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := start(t, &book{}, []*host.Host{tree(t, "server", "x")}, fakeProbe("p", func(*host.Host, *Out) error {
			<-hang
			return nil
		}))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Round(ctx, time.Unix(1, 0), false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
		close(hang)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSelfCost(t *testing.T) {
	cpu, rss, err := SelfCost()
	if err != nil {
		t.Fatal(err)
	}
	if cpu <= 0 || rss < 1<<20 {
		t.Errorf("%v CPU seconds, %d bytes; want more than nothing", cpu, rss)
	}
}

func TestStatusOfKeepsTheSentence(t *testing.T) {
	st := host.StatusOf(fmt.Errorf("open x: %w", fs.ErrNotExist))
	if st.State != model.Absent || !strings.HasPrefix(st.Why, "open x") {
		t.Errorf("%+v", st)
	}
}

func TestAPollThatHangsIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, sig := &book{}, &model.Signal{Name: "a"}
		hang := make(chan struct{})
		s := start(t, rec, []*host.Host{tree(t, "server", "x")}, Probe{Name: "p", Signals: []*model.Signal{sig},
			Open: func(*host.Host) (Reader, error) {
				return &fake{poll: func() bool { <-hang; return true }, read: func(out *Out) error { return nil }}, nil
			}})
		time.Sleep(150 * time.Millisecond)
		readRound(t, s, 1, false)
		begun := time.Now()
		readRound(t, s, 2, false)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the second round took %v, want no wait", took)
		}
		close(hang)
		synctest.Wait()
		readRound(t, s, 3, false)
		const sentence = "host server did not answer within 5s (at probe p); its numbers are missing from then on"
		check(t, rec, "all three", "note "+sentence, "status server a failed "+sentence, "status server a read ")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A host that hangs while another sampler is started in the place of one is left out, and taken back; both go on meanwhile.
func TestAgainWaitsForNoHostThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, sig := &book{}, &model.Signal{Name: "a"}
		hang, again := make(chan struct{}), atomic.Bool{}
		s := start(t, rec, []*host.Host{tree(t, "server", "y"), tree(t, "client", "x")}, Probe{Name: "p", Signals: []*model.Signal{sig},
			Open: func(h *host.Host) (Reader, error) {
				if again.Load() && h.Name == "server" {
					<-hang
				}
				return &fake{read: func(out *Out) error { out.Put(sig, 1); return nil }}, nil
			}})
		again.Store(true)
		begun := time.Now()
		other, err := s.Again(t.Context(), time.Unix(1, 0))
		if took := time.Since(begun); err != nil || took != 2*patience {
			t.Fatalf("%v after %v, want it after %v", err, took, 2*patience)
		}
		if s.Late() || !other.Late() {
			t.Errorf("late: %v, %v, want the other", s.Late(), other.Late())
		}
		rec.take()
		readRound(t, other, 1, false)
		check(t, rec, "hanging", "sample client 1000 a[] 1", "status client a read ")
		readRound(t, s, 2, false)
		check(t, rec, "the first", "sample client 2000 a[] 1", "sample server 2000 a[] 1", "status server a read ")
		close(hang)
		synctest.Wait()
		readRound(t, other, 3, false)
		check(t, rec, "back", "sample client 3000 a[] 1", "sample server 3000 a[] 1")
		if err := errors.Join(s.Close(), other.Close()); err != nil || other.Late() {
			t.Fatal(err)
		}
	})
}

// One that is to end does not wait either, and leaves no thread.
func TestAgainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, again := make(chan struct{}), atomic.Bool{}
		s := start(t, &book{}, []*host.Host{tree(t, "server", "x")}, Probe{Name: "p", Open: func(*host.Host) (Reader, error) {
			if again.Load() {
				<-hang
			}
			return &fake{}, nil
		}})
		again.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if other, err := s.Again(ctx, time.Unix(1, 0)); other != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v, want the context's error", other, err)
		}
		close(hang) // the bubble waits for its threads
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

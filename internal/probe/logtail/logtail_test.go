package logtail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// log is a log file under test and what its Tail has handed out.
type log struct {
	t     *testing.T
	path  string
	tail  *Tail
	buf   []byte
	limit int64
	got   []string
}

func newLog(t *testing.T, before string) *log {
	t.Helper()
	l := &log{t: t, path: filepath.Join(t.TempDir(), "x.log"), buf: make([]byte, 64), limit: 1 << 20}
	l.write(before)
	tail, err := Open(Place{Name: l.path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tail.Close() })
	l.tail = tail
	return l
}

func (l *log) write(s string) { l.writeTo(l.path, s) }

func (l *log) writeTo(path, s string) {
	l.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(s); err != nil {
		l.t.Fatal(err)
	}
}

// wants runs a round and compares what it handed out.
func (l *log) wants(want ...string) {
	l.t.Helper()
	l.got = nil
	if err := l.tail.Round(l.buf, l.limit, func(b []byte) { l.got = append(l.got, string(b)) }); err != nil {
		l.t.Fatal(err)
	}
	if d := cmp.Diff(want, l.got); d != "" {
		l.t.Errorf("lines (-want +got):\n%s", d)
	}
}

func TestOnlyWhatIsNewIsHandedOut(t *testing.T) {
	l := newLog(t, "old 1\nold 2\n")
	l.wants()
	l.write("a\nb\n\nc\n")
	l.wants("a", "b", "", "c")
	l.wants()
}

// What stood there before is handed out apart, whole lines of so many bytes, and never again.
func TestEarlierLines(t *testing.T) {
	l := newLog(t, "one\ntwo\nthree\nfo")
	for limit, want := range map[int64][]string{0: nil, 6: nil, 8: {"three"}, 12: {"two", "three"}, 100: {"one", "two", "three"}} {
		var got []string
		if err := l.tail.Earlier(limit, func(line []byte) { got = append(got, string(line)) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %d bytes (-want +got):\n%s", limit, diff)
		}
	}
	l.write("ur\n")
	l.wants("four")
}

func TestHalfALineWaitsForItsEnd(t *testing.T) {
	l := newLog(t, "old\nbegun before ")
	l.wants()
	l.write("and ended\nhal")
	l.wants("begun before and ended")
	l.wants()
	l.write("f\n")
	l.wants("half")
}

func TestLinesAcrossBuffers(t *testing.T) {
	l := newLog(t, "")
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("line %d %s", i, strings.Repeat("x", i%40)))
	}
	l.write(strings.Join(want, "\n") + "\n")
	l.wants(want...)
	if l.tail.Skipped() != 0 {
		t.Errorf("skipped %d bytes", l.tail.Skipped())
	}
}

func TestALineLongerThanTheBufferIsSkippedAndCounted(t *testing.T) {
	l := newLog(t, "")
	long := strings.Repeat("y", 150)
	l.write("a\n" + long + "\nb\n")
	l.wants("a", "b")
	if got := l.tail.Skipped(); got != 151 {
		t.Errorf("skipped %d bytes, want 151", got)
	}
}

func TestFarBehindSkipsTheOldest(t *testing.T) {
	l := newLog(t, "")
	l.limit = 20
	l.write(strings.Repeat("123456789\n", 100)) // 1,000 bytes; the cut falls on a line's start
	l.wants("123456789")
	if got := l.tail.Skipped(); got != 990 {
		t.Errorf("skipped %d bytes, want 990", got)
	}
	l.write("next\n")
	l.wants("next")
}

func TestTruncation(t *testing.T) {
	l := newLog(t, "old\n")
	l.write("a\nhalf")
	l.wants("a")
	if err := os.Truncate(l.path, 0); err != nil {
		t.Fatal(err)
	}
	l.wants()
	l.write("b\n")
	l.wants("b")
}

func TestRotation(t *testing.T) {
	l := newLog(t, "")
	l.write("a\n")
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		t.Fatal(err)
	}
	l.wants("a") // gone and not made anew
	l.writeTo(l.path+".1", "b\n")
	l.wants("b")
	l.write("") // logrotate creates it …
	l.wants()
	l.writeTo(l.path+".1", "c\n") // … and the service still writes to the old one
	l.wants("c")
	l.write("d\n")
	l.writeTo(l.path+".1", "e\n")
	l.wants("e", "d")
	for range quietRounds {
		l.wants()
	}
	if l.tail.old != nil {
		t.Error("the old file is still open")
	}
	l.write("f\n")
	l.wants("f")
}

func TestRotationTwiceInARow(t *testing.T) {
	l := newLog(t, "")
	for i := range 3 {
		l.write(fmt.Sprintf("a%d\n", i))
		if err := os.Rename(l.path, fmt.Sprintf("%s.%d", l.path, i)); err != nil {
			t.Fatal(err)
		}
		l.write(fmt.Sprintf("b%d\n", i))
		l.wants(fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i))
	}
}

func TestDeletedFileIsStillRead(t *testing.T) {
	l := newLog(t, "")
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	f.WriteString("a\n")
	l.wants("a")
}

// A service that is started anew has another directory under /proc, through
// which its logs are reached: rotation must be looked for there.
func TestRotationAfterARestart(t *testing.T) {
	dir := t.TempDir()
	log := &log{t: t, path: filepath.Join(dir, "x.log")}
	log.write("")
	set := NewSet[int]()
	defer set.Close()
	for _, root := range []string{"first", "second"} {
		root = filepath.Join(t.TempDir(), root)
		if err := os.Symlink(dir, root); err != nil {
			t.Fatal(err)
		}
		if err := set.Follow(&Writer{Service: "s", root: root}, "/x.log", 1, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(root, "first") {
			os.Remove(root)
		}
	}
	if err := os.Rename(log.path, log.path+".1"); err != nil {
		t.Fatal(err)
	}
	log.write("a\n")
	var got []string
	set.Round(1<<20, func(_ *Log[int], line []byte) { got = append(got, string(line)) })
	if d := cmp.Diff([]string{"a"}, got); d != "" || len(set.logs) != 1 {
		t.Errorf("%d logs; lines (-want +got):\n%s", len(set.logs), d)
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(Place{Name: dir}); err == nil {
		t.Error("a directory was opened")
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Place{Name: fifo}); err == nil {
		t.Error("a FIFO was opened")
	}
	if _, err := Open(Place{Name: filepath.Join(dir, "none")}); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

// FuzzRounds cuts a text into writes at will: whole lines come out once, in order.
func FuzzRounds(f *testing.F) {
	f.Add("a\nbb\n\nccc\nhalf", uint8(3))
	f.Add("\n\n\n", uint8(1))
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		if len(text) > 2000 {
			return
		}
		path := filepath.Join(t.TempDir(), "x")
		w, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		tail, err := Open(Place{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		defer tail.Close()
		var got strings.Builder
		buf := make([]byte, 4096)
		for rest := text; rest != ""; {
			n := min(len(rest), int(step)+1)
			w.WriteString(rest[:n])
			rest = rest[n:]
			if err := tail.Round(buf, 1<<20, func(b []byte) { got.Write(b); got.WriteByte('\n') }); err != nil {
				t.Fatal(err)
			}
		}
		if want := text[:strings.LastIndexByte(text, '\n')+1]; got.String() != want {
			t.Errorf("got %q, want %q", got.String(), want)
		}
	})
}

// BenchmarkRound answers: what does following cost a line, parsing apart?
func BenchmarkRound(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x")
	line := strings.Repeat("x", 99) + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 100_000)), 0o644); err != nil {
		b.Fatal(err)
	}
	tail, err := Open(Place{Name: path})
	if err != nil {
		b.Fatal(err)
	}
	defer tail.Close()
	buf := make([]byte, BufferSize)
	n := 0
	for b.Loop() {
		tail.cur.off = 0
		if err := tail.Round(buf, 1<<30, func([]byte) { n++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/line")
}

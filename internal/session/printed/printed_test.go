package printed

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runs runs a command as a watch does, and returns what was read of it.
func runs(t *testing.T, stdout, stderr io.Writer, argv ...string) (list []model.ToolSummary, dropped int, unread bool) {
	t.Helper()
	o, out, errs, err := Listen(argv, stdout, stderr)
	check(t, err)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, errs
	err = cmd.Start()
	o.Started()
	check(t, err)
	check(t, cmd.Wait())
	return o.Ended()
}

func TestEachLoadToolIsReadWhileItPrints(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer srv.Close()
	url := srv.URL + "/"
	for tool, argv := range map[string][]string{
		"wrk":    {"wrk", "-t1", "-c2", "-d1", url},
		"ab":     {"ab", "-n", "50", "-c", "2", url},
		"h2load": {"h2load", "--h1", "-n", "50", "-c", "2", url},
		"hey":    {"hey", "-n", "50", "-c", "2", url},
		"siege":  {"sh", "-c", "siege -b -c 2 -r 5 " + url},
	} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil && tool == "wrk" && os.Getuid() == 0 {
				t.Fatalf("%v; scripts/install-deps installs it", err)
			} else if err != nil {
				t.Skip(err)
			}
			var out, errs bytes.Buffer
			list, _, unread := runs(t, &out, &errs, argv...)
			if len(list) != 1 || list[0].Tool != tool || list[0].Requests == nil || *list[0].Requests == 0 || unread {
				t.Errorf("read %+v (not all: %v) of\n%s%s", list, unread, out.String(), errs.String())
			}
		})
	}
}

func TestACommandWithoutALoadToolIsLeftAlone(t *testing.T) {
	o, out, errs, err := Listen([]string{"sh", "-c", "echo"}, os.Stdout, os.Stderr)
	check(t, err)
	o.Started()
	if list, _, _ := o.Ended(); out != os.Stdout || errs != os.Stderr || len(list) > 0 {
		t.Errorf("it prints to %v and %v", out, errs)
	}
}

// A shell's command line that goes on after its exit only names the tool.
func TestTheTwoStreamsStayApart(t *testing.T) {
	var out, errs bytes.Buffer
	runs(t, &out, &errs, "sh", "-c", "printf 'a\\r\\001b'; echo c >&2; exit 0; wrk")
	if out.String() != "a\r\x01b" || errs.String() != "c\n" {
		t.Errorf("passed on %q and %q", out.String(), errs.String())
	}
}

// A daemon that a command leaves behind has its output still; nobody waits for it.
func TestWhoKeepsTheOutputIsNotWaitedFor(t *testing.T) {
	var out, pid bytes.Buffer
	runs(t, &out, &pid, "sh", "-c", "{ trap '' PIPE; exec cat /dev/zero; } & echo $! >&2; head -c 1000000 /dev/zero; exit 0; wrk")
	defer exec.Command("kill", "-9", strings.TrimSpace(pid.String())).Run()
	if out.Len() < 1_000_000 {
		t.Errorf("%d bytes were passed on, want a million and what else there was", out.Len())
	}
}

// counted counts what is passed on.
type counted struct{ n int }

func (c *counted) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

func TestGigabytesArePassedOnInLittleMemory(t *testing.T) {
	const size = 2 << 30
	summary, err := os.ReadFile("../../loadtool/testdata/wrk.txt")
	check(t, err)
	var out counted
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list, _, _ := runs(t, &out, io.Discard, "sh", "-c", "head -c 2147483648 /dev/zero; echo; cat ../../loadtool/testdata/wrk.txt; exit 0; wrk")
	runtime.ReadMemStats(&after)
	if want := size + 1 + len(summary); out.n != want {
		t.Errorf("%d bytes were passed on, want %d", out.n, want)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("that took %d MB", grown>>20)
	}
	if len(list) != 1 {
		t.Errorf("%d summaries were read at its end, want 1", len(list))
	}
}

// Nothing is read until all was printed: printing goes on, and what came last is read.
func TestACommandDoesNotWaitForTheReading(t *testing.T) {
	var out counted
	s := newStream([]string{"wrk"}, &out)
	var err error
	s.from, s.theirs, err = os.Pipe()
	check(t, err)
	go s.pass()
	cut := []byte("Running 1s test @ http://h/\n  2 threads and 4 connections\n")
	for range 100 * behind {
		_, err := s.theirs.Write(append(cut, make([]byte, pieceSize-len(cut))...))
		check(t, err)
	}
	summary, err := os.ReadFile("../../loadtool/testdata/wrk.txt")
	check(t, err)
	_, err = s.theirs.Write(append([]byte("\n"), summary...))
	check(t, err)
	s.theirs.Close()
	<-s.passed
	go s.listen()
	list, _, unread := (&Output{streams: []*stream{s}, resized: func() {}}).Ended()
	if want := 100*behind*pieceSize + 1 + len(summary); out.n != want || !unread || len(list) != 1 {
		t.Errorf("%d bytes passed on, want %d; something not read: %v; read %+v", out.n, want, unread, list)
	}
}

// lookAtTerminal is what a command sees of its terminal.
const lookAtTerminal = `[ -t 1 ] && [ -t 2 ] && echo two terminals; stty size <&1; echo on the other >&2; printf 'a\nb\n'; exit 0; wrk`

func TestATerminalStaysOne(t *testing.T) {
	screen, terminal := pair(t)
	check(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 101}))
	shown := make(chan string, 1)
	go func() {
		var text strings.Builder
		lines := bufio.NewReader(screen)
		for range 5 {
			line, err := lines.ReadString('\n')
			if text.WriteString(line); err != nil {
				break
			}
		}
		shown <- text.String()
	}()
	runs(t, terminal, terminal, "sh", "-c", lookAtTerminal)
	want := "two terminals\r\n33 101\r\non the other\r\na\r\nb\r\n"
	if got := <-shown; got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

// pair makes a terminal, and what shows it.
func pair(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	other, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if e != 0 {
		t.Fatal(e)
	}
	terminal = os.NewFile(other, "terminal")
	t.Cleanup(func() { terminal.Close() })
	return screen, terminal
}

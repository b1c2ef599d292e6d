package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/record"
)

// fakeHolder as the first argument makes the test binary a command's holder,
// fakeWatch one that watches a shell script and fills a run directory.
const (
	fakeHolder = "fake-holder"
	fakeWatch  = "fake-watch"
)

func watchFor(dir, script string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opt := Options{Interval: 100 * time.Millisecond, Dir: dir, Holder: []string{os.Args[0], fakeHolder}}
	code, err := Watch(ctx, opt, 0, []string{"sh", "-c", script}, WatchIO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return code
}

// pidfd opens a handle of a process, which can be waited for though it is nobody's child.
func pidfd(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// waitEnded waits until the process of a pidfd has ended.
func waitEnded(t *testing.T, who string, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		if err == unix.EINTR {
			continue
		}
		if n == 0 {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			t.Errorf("%s runs on", who)
		}
		check(t, err)
		return
	}
}

// watched is one that watches a script, which prints its pid and that of a descendant.
type watched struct {
	us                  *exec.Cmd
	command, descendant int // pidfds
	holder              int
}

func startWatched(t *testing.T, script string) watched {
	t.Helper()
	us := exec.Command(os.Args[0], fakeWatch, filepath.Join(t.TempDir(), "run"), script)
	us.Env = append(os.Environ(), "FIFO="+filepath.Join(t.TempDir(), "fifo"))
	us.Stderr = os.Stderr
	out, err := us.StdoutPipe()
	check(t, err)
	check(t, us.Start())
	var command, descendant int
	if _, err := fmt.Fscan(out, &command, &descendant); err != nil {
		t.Fatal(err)
	}
	return watched{us, pidfd(t, command), pidfd(t, descendant), parent(t, command)}
}

// However the one that watches ends, so does the command, and what it started.
func TestWhenWeAreKilledTheCommandIsToo(t *testing.T) {
	for why, script := range map[string]string{
		"a child":                           `sleep 1000 & echo $$ $!; wait`,
		"one that is deaf":                  `trap "" TERM; sleep 1000 & echo $$ $!; while :; do wait; done`,
		"an orphan in a session of its own": `mkfifo $FIFO; (setsid sh -c 'echo $$ > $FIFO; exec sleep 1000' &); read p < $FIFO; echo $$ $p; sleep 1000`,
	} {
		t.Run(why, func(t *testing.T) {
			w := startWatched(t, script)
			check(t, w.us.Process.Kill())
			_ = w.us.Wait() // it was killed
			waitEnded(t, "the command", w.command)
			waitEnded(t, "what it started", w.descendant)
		})
	}
}

// Where the holder is killed as well, the command still is not left alone.
func TestWhenTheHolderIsKilledTheCommandIsToo(t *testing.T) {
	w := startWatched(t, `sleep 1000 & echo $$ $!; wait`)
	check(t, syscall.Kill(w.holder, syscall.SIGKILL))
	waitEnded(t, "the command", w.command)
	check(t, unix.PidfdSendSignal(w.descendant, unix.SIGKILL, nil, 0)) // the holder would have
	if err := w.us.Wait(); err == nil {                                // how depends on whether it had been told the command's pid
		t.Error("who watched says that all went well")
	}
}

// parent reads a process's parent.
func parent(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(t, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	n, err := strconv.Atoi(fields[1])
	check(t, err)
	return n
}

// What a command leaves running when it ends is its own business, as without us.
func TestWhatACommandLeavesBehindStays(t *testing.T) {
	opt := options(t, "")
	var out strings.Builder
	code, err := Watch(t.Context(), opt, 0, []string{"sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; exit 3"}, WatchIO{Stdout: &out})
	check(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	check(t, err)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil || code != 3 {
		t.Errorf("exit code %d; kill what it left: %v", code, err)
	}
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	opt := options(t, "")
	path := filepath.Join(t.TempDir(), "wrong")
	check(t, os.WriteFile(path, []byte("\x7fELF and nothing more"), 0o755))
	_, err := Watch(t.Context(), opt, 0, []string{path}, WatchIO{})
	if err == nil || err.Error() != "start "+path+": exec format error" {
		t.Errorf("%v", err)
	}
}

// terminal opens a pair of a terminal and its other end.
func terminal(t *testing.T) (master *os.File, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	t.Cleanup(func() { master.Close() })
	check(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	check(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	return master, tty
}

// At a terminal the command can read it, and ^C is for both: the command ends, and
// what was seen is a whole run.
func TestTheTerminalIsTheCommands(t *testing.T) {
	for _, c := range []struct {
		script string
		say    []string // after each of these words the next is typed
		code   int
	}{
		{`stty -echo; echo name?; read x; echo hello $x`, []string{"name?", "you\n", "hello you"}, 0},
		{`trap '' TERM; echo ready; exec sleep 1000`, []string{"ready", "\x03"}, 128 + int(syscall.SIGINT)}, // it is asked by SIGTERM, too
		{`trap 'exit 5' INT TERM; echo ready; while :; do sleep 0.05; done`, []string{"ready", "\x03"}, 5},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		master, tty := terminal(t)
		us := exec.Command(os.Args[0], fakeWatch, dir, c.script)
		us.Stdin, us.Stdout, us.Stderr = tty, tty, tty
		us.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		check(t, us.Start())
		tty.Close()
		lines := bufio.NewReader(master)
		for i := 0; i < len(c.say); i += 2 {
			heard := ""
			for !strings.Contains(heard, c.say[i]) {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("%q: %v, before %q", heard, err, c.say[i])
				}
				heard += line
			}
			if i+1 < len(c.say) {
				_, err := master.WriteString(c.say[i+1])
				check(t, err)
			}
		}
		_, _ = io.Copy(io.Discard, lines) // until all have closed it
		_ = us.Wait()
		if code := us.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.script, code, c.code)
		}
		run, err := record.Open(dir)
		check(t, err)
		if !run.Meta().Closed {
			t.Errorf("%s: the run is not closed", c.script)
		}
		check(t, run.Close())
	}
}

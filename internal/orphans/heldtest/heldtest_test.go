package heldtest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pretended is the variable by which this binary is one whose tests start what outlives
// them, or, beside it, end well.
const pretended = "PLIMSOLL_HELD_TESTS"

func TestMain(m *testing.M) {
	if how := os.Getenv(pretended); how != "" {
		Tests()
		os.Exit(pretend(how))
	}
	Main(m)
}

// pretend starts a process in a session of its own, whose parent is gone at once, says
// which it is, and who holds us, and then ends as it is told to.
func pretend(how string) int {
	if os.Geteuid() == 0 {
		name := fmt.Sprintf("plimsoll-held-%d", os.Getpid())
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 9
		}
	}
	left, err := exec.Command("sh", "-c", "setsid sleep 1000 >&- 2>&- & echo $!").Output()
	if err != nil {
		return 8
	}
	fmt.Println(os.Getpid(), os.Getppid(), strings.TrimSpace(string(left)))
	switch how {
	case "panic":
		panic("as it was told to")
	case "exit":
		return 7
	}
	time.Sleep(time.Hour) // it is killed
	return 6
}

// gone says whether a process has ended, and nobody has to wait for it any more.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestNothingIsLeft(t *testing.T) {
	for how, code := range map[string]int{"exit": 7, "panic": 2, "SIGKILL tests": 137, "SIGKILL second": 137, "SIGKILL first": -1, "SIGKILL first and tests": -1, "SIGTERM first": 137, "SIGQUIT first": 2} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := exec.Command("/proc/self/exe")
			c.Env = append(os.Environ(), pretended+"="+how)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			c.Stderr = &stderr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			said, err := bufio.NewReader(out).ReadString('\n')
			f := strings.Fields(said)
			if err != nil || len(f) != 3 {
				t.Fatalf("it says %q: %v", said, err)
			}
			tests, second, orphan := number(t, f[0]), number(t, f[1]), number(t, f[2])
			if name, who, ok := strings.Cut(how, " "); ok {
				of := map[string]int{"first": c.Process.Pid, "second": second, "tests": tests}
				for who := range strings.SplitSeq(who, " and ") {
					_ = syscall.Kill(of[who], map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM, "SIGQUIT": syscall.SIGQUIT}[name])
				}
			}
			_ = c.Wait()
			if got := c.ProcessState.ExitCode(); got != code {
				t.Errorf("it ended with %d, want %d: %s", got, code, &stderr)
			}
			for _, pid := range []int{tests, second, orphan} {
				for until := time.Now().Add(time.Minute); !gone(pid); { // at once, but where the first was killed: then nobody waits for the second
					if time.Now().After(until) {
						t.Fatalf("%d is still there", pid)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			name := fmt.Sprintf("plimsoll-held-%d", tests)
			if how == "SIGKILL second" && os.Geteuid() == 0 { // who alone knows the tests' number
				if out, err := exec.Command("ip", "netns", "delete", name).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}
			if left, err := filepath.Glob("/run/netns/" + name); err != nil || len(left) > 0 {
				t.Errorf("%v, %v is left", err, left)
			}
		})
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

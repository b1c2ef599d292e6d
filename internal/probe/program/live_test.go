package program

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

// started starts a program that ends with the test, and returns its PID.
func started(t *testing.T, name string, args ...string) int {
	t.Helper()
	c := exec.Command(name, args...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c.Process.Pid
}

// most waits until a program spends at least half of the time that was seen on one thing, and returns whom it is towards.
func most(t *testing.T, pid int, doing string) (towards string) {
	t.Helper()
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Program = strconv.Itoa(pid)
	r, err := open(h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before := map[string]float64{}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		rec := livetest.NewRecord()
		if err := r.Read(probe.NewOut(rec, "here", time.Now(), time.Second)); err != nil {
			t.Fatal(err)
		}
		all, best, is := 0.0, 0.0, ""
		for name, v := range rec.Values {
			labels, found := strings.CutPrefix(name, seconds.Name+"{")
			if !found {
				continue
			}
			f := strings.Split(labels, ",")
			if f[0] != "queued" { // how much that is depends on what else this machine has to do
				all += v - before[name]
			}
			if f[0] == doing && v-before[name] > best {
				best, is = v-before[name], f[1]
			}
		}
		if best > 0 && best >= all/2 { // of what it did since the reading before: at first it loads
			return is
		}
		before = rec.Values
		if time.Now().After(deadline) {
			t.Fatalf("%s is not what it does most: %v", doing, rec.Values)
		}
	}
}

func TestComputes(t *testing.T) { most(t, started(t, "sh", "-c", "while :; do :; done"), running) }

func TestSleeps(t *testing.T) { most(t, started(t, "sleep", "1000"), "sleep") }

// A shell that waits for what it started does what that does.
func TestWaitsForItsChild(t *testing.T) {
	most(t, started(t, "sh", "-c", "sleep 1000; true"), "sleep")
}

// interpreter is Python's, which the tests' packages have.
func interpreter(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	return path
}

// What a process asks is told by its socket, in whatever way it waits for the answer.
func TestWaitsForAnAnswer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, script := range map[string]string{
		"recv": "s.recv(1)", "poll": "p = select.poll(); p.register(s, select.POLLIN); p.poll()", "select": "select.select([s], [], [])",
		"epoll": "p = select.epoll(); p.register(s, select.EPOLLIN); p.poll()", "timeout": "s.settimeout(1000); s.recv(1)",
	} {
		t.Run(name, func(t *testing.T) {
			python := interpreter(t)
			pid := started(t, python, "-c", "import socket, select; s = socket.create_connection(('127.0.0.1', "+port(l)+")); "+script)
			if got := most(t, pid, "socket_read"); got != l.Addr().String() {
				t.Errorf("towards %q, want %s", got, l.Addr())
			}
		})
	}
}

func port(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// A writer whose peer does not read is told, and by whom.
func TestWaitsUntilItIsRead(t *testing.T) {
	python := interpreter(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pid := started(t, python, "-c", "import socket; s = socket.create_connection(('127.0.0.1', "+port(l)+")); s.sendall(b'x' * 100_000_000)")
	if got := most(t, pid, "socket_write"); got != l.Addr().String() {
		t.Errorf("towards %q, want %s", got, l.Addr())
	}
}

// A server that stands in sending to a client that does not read is held up by that, at whatever port it listens; one that
// waits for the next request is not, nor is who waits for datagrams of anybody.
func TestServers(t *testing.T) {
	python := interpreter(t)
	const accept = "import socket, sys; l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(); print(l.getsockname()[1], flush=True); s = l.accept()[0]; "
	for name, tc := range map[string]struct{ does, doing string }{"sends": {"s.sendall(b'x' * 100_000_000)", "socket_write"}, "receives": {"s.recv(1)", "poll"}} {
		t.Run(name, func(t *testing.T) {
			c := exec.Command(python, "-c", accept+tc.does)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
			var port int
			if _, err := fmt.Fscan(out, &port); err != nil {
				t.Fatal(err)
			}
			client, err := net.Dial("tcp4", "127.0.0.1:"+strconv.Itoa(port))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			want := ""
			if tc.doing == "socket_write" {
				want = "clients@127.0.0.1:" + strconv.Itoa(port)
			}
			if got := most(t, c.Process.Pid, tc.doing); got != want {
				t.Errorf("towards %q, want %q", got, want)
			}
		})
	}
	t.Run("datagrams", func(t *testing.T) {
		most(t, started(t, python, "-c", "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.recv(1)"), "poll")
	})
	t.Run("select of nothing", func(t *testing.T) {
		most(t, started(t, python, "-c", "import select; select.select([], [], [], 1000)"), "sleep")
	})
}

// What a child used counts once, however late it is waited for, and one that waits to be waited for is no process any more.
func TestChildIsWaitedForLate(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Program = strconv.Itoa(started(t, "sh", "-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done' & read x; wait; sleep 1000"))
	r, err := open(h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cpu := func() float64 {
		rec := livetest.NewRecord()
		if err := r.Read(probe.NewOut(rec, "here", time.Now(), time.Second)); err != nil {
			t.Fatal(err)
		}
		return rec.Values[cpuSeconds.Name+"{user}"] + rec.Values[cpuSeconds.Name+"{system}"]
	}
	over := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.set.members {
			if m.over {
				return true
			}
		}
		return false
	}
	for deadline := time.Now().Add(time.Minute); !over(); time.Sleep(20 * time.Millisecond) {
		cpu()
		if time.Now().After(deadline) {
			t.Fatal("the child does not end")
		}
	}
	before := cpu()
	if before < 0.05 {
		t.Fatalf("the child used %v s", before)
	}
	pid, err := strconv.Atoi(h.Program)
	if err != nil {
		t.Fatal(err)
	}
	proc, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/fd/0", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	if _, err := proc.WriteString("on\n"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); over(); time.Sleep(20 * time.Millisecond) {
		cpu()
		if time.Now().After(deadline) {
			t.Fatal("the child is not waited for")
		}
	}
	if after := cpu(); after > before+0.1 {
		t.Errorf("%v s, and %v once the child was waited for", before, after)
	}
}

// The file whose lock is waited for is named.
func TestWaitsForALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := started(t, "flock", path, "sleep", "1000")
	most(t, holder, "sleep")
	if got := most(t, started(t, "flock", path, "true"), "file_lock"); got != layout.WithoutIdentifiers(path) {
		t.Errorf("towards %q, want %s", got, path)
	}
}

// A program by its name has each of its processes, also those that live for less than the time between two searches.
func TestShortLived(t *testing.T) {
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	nap := filepath.Join(t.TempDir(), "nap"+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(nap, b, 0o755); err != nil {
		t.Fatal(err)
	}
	started(t, "sh", "-c", "while :; do "+nap+" 0.1; done")
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Program = filepath.Base(nap)
	r, err := open(h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r.mu.Lock()
		slept := r.ledger.wall[kind{doing: "sleep", call: "nanosleep", thread: poolName(h.Program)}]
		r.mu.Unlock()
		if slept > time.Second {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was seen for %v: %v", slept, r.ledger.wall)
		}
	}
}

package wait

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

// terminal makes a terminal whose other end reads a little now and then.
func terminal(t *testing.T) *os.File {
	t.Helper()
	shows, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = shows.Close() }) // it was only read
	if err := unix.IoctlSetPointerInt(int(shows.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(shows.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	prints, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 512)
		for {
			if _, err := shows.Read(b); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return prints
}

// Who prints to a terminal that is slower waits for it, by its name.
func TestTerminalThatIsSlow(t *testing.T) {
	tracetest.Need(t, tracer())
	prints := terminal(t)
	defer prints.Close()
	tr := beginOn(t, newer(t))
	name := "yes" + strconv.Itoa(os.Getpid())
	program, err := exec.LookPath("yes")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(tracetest.Copy(t, program, name))
	c.Stdout = prints
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	tracetest.Eventually(t, "yes waits for its terminal", func() bool {
		groups, _ := of(t, tr, name)
		for _, to := range groups["device_write"].Targets {
			if to.Towards == prints.Name() && to.Blocks >= 20 {
				return true
			}
		}
		return false
	})
}

// A poll for an answer and for room waits for room, also where each has an entry of its own: it would not sleep if there were any.
func TestPollForRoom(t *testing.T) {
	tracetest.Need(t, tracer())
	const python = "/usr/bin/python3" // what stands before it in PATH may be a script
	if _, err := os.Stat(python); err != nil {
		t.Skip("no python3: ", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tr := beginOn(t, newer(t))
	name := "send" + strconv.Itoa(os.Getpid())
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	const script = `
import ctypes, select, socket, sys, struct
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.setblocking(False)
try:
    while s.send(b"x" * 65536): pass
except BlockingIOError: pass
fds = struct.pack("ihhihh", s.fileno(), select.POLLIN, 0, s.fileno(), select.POLLOUT, 0)
while True: ctypes.CDLL(None).poll(ctypes.create_string_buffer(fds), 2, 20)
`
	c := exec.Command(tracetest.Copy(t, python, name), "-c", script, port)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	tracetest.Eventually(t, "it waits for room", func() bool {
		groups, _ := of(t, tr, name)
		for _, to := range groups["socket_write"].Targets {
			if to.Towards == l.Addr().String() && to.Blocks >= 10 {
				return len(groups["socket_read"].Targets) == 0
			}
		}
		return false
	})
}

// Package tcptest is what the tests of the tracers of connections share: a
// network namespace of their own, and a process that connects, accepts and reads
// as it is told.
package tcptest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tracetest"
)

const obey = "PLIMSOLL_TEST_PEER"

// Main runs the tests, or is the process that does as it is told.
func Main(m *testing.M, t trace.Tracer) int {
	if os.Getenv(obey) != "" {
		obeyInput()
		return 0
	}
	return tracetest.Main(m, t)
}

// obeyInput does what each line of standard input says, and answers each with a
// line: the last error, or what was asked for.
func obeyInput() {
	p := &sockets{listener: -1}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var what, arg string
		var n int
		_, _ = fmt.Sscan(in.Text(), &what, &arg, &n) // not all commands have all
		said, err := p.do(what, arg, n)
		if err != nil {
			said = err.Error()
		}
		fmt.Println(said)
	}
}

// sockets are those of the obeying process.
type sockets struct {
	listener int
	open     []int
}

func (p *sockets) do(what, arg string, n int) (string, error) {
	switch what {
	case "connect": // ADDRESS TIMES; the connections stay open
		return "", p.connect(netip.MustParseAddrPort(arg), n)
	case "listen": // says the port
		return p.listen()
	case "accept": // TIMES
		times, _ := strconv.Atoi(arg)
		for range times {
			fd, _, err := unix.Accept(p.listener)
			if err != nil {
				return "", err
			}
			p.open = append(p.open, fd)
		}
	case "read", "send": // BYTES on each connection
		size, _ := strconv.Atoi(arg)
		for _, fd := range p.open {
			do := unix.Read
			if what == "send" {
				do = unix.Write
			}
			if _, err := do(fd, make([]byte, size)); err != nil {
				return "", err
			}
		}
	case "close", "abort":
		for _, fd := range p.open {
			if what == "abort" {
				if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
					return "", err
				}
			}
			unix.Close(fd)
		}
		p.open = nil
	default:
		return "", fmt.Errorf("unknown command %q", what)
	}
	return "", nil
}

func (p *sockets) connect(to netip.AddrPort, n int) error {
	var last error
	for range n {
		family, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port())})
		if to.Addr().Is4() {
			addr.(*unix.SockaddrInet4).Addr = to.Addr().As4()
		} else {
			family, addr = unix.AF_INET6, &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())}
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, addr); err != nil {
			last = err
			unix.Close(fd)
			continue
		}
		p.open = append(p.open, fd)
	}
	return last
}

func (p *sockets) listen() (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	p.listener = fd
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 128)); err != nil {
		return "", err
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(addr.(*unix.SockaddrInet4).Port), nil
}

// Peer is a process that does as it is told; tracers leave out that of the test.
type Peer struct {
	// Name is its command.
	Name string
	t    *testing.T
	in   io.Writer
	out  *bufio.Scanner
}

// StartPeer starts it in the network namespace of the calling thread.
func StartPeer(t *testing.T) *Peer {
	t.Helper()
	p := &Peer{Name: "peer" + strconv.Itoa(os.Getpid()), t: t}
	cmd := exec.Command(tracetest.Copy(t, "/proc/self/exe", p.Name))
	cmd.Env = append(os.Environ(), obey+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	p.in, p.out = stdin, bufio.NewScanner(stdout)
	return p
}

// Do has it obey one command, and returns what it says then: "" if all is well.
func (p *Peer) Do(format string, args ...any) string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("the peer ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// OwnNetns puts the test, its thread and the processes that it starts into a
// network namespace that nobody else is in, and returns its inode.
func OwnNetns(t *testing.T, tracer trace.Tracer) uint32 {
	t.Helper()
	tracetest.Need(t, tracer)
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	Run(t, "ip", "link", "set", "lo", "up")
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	return uint32(st.Ino)
}

// Run runs a command, and skips the test if there is none of its name.
func Run(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Listen listens in this process.
func Listen(t *testing.T, address string) (net.Listener, netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).AddrPort()
}

// Closed waits until no connection of a port is left in the namespace, but what waits
// for its time to pass (TIME_WAIT): nothing is sent or closed any more.
func Closed(t *testing.T, port uint16) {
	t.Helper()
	end := fmt.Sprintf(":%04X", port)
	tracetest.Eventually(t, "all connections of port "+strconv.Itoa(int(port))+" are closed", func() bool {
		for _, file := range []string{"tcp", "tcp6"} {
			text, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				f := strings.Fields(line) // sl local remote state …
				if (strings.HasSuffix(f[1], end) || strings.HasSuffix(f[2], end)) && f[3] != "06" && f[3] != "0A" {
					return false
				}
			}
		}
		return true
	})
}

// Counter reads one of the namespace's TCP counters, as nstat shows them without
// their prefix.
func Counter(t *testing.T, name string) uint64 {
	t.Helper()
	for _, file := range []string{"snmp", "netstat"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := counter(t, string(text), name); ok {
			return v
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}

// counter finds it in pairs of lines, of names and of values.
func counter(t *testing.T, text, name string) (v uint64, ok bool) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		at := slices.Index(names, name)
		if at < 0 || !strings.HasPrefix(lines[i], "Tcp") {
			continue
		}
		v, err := strconv.ParseUint(values[at], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v, true
	}
	return 0, false
}

package requests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

const asServer = "PLIMSOLL_TEST_SERVER"

func TestMain(m *testing.M) {
	if how := os.Getenv(asServer); how != "" {
		serve(how)
		return
	}
	os.Exit(tcptest.Main(m, Tracer()))
}

// eachWay runs a test with each way to tell turns that this kernel has. It has one, at
// the least, where the tracer says that it can run.
func eachWay(t *testing.T, test func(*testing.T, way)) {
	t.Helper()
	tracetest.Need(t, Tracer())
	refusals := map[string]error{}
	for w, name := range []string{byTracepoints: "tracepoints", byFunctions: "functions"} {
		t.Run(name, func(t *testing.T) {
			if why := lacks(t, way(w)); errors.Is(why, fs.ErrNotExist) || errors.Is(why, fs.ErrPermission) {
				refusals[name] = why
				t.Skip(why)
			} else if why != nil {
				t.Fatal(why)
			}
			test(t, way(w))
		})
	}
	if len(refusals) == 2 {
		t.Errorf("both ways are refused, so nothing was tested: %v", refusals)
	}
}

// lacks says why this kernel has not got a way.
func lacks(t *testing.T, w way) error {
	t.Helper()
	programs, err := trace.Try(load(t, w), since)
	if err != nil {
		return err
	}
	return Tracer().Lacks(programs)
}

func load(t *testing.T, w way) *ebpf.CollectionSpec {
	t.Helper()
	spec := loadBothWalks(t, w)
	chooseWalk(spec, mayWalkMaps())
	return spec
}

func loadBothWalks(t *testing.T, w way) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	w.choose(spec, kernel, hasIPv6())
	return spec
}

// begin starts the tracer in a network namespace of its own; most is how many turns
// a second are followed.
func begin(t *testing.T, w way, most uint32) (*Trace, uint32) {
	t.Helper()
	return beginWith(t, load(t, w), most)
}

func beginWith(t *testing.T, spec *ebpf.CollectionSpec, most uint32) (*Trace, uint32) {
	t.Helper()
	ns := tcptest.OwnNetns(t, Tracer())
	return beginHere(t, spec, func(spec *ebpf.CollectionSpec) error { return trace.SetConstant(spec, bpfVarMost, most) }), ns
}

func beginHere(t *testing.T, spec *ebpf.CollectionSpec, change func(*ebpf.CollectionSpec) error) *Trace {
	t.Helper()
	if err := change(spec); err != nil {
		t.Fatal(err)
	}
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	tracetest.AllAttached(t, Tracer(), tr)
	tr.overlooked.lost = math.MaxUint64 // what finds no room may be of others on this machine
	return tr
}

const everything = 1 << 30

// at returns what was seen at a listener of a namespace.
func at(t *testing.T, tr *Trace, ns uint32, name string) Place {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost, "turns", "sockets") // which may be of others on this machine, and end while they are looked at
	for _, p := range s.Places {
		if p.Netns == ns && p.Listen == name {
			return p
		}
	}
	return Place{}
}

// group is what one command did there; where the name is wrong there is nothing.
func (p Place) group(name string) Group {
	for _, c := range p.Groups {
		if c.Name == name {
			return c
		}
	}
	return Group{}
}

// now is how many requests a command has in hand, -1 if this is not known.
func (p Place) now(name string) int {
	if c := p.group(name); c.Now != nil {
		return int(*c.Now)
	}
	return -1
}

// wait looks until something is so; when it is not, it shows what was seen.
func wait(t *testing.T, tr *Trace, ns uint32, name, what string, so func(Place) bool) Place {
	t.Helper()
	var p Place
	defer func() {
		if t.Failed() {
			t.Logf("%+v", p)
		}
	}()
	tracetest.Eventually(t, what, func() bool {
		tr.next = time.Time{}
		p = at(t, tr, ns, name)
		return so(p)
	})
	return p
}

// ask sends a request of a line, and reads a reply of a line.
func ask(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatal(err)
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || got == "" {
		t.Fatal(got, err)
	}
}

// serve is a process of its own, which the tracer does not leave out: it answers
// each line by what the line says.
func serve(address string) {
	network, addr, _ := splitAddress(address)
	l, err := net.Listen(network, addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is done with us
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go answerLines(c)
	}
}

func splitAddress(address string) (network, addr string, ok bool) {
	if filepath.IsAbs(address) {
		return "unix", address, true
	}
	return "tcp", address, true
}

// answerLines: "wait MS" answers after so long, "parts N MS" in so many parts with
// pauses, "close", "abort" and "never" not at all.
func answerLines(c net.Conn) {
	in := bufio.NewScanner(c)
	for in.Scan() {
		var what string
		var a, b int
		_, _ = fmt.Sscan(in.Text(), &what, &a, &b) // not all have all
		switch what {
		case "wait":
			time.Sleep(time.Duration(a) * time.Millisecond)
			fmt.Fprintln(c, "done")
		case "parts":
			for i := range a {
				if i > 0 {
					time.Sleep(time.Duration(b) * time.Millisecond)
				}
				fmt.Fprint(c, "part ")
			}
			fmt.Fprintln(c)
		case "close":
			c.Close()
			return
		case "abort":
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
			return
		}
	}
	c.Close()
}

// startServer starts it, and returns its command's name and its address.
func startServer(t *testing.T, address string) (name, at string) {
	t.Helper()
	name = "srv" + strconv.Itoa(os.Getpid())
	return name, startProcess(t, tracetest.Copy(t, "/proc/self/exe", name), asServer+"="+address)
}

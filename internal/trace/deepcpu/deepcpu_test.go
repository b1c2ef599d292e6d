package deepcpu

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tracetest"
)

// as says what this test binary is to be instead of a test.
const as = "PLIMSOLL_TEST_DEEPCPU"

func TestMain(m *testing.M) {
	switch os.Getenv(as) {
	case "serve":
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "memlock":
		fmt.Print(tryMemlock())
	default:
		os.Exit(tracetest.Main(m, ofPHP()))
	}
}

// tryMemlock says what the filter does to a process.
func tryMemlock() string {
	var before, after, files unix.Rlimit
	raised := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before)
	if err := answerMemlock(); err != nil {
		return err.Error()
	}
	set := make(chan error)
	go func() { set <- unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &raised, nil) }()
	err := <-set
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &after)
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	low := unix.Rlimit{Cur: 97, Max: files.Max}
	other := unix.Setrlimit(unix.RLIMIT_NOFILE, &low)
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	return fmt.Sprintf("%v, memlock as before: %t, %v, files: %d", err, before == after, other, files.Cur)
}

// worker is a process at the other end of two pipes.
type worker struct {
	io.Reader
	io.WriteCloser
	cmd  *exec.Cmd
	once sync.Once
}

func (w *worker) Close() error {
	var err error
	w.once.Do(func() {
		err = w.WriteCloser.Close()
		kill := time.AfterFunc(10*time.Second, func() { _ = w.cmd.Process.Kill() })
		defer kill.Stop()
		if e := w.cmd.Wait(); err == nil {
			err = e
		}
	})
	return err
}

func spawn() (io.ReadWriteCloser, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), as+"=serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &worker{Reader: out, WriteCloser: in, cmd: cmd}, cmd.Start()
}

func TestMemlockIsAnsweredAndStays(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), as+"=memlock")
	out, err := cmd.Output()
	if want := "<nil>, memlock as before: true, <nil>, files: 97"; err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// TestLive starts the tracer once for all that looks at real processes.
func TestLive(t *testing.T) {
	tracetest.Need(t, Tracer(spawn))
	running, err := Start(spawn, Hertz, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Run("functions are named", func(t *testing.T) { functionsAreNamed(t, running) })
	t.Run("samples are CPU time", func(t *testing.T) { samplesAreCPUTime(t, running) })
	t.Run("pause, only, ignore", func(t *testing.T) { pauseOnlyIgnore(t, running) })
	t.Run("loss is read", func(t *testing.T) { lossIsRead(t, running) })
}

// functionsAreNamed lets known functions burn the CPU, and wants them named
// with their files and lines.
func functionsAreNamed(t *testing.T, running *Trace) {
	workloads := []struct {
		name, group string
		start       func(t *testing.T)
		want        func(seenStack) bool
		wanted      string
	}{
		{"php-fpm", filepath.Base(livetest.FindPHPFPM()), burnFPM, func(s seenStack) bool {
			return s.has("sqrt", "", 0) && s.has("busy", "busy.php", 5) && s.has("outer", "busy.php", 10)
		},
			"sqrt called by busy, busy.php:5, called by outer, busy.php:10"},
		{"python", "python3", burn("python3", "busy.py"), func(s seenStack) bool { return s.has("busy", "busy.py", 5) && s.has("outer", "busy.py", 8) },
			"busy, busy.py:5, called by outer, busy.py:8"},
		{"node", "node", burn("node", "busy.js"), func(s seenStack) bool { return s.has("busy", "busy.js", 2) && s.has("outer", "busy.js", 4) },
			"busy, busy.js:2, called by outer, busy.js:4"},
		{"nginx", "nginx", burnNginx, func(s seenStack) bool { return s.deep("nginx") > 4 && s.has("ngx_process_events_and_timers", "", 0) },
			"more than 4 frames of nginx, ngx_process_events_and_timers among them"},
	}
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			w.start(t)
			var seen []seenStack
			defer func() {
				if t.Failed() {
					t.Log(text(seen))
				}
			}()
			tracetest.Eventually(t, w.wanted, func() bool {
				p, err := running.Profile()
				if err != nil {
					t.Fatal(err)
				}
				seen = stacksOf(p, w.group)
				return slices.ContainsFunc(seen, w.want)
			})
		})
	}
	report, err := running.Report(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + report.Text(100))
}

// cpuTicks is how long a process has computed, in hundredths of a second.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	ticks, err := strconv.Atoi(strings.Fields(rest)[11]) // the 14th of all
	if err != nil {
		t.Fatal(err)
	}
	return ticks
}

func pauseOnlyIgnore(t *testing.T, running *Trace) {
	one, two := spin(t), spin(t)
	seen := func(pid int) int64 {
		p, err := running.Profile()
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, s := range p.Sample {
			if slices.Contains(s.NumLabel["pid"], int64(pid)) {
				n += s.Value[0]
			}
		}
		return n
	}
	grows := func(pid int) {
		t.Helper()
		before := seen(pid)
		tracetest.Eventually(t, "samples of a process that spins", func() bool { return seen(pid) > before })
	}
	stays := func(pid int) {
		t.Helper()
		tracetest.Eventually(t, "no more samples of a process that spins", func() bool {
			before, computed := seen(pid), cpuTicks(t, pid)
			tracetest.Eventually(t, "it computes on", func() bool { return cpuTicks(t, pid) > computed+20 })
			return seen(pid) == before
		})
	}
	grows(one)
	do(t, running.Ignore(one))
	stays(one)
	grows(two)
	do(t, running.Ignore())
	do(t, running.Only(one))
	stays(two)
	grows(one)
	do(t, running.Only())
	do(t, running.Pause())
	stays(one)
	stays(two)
	do(t, running.Resume())
	grows(two)
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer(spawn))
	tracetest.Detaches(t, ofPHP())
}

// ofPHP is the tracer that reads one language, since to load the programs of all takes the kernel some seconds, and they are let go of alike.
func ofPHP() trace.Tracer {
	tr := Tracer(spawn)
	tr.Start = func() (trace.Running, error) { return Start(spawn, Hertz, []string{"PHP"}) }
	return tr
}

// samplesAreCPUTime compares what is sampled of a process with the kernel's own
// account of its CPU time.
func samplesAreCPUTime(t *testing.T, running *Trace) {
	pid := spin(t)
	used := func() time.Duration {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ns)
	}
	sampled := func() (cpu time.Duration) {
		p, err := running.Profile()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Sample {
			if slices.Contains(s.NumLabel["pid"], int64(pid)) {
				cpu += time.Duration(s.Value[1])
			}
		}
		return cpu
	}
	tracetest.Eventually(t, "samples of a process that spins", func() bool { return sampled() > 0 })
	do(t, running.Pause())
	got, want := -sampled(), -used()
	do(t, running.Resume())
	tracetest.Eventually(t, "a process that used 2 s of CPU time", func() bool { return want+used() > 2*time.Second })
	do(t, running.Pause())
	want += used()
	got += sampled()
	do(t, running.Resume())
	// The clock of the samples also runs while a hypervisor has the CPU. What is counted twice, or half, shows.
	if ratio := float64(got) / float64(want); ratio < 0.67 || ratio > 1.5 {
		t.Errorf("sampled %v of CPU time, want %v", got, want)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lossIsRead looks for the counts of what is lost.
func lossIsRead(t *testing.T, running trace.Running) {
	t.Helper()
	tracetest.AllAttached(t, Tracer(spawn), running)
	out := tracetest.Sink{}
	if err := running.Read(out); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{lostBuffer, lostStacks, lostUnread} {
		if _, ok := out[lostTotal.Name+"{"+what+"}"]; !ok {
			t.Errorf("no count of %s in %v", what, out)
		}
	}
}

// TestItSaysWhyItCannot speaks with processes that are not what they should be.
func TestItSaysWhyItCannot(t *testing.T) {
	for said, want := range map[string]string{
		`{"error":"no rights"}`: "read whole stacks: no rights",
		"":                      "the process that reads stacks has ended: EOF",
		"Segmentation fault":    "the process that reads stacks has ended: invalid character 'S' looking for beginning of value",
	} {
		_, err := Start(func() (io.ReadWriteCloser, error) { return silent{strings.NewReader(said)}, nil }, Hertz, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", said, err, want)
		}
	}
}

type silent struct{ io.Reader }

func (silent) Write(p []byte) (int, error) { return len(p), nil }
func (silent) Close() error                { return nil }

// seenStack is what is known of one stack, the innermost frame first.
type seenStack []frame

type frame struct {
	name, file, module string
	line               int64
}

func (s seenStack) has(name, file string, line int64) bool {
	return slices.ContainsFunc(s, func(f frame) bool {
		return f.name == name && (file == "" || filepath.Base(f.file) == file && f.line == line)
	})
}

func (s seenStack) deep(module string) (n int) {
	for _, f := range s {
		if filepath.Base(f.module) == module {
			n++
		}
	}
	return n
}

func stacksOf(p *profile.Profile, group string) (all []seenStack) {
	for _, s := range p.Sample {
		if !slices.Contains(s.Label["groupname"], group) {
			continue
		}
		var one seenStack
		for _, l := range s.Location {
			for _, line := range l.Line {
				f := frame{name: line.Function.Name, file: line.Function.Filename, line: line.Line}
				if l.Mapping != nil {
					f.module = l.Mapping.File
				}
				one = append(one, f)
			}
		}
		all = append(all, one)
	}
	return all
}

func text(all []seenStack) string {
	var b strings.Builder
	for _, s := range all[:min(len(all), 5)] {
		for _, f := range s {
			fmt.Fprintf(&b, "%s %s:%d %s\n", f.name, f.file, f.line, f.module)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func burn(program, script string) func(*testing.T) {
	return func(t *testing.T) { run(t, program, filepath.Join("testdata", script)) }
}

func spin(t *testing.T) int {
	return run(t, "/bin/sh", "-c", "while :; do :; done").Process.Pid
}

// run starts a program that is ended with the test.
func run(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	found, err := exec.LookPath(program)
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(found, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM) // a master ends its workers
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // it was ended by a signal
		kill.Stop()
		if t.Failed() {
			t.Log(program, "said:", said.String())
		}
	})
	return cmd
}

// config writes a configuration file into a folder of its own.
func config(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func burnFPM(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	run(t, livetest.PHPFPM(t), "-R", "-F", "-y", config(t, dir, fmt.Sprintf(
		"[global]\nerror_log = %s/log\n[www]\nuser = root\ngroup = root\nlisten = %s\npm = static\npm.max_children = 1\n", dir, socket)))
	script, err := filepath.Abs("testdata/busy.php")
	if err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	tracetest.Eventually(t, "php-fpm listens", func() bool {
		conn, err = net.Dial("unix", socket)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write(fastCGI(script)); err != nil {
		t.Fatal(err)
	}
}

// fastCGI is a request for a script: begin, parameters, no more of them, no body.
func fastCGI(script string) []byte {
	record := func(kind byte, body string) []byte {
		head := []byte{1, kind, 0, 1, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(head[4:], uint16(len(body)))
		return append(head, body...)
	}
	pair := func(name, value string) string {
		return string([]byte{byte(len(name)), byte(len(value))}) + name + value
	}
	return slices.Concat(record(1, "\x00\x01\x00\x00\x00\x00\x00\x00"),
		record(4, pair("SCRIPT_FILENAME", script)+pair("REQUEST_METHOD", "GET")), record(4, ""), record(5, ""))
}

func burnNginx(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	var temp strings.Builder
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "%s_temp_path %s;\n", what, dir)
	}
	run(t, "nginx", "-c", config(t, dir, fmt.Sprintf("daemon off; user root; worker_processes 1; pid %[1]s/pid; error_log %[1]s/log;\nevents {}\n"+
		"http { access_log off; keepalive_requests 1000000;\n%[2]sserver { listen unix:%[3]s; location / { return 200 \"x\\n\"; } } }\n", dir, temp.String(), socket)))
	var conn net.Conn
	var err error
	tracetest.Eventually(t, "nginx listens", func() bool {
		conn, err = net.Dial("unix", socket)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
	go func() {
		requests := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: "+strconv.Itoa(17)+"\r\n\r\n", 7))
		for err := error(nil); err == nil; {
			_, err = conn.Write(requests)
		}
	}()
}

// Package livetest runs a real service in a network namespace of its own, for
// the tests of probes: what runs elsewhere on the machine cannot disturb them.
package livetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// patience is how long something that must happen may take on a busy machine.
const patience = time.Minute

// Record is a probe.Recorder that keeps what was reported last.
type Record struct {
	mu sync.Mutex
	// Values are by "name{label values}".
	Values map[string]float64
	States map[string]model.Status
	Lines  []string // events as "kind text"
	Notes  []string
}

// NewRecord makes an empty Record.
func NewRecord() *Record {
	return &Record{Values: map[string]float64{}, States: map[string]model.Status{}}
}

// Sample implements probe.Recorder.
func (r *Record) Sample(_ string, _ int64, s *model.Signal, v float64, labels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Values[s.Name+"{"+strings.Join(labels, ",")+"}"] = v
}

// Event implements probe.Recorder.
func (r *Record) Event(e model.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Lines = append(r.Lines, e.Kind+" "+e.Text)
}

// Status implements probe.Recorder.
func (r *Record) Status(_, signal string, st model.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.States[signal] = st
}

// Note implements probe.Recorder.
func (r *Record) Note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Notes = append(r.Notes, s)
}

// Service is a running service, and a sampler that reads it.
type Service struct {
	Dir     string // a directory of the test's
	PID     int
	Host    *host.Host
	Rec     *Record
	t       *testing.T
	cmd     *exec.Cmd
	netns   string // as /proc/PID/ns/net says it
	sampler *probe.Sampler
}

// Start writes files into a directory and runs command (its first word looked
// up in the path, "DIR" in it replaced by the directory) in the foreground in a
// new network namespace. It skips the test where that cannot be done.
func Start(t *testing.T, files map[string]string, command ...string) *Service {
	t.Helper()
	path, err := exec.LookPath(command[0])
	if err != nil {
		t.Skipf("%s is not installed", command[0])
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may make a network namespace")
	}
	s := &Service{t: t, Dir: t.TempDir(), Rec: NewRecord()}
	for name, text := range files {
		s.Write(name, text)
	}
	var args []string
	for _, a := range command[1:] {
		args = append(args, strings.ReplaceAll(a, "DIR", s.Dir))
	}
	s.cmd = exec.Command(path, args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig goes by the thread that started it
	if err := apart(s.cmd.Start); err != nil {
		t.Skipf("cannot start %s in a network namespace of its own: %v", command[0], err)
	}
	t.Cleanup(s.stop)
	s.PID = s.cmd.Process.Pid
	if s.netns, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", s.PID)); err != nil {
		t.Fatal(err)
	}
	if s.Host, err = host.Open("web", fmt.Sprintf("pid:%d", s.PID)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Host.Close() })
	return s
}

// apart does something in a new network namespace whose loopback device is up
// already: a service that is faster than we are could not bind an address of it.
func apart(do func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err = loopbackUp(); err == nil {
		err = do()
	}
	return errors.Join(err, unix.Setns(int(home.Fd()), unix.CLONE_NEWNET))
}

// stop ends the service. What a test started beside it has to have ended by then:
// workers outlive a master that is killed.
func (s *Service) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.cmd.Wait()
	var left []int
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if left = s.inside(); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	for _, pid := range left {
		title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may end just now
		s.t.Errorf("the test leaves process %d behind: %s", pid, strings.ReplaceAll(string(title), "\x00", " "))
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// inside are the processes in the service's network namespace.
func (s *Service) inside() (pids []int) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, link := range links {
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // the pattern has a digit there
		if netns, err := os.Readlink(link); err == nil && netns == s.netns && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Write writes a file of the service, with DIR in its text replaced.
func (s *Service) Write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", s.Dir)), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// loopbackUp is "ip link set lo up" in the calling thread's namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// Dial connects to the service.
func (s *Service) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := s.Host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(patience))
}

// Until waits for something that needs time; the test fails if it never happens.
func (s *Service) Until(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("never happened: %s\n%v\n%v", what, s.Rec.Values, s.Rec.States)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Sample begins to read the service with probes.
func (s *Service) Sample(probes []probe.Probe) {
	s.t.Helper()
	s.sampler = probe.NewSampler([]*host.Host{s.Host}, probes, probe.NewStatusBook(s.Rec), time.Second)
	if err := s.sampler.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.sampler.Close() })
}

// Round reads all probes once.
func (s *Service) Round() {
	s.t.Helper()
	if err := s.sampler.Round(context.Background(), time.Now(), false); err != nil {
		s.t.Fatal(err)
	}
}

// Sees reads rounds until a series ("name{label values}") has a value.
func (s *Service) Sees(series string, want float64) {
	s.t.Helper()
	s.Until(fmt.Sprintf("%s = %v", series, want), func() bool {
		s.Round()
		v, ok := s.Rec.Values[series]
		return ok && v == want
	})
}

// Signal sends the service's first process a signal.
func (s *Service) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// FindPHPFPM returns the path of the newest PHP-FPM that is installed, "" if there is
// none: distributions put the version into its name.
func FindPHPFPM() string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		found, _ := filepath.Glob(filepath.Join(dir, "php-fpm*")) // the pattern is sound
		for _, path := range slices.Backward(found) {
			if _, err := exec.LookPath(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// PHPFPM is FindPHPFPM for a test that is skipped where there is none; as root, who
// can install it, the test fails.
func PHPFPM(t *testing.T) string {
	t.Helper()
	path := FindPHPFPM()
	if path == "" && os.Geteuid() == 0 {
		t.Fatal("PHP-FPM is not installed; scripts/install-deps tests installs it")
	}
	if path == "" {
		t.Skip("PHP-FPM is not installed")
	}
	return path
}

// absentHost is a host on which nothing runs at all.
func absentHost(t *testing.T) *host.Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"sys/kernel/random/boot_id": "x", "sys/kernel/osrelease": "6.1", "stat": "cpu0 1"} {
		file := filepath.Join(root, "proc", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return host.Recorded("web", root)
}

// CheckNone reads probes on a host where nothing runs. That there is none is a
// fact: every signal must be read, and nothing may have a value.
func CheckNone(t *testing.T, probes []probe.Probe) {
	t.Helper()
	rec := NewRecord()
	s := probe.NewSampler([]*host.Host{absentHost(t)}, probes, probe.NewStatusBook(rec), time.Second)
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Round(context.Background(), time.Now(), true); err != nil {
		t.Fatal(err)
	}
	for _, p := range probes {
		for _, sig := range p.Signals {
			if st := rec.States[sig.Name]; st.State != model.Read {
				t.Errorf("%s: %+v, want read", sig.Name, st)
			}
		}
	}
	if len(rec.Values) > 0 {
		t.Errorf("values although nothing runs: %v", rec.Values)
	}
}

package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"plimsoll/internal/orphans/heldtest"
	"plimsoll/internal/probe/livetest"
)

func TestMain(m *testing.M) {
	programs := map[string]func(){"plimsoll": inScript, "nobody": becomeNobody, "with": becomeWith, "nobtf": hideBTF, "measured": measureMemory,
		"plimsoll-losing-rights": losesRights, "plimsoll-giving-way": func() { start(theWorld()) }}
	if programs[filepath.Base(os.Args[0])] == nil {
		heldtest.Tests()
	}
	testscript.Main(m, programs)
}

// inScript is plimsoll with a lock of the script's own in place of the machine's:
// scripts run at the same time, and each changes nothing but what it made. A judge that gives way
// to everything else does not here: on a busy machine a test would wait for it for minutes.
func inScript() {
	takeTurns()
	w := theWorld()
	w.giveWay = func() error { return nil }
	if dir := os.Getenv("SCRIPT_LOCKS"); dir != "" {
		w.locks = dir
	}
	start(w)
}

// takeTurns has this process, which has just begun, give way to others no more than they to it.
func takeTurns() {
	threads, err := os.ReadDir("/proc/self/task")
	must("take turns", err)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		must("take turns", err)
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, 0) // root's alone; others wait
	}
}

// patience is for how long all scripts together may run, before they are ended and
// the one that hangs is named.
const patience = 30 * time.Minute

// TestScripts runs the command line as users do: testdata/script/<command>_<what>.txtar.
func TestScripts(t *testing.T) {
	t.Parallel() // beside those that wait for what never answers
	testscript.Run(t, testscript.Params{
		Dir:      "testdata/script",
		Deadline: time.Now().Add(patience),
		Setup: func(env *testscript.Env) error {
			fixtures, err := filepath.Abs("testdata/prometheus")
			env.Setenv("FIXTURES", fixtures)
			env.Setenv("EVILNAME", hostileText)
			captures, err2 := filepath.Abs("../../internal/capture/testdata/causes")
			env.Setenv("CAPTURES", captures)
			locks, err3 := os.MkdirTemp("", "plimsoll-locks-")
			env.Defer(func() { _ = os.RemoveAll(locks) })
			env.Setenv("SCRIPT_LOCKS", locks)
			env.Setenv("PLIMSOLL_RUNS", filepath.Join(env.WorkDir, "plimsoll-runs"))
			env.Setenv("FPM", livetest.FindPHPFPM())
			env.Setenv("GOGC", "400") // a third of what judging takes is the collector's; how much memory it may take is measured elsewhere
			return errors.Join(err, err2, err3, os.Chmod(locks, 0o755))
		},
		UpdateScripts: *update,
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			if cond == "phpfpm" {
				return livetest.FindPHPFPM() != "", nil
			}
			if cond == "sshd" {
				_, err := os.Stat("/usr/sbin/sshd")
				return err == nil || os.Getenv("CI") != "", nil
			}
			if cond == "btf" {
				_, err := os.Stat("/sys/kernel/btf/vmlinux")
				return err == nil, nil
			}
			if cond == "allthreads" { // not in a build with cgo
				_, _, e := syscall.AllThreadsSyscall(unix.SYS_GETPPID, 0, 0, 0)
				return e != syscall.ENOTSUP, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exitsWith, "fits": fitsDocument, "serve": serve, "small-disk": smallDisk, "truncate": truncate,
			"prometheus": prometheus, "netns": makeNetns, "other-machine": otherMachine, "linked-machine": linkedMachine, "restart-machine": restartMachine, "cut-link": cutLink, "end-login": endLogin, "harmless": harmless, "hostile-run": hostileRun, "hostile-server": hostileServer,
			"nosecret": noSecret, "secret-url": secretURL, "copy-evil": copyEvil,
		},
	})
}

// exitsWith (exits CODE COMMAND...) runs a command and wants exactly that exit code.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// serve starts a web server; $URL leads to it, ${URL}bad to an error, ${URL}slow to an answer after 20 ms, and $DEAD to a port where nothing listens.
// $HTTPS leads to the same over TLS, whose certificate is in $CACERT. Both speak HTTP/2, too; $HTTPS1 does not.
func serve(ts *testscript.TestScript, _ bool, _ []string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/slow":
			time.Sleep(20 * time.Millisecond)
		}
		fmt.Fprintln(w, "hello")
	})
	srv := httptest.NewUnstartedServer(answer)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	ts.Defer(srv.Close)
	ts.Setenv("URL", srv.URL+"/")
	short, err := os.MkdirTemp("", "") // a path of a socket has room for 107 bytes
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(short) })
	ts.Setenv("SOCKET", filepath.Join(short, "s"))
	socket, err := net.Listen("unix", filepath.Join(short, "s"))
	ts.Check(err)
	go func() { _ = srv.Config.Serve(socket) }() // until srv is closed
	ts.Defer(func() { _ = socket.Close() })
	secure := httptest.NewUnstartedServer(answer)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told of each certificate that is refused
	secure.EnableHTTP2 = true
	secure.StartTLS()
	ts.Defer(secure.Close)
	ts.Setenv("HTTPS", secure.URL+"/")
	old := httptest.NewUnstartedServer(answer)
	old.Config.ErrorLog = secure.Config.ErrorLog
	old.StartTLS()
	ts.Defer(old.Close)
	ts.Setenv("HTTPS1", old.URL+"/")
	ts.Setenv("CACERT", ts.MkAbs("ca.pem"))
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("DEAD", "http://"+l.Addr().String()+"/")
	ts.Check(l.Close())
}

// smallDisk (small-disk DIR BYTES) mounts a file system with so much room at DIR.
func smallDisk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+args[1]))
	ts.Defer(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			ts.Logf("unmount %s: %v", dir, err)
		}
	})
}

// networks counts the network namespaces that scripts of this process made.
var networks atomic.Int64

// makeNetns (netns) makes a network namespace, $NETNS, whose loopback is up and whose
// name nobody else has, also where the tests run twice on a machine. What runs in it
// ends with the script.
func makeNetns(ts *testscript.TestScript, _ bool, _ []string) {
	name := fmt.Sprintf("plimsoll-script-%d-%d", os.Getpid(), networks.Add(1))
	ts.Setenv("NETNS", name)
	ts.Check(ts.Exec("ip", "netns", "add", name))
	ts.Defer(func() {
		if err := errors.Join(endAll(name), exec.Command("ip", "netns", "delete", name).Run()); err != nil {
			ts.Logf("remove network namespace %s: %v", name, err)
		}
	})
	ts.Check(ts.Exec("ip", "-n", name, "link", "set", "lo", "up"))
}

// endAll ends all processes in a network namespace: again until none is there, since
// one that is being reloaded may fork a child after it was listed.
func endAll(netns string) error {
	for range 6000 {
		pids, err := exec.Command("ip", "netns", "pids", netns).Output()
		if err != nil || len(bytes.TrimSpace(pids)) == 0 {
			return err
		}
		for word := range strings.FieldsSeq(string(pids)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("processes in %s do not end", netns)
}

// truncate (truncate FILE BYTES) cuts a file off.
func truncate(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

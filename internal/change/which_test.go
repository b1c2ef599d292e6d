package change

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/livetest"
)

// beside starts another service in the namespace of one, and waits until it listens.
func beside(t *testing.T, s *livetest.Service, address string, command ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	if err := s.Host.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(unix.SIGTERM); _ = cmd.Wait() }) // killed, it would leave its workers behind
	s.Until(address+" answers", func() bool {
		c, err := s.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return cmd
}

func TestOfTwoNginxTheOneThatIsMeantIsChanged(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	dir := t.TempDir()
	file := dir + "/nginx.conf"
	text := "user root; worker_processes 1; daemon off; pid " + dir + "/pid; error_log " + dir + "/error.log;\nevents { worker_connections 64; }\n" +
		"http { access_log off; server { listen 8090; return 200 other; } }\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	other := beside(t, w.Service, "127.0.0.1:8090", "nginx", "-p", dir, "-c", file)
	w.Until("it has the title of a master", func() bool { // which it takes after it listens
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", other.Process.Pid))
		return err == nil && strings.HasPrefix(string(title), "nginx: master process")
	})
	for name, c := range map[string]struct {
		listensAt string
		pid       int
		want      string // the file, or the error
	}{
		"where it listens":        {"127.0.0.1:8080", 0, w.Dir + "/nginx.conf"},
		"on all addresses":        {"127.0.0.9:8090", 0, file},
		"behind another address":  {"192.0.2.1:8080", 0, w.Dir + "/nginx.conf"},
		"by its process":          {"", other.Process.Pid, file},
		"that is not to be told":  {"", 0, "several nginx"},
		"at an address of nobody": {"127.0.0.1:99", 0, "several nginx"},
	} {
		step, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99", PID: c.pid, ListensAt: c.listensAt})
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && strings.Join(step.Files, " ") != c.want {
			t.Errorf("%s: %v, %v; want %s", name, step.Files, err, c.want)
		}
	}
	before := read(t, w.Dir+"/nginx.conf")
	j := open(t)
	must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99", ListensAt: "127.0.0.1:8090"})
	if now := read(t, file); !strings.Contains(now, "worker_connections 99") || read(t, w.Dir+"/nginx.conf") != before {
		t.Errorf("it was changed to\n%s", now)
	}
	undoAll(t, j)
	if now := read(t, file); now != text {
		t.Errorf("after the undo it is\n%s", now)
	}
}

// Who calls himself nginx does not keep the real one from being found.
func TestAnImpostorBesideNginxIsPassedOver(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	dir := pretendersDir(t)
	own(t, nobody, dir, dir+"/bin")
	beside(t, w.Service, "127.0.0.1:8091", append(asNobody, "bash", "-c", `exec -a "nginx: master process x -p `+dir+` -c nginx.conf" `+dir+"/bin 8091")...)
	step, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if err != nil || step.service.PID != w.PID {
		t.Errorf("%+v, %v", step.service, err)
	}
}

func TestOfTwoPoolsOfANameTheOneThatIsMeantIsChanged(t *testing.T) {
	t.Parallel()
	s := startFPM(t)
	dir := t.TempDir()
	file := dir + "/fpm.conf"
	text := "[global]\nerror_log = " + dir + "/fpm.log\n[www]\nuser = root\ngroup = root\nlisten = 127.0.0.1:9001\npm = static\npm.max_children = 1\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	other := beside(t, s, "127.0.0.1:9001", livetest.PHPFPM(t), "-R", "-F", "--fpm-config", file)
	pid := strconv.Itoa(other.Process.Pid)
	for _, c := range []struct{ pool, listensAt, want string }{
		{"www", "127.0.0.1:9001", file},
		{"www@" + pid, "", file},
		{"www@1", "127.0.0.1:9000", s.Dir + "/pool.d/a.conf"},
		{"www@" + filepath.Base(other.Path), "127.0.0.1:9001", file},
		{"www", "", "several pools"},
	} {
		step, err := Prepare(s.Host, Change{Kind: PHPFPM, Name: "pm.max_children", To: "4", Pool: c.pool, ListensAt: c.listensAt})
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && strings.Join(step.Files, " ") != c.want {
			t.Errorf("%+v: %v, %v", c, step.Files, err)
		}
	}
}

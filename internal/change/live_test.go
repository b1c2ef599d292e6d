package change

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/livetest"
)

const nginxConf = "# the front\r\n" + `user root; worker_processes 1; pid nginx.pid; daemon off;
error_log error.log;
events { worker_connections 64; } # few {
http {
	access_log access.log; access_log off.log combined if=$scheme;
	client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
	keepalive_timeout "65s" ;
	proxy_set_header X-One 'a "quoted; } one';
	upstream app { server 127.0.0.1:8081; }
	include sites/*;
	server { listen 127.0.0.1:8081; location / { return 200 "$http_connection|$http_x_one"; } }
}
`

const nginxSite = `server {
	listen 127.0.0.1:8080 backlog=100; # } not the end
	location = /ok { return 200 "ok"; }
	location / {
		# passes on
		proxy_pass http://app;
	}
}
`

type web struct{ *livetest.Service }

func (w web) get(uri string) (int, string) {
	c, err := w.Dial("tcp", "127.0.0.1:8080")
	if err != nil {
		return 0, ""
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", uri)
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	b := make([]byte, 100)
	n, _ := reply.Body.Read(b)
	return reply.StatusCode, string(b[:n])
}

func (w web) answers(t *testing.T) {
	t.Helper()
	if code, body := w.get("/ok"); code != 200 || body != "ok" {
		t.Errorf("nginx answers %d %q", code, body)
	}
}

func startNginx(t *testing.T) web {
	t.Helper()
	return startNginxBy(t, "nginx", "-p", "DIR", "-c", "nginx.conf")
}

func startNginxBy(t *testing.T, command ...string) web {
	t.Helper()
	all := map[string]string{"nginx.conf": nginxConf, "available/a": nginxSite}
	dir := t.TempDir()
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/sites", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../available/a", dir+"/sites/a"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "DIR", dir)
	}
	w := web{livetest.Start(t, nil, command...)}
	w.Dir = dir
	w.Until("nginx answers", func() bool { code, _ := w.get("/ok"); return code == 200 })
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name := range all {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestNginxIsChangedAndTakenBack(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	for _, c := range []struct {
		change     Change
		file, want string
	}{
		{Change{Kind: Nginx, Name: "worker_connections", To: "128"}, "nginx.conf", "events { worker_connections 128; } # few {"},
		{Change{Kind: Nginx, Name: "worker_processes", To: "2"}, "nginx.conf", "# the front\r\nuser root; worker_processes 2; pid"},
		{Change{Kind: Nginx, Name: "worker_rlimit_nofile", To: "777"}, "nginx.conf", "error_log error.log;\nworker_rlimit_nofile 777;\r\nevents {"},
		{Change{Kind: Nginx, Name: "multi_accept", To: "on"}, "nginx.conf", "events { multi_accept on; worker_connections 128; } # few {"},
		{Change{Kind: Nginx, Name: "keepalive_timeout", To: "5s"}, "nginx.conf", "\tkeepalive_timeout 5s ;\n"},
		{Change{Kind: Nginx, Name: "keepalive_requests", To: "5000"}, "nginx.conf", "http {\r\n\tkeepalive_requests 5000;\n"},
		{Change{Kind: Nginx, Name: "access_log", To: "buffer=64k flush=1s"}, "nginx.conf", "\taccess_log access.log combined buffer=64k flush=1s; access_log off.log combined buffer=64k flush=1s if=$scheme;\n"},
		{Change{Kind: Nginx, Name: "backlog", To: "300", Listen: "127.0.0.1:8080"}, "available/a", "listen 127.0.0.1:8080 backlog=300; # } not"},
		{Change{Kind: Nginx, Name: "keepalive", To: "8"}, "available/a", "\t\tproxy_pass http://app;\n\t\tproxy_http_version 1.1;\n\t\tproxy_set_header Connection \"\";\n\t\tproxy_set_header X-One 'a \"quoted; } one';\n\t}\n"},
	} {
		e := must(t, j, w.Host, c.change)
		if e.State != Done || e.Restart != Reload {
			t.Errorf("%s: %+v", c.change, e)
		}
		if got := read(t, filepath.Join(w.Dir, c.file)); !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%s", c.change, c.want, got)
		}
		w.answers(t)
		if _, err := Prepare(w.Host, c.change); !errors.Is(err, ErrAlready) {
			t.Errorf("%s once more: %v", c.change, err)
		}
	}
	if !strings.Contains(read(t, w.Dir+"/nginx.conf"), "upstream app { server 127.0.0.1:8081; keepalive 8; }") {
		t.Errorf("the group:\n%s", read(t, w.Dir+"/nginx.conf"))
	}
	if _, body := w.get("/"); body != `|a "quoted; } one` {
		t.Errorf("the header sent on: %q", body)
	}
	now := snap(t, w.Host, w.Dir, w.PID)
	if now["backlog 127.0.0.1:8080"] != "300" {
		t.Errorf("the backlog is %s", now["backlog 127.0.0.1:8080"])
	}
	undoAll(t, j)
	w.answers(t)
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

const ownFiles = "mount -t tmpfs plcg /mnt && cp -a DIR/. /mnt/ && mount --move /mnt DIR && "

// A unit with PrivateTmp, and a container whose files only it has.
func TestNginxInOtherMounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []string
		before  string
		ours    bool
	}{
		"our files":        {nil, "", true},
		"files of its own": {nil, ownFiles, false},
		"a container":      {[]string{"-p", "-f", "--kill-child", "--mount-proc", "-u", "-i", "-C"}, ownFiles, false},
	} {
		t.Run(name, func(t *testing.T) {
			command := append([]string{"unshare", "-m", "--propagation", "private"}, c.options...)
			w := startNginxBy(t, append(command, "sh", "-c", c.before+"exec nginx -p DIR -c nginx.conf")...)
			if c.options != nil {
				t.Cleanup(func() { w.Signal(unix.SIGKILL) }) // unshare -f waits on when it is told to end
			}
			theirs := proc(w.PID, "root") + w.Dir
			before := snap(t, w.Host, theirs, w.PID)
			j := open(t)
			e := must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
			must(t, j, w.Host, Change{Kind: Nginx, Name: "backlog", To: "99", Listen: "127.0.0.1:8080"})
			if (e.Parts[0].Target.Process == nil) != c.ours || strings.Contains(read(t, w.Dir+"/nginx.conf"), "connections 99") != c.ours {
				t.Errorf("%+v", e.Parts[0].Target)
			}
			if !strings.Contains(read(t, theirs+"/nginx.conf"), "connections 99") {
				t.Error("nginx's own file is as it was")
			}
			step, err := Prepare(w.Host, Change{Kind: Nginx, Name: "multi_accept", To: "on"})
			if err != nil {
				t.Fatal(err)
			}
			step.parts[0].New = append(step.parts[0].New, "nonsense here;\n"...)
			if _, err := j.Apply(t.Context(), step); !errors.Is(err, ErrRefused) {
				t.Errorf("nonsense: %v", err)
			}
			w.answers(t)
			undoAll(t, j)
			if d := cmp.Diff(before, snap(t, w.Host, theirs, w.PID)); d != "" {
				t.Errorf("(-before +after):\n%s", d)
			}
		})
	}
}

// A reload that nginx refuses although its test passes: a port that another
// program has.
func TestNginxThatDoesNotReloadGetsItsFileBack(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	var taken int
	if err := w.Host.Do(func() (err error) {
		taken, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(taken, &unix.SockaddrInet4{Port: 8099, Addr: [4]byte{127, 0, 0, 1}})
		}
		if err == nil {
			err = unix.Listen(taken, 1)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(taken)
	file := w.Dir + "/nginx.conf"
	text := strings.Replace(nginxConf, "upstream app", "server { listen 127.0.0.1:8099; }\n\tupstream app", 1)
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"}); !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), "edited") {
		t.Errorf("a file that nginx has not read: %v", err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	step, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := j.Apply(t.Context(), step)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "[emerg]") || e.State != Failed {
		t.Errorf("%+v: %v", e, err)
	}
	w.answers(t)
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

func TestNginxWhoseTestFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	step, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if err != nil {
		t.Fatal(err)
	}
	step.parts[0].New = append(step.parts[0].New, "nonsense here;\n"...)
	e, err := j.Apply(t.Context(), step)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `unknown directive "nonsense"`) || e.State != Failed {
		t.Errorf("%+v: %v", e, err)
	}
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if _, err := j.Undo(t.Context(), e.ID, false); err == nil {
		t.Error("a change that failed was taken back")
	}
}

const fpmConf = `[global]
error_log = DIR/fpm.log
daemonize = no
include = DIR/pool.d/*.conf
`

const fpmPool = "; the pool\r\n" + `[www]
user = root
group = root
listen = 127.0.0.1:9000
listen.backlog = 33
pm = "dynamic" ; grows
pm.max_children = '2'	; few
pm.start_servers = 1
pm.min_spare_servers = 1
pm.max_spare_servers = 1
`

func startFPM(t *testing.T) *livetest.Service {
	t.Helper()
	s := livetest.Start(t, map[string]string{"fpm.conf": fpmConf, "pool.d/a.conf": fpmPool}, livetest.PHPFPM(t), "-R", "-F", "--fpm-config", "DIR/fpm.conf")
	s.Until("PHP-FPM listens", func() bool {
		c, err := s.Dial("tcp", "127.0.0.1:9000")
		if err == nil {
			c.Close()
		}
		return err == nil && len((&service{Kind: PHPFPM, process: process{PID: s.PID}}).look()) > 0
	})
	return s
}

func TestPHPFPMIsChangedAndTakenBack(t *testing.T) {
	t.Parallel()
	s := startFPM(t)
	before := snap(t, s.Host, s.Dir, s.PID)
	j := open(t)
	file := s.Dir + "/pool.d/a.conf"
	for _, c := range []struct {
		name, to, want string
		restart        Restart
	}{
		{"pm.max_children", "7", "pm.max_children = 7\t; few\n", Reload},
		{"pm.max_requests", "500", "pm = \"dynamic\" ; grows\npm.max_requests = 500\r\npm.max_children", Reload},
		{"listen.backlog", "77", "listen.backlog = 77\n", None},
		{"pm", "static", "pm = static ; grows\n", Reload},
	} {
		e := must(t, j, s.Host, Change{Kind: PHPFPM, Name: c.name, To: c.to, Pool: "www"})
		if e.Restart != c.restart {
			t.Errorf("%s: restart %s", c.name, e.Restart)
		}
		if got := read(t, file); !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%s", c.name, c.want, got)
		}
	}
	// A reload is done when the first new worker is there; the others follow.
	workers := func() int { return len((&service{Kind: PHPFPM, process: process{PID: s.PID}}).look()) }
	s.Until("there are 7 workers", func() bool { return workers() == 7 })
	if now := snap(t, s.Host, s.Dir, s.PID); now["backlog 127.0.0.1:9000"] != "77" {
		t.Errorf("the backlog is %s", now["backlog 127.0.0.1:9000"])
	}
	undoAll(t, j)
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	step, err := Prepare(s.Host, Change{Kind: PHPFPM, Name: "pm.min_spare_servers", To: "9"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := j.Apply(t.Context(), step); !errors.Is(err, ErrRefused) || e.State != Failed {
		t.Errorf("more spare workers than workers: %+v, %v", e, err)
	}
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// oneCPU is one of the CPUs that we may run on, and whether there is a choice: where it
// is the only one, a process cannot be bound to it, since it is already.
func oneCPU(t *testing.T) (cpu string, choice bool) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	n := 0
	for !set.IsSet(n) {
		n++
	}
	return strconv.Itoa(n), set.Count() > 1
}

func TestKernelAndProcessSettings(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	cpu, choice := oneCPU(t)
	before := snap(t, s.Host, s.Dir, s.PID)
	j := open(t)
	for _, c := range []struct {
		change Change
		scope  Scope
		key    string
		want   string
	}{
		{Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"}, Namespace, "/proc/sys/net/core/somaxconn", "1234\n"},
		{Change{Kind: Sysctl, Name: "net.ipv4.ip_local_port_range", To: "2048  60000"}, Namespace, "/proc/sys/net/ipv4/ip_local_port_range", "2048\t60000\n"},
		{Change{Kind: Sysctl, Name: "net.ipv4.conf.lo.rp_filter", To: "1"}, Namespace, "/proc/sys/net/ipv4/conf/lo/rp_filter", "1\n"},
		{Change{Kind: Limit, Name: "nofile", To: "77", PID: s.PID}, Process, fmt.Sprintf("%d nofile", s.PID), ""},
		{Change{Kind: Nice, To: "7", Process: "sleep"}, Process, fmt.Sprintf("%d nice", s.PID), "7"},
		{Change{Kind: Policy, To: "5", Process: "sleep"}, Process, fmt.Sprintf("%d policy", s.PID), "idle"},
		{Change{Kind: Affinity, To: cpu, PID: s.PID}, Process, fmt.Sprintf("%d CPUs", s.PID), cpu},
	} {
		if c.change.Kind == Affinity && !choice {
			continue
		}
		if e := must(t, j, s.Host, c.change); e.Scope != c.scope || e.State != Done {
			t.Errorf("%s: %+v", c.change, e)
		}
		now := snap(t, s.Host, s.Dir, s.PID)[c.key]
		if c.want != "" && now != c.want || c.want == "" && !strings.HasPrefix(now, "77:") {
			t.Errorf("%s: it is %q", c.change, now)
		}
	}
	undoAll(t, j)
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if err := unix.SchedSetAttr(s.PID, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change Change
		want   error
	}{
		{Change{Kind: Nice, To: "7", PID: s.PID}, ErrNotPossible}, // it is scheduled in real time
		{Change{Kind: Policy, To: "5", PID: s.PID}, ErrNotPossible},
		{Change{Kind: Policy, To: "5", PID: 2}, ErrNotPossible}, // kthreadd
		{Change{Kind: Sysctl, Name: "net.core.nosuch", To: "1"}, fs.ErrNotExist},
		{Change{Kind: Sysctl, Name: "net.ipv4.ip_forward", To: "1"}, ErrNotPossible},
		{Change{Kind: Sysctl, Name: "net/ipv4/ip_forward", To: "1"}, ErrNotPossible},
		{Change{Kind: Sysctl, Name: "net.ipv6.conf.lo.disable_ipv6", To: "1"}, ErrNotPossible},    // its addresses would be gone
		{Change{Kind: Sysctl, Name: "kernel.unprivileged_bpf_disabled", To: "1"}, ErrNotPossible}, // 1 is for good
		{Change{Kind: Sysctl, Name: "net.ipv4.conf.lo.forwarding", To: "1"}, ErrNotPossible},
		{Change{Kind: Sysctl, Name: "vm.dirty_bytes", To: "99999999"}, ErrNotPossible}, // it sets dirty_ratio to 0
		{Change{Kind: Limit, Name: "nofile", To: "1", Process: "nosuch"}, fs.ErrNotExist},
		{Change{Kind: Nginx, Name: "worker_connections", To: "1"}, fs.ErrNotExist},
		{Change{Kind: Nginx, Name: "gzip", To: "on"}, ErrNotPossible},
		{Change{Kind: PHPFPM, Name: "pm.max_children", To: "1"}, fs.ErrNotExist},
		{Change{Kind: Backlog, Listen: "127.0.0.1:1", To: "1"}, errGone},
		{Change{Kind: TxQueue, Name: "nosuch", To: "1"}, fs.ErrNotExist},
	} {
		if _, err := Prepare(s.Host, c.change); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.change, err, c.want)
		}
	}
}

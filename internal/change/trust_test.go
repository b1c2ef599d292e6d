package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/probe/livetest"
)

const nobody = 65534

// pretended are the titles under which the test binary is a service that is none.
var pretended = []string{"nginx: master process ", "php-fpm: master process ("}

// bePretender is what the test binary does under such a title, and what it does
// when somebody executes it as the service's: it notes with which rights.
func bePretender() bool {
	if len(os.Args) > 1 && (os.Args[1] == "-t" || os.Args[1] == "-v" || os.Args[1] == "-V") {
		exe, err := os.Executable()
		if err != nil {
			panic(err)
		}
		rights, err := os.ReadFile("/proc/self/status")
		if err != nil { // the /proc of a container in which we are not
			rights = fmt.Appendf(nil, "Uid:\t%d\n", os.Geteuid())
		}
		groups, _ := os.ReadFile("/proc/self/cgroup")
		rights = append(rights, groups...)
		if err := os.WriteFile(filepath.Dir(exe)+"/executed", rights, 0o666); err != nil {
			panic(err)
		}
		return true
	}
	for _, title := range pretended {
		if strings.HasPrefix(os.Args[0], title) {
			l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
			if err != nil {
				panic(err)
			}
			for {
				c, err := l.Accept()
				if err != nil {
					panic(err)
				}
				c.Close()
			}
		}
	}
	return false
}

const pretendedConf = "events { }\nhttp { include more/*.conf; server { listen 127.0.0.1:8080; } }\n"

// impostor starts a process that calls itself nginx, by way of the commands
// before it ("setpriv …"). Its directory DIR has a configuration that any nginx
// takes; arrange, which may be nil, is called before it starts.
func impostor(t *testing.T, port string, arrange func(dir string), before ...string) *livetest.Service {
	t.Helper()
	dir := pretendersDir(t)
	if arrange != nil {
		arrange(dir)
	}
	argv := append(before, "bash", "-c", `exec -a "nginx: master process x -p `+dir+` -c nginx.conf" `+dir+"/bin "+port)
	s := livetest.Start(t, nil, argv...)
	s.Dir = dir
	if port == "8080" {
		s.Until("it listens", func() bool {
			c, err := s.Dial("tcp", "127.0.0.1:8080")
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	} else {
		s.Until("it has its title", func() bool { return strings.HasPrefix(title(s.PID), pretended[0]) })
	}
	return s
}

// pretendersDir is a directory of root's that others may look into, with a
// binary and a configuration.
func pretendersDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	bin, err := os.OpenFile(dir+"/bin", os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(bin, self)
	if err := errors.Join(err, bin.Close(), os.WriteFile(dir+"/nginx.conf", []byte(pretendedConf), 0o644), os.Mkdir(dir+"/more", 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func own(t *testing.T, uid int, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Chown(name, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
}

var asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}

// Whoever likes can call himself nginx, and have a configuration that passes.
func TestAProcessThatCallsItselfNginxIsNotRootsToRun(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be misused here")
	}
	chmod := func(name string, mode os.FileMode) func(string) {
		return func(dir string) {
			if err := os.Chmod(dir+name, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		arrange func(dir string)
		before  []string
		port    string
		want    string
	}{
		"of nobody's":                  {func(dir string) { own(t, nobody, dir, dir+"/bin", dir+"/nginx.conf", dir+"/more") }, asNobody, "8080", "sudo -u"},
		"of nobody's with root's file": {nil, asNobody, "8080", "sudo -u"},
		"of a real user nobody":        {nil, []string{"setpriv", "--ruid=65534"}, "8080", "user"},
		"in a user namespace":          {nil, []string{"unshare", "-U"}, "8080", "user namespace"},
		"nobody's binary":              {func(dir string) { own(t, nobody, dir+"/bin") }, nil, "8080", "bin belongs to user 65534"},
		"a binary for all to write":    {chmod("/bin", 0o777), nil, "8080", "bin can be written"},
		"a binary in nobody's":         {func(dir string) { own(t, nobody, dir) }, nil, "8080", "belongs to user 65534"},
		"a deleted binary":             {nil, nil, "8080", "deleted"},
		"nobody's configuration":       {func(dir string) { own(t, nobody, dir+"/nginx.conf") }, nil, "8080", "nginx.conf belongs to user 65534"},
		"a configuration for a group":  {chmod("/nginx.conf", 0o664), nil, "8080", "nginx.conf can be written"},
		"where all may add a file":     {chmod("/more", 0o777|os.ModeSticky), nil, "8080", "more can be written"},
		"with an access list":          {func(dir string) { accessList(t, dir+"/nginx.conf") }, nil, "8080", "access list"},
		"that listens elsewhere":       {nil, nil, "8099", "listen"},
	} {
		t.Run(name, func(t *testing.T) {
			s := impostor(t, c.port, c.arrange, c.before...)
			if name == "a deleted binary" {
				if err := os.Remove(s.Dir + "/bin"); err != nil {
					t.Fatal(err)
				}
			}
			step, err := Prepare(s.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
			if err == nil {
				_, err = open(t).Apply(t.Context(), step)
			}
			if !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if rights, err := os.ReadFile(s.Dir + "/executed"); err == nil {
				t.Errorf("it was executed:\n%s", rights)
			}
			if now := read(t, s.Dir+"/nginx.conf"); now != pretendedConf {
				t.Errorf("its file was edited:\n%s", now)
			}
		})
	}
}

// accessList lets nobody write a file, beside what its mode says: a
// posix_acl_access with user::rw-, user:65534:rw-, group::r--, mask::r--, other::r--.
func accessList(t *testing.T, name string) {
	t.Helper()
	acl := []byte{2, 0, 0, 0}
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, 0xffffffff}, {2, 6, nobody}, {4, 4, 0xffffffff}, {16, 6, 0xffffffff}, {32, 4, 0xffffffff}} {
		acl = append(acl, byte(e.tag), byte(e.tag>>8), byte(e.perm), byte(e.perm>>8), byte(e.id), byte(e.id>>8), byte(e.id>>16), byte(e.id>>24))
	}
	err := syscall.Setxattr(name, "system.posix_acl_access", acl, 0)
	if errors.Is(err, syscall.ENOTSUP) {
		t.Skipf("no access lists here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The place of an nginx that has stopped is taken by another before its change is
// undone: the file is put back, and the other one gets nothing of it.
func TestAnImpostorAtUndo(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	before := snapshot{}
	before.files(t, w.Dir)
	j := open(t)
	e := must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	quit(t, w)
	dir := pretendersDir(t)
	own(t, nobody, dir, dir+"/bin")
	cmd := exec.Command(asNobody[0], append(asNobody[1:], "bash", "-c", `exec -a "nginx: master process nginx -p `+w.Dir+` -c nginx.conf" `+dir+"/bin 8080")...)
	if err := w.Host.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	w.Until("the impostor listens", func() bool {
		c, err := w.Dial("tcp", "127.0.0.1:8080")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	r, err := j.Undo(t.Context(), e.ID, false)
	if err != nil || r.Entry.State != Undone {
		t.Errorf("undo: %+v, %v", r, err)
	}
	if rights, err := os.ReadFile(dir + "/executed"); err == nil {
		t.Errorf("it was executed:\n%s", rights)
	}
	after := snapshot{}
	if after.files(t, w.Dir); !cmp.Equal(before, after) {
		t.Errorf("(-before +after):\n%s", cmp.Diff(before, after))
	}
}

// quit ends nginx and waits until all of it has.
func quit(t *testing.T, w web) {
	t.Helper()
	workers := (&service{Kind: Nginx, process: process{PID: w.PID}}).look()
	w.Signal(syscall.SIGTERM)
	w.Until("nginx has ended", func() bool {
		for _, p := range workers {
			if p.alive() {
				return false
			}
		}
		_, err := w.Dial("tcp", "127.0.0.1:8080")
		return err != nil
	})
}

// Whose service it is may change it himself, without root.
func TestAServiceIsItsOwnUsersToChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(dir+"/j", 0o700),
		os.WriteFile(dir+"/nginx.conf", []byte(usersConf), 0o644)); err != nil {
		t.Fatal(err)
	}
	own(t, nobody, dir, dir+"/nginx.conf", dir+"/j")
	w := web{livetest.Start(t, nil, append(asNobody, "env", "-C", dir, "nginx", "-p", dir, "-c", "nginx.conf")...)} // the tree may be where that user cannot go
	w.Until("nginx answers", func() bool { code, _ := w.get("/ok"); return code == 200 })
	if _, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"}); !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), "sudo -u '#65534'") {
		t.Errorf("as root: %v", err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(dir+"/nginx.conf", old, old); err != nil {
		t.Fatal(err)
	}
	before := snapshot{}
	before.files(t, dir)
	cmd := exec.Command(testBinary(t))
	cmd.Env = append(os.Environ(), child+"=user "+dir+"/j "+fmt.Sprint(w.PID))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := w.Host.Do(cmd.Run); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out.String())
	}
	w.answers(t)
	after := snapshot{}
	after.files(t, dir)
	for name := range after {
		if strings.HasPrefix(name, dir+"/j/") {
			delete(after, name)
		}
	}
	if !cmp.Equal(before, after) {
		t.Errorf("(-before +after):\n%s", cmp.Diff(before, after))
	}
}

const usersConf = `daemon off; pid nginx.pid; error_log error.log;
events { worker_connections 64; }
http {
	access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
	server { listen 127.0.0.1:8080; return 200 ok; }
}
`

// testBinary is a copy of this program that others may execute.
func testBinary(t *testing.T) string { return pretendersDir(t) + "/bin" }

// changedByUser changes the only nginx there is, and takes it back.
func changedByUser(j *Journal, h *host.Host) error {
	step, err := Prepare(h, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if err != nil {
		return err
	}
	if _, err := j.Apply(context.Background(), step); err != nil {
		return err
	}
	if b, err := os.ReadFile(step.Files[0]); err != nil || !strings.Contains(string(b), "worker_connections 99") {
		return fmt.Errorf("the file is %q, %w", b, err)
	}
	_, err = j.UndoAll(context.Background(), false)
	return err
}

// What is executed has the rights that the service has, and none of ours.
func TestATestHasNoMoreRightsThanTheService(t *testing.T) {
	s := impostor(t, "8080", nil, "setpriv", "--bounding-set=-all,+chown,+dac_override", "--groups=7,65534", "bash", "-c", `"$@"`, "sh")
	step, err := Prepare(s.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir + "/executed"); err == nil {
		t.Error("looking has executed it")
	}
	// Nothing reloads it, so the change fails after the test, and is taken back.
	if err := step.service.test(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(read(t, s.Dir+"/executed")) {
		key, value, _ := strings.Cut(line, ":")
		got[key] = strings.TrimSpace(value)
	}
	for key, want := range map[string]string{"Uid": "0\t0\t0\t0", "Gid": "0\t0\t0\t0", "Groups": "7 65534", "NoNewPrivs": "1",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000003", "CapEff": "0000000000000003", "CapBnd": "0000000000000003", "CapAmb": "0000000000000000"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// What -g includes belongs to the configuration like what the file does.
func TestWhatNginxIsToldToIncludeHasToBeRootsToo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be misused here")
	}
	w := startNginxBy(t, "bash", "-c", "echo '#' > DIR/extra.conf; exec nginx -p DIR -c nginx.conf -g 'include DIR/extra.conf;'")
	own(t, nobody, w.Dir+"/extra.conf")
	_, err := Prepare(w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), "extra.conf belongs to user 65534") {
		t.Error(err)
	}
}

// A new file would have the access list that its directory gives to new ones.
func TestADirectorysAccessListIsNotTheFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(name, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	accessList(t, dir)
	acl := make([]byte, 256)
	n, err := syscall.Getxattr(dir, "system.posix_acl_access", acl)
	if err == nil {
		err = syscall.Setxattr(dir, "system.posix_acl_default", acl[:n], 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Removexattr(dir, "system.posix_acl_access"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (confFile{Path: name}).set("new"); err != nil {
		t.Fatal(err)
	}
	if n, err := syscall.Getxattr(name, "system.posix_acl_access", acl); !errors.Is(err, syscall.ENODATA) {
		t.Errorf("an access list of %d bytes, %v", n, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o640 || read(t, name) != "new" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A container that does not run has its files all the same, and reads them when it
// is started again.
func TestAFileInAContainerThatDoesNotRunIsNotGivenUp(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	e := Entry{Parts: []part{{Target: target{Kind: inFile, Path: "/conf/nginx.conf", Process: &process{ended.Process.Pid, 1}}, Old: []byte("a"), New: []byte("b")}}}
	pl := e.plan(target.get, false, false)
	if err := errors.Join(pl.errs...); !pl.stop || len(pl.gone) > 0 || !errors.Is(err, errGone) || !strings.Contains(err.Error(), "start that service again") {
		t.Errorf("%+v", pl)
	}
	if pl := e.plan(target.get, false, true); len(pl.errs) > 0 || len(pl.gone) != 1 {
		t.Errorf("with --force: %+v", pl)
	}
}

// What chattr(1) had set on a file is there after a change, too.
func TestAFileKeepsItsFlags(t *testing.T) {
	const noDump = 0x40 // FS_NODUMP_FL
	name := filepath.Join(t.TempDir(), "nginx.conf")
	if err := os.WriteFile(name, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	flags := func() uint32 {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		v, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err != nil {
			t.Skipf("no such flags here: %v", err)
		}
		return v
	}
	was := flags() | noDump
	f, err := os.Open(name)
	if err == nil {
		err = errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(was)), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := (confFile{Path: name}).set("new"); err != nil {
		t.Fatal(err)
	}
	if now := flags(); now != was || read(t, name) != "new" {
		t.Errorf("flags %#x, want %#x", now, was)
	}
}

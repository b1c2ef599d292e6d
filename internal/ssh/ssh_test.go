package ssh

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/orphans/heldtest"
)

// TestMain is, under another name, the program that is sent, and the one that sends it.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "plimsoll" {
		switch {
		case os.Getenv("PLIMSOLL_TEST_SENDER") != "":
			sender()
			return
		case os.Getenv("PLIMSOLL_TEST_ARM64") != "":
			os.Exit(arm64())
		}
		heldtest.Main(m)
	}
	switch os.Args[1] {
	case "version":
	case "echo": // says where it is and who, then what it hears
		fmt.Println(filepath.Dir(os.Args[0]), os.Geteuid(), os.Getpid())
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "time":
		tellTime(bufio.NewReader(os.Stdin), os.Stdout)
	case "fail":
		fmt.Fprintln(os.Stderr, "no such thing\x1b[31m")
		os.Exit(7)
	}
}

// sender starts a guest and says what it says, until it is killed.
func sender() {
	g, err := Start(context.Background(), Destination{Name: "web"}, nil, "echo")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(os.Stdout, g)
}

// machine is a real sshd with accounts of its own, which each login starts in a mount
// namespace: nothing of it listens, and nothing of it is left.
type machine struct {
	dir   string
	mount string // what else is done in its mount namespace, in a shell's words
	sshd  string // more of its configuration
	users string // more of its /etc/passwd
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes accounts, in a mount namespace")
	}
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("there is no sshd; scripts/install-deps tests brings it")
		}
		t.Fatal(err)
	}
	return &machine{dir: t.TempDir()}
}

// start makes ssh know the machine as web.
func (m *machine) start(t *testing.T) {
	t.Helper()
	check(t, os.MkdirAll("/run/sshd", 0o755))
	for _, key := range []string{"host", "id"} {
		command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", m.dir+"/"+key)
	}
	passwd, err := os.ReadFile("/etc/passwd")
	check(t, err)
	shadow := ""
	for line := range strings.Lines(string(passwd) + m.users) {
		shadow += strings.Split(line, ":")[0] + ":*:19000:0:99999:7:::\n"
	}
	pub, err := os.ReadFile(m.dir + "/host.pub")
	check(t, err)
	for name, text := range map[string]string{
		"passwd": strings.Replace(string(passwd), ":/bin/bash\n", ":/bin/sh\n", 1) + m.users, // root's own .bashrc may do anything
		"shadow": shadow, "known": "web " + string(pub),
		"sshd_config": m.sshd + fmt.Sprintf("HostKey %[1]s/host\nAuthorizedKeysFile /srv/.key\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"+
			"PasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv XDG_RUNTIME_DIR=%[1]s/run\n", m.dir),
		"login": fmt.Sprintf("#!/bin/sh\nexec unshare --mount --propagation private sh -ec '\nmount -t tmpfs none /srv\ncp %[1]s/id.pub /srv/.key\nchmod 644 /srv/.key\n"+
			"mount --bind %[1]s/passwd /etc/passwd\nmount --bind %[1]s/shadow /etc/shadow\n%[2]s\nexec /usr/sbin/sshd -i -f %[1]s/sshd_config -E %[1]s/log'\n", m.dir, m.mount),
		"config": fmt.Sprintf("Host web\nProxyCommand %[1]s/login\nIdentityFile %[1]s/id\nIdentitiesOnly yes\nUserKnownHostsFile %[1]s/known\nStrictHostKeyChecking yes\n", m.dir),
		"ssh":    fmt.Sprintf("#!/bin/sh\nexec /usr/bin/ssh -F %s/config \"$@\"\n", m.dir),
	} {
		check(t, os.WriteFile(m.dir+"/"+name, []byte(text), 0o755))
	}
	check(t, os.Mkdir(m.dir+"/run", 0o755))
	t.Setenv("PATH", m.dir+":"+os.Getenv("PATH"))
	t.Cleanup(func() {
		if log, err := os.ReadFile(m.dir + "/log"); err == nil && t.Failed() {
			t.Logf("sshd:\n%s", log)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
}

func outputOf(words ...string) (string, error) {
	out, err := exec.Command(words[0], words[1:]...).Output()
	return string(out), err
}

// greeted checks that a guest runs, hears and says any bytes, and leaves nothing.
func greeted(t *testing.T, user string) (dir, uid, note string) {
	t.Helper()
	return greetedBy(t, user, nil)
}

func greetedBy(t *testing.T, user string, ask Ask) (dir, uid, note string) {
	t.Helper()
	to := Destination{Name: "web"}
	if user != "" {
		to.Name = user + "@web"
	}
	g, err := Start(t.Context(), to, ask, "echo")
	check(t, err)
	out := bufio.NewReader(g)
	line, err := out.ReadString('\n')
	check(t, err)
	said := strings.Fields(line)
	if len(said) != 3 {
		t.Fatalf("it says %q", line)
	}
	nowhere(t, typed)
	sent := append([]byte("\x00~.\r\n\x04\xff"), []byte(rand.Text())...)
	_, err = g.Write(sent)
	check(t, errors.Join(err, g.CloseInput()))
	got, err := io.ReadAll(out)
	check(t, err)
	if !bytes.Equal(got, sent) {
		t.Errorf("it heard %q, want %q", got, sent)
	}
	check(t, g.Close())
	if _, err := os.Stat(said[0]); err == nil {
		t.Errorf("%s is left", said[0])
	}
	return said[0], said[1], g.Note
}

// Login shells that are no POSIX shell, and what they print when they start.
func TestLoginShells(t *testing.T) {
	m := newMachine(t)
	shells := []string{"/bin/sh", "/bin/bash", "/bin/tcsh", "/usr/bin/fish"}
	for i, shell := range shells {
		m.users += fmt.Sprintf("u%d:x:0:0::/srv/u%d:%s\n", i, i, shell)
		m.mount += fmt.Sprintf("mkdir -p /srv/u%d\n", i)
	}
	noise := `echo "Welcome; plimsoll-XYZ machine Linux"; head -c 3000 /dev/zero; echo beware >&2`
	m.mount += fmt.Sprintf("echo %q >/srv/u1/.bashrc\n", strings.ReplaceAll(noise, "\"", ""))
	m.sshd = "Banner /etc/passwd\n"
	m.start(t)
	for i, shell := range shells {
		if _, err := os.Stat(shell); err != nil {
			t.Logf("%s is not here", shell)
			continue
		}
		dir, _, note := greeted(t, "u"+strconv.Itoa(i))
		if !strings.HasPrefix(dir, m.dir+"/run/.plimsoll.") || note != "" {
			t.Errorf("%s: in %s, note %q", shell, dir, note)
		}
	}
}

// Where nothing may be executed is passed over, and said where there is nothing else.
func TestDirectories(t *testing.T) {
	m := newMachine(t)
	m.users = "u:x:0:0::/srv/u:/bin/sh\nnone:x:0:0::/root/none:/bin/sh\n"
	for _, dir := range []string{m.dir + "/run", "/dev/shm", "/tmp/."} {
		if dir != "/tmp/." { // what this test made lies beneath it
			m.mount += "mount -t tmpfs -o noexec none " + dir + "\n"
		}
	}
	m.mount += "mkdir -p /srv/u /srv/tmp\nmount --bind /srv/tmp /srv/tmp\nmount -o remount,bind,noexec /srv/tmp\n"
	// The test's own files are needed until sshd runs, and its login shell looks for /tmp.
	m.sshd = "ForceCommand mount --bind /srv/tmp /tmp && eval \"$SSH_ORIGINAL_COMMAND\"\n"
	m.start(t)
	dir, _, _ := greeted(t, "u")
	if !strings.HasPrefix(dir, "/srv/u/.plimsoll.") {
		t.Errorf("in %s", dir)
	}
	refused(t, "none@web", "no directory there takes a program of", "/dev/shm lets nothing run (noexec)", "/tmp lets nothing run (noexec)", "/root/none cannot be written")
}

// A directory with a quota has room as far as df knows, and one that is full has none: both are passed over.
func TestQuota(t *testing.T) {
	m := newMachine(t)
	if _, err := exec.LookPath("mkfs.btrfs"); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("there is no mkfs.btrfs, whose file system has quotas by itself; scripts/install-deps tests brings it")
		}
		t.Fatal(err)
	}
	m.users = "u:x:0:0::/srv/u:/bin/sh\nquota:x:0:0::/srv/disk/home:/bin/sh\nfull:x:0:0::/dev/shm:/bin/sh\n"
	m.mount = "truncate -s 256M /srv/image\nmkfs.btrfs -q /srv/image >/dev/null\nmkdir -p /srv/u /srv/tmp /srv/disk\nmount -o loop /srv/image /srv/disk\n" +
		"btrfs quota enable /srv/disk\nbtrfs subvolume create /srv/disk/home >/dev/null\nbtrfs qgroup limit 2M /srv/disk/home\n" +
		"mount -t tmpfs -o size=64k none /dev/shm\nmount --bind /srv/tmp /srv/tmp\nmount -o remount,bind,noexec /srv/tmp\n"
	m.sshd = "SetEnv XDG_RUNTIME_DIR=/srv/disk/home\nForceCommand mount --bind /srv/tmp /tmp && eval \"$SSH_ORIGINAL_COMMAND\"\n"
	m.start(t)
	if dir, _, _ := greeted(t, "u"); !strings.HasPrefix(dir, "/srv/u/.plimsoll.") {
		t.Errorf("in %s", dir)
	}
	refused(t, "quota@web", "no directory there takes a program of", "/srv/disk/home takes less, though it has ", "(is there a quota?)", "/dev/shm has ")
	refused(t, "full@web", "/dev/shm has ", " kB free")
}

// refused checks what is said of a login that leads to nothing.
func refused(t *testing.T, name string, want ...string) {
	t.Helper()
	g, err := Start(t.Context(), Destination{Name: name}, nil, "echo")
	if err == nil {
		_ = g.Close()
		t.Fatalf("%s: it runs", name)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v\nwant %q", name, err, w)
		}
	}
}

func TestNoShell(t *testing.T) {
	m := newMachine(t)
	m.users = "n:x:0:0::/srv:/usr/sbin/nologin\nf:x:0:0::/srv:/bin/false\ny:x:0:0::/srv:/srv/flood\n"
	m.mount = "printf \"#!/bin/sh\\nexec yes\\n\" >/srv/flood\nchmod 755 /srv/flood\n"
	m.start(t)
	refused(t, "n@web", "its login runs no command", "This account is currently not available.")
	refused(t, "f@web", "ended without a word", "exit code 1")
	refused(t, "y@web", "its login prints more than 65536 bytes")
	refused(t, "nobody-there@web", "it lets you in by none of your keys", "Permission denied")
}

func TestKeysOfHosts(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	known, err := os.ReadFile(m.dir + "/known")
	check(t, err)
	check(t, os.WriteFile(m.dir+"/known", nil, 0o644))
	refused(t, "web", "its host key is not known here yet")
	check(t, os.Remove(m.dir+"/host"))
	command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", m.dir+"/host")
	check(t, os.WriteFile(m.dir+"/known", known, 0o644))
	refused(t, "web", "its host key is another one than your known_hosts has")
}

func TestSessionsAndPorts(t *testing.T) {
	m := newMachine(t)
	m.sshd = "MaxSessions 0\n"
	m.start(t)
	refused(t, "web", "its sshd opens no session (MaxSessions)")
	config := fmt.Sprintf("Host web\nHostname 127.0.0.1\nPort 1\nUserKnownHostsFile %s/known\n", m.dir)
	check(t, os.WriteFile(m.dir+"/config", []byte(config), 0o644))
	refused(t, "web", "nothing listens there")
	check(t, os.WriteFile(m.dir+"/config", []byte("NoSuchOption yes\n"), 0o644))
	refused(t, "web", "your own ssh does not know an option")
}

// A machine that says that it is another one.
func TestOtherMachines(t *testing.T) {
	m := newMachine(t)
	m.sshd = fmt.Sprintf("SetEnv XDG_RUNTIME_DIR=%[1]s/run PATH=%[1]s/bin:/usr/bin:/bin\n", m.dir)
	m.start(t)
	check(t, os.Mkdir(m.dir+"/bin", 0o755))
	for said, want := range map[string]string{
		"Linux aarch64":  "put Plimsoll's binary for linux/arm64 at ",
		"Linux armv7l":   "another architecture (uname -m says \"armv7l\")",
		"FreeBSD x86_64": "it runs \"FreeBSD\"",
	} {
		if said == "Linux aarch64" && machines["aarch64"] == runtime.GOARCH {
			continue
		}
		system, arch, _ := strings.Cut(said, " ")
		check(t, os.WriteFile(m.dir+"/bin/uname", fmt.Appendf(nil, "#!/bin/sh\ncase $1 in -s) echo %s ;; *) echo %s ;; esac\n", system, arch), 0o755))
		refused(t, "web", want)
	}
}

// Who is not root asks sudo, which is not to ask anybody.
func TestRights(t *testing.T) {
	m := newMachine(t)
	m.users = "joe:x:61234:61234::/srv/joe:/bin/sh\n"
	m.mount = "mkdir -p /srv/joe /srv/bin\nchown 61234 /srv/joe\ncp " + m.dir + "/sudo /srv/bin/sudo\nchmod 755 /srv /srv/bin /srv/bin/sudo\n"
	m.sshd = "SetEnv XDG_RUNTIME_DIR=/none PATH=/srv/bin:/usr/bin:/bin\n"
	m.start(t)
	sudo := func(script string) { check(t, os.WriteFile(m.dir+"/sudo", []byte("#!/bin/sh\n"+script), 0o755)) }
	sudo(`echo "sudo: a password is required" >&2; exit 1`)
	if _, uid, note := greeted(t, "joe"); uid != "61234" || note != `user 61234, and not root: sudo says "sudo: a password is required"` {
		t.Errorf("user %s, note %q", uid, note)
	}
	sudo("test \"$1 $2\" = '-n --' || exit 1\nshift 2\nexec \"$@\"\n")
	if _, _, note := greeted(t, "joe"); note != "" {
		t.Errorf("note %q", note)
	}
}

// How a command ends is told, and what it says of that.
func TestEnds(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	g, err := Start(t.Context(), Destination{Name: "web"}, nil, "fail")
	check(t, err)
	_, err = io.ReadAll(g)
	check(t, err)
	var end EndError
	if err := g.Close(); !errors.As(err, &end) || end.Code != 7 || !strings.Contains(end.Error(), `"no such thing\u001b[31m"`) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Destination{Name: "web"}, nil, "echo"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it to be given up", err)
	}
}

// Whether a login is let in is told without anything being run.
func TestLetsIn(t *testing.T) {
	m := newMachine(t)
	m.users = "n:x:0:0::/srv:/usr/sbin/nologin\n"
	if _, err := os.Stat("/bin/tcsh"); err == nil {
		m.users += "c:x:0:0::/srv:/bin/tcsh\n"
	} else {
		m.users += "c:x:0:0::/srv:/bin/bash\n"
	}
	m.start(t)
	for _, name := range []string{"web", "c@web"} {
		check(t, LetsIn(t.Context(), Destination{Name: name}))
	}
	for name, want := range map[string]string{"n@web": "ended without a word", "nobody-there@web": "it lets you in by none of your keys"} {
		if err := LetsIn(t.Context(), Destination{Name: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if left, err := os.ReadDir(m.dir + "/run"); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// When whoever sent it is killed, it ends and nothing is left.
func TestNothingIsLeftOfAKilledSender(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "PLIMSOLL_TEST_SENDER=1")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	check(t, errors.Join(err, c.Start()))
	line, err := bufio.NewReader(out).ReadString('\n')
	check(t, errors.Join(err, c.Process.Kill()))
	_ = c.Wait()
	said := strings.Fields(line)
	if len(said) != 3 {
		t.Fatal(line)
	}
	pid, err := strconv.Atoi(said[2])
	check(t, err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left, err := os.ReadDir(m.dir + "/run")
		check(t, err)
		gone := syscall.Kill(pid, 0) == syscall.ESRCH
		if gone && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is gone: %v; left: %v", pid, gone, left)
		}
	}
}

func TestParseDestination(t *testing.T) {
	for text, want := range map[string]Destination{
		"web1": {"web1", ""}, "deploy@web1": {"deploy@web1", ""}, "a.b-c_d@10.0.0.1:2222": {"a.b-c_d@10.0.0.1", "2222"},
		"::1": {"::1", ""}, "[fe80::1%eth0]:22": {"fe80::1%eth0", "22"}, "u@[::1]": {"u@::1", ""},
	} {
		if got, err := ParseDestination(text); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "-oProxyCommand=x", "a@-b", "a b", "a;b", "a'b", "$(x)", "a@", "@a", "//web1", "web1:", "web1:x", "web1:123456", "[::1", "[::1]22", "a\nb", "a@b@c", strings.Repeat("a", 400)} {
		if got, err := ParseDestination(bad); err == nil {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

// Whatever a login prints, what is made of it is an error or our words, in bounds.
func FuzzHear(f *testing.F) {
	for _, s := range []string{"", "\nM machine Linux x86_64 0 gzip\n", "noise\x00\nM failed no room\n", "M run sudo\n", "M machine\n", strings.Repeat("x", 70_000), "M failed " + strings.Repeat("y", 70_000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g := &Guest{mark: "M", out: bufio.NewReaderSize(strings.NewReader(s), maxNoise), kill: time.NewTimer(time.Hour)}
		defer g.kill.Stop()
		said, err := g.hear("machine")
		if err == nil && len(said) != 5 {
			t.Errorf("%q", said)
		}
		if err != nil && (len(err.Error()) > maxSentence*8+200 || strings.ContainsAny(err.Error(), "\n\x1b")) {
			t.Errorf("%q", err)
		}
	})
}

package ssh

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listen has the machine's sshd take logins at a port of this one as well, as long as the test lasts.
func (m *machine) listen(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			file, err := conn.(*net.TCPConn).File()
			if err == nil {
				c := exec.Command(m.dir + "/login")
				c.Stdin, c.Stdout = file, file
				if err = c.Start(); err == nil {
					go func() { _ = c.Wait() }()
				}
				_ = file.Close()
			}
			_ = conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// What a user's configuration may say of the way: each leads there, and leaves nothing here either.
func TestWaysThere(t *testing.T) {
	m := newMachine(t)
	m.sshd = "MaxSessions 1\nAllowTcpForwarding yes\nPermitTTY yes\n"
	m.start(t)
	port := m.listen(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	config, err := os.ReadFile(m.dir + "/config")
	check(t, err)
	direct := string(config)
	through := fmt.Sprintf("Host web\nHostName 127.0.0.1\nPort %s\nHostKeyAlias web\nProxyJump jump\nHost jump\nProxyCommand %s/login\nHostKeyAlias web\nHost *\n", port, m.dir) +
		strings.Join(strings.SplitAfter(direct, "\n")[2:], "")
	for name, text := range map[string]string{
		"a shared connection":  direct + fmt.Sprintf("ControlMaster auto\nControlPath %s/shared-%%C\nControlPersist 60\n", m.dir),
		"a terminal":           direct + "RequestTTY force\n",
		"forwards":             direct + "ForwardAgent yes\nForwardX11 yes\nExitOnForwardFailure yes\nLocalForward " + strings.TrimPrefix(taken.Addr().String(), "127.0.0.1:") + " 127.0.0.1:1\n",
		"a command, and local": direct + fmt.Sprintf("RemoteCommand false\nPermitLocalCommand yes\nLocalCommand touch %s/local\n", m.dir),
		"a jump":               through,
	} {
		t.Run(name, func(t *testing.T) {
			check(t, os.WriteFile(m.dir+"/config", []byte(text), 0o644))
			if _, _, note := greeted(t, ""); note != "" {
				t.Errorf("note %q", note)
			}
			for _, left := range []string{"shared-*", "local"} {
				if found, err := filepath.Glob(m.dir + "/" + left); err != nil || len(found) > 0 {
					t.Errorf("%v is here, %v", found, err)
				}
			}
		})
	}
}

// Where all on the disk is read-only there is memory to write into.
func TestReadOnlyDisk(t *testing.T) {
	m := newMachine(t)
	m.users = "u:x:0:0::/srv/u:/bin/sh\n"
	m.mount = "mount -t tmpfs none /dev/shm\nmkdir -p /srv/u /srv/tmp\n"
	for _, dir := range []string{m.dir + "/run", "/srv/u", "/srv/tmp"} {
		m.mount += "mount --bind " + dir + " " + dir + "\nmount -o remount,bind,ro " + dir + "\n"
	}
	// The test's own files are needed until sshd runs.
	m.sshd = "ForceCommand mount --bind /srv/tmp /tmp && eval \"$SSH_ORIGINAL_COMMAND\"\n"
	m.start(t)
	if dir, _, _ := greeted(t, "u"); !strings.HasPrefix(dir, "/dev/shm/.plimsoll.") {
		t.Errorf("in %s", dir)
	}
}

// An sshd that takes no more logins for now is told from one that is not there.
func TestTooManyLogins(t *testing.T) {
	m := newMachine(t)
	m.sshd = "MaxStartups 1\nListenAddress 127.0.0.1\nPidFile none\n"
	m.start(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	check(t, free.Close())
	login, err := os.ReadFile(m.dir + "/login")
	check(t, err)
	check(t, os.WriteFile(m.dir+"/daemon", []byte(strings.ReplaceAll(string(login), "sshd -i ", "sshd -D -p "+port+" ")), 0o755))
	sshd := exec.Command(m.dir + "/daemon")
	check(t, sshd.Start())
	defer func() {
		_ = sshd.Process.Kill()
		_ = sshd.Wait()
	}()
	first := dial(t, "127.0.0.1:"+port)
	defer first.Close()
	_, err = first.Read(make([]byte, 4)) // its greeting: from now on this is a login that has not ended
	check(t, err)
	config := fmt.Sprintf("Host web\nHostname 127.0.0.1\nPort %s\nHostKeyAlias web\nUserKnownHostsFile %s/known\n", port, m.dir)
	check(t, os.WriteFile(m.dir+"/config", []byte(config), 0o644))
	refused(t, "web", "MaxStartups of its sshd")
}

// dial connects as soon as somebody listens there.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

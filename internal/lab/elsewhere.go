package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// needSSH is what the server is a machine of its own with.
var needSSH = []Need{{"/usr/sbin/sshd", "openssh-server"}, {"ssh", "openssh-client"}, {"ssh-keygen", "openssh-client"}, {"unshare", "util-linux"}}

// overSSH is that machine as --host names it; isHeld is the exit code of an undo whose journal another process has.
const (
	overSSH = "ssh:server"
	isHeld  = 3
)

// machineScript becomes an sshd on the server, with file systems of its own.
//
//go:embed elsewhere.sh
var machineScript []byte

// elsewhere is the server as a machine of its own: a real sshd, in file systems of its own, that is asked for by
// a client of its name.
type elsewhere struct {
	// bin is the directory of an ssh that knows the machine as "server"; journal is where it keeps its changes.
	bin, journal string
}

// elsewhere starts the server's sshd. The case's files, its processes and its network it shares with the case, since
// these are what is on that machine.
func (l *Lab) elsewhere(ctx context.Context, v values) (*elsewhere, error) {
	if why := lacks(needSSH); why != "" {
		return nil, errors.New("a server elsewhere: " + why)
	}
	dir := filepath.Join(v["dir"], "elsewhere")
	m := &elsewhere{bin: filepath.Join(dir, "bin"), journal: filepath.Join(dir, "lib/plimsoll/changes")}
	for _, d := range []string{"bin", "lib"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("a server elsewhere: %w", err)
		}
	}
	for _, key := range []string{"host", "id"} {
		if err := command(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(dir, key)); err != nil {
			return nil, err
		}
	}
	if err := m.write(dir); err != nil {
		return nil, fmt.Errorf("a server elsewhere: %w", err)
	}
	c, err := l.start(l.netns("server"), "sshd", dir, 0, []string{"unshare", "--mount", "--propagation", "private", "sh", filepath.Join(dir, "machine"), dir})
	if err != nil {
		return nil, err
	}
	return m, c.waitListening(ctx, "tcp", "22")
}

// write writes what both ends of ssh read.
func (m *elsewhere) write(dir string) error {
	pub, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"shadow": "root:*:19000:0:99999:7:::\n", // root may be locked here, and nobody else's password is anybody's there
		"known":  "server " + string(pub), "boot_id": "c0ffee00-0000-4000-8000-00000000e15e\n",
		"sshd_config": fmt.Sprintf("ListenAddress %[2]s\nPidFile none\nHostKey %[1]s/host\nAuthorizedKeysFile %[1]s/id.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"+
			"PasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv HOME=%[1]s/home\n", dir, addressOf("server")), // whose .bashrc would hold each connection up
		"config": fmt.Sprintf("Host server\nHostName %[2]s\nHostKeyAlias server\nUser root\nIdentityFile %[1]s/id\nIdentitiesOnly yes\nUserKnownHostsFile %[1]s/known\nStrictHostKeyChecking yes\n", dir, addressOf("server")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "machine"), machineScript, 0o755); err != nil {
		return err
	}
	client := fmt.Sprintf("#!/bin/sh\nexec /usr/bin/ssh -F %s/config \"$@\"\n", dir)
	return os.WriteFile(filepath.Join(m.bin, "ssh"), []byte(client), 0o755)
}

func addressOf(host string) string {
	address, _, _ := strings.Cut(addresses[host], "/")
	return address
}

// first is an environment in whose PATH its ssh is found first.
func (m *elsewhere) first(env []string) []string {
	for i, e := range env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			env[i] = "PATH=" + m.bin + ":" + path
		}
	}
	return env
}

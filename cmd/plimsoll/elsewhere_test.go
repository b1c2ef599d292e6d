package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// otherMachine (other-machine) makes ssh know "web": a real sshd, started by each login in
// a mount namespace in which this machine says that it is another one. What is sent lies
// in $SENT, its journal of changes in $FARLIB/plimsoll.
func otherMachine(ts *testscript.TestScript, _ bool, _ []string) {
	dir := ts.MkAbs("other-machine")
	ts.Check(os.MkdirAll(dir+"/bin", 0o755))
	ts.Check(os.MkdirAll(dir+"/sent", 0o755))
	ts.Check(os.MkdirAll(dir+"/lib", 0o755))
	ts.Check(os.MkdirAll(dir+"/locks", 0o755))
	ts.Check(os.MkdirAll("/run/sshd", 0o755))
	for _, key := range []string{"host", "id"} {
		ts.Check(ts.Exec("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(dir, key)))
	}
	shadow, err := os.ReadFile("/etc/shadow")
	ts.Check(err)
	_, others, _ := strings.Cut(string(shadow), "\n")
	pub, err := os.ReadFile(dir + "/host.pub")
	ts.Check(err)
	for name, text := range map[string]string{
		"shadow": "root:*:19000:0:99999:7:::\n" + others, "known": "web " + string(pub), "boot_id": "c0ffee00-0000-4000-8000-000000000001\n",
		"sshd_config": fmt.Sprintf("HostKey %[1]s/host\nAuthorizedKeysFile %[1]s/id.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"+
			"SetEnv XDG_RUNTIME_DIR=%[1]s/sent SCRIPT_LOCKS=%[1]s/locks\n", dir),
		"login": fmt.Sprintf("#!/bin/sh\nexec unshare --mount --propagation private sh -ec '\nmount --bind %[1]s/shadow /etc/shadow\n"+
			"mount --bind %[1]s/lib /var/lib\nmount --bind %[1]s/boot_id /proc/sys/kernel/random/boot_id\nexec /usr/sbin/sshd -i -f %[1]s/sshd_config -E %[1]s/log'\n", dir),
		"config":  fmt.Sprintf("Host web\nUser root\nProxyCommand %[1]s/login\nIdentityFile %[1]s/id\nIdentitiesOnly yes\nUserKnownHostsFile %[1]s/known\nStrictHostKeyChecking yes\n", dir),
		"bin/ssh": fmt.Sprintf("#!/bin/sh\nexec /usr/bin/ssh -F %s/config \"$@\"\n", dir),
	} {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	ts.Setenv("SENT", dir+"/sent")
	ts.Setenv("FARLIB", dir+"/lib")
	ts.Setenv("PATH", dir+"/bin:"+ts.Getenv("PATH"))
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// linkedMachine (linked-machine) is otherMachine at the other end of a link between two namespaces, $NEAR and $FAR, on which
// its sshd listens: one that can be cut.
func linkedMachine(ts *testscript.TestScript, neg bool, args []string) {
	name := fmt.Sprintf("plimsoll-link-%d-%d", os.Getpid(), links.Add(1))
	near, far := name+"n", name+"f"
	ts.Defer(func() {
		for _, ns := range []string{near, far} {
			if err := errors.Join(endAll(ns), exec.Command("ip", "netns", "delete", ns).Run()); err != nil {
				ts.Logf("namespace %s is left over: %v", ns, err)
			}
		}
	})
	for _, line := range []string{"netns add " + near, "netns add " + far, "link add l0 netns " + near + " type veth peer name l0 netns " + far,
		"-n " + near + " addr add 10.79.0.1/24 dev l0", "-n " + far + " addr add 10.79.0.2/24 dev l0", "-n " + near + " link set l0 up", "-n " + far + " link set l0 up"} {
		ts.Check(ts.Exec("ip", strings.Fields(line)...))
	}
	ts.Setenv("NEAR", near)
	ts.Setenv("FAR", far)
	ts.Setenv("THROUGH", "/usr/sbin/ip netns exec "+near+" ")
	otherMachine(ts, neg, args)
	dir := ts.MkAbs("other-machine")
	start := strings.Replace(ts.ReadFile(dir+"/login"), "sshd -i", "sshd -o ListenAddress=10.79.0.2 -o PidFile=none", 1)
	ts.Check(os.WriteFile(dir+"/start", []byte(start), 0o755))
	ts.Check(ts.Exec("ip", "netns", "exec", far, dir+"/start"))
	config := strings.Replace(ts.ReadFile(dir+"/config"), "ProxyCommand "+dir+"/login", "HostName 10.79.0.2\nHostKeyAlias web", 1)
	ts.Check(os.WriteFile(dir+"/config", []byte(config), 0o644))
}

var links atomic.Int64

// restartMachine (restart-machine [BOOT-ID]) has a linked machine of which all was killed take logins again.
func restartMachine(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs("other-machine")
	for _, id := range args {
		ts.Check(os.WriteFile(dir+"/boot_id", []byte(id+"\n"), 0o644))
	}
	ts.Check(ts.Exec("ip", "netns", "exec", ts.Getenv("FAR"), dir+"/start"))
}

// cutLink (cut-link RUN SECONDS) takes the link down when a run has its window, for so long.
func cutLink(ts *testscript.TestScript, _ bool, args []string) {
	atWindow(ts, args[0])
	for _, step := range []string{"down", "up"} {
		ts.Check(exec.Command("ip", "-n", ts.Getenv("FAR"), "link", "set", "l0", step).Run())
		if step == "down" {
			length, err := time.ParseDuration(args[1])
			ts.Check(err)
			time.Sleep(length) // the cut is this long: that is what is tried
		}
	}
}

// endLogin (end-login RUN) ends all processes at the far end when a run has its window.
func endLogin(ts *testscript.TestScript, _ bool, args []string) {
	atWindow(ts, args[0])
	ts.Check(endAll(ts.Getenv("FAR")))
}

// atWindow waits until a run has a window.
func atWindow(ts *testscript.TestScript, run string) {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(ts.MkAbs(run) + "/run.json") // it is not there yet
		if strings.Contains(string(text), `"name": "hold"`) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s has no window", run)
		}
	}
}

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
			"SetEnv XDG_RUNTIME_DIR=%[1]s/sent SCRIPT_LOCKS=%[1]s/locks HOME=%[1]s/home\n", dir),
		"login": fmt.Sprintf("#!/bin/sh\nexec unshare --mount --propagation private sh -ec '\nmount --bind %[1]s/shadow /etc/shadow\n"+
			"mount --bind %[1]s/lib /var/lib\nmount --bind %[1]s/boot_id /proc/sys/kernel/random/boot_id\nexec /usr/sbin/sshd -i -f %[1]s/sshd_config -E %[1]s/log'\n", dir),
		"config":  fmt.Sprintf("Host web\nUser root\nProxyCommand %[1]s/login\nIdentityFile %[1]s/id\nIdentitiesOnly yes\nUserKnownHostsFile %[1]s/known\nStrictHostKeyChecking yes\n", dir),
		"bin/ssh": fmt.Sprintf("#!/bin/sh\nexec %s/usr/bin/ssh -F %s/config \"$@\"\n", ts.Getenv("THROUGH"), dir),
	} {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	ts.Setenv("SENT", dir+"/sent")
	ts.Setenv("FARLIB", dir+"/lib")
	ts.Setenv("PATH", dir+"/bin:"+ts.Getenv("PATH"))
}

package ssh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const emulator = "/usr/bin/qemu-aarch64-static"

// arm64 runs a command where programs for arm64 run, too: in a user namespace of its own, since what binfmt_misc is
// told there nobody else is told. That takes Linux 6.7.
func arm64() int {
	const some = 65536
	all := []syscall.SysProcIDMap{{Size: some}}
	c := exec.Command("/bin/sh", "-c", `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
		printf '%s' ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:`+emulator+`:F' >/proc/sys/fs/binfmt_misc/register &&
		exec "$0" "$@"`)
	c.Args = append(c.Args, strings.Fields(os.Getenv("PLIMSOLL_TEST_ARM64"))...)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "run a program for arm64:", err)
		return 1
	}
	return 0
}

// A machine of another architecture gets the binary that lies beside ours, and that runs there.
func TestAnotherArchitecture(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("this machine is arm64 itself")
	}
	if _, err := os.Stat(emulator); err != nil {
		t.Skipf("programs for arm64 do not run here: %v; apt-get install qemu-user-static", err)
	}
	m := newMachine(t)
	m.sshd = fmt.Sprintf("SetEnv XDG_RUNTIME_DIR=%[1]s/run PATH=%[1]s/bin:/usr/bin:/bin\n", m.dir)
	m.start(t)
	own, err := os.Readlink("/proc/self/exe")
	check(t, err)
	t.Setenv("PLIMSOLL_TEST_ARM64", "true")
	if out, err := exec.Command(own).CombinedOutput(); err != nil {
		t.Skipf("this kernel knows no programs of a user namespace (binfmt_misc, Linux 6.7): %s", out)
	}
	t.Setenv("PLIMSOLL_TEST_ARM64", m.dir+"/login.amd64")
	check(t, os.Rename(m.dir+"/login", m.dir+"/login.amd64"))
	check(t, os.Symlink(own, m.dir+"/login"))
	check(t, os.Mkdir(m.dir+"/bin", 0o755))
	check(t, os.WriteFile(m.dir+"/bin/uname", []byte("#!/bin/sh\ncase $1 in -s) echo Linux ;; *) echo aarch64 ;; esac\n"), 0o755))

	sent := filepath.Join(filepath.Dir(own), "plimsoll-linux-arm64")
	build := exec.Command("go", "test", "-c", "-o", sent, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64")
	out, err := build.CombinedOutput()
	t.Cleanup(func() { _ = os.Remove(sent) })
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if dir, uid, note := greeted(t, ""); !strings.HasPrefix(dir, m.dir+"/run/.plimsoll.") || uid != "0" || note != "" {
		t.Errorf("user %s in %s, note %q", uid, dir, note)
	}
}

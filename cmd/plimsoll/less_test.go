package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a machine may lack, for the scripts: each is the program "NAME COMMAND...",
// which runs COMMAND without something.

const nobodysID = 65534

// must ends a helper that could not do its part.
func must(what string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, what+":", err)
		os.Exit(99)
	}
}

// becomeNobody runs COMMAND without any privilege, in this folder, which is then nobody's.
func becomeNobody() {
	program := openTo(nobodysID)
	must("nobody", syscall.Setgroups(nil))
	must("nobody", syscall.Setgid(nobodysID))
	must("nobody", syscall.Setuid(nobodysID))
	must("nobody", syscall.Exec(program, os.Args[1:], os.Environ()))
}

// becomeWith ("with CAP,CAP COMMAND...", lower case and without cap_) runs COMMAND as
// nobody, but with these capabilities; "none" is none.
func becomeWith() {
	caps := "-all"
	for _, c := range strings.Split(os.Args[1], ",") {
		if c != "none" {
			caps += ",+" + c
		}
	}
	os.Args = os.Args[1:]
	openTo(nobodysID)
	setpriv, err := exec.LookPath("setpriv")
	must("with", err)
	who := fmt.Sprint(nobodysID)
	argv := append([]string{"setpriv", "--reuid", who, "--regid", who, "--clear-groups", "--inh-caps", caps, "--ambient-caps", caps}, os.Args[1:]...)
	must("with", syscall.Exec(setpriv, argv, os.Environ()))
}

// hideBTF runs COMMAND where the kernel has no type information, in a mount
// namespace of its own.
func hideBTF() {
	program, err := exec.LookPath(os.Args[1])
	must("nobtf", err)
	runtime.LockOSThread()
	must("nobtf", unix.Unshare(unix.CLONE_NEWNS))
	must("nobtf", unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	must("nobtf", unix.Mount("tmpfs", "/sys/kernel/btf", "tmpfs", 0, ""))
	must("nobtf", syscall.Exec(program, os.Args[1:], os.Environ()))
}

// losesRights is plimsoll, until the file $LOST_ONCE holds "done": a journal's entry
// of a change that is made. From then on the process and what it starts have none of
// these capabilities, as if it had never been given them; it stays root otherwise.
func losesRights() {
	go func() {
		for {
			b, err := os.ReadFile(os.Getenv("LOST_ONCE"))
			if err == nil && bytes.Contains(b, []byte(`"done"`)) {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		dropForGood(unix.CAP_DAC_OVERRIDE, unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SYS_NICE, unix.CAP_SYS_PTRACE,
			unix.CAP_SYS_RESOURCE, unix.CAP_PERFMON, unix.CAP_BPF)
	}()
	inScript()
}

// dropForGood takes capabilities from all threads of this process: from the bounding
// set first, or a program that root starts would have them again.
func dropForGood(lost ...uintptr) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	must("lose rights", unix.Capget(&header, &caps[0]))
	for _, c := range lost {
		_, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if e != 0 {
			must("lose rights", e)
		}
		bit := uint32(1) << (c % 32)
		caps[c/32].Effective &^= bit
		caps[c/32].Permitted &^= bit
		caps[c/32].Inheritable &^= bit
	}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&caps)), 0)
	if e != 0 {
		must("lose rights", e)
	}
}

// openTo makes the command and this folder usable for a user, and returns the command.
func openTo(user int) (program string) {
	program, err := exec.LookPath(os.Args[1])
	must(os.Args[1], err)
	here, err := os.Getwd()
	must(os.Args[1], err)
	for _, path := range []string{filepath.Dir(program), here} {
		for ; path != "/"; path = filepath.Dir(path) {
			info, err := os.Stat(path)
			must(os.Args[1], err)
			if info.Mode().Perm()&0o005 != 0o005 { // never a folder that is open already, such as /tmp
				must(os.Args[1], os.Chmod(path, info.Mode().Perm()|0o055))
			}
		}
	}
	must(os.Args[1], os.Chmod(program, 0o755))
	must(os.Args[1], os.Chown(here, user, user))
	return program
}

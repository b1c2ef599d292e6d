package change

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
)

// A service's own program tests its configuration, and must not get more by it
// than the service has. So a process of its own becomes that program: it goes
// where the service is, lays the new files over the old ones, gives up what the
// service does not have, and executes the program by the descriptor that was
// looked at. It is the first in a PID namespace of its own, which nobody in a
// container can see into, and with which all that it starts ends.

// BenchName is the one argument with which this program is such a process: then
// it calls Bench and does nothing else.
const BenchName = "service-test"

// bench is what that process is told.
type bench struct {
	Args   []string // of the program
	Dir    string   // the service's working directory, as it calls it
	Rights rights
	Root   bool // we are root, and not root of a user namespace made for this
	Covers []cover
	// Namespaces is how many are to be entered: descriptors from benchNamespaces on,
	// the mounts last.
	Namespaces int
}

// cover is a file that is laid over another one of the same directory.
type cover struct {
	Path string // of the file below, as the service calls it
	Temp string // the name of the one above
	// File and Over are which those are.
	File, Over fileID
}

// The descriptors of the process.
const (
	benchReport = 3 + iota // what went wrong before the program was executed
	benchOrders
	benchProgram
	benchNamespaces
)

// benchEnvironment is all that is passed on.
var benchEnvironment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

const maxOutput = 64 << 10 // of what is tested

// testPatience is how long a test of a configuration may take.
const testPatience = 20 * time.Second

// someOutput keeps the beginning of what is written to it.
type someOutput struct{ bytes.Buffer }

func (o *someOutput) Write(b []byte) (int, error) {
	if room := maxOutput - o.Len(); room > 0 {
		o.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// run has the program test the configuration, with covers laid over it.
func (h *held) run(ctx context.Context, b bench) (out []byte, err error) {
	dir, err := os.Readlink(proc(h.PID, "cwd"))
	if err != nil {
		return nil, gone(err)
	}
	namespaces, err := h.namespaces()
	for _, f := range namespaces {
		defer f.Close()
	}
	if err != nil {
		return nil, err
	}
	b.Dir, b.Rights, b.Root, b.Namespaces = dir, h.rights, os.Geteuid() == 0, len(namespaces)
	err = host.Apart(func() error { // the process ends with the thread that started it
		out, err = b.start(ctx, append([]*os.File{h.exe}, namespaces...), h.joinIfContained)
		return err
	})
	return out, err
}

// namespaces are those of the service's that are not ours. Those of users and
// processes are not among them: the first is ours, see user, and the second one
// that is made for the test.
func (h *held) namespaces() (list []*os.File, err error) {
	for _, kind := range []string{"uts", "ipc", "net", "cgroup", "mnt"} {
		f, err := os.Open(proc(h.PID, "ns/"+kind))
		if errors.Is(err, os.ErrNotExist) && h.alive() {
			continue // a kernel without it
		}
		if err != nil {
			return list, gone(err)
		}
		theirs, err := idOf(int(f.Fd()))
		ours, err2 := host.Inode("/proc/thread-self/ns/" + kind)
		if err := errors.Join(err, err2); err != nil || theirs.Ino == ours {
			f.Close()
			if err != nil {
				return list, err
			}
			continue
		}
		list = append(list, f)
	}
	return list, h.check()
}

func (h *held) joinIfContained(pid int) error {
	if !h.contained {
		return nil
	}
	return h.join(pid)
}

// start starts the process and waits for it. placed is called with its number while
// it waits for what it is to do.
func (b bench) start(ctx context.Context, files []*os.File, placed func(pid int) error) ([]byte, error) {
	report, reportTo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	ordersFrom, orders, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, reportTo.Close())
	}
	defer orders.Close()
	var out someOutput
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{"plimsoll", BenchName}
	cmd.Env = benchEnvironment
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = append([]*os.File{reportTo, ordersFrom}, files...)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID}
	if !b.Root { // then only in a namespace of users may there be mounts of our own
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // of that namespace
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	err = cmd.Start()
	reportTo.Close()
	ordersFrom.Close()
	if err != nil {
		return nil, fmt.Errorf("start a process in namespaces of its own; that needs root (CAP_SYS_ADMIN), or a kernel that lets users make them: %w", err)
	}
	misplaced := placed(cmd.Process.Pid)
	if misplaced == nil {
		err = json.NewEncoder(orders).Encode(b)
	}
	told := errors.Join(err, orders.Close())              // without any, the process ends
	failed, _ := io.ReadAll(io.LimitReader(report, 4096)) // it ends when the program is executed
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case misplaced != nil:
		return nil, misplaced
	case len(failed) > 0:
		return nil, errors.New(string(failed))
	case told != nil:
		return nil, told
	}
	return out.Bytes(), err
}

// Bench is the whole life of the process: it does not return unless something
// went wrong, which it has told then, or nothing is to be executed.
func Bench() error {
	runtime.LockOSThread()
	report := os.NewFile(benchReport, "report")
	var b bench
	err := errors.Join(endWithParent(), keepNothingOpen(), apart())
	if err == nil {
		err = json.NewDecoder(os.NewFile(benchOrders, "orders")).Decode(&b)
	}
	if err == nil {
		err = b.become()
	}
	if err != nil {
		fmt.Fprint(report, err)
	}
	return err
}

// endWithParent has the kernel end the process with the one that started it.
func endWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with plimsoll: %w", err)
	}
	return nil
}

// keepNothingOpen has all descriptors but the standard ones closed when the
// program is executed, those too that somebody left to us.
func keepNothingOpen() error {
	names, err := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		if fd := atoi(filepath.Base(name)); fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("no /proc: its own descriptors cannot be listed")
	}
	return err
}

// apart keeps the process from those that have what it keeps of its rights: until
// it executes something it is a plimsoll, with threads that have all of them.
func apart() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep others from looking into it: %w", err)
	}
	// Where it is forbidden (a filter of system calls) we have no keys to lose.
	_, _ = unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	return nil
}

// become goes where the service is and executes its program.
func (b bench) become() error {
	if err := b.enter(); err != nil {
		return err
	}
	for _, c := range b.Covers {
		if err := c.lay(); err != nil {
			return fmt.Errorf("lay the new %s over the old one for a test: %w", c.Path, err)
		}
	}
	if err := unix.Chdir(b.Dir); err != nil {
		return fmt.Errorf("go to the service's directory %s: %w", b.Dir, err)
	}
	if err := b.Rights.take(b.Root); err != nil {
		return err
	}
	if err := endWithParent(); err != nil { // changing users took that back
		return err
	}
	return executeAt(benchProgram, b.Args, benchEnvironment)
}

// enter goes into the service's namespaces, and from there into mounts of our own.
func (b bench) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("have a root directory of our own: %w", err)
	}
	for fd := benchNamespaces; fd < benchNamespaces+b.Namespaces; fd++ {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter the service's namespaces; that needs root: %w", err)
		}
	}
	return ownMounts(0)
}

// lay mounts the file over the other one; nobody else sees that.
func (c cover) lay() error {
	tree, err := rooted.OpenTree("")
	if err != nil {
		return err
	}
	defer tree.Close()
	below, err := tree.Find(c.Path, nil)
	if err != nil {
		return err
	}
	defer below.Close()
	above, err := unix.Openat(int(below.Dir.Fd()), c.Temp, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", c.Temp, err)
	}
	defer unix.Close(above)
	is, err := idOf(int(below.File.Fd()))
	over, err2 := idOf(above)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if is != c.File || over != c.Over {
		return fmt.Errorf("%w: it is another file", ErrChanged)
	}
	copied, err := unix.OpenTree(above, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("open_tree (Linux 5.2): %w", err)
	}
	defer unix.Close(copied)
	if err := unix.MoveMount(copied, "", int(below.File.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

// executeAt is execveat(2) on a descriptor. It returns only with an error.
func executeAt(fd int, args, env []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	envv, err2 := syscall.SlicePtrFromStrings(env)
	empty, err3 := unix.BytePtrFromString("")
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	_, _, e := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0)
	return fmt.Errorf("execute the service's program: %w", e)
}

// test has the service's own program test its configuration where the service
// runs, with drafts in the place of the files that they are for. Nobody else sees that.
func (s *service) test(ctx context.Context, drafts []*draft) error {
	h, err := s.hold()
	if err != nil {
		return fmt.Errorf("test the configuration of %s: %w", s, err)
	}
	defer h.Close()
	b := bench{Args: append([]string{filepath.Base(s.programName())}, s.Test...)}
	for _, d := range drafts {
		c, err := d.cover()
		if err != nil {
			return err
		}
		b.Covers = append(b.Covers, c)
	}
	ctx, cancel := context.WithTimeout(ctx, testPatience)
	defer cancel()
	out, err := h.run(ctx, b)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s tested the configuration: %s: %w", s, firstLines(out), ErrRefused)
	}
	if err != nil {
		return fmt.Errorf("test the configuration of %s: %w", s, err)
	}
	return nil
}

// programName is what the service's program is called; that is for messages alone.
func (s *service) programName() string {
	name, err := os.Readlink(proc(s.PID, "exe"))
	if err != nil {
		return string(s.Kind)
	}
	return name
}

func firstLines(b []byte) string {
	const most, longest = 3, 400
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	lines = lines[:min(most, len(lines))]
	for i, line := range lines {
		lines[i] = line[:min(longest, len(line))]
	}
	return strings.Join(lines, "; ")
}

// cover is the draft as what is laid over the file for a test.
func (d *draft) cover() (c cover, err error) {
	c = cover{Path: d.path, Temp: d.temp(), File: fileID{d.at.Stat.Dev, d.at.Stat.Ino}}
	c.Over, err = idOf(int(d.ready.Fd()))
	return c, err
}

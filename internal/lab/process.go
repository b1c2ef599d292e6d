package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// gate holds a child back until the journal knows it: it reads one line before
// it becomes the command, and gives up when the lab dies before writing it.
// The process keeps its pid and start time through exec.
const gate = `read -r go || exit 1; exec "$@" </dev/null`

// child is a started process of a case.
type child struct {
	name string
	pid  int
	log  string        // its stdout and stderr
	done chan struct{} // closed when it has ended
	how  error         // of its end, from then on
}

// start runs argv inside a namespace, leaves it running, and returns once it
// is in the journal and has been let go.
func (l *Lab) start(netns, name, dir string, nice int, argv []string) (*child, error) {
	log, err := os.Create(filepath.Join(dir, name+".out"))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	hold, release, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer release.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", gate, "sh"}, argv...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, hold, log, log
	// A group of its own: ^C must reach the lab, which then ends it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = inNetNS(netns, cmd.Start)
	hold.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, pid: cmd.Process.Pid, log: log.Name(), done: make(chan struct{})}
	go func() {
		c.how = cmd.Wait()
		close(c.done)
	}()
	st, err := host.StatOf(c.pid)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := l.note(entry{Do: "process", Name: name, PID: c.pid, Start: st.Start, NetNS: netns}); err != nil {
		return nil, err
	}
	if nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, c.pid, nice); err != nil {
			return nil, fmt.Errorf("start %s: set nice %d: %w", name, nice, err)
		}
	}
	if _, err := release.WriteString("go\n"); err != nil {
		return nil, fmt.Errorf("start %s: it ended at once: %s", name, tail(c.log))
	}
	return c, nil
}

// waitListening returns when the child's namespace has a listener: on a port
// (table "tcp", which means tcp6 as well: [::] takes IPv4 too) or at a path ("unix").
// It looks into the kernel's lists, because a connection would be part of the case.
func (c *child) waitListening(ctx context.Context, table, where string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if c.listening(table, where) {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended before it listened on %s: %s", c.name, where, tail(c.log))
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %s: %w", c.name, where, tail(c.log), ctx.Err())
		case <-tick.C:
		}
	}
}

// waitEnd returns when the child has ended with exit code 0.
func (c *child) waitEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-c.done:
	case <-ctx.Done():
		return fmt.Errorf("%s has not ended: %s: %w", c.name, tail(c.log), ctx.Err())
	}
	if c.how != nil {
		return fmt.Errorf("%s was to end well: %s: %w", c.name, tail(c.log), c.how)
	}
	return nil
}

// waitSocket returns when there is a TCP connection, or the beginning of one, in the child's namespace.
func (c *child) waitSocket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", c.pid)) // gone: the child has ended
		if connects(table) {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended before it connected: %s", c.name, tail(c.log))
		case <-ctx.Done():
			return fmt.Errorf("%s does not connect: %s: %w", c.name, tail(c.log), ctx.Err())
		case <-tick.C:
		}
	}
}

// connects says whether a /proc/net/tcp table has a connection that is open (state 01) or asked for (02).
func connects(table []byte) bool {
	for line := range bytes.Lines(table) {
		if f := strings.Fields(string(line)); len(f) > 3 && (f[3] == "01" || f[3] == "02") {
			return true
		}
	}
	return false
}

func (c *child) listening(table, where string) bool {
	read := func(name string) []byte { // without IPv6 there is no tcp6; nothing listens there then
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", c.pid, name))
		return data
	}
	if table == "unix" {
		return listensAt(read("unix"), where)
	}
	return listens(read("tcp"), where) || listens(read("tcp6"), where)
}

// listens says whether a /proc/net/tcp or tcp6 table has a listener (state 0A) on the port.
func listens(table []byte, port string) bool {
	n, err := strconv.Atoi(port)
	if err != nil {
		return false
	}
	want := fmt.Sprintf(":%04X", n)
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) > 3 && f[3] == "0A" && strings.HasSuffix(f[1], want) {
			return true
		}
	}
	return false
}

// listensAt says whether a /proc/net/unix table has a listener at the path: the
// flag for it (__SO_ACCEPTCON) is 0x10000.
func listensAt(table []byte, path string) bool {
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) == 8 && f[3] == "00010000" && f[7] == path {
			return true
		}
	}
	return false
}

// tail is the end of a log, for an error message.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return "it said nothing"
	}
	if len(data) > 600 {
		data = data[len(data)-600:]
	}
	return "it said: " + strings.TrimSpace(string(data))
}

// endProcess ends the process that the journal names, and what is left of its
// process group in its namespace (workers whose master was killed).
func endProcess(e entry) error {
	err := endOne(e.PID, e.Start)
	if err != nil {
		return fmt.Errorf("end %s: %w", e.Name, err)
	}
	pids := groupMembers(e)
	errs := make([]error, len(pids))
	var ends sync.WaitGroup // all at a time: one that blocks signals, as a child before its exec, takes 3 s to be killed
	for i, pid := range pids {
		ends.Go(func() {
			if st, err := host.StatOf(pid); err == nil {
				errs[i] = endOne(pid, st.Start)
			}
		})
	}
	ends.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end workers of %s: %w", e.Name, err)
	}
	return nil
}

// groupMembers lists the processes in the group that e's process led, as far as
// they are in its namespace and not older than it. A group's number is not
// given away while it has members.
func groupMembers(e entry) []int {
	home, err := os.Stat(netnsPath(e.NetNS))
	if err != nil {
		return nil
	}
	var pids []int
	for _, pid := range host.PIDs() {
		st, err := host.StatOf(pid)
		if err != nil || st.Group != e.PID || st.Start < e.Start || st.State == 'Z' {
			continue
		}
		if ns, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && os.SameFile(home, ns) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endOne asks a process to end, then makes it. The pidfd is taken before the
// start time is looked at, so no later owner of the pid can be hit.
func endOne(pid int, start uint64) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	st, err := host.StatOf(pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || (err == nil && (st.Start != start || st.State == 'Z')) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, sig, nil, 0); errors.Is(err, unix.ESRCH) {
			return nil
		} else if err != nil {
			return fmt.Errorf("process %d: send %v: %w", pid, sig, err)
		}
		if waitExit(fd, 3*time.Second) {
			return nil
		}
	}
	return fmt.Errorf("process %d does not end", pid)
}

// waitExit waits until the process behind a pidfd has ended.
func waitExit(fd int, patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	for {
		left := time.Until(deadline)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(left, 0)/time.Millisecond))
		if n > 0 {
			return true
		}
		if !errors.Is(err, unix.EINTR) || left <= 0 {
			return false
		}
	}
}

package flight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketName is the socket in a ring's directory, which its owner and root alone can enter, by which a run is asked for.
const socketName = "ask.sock"

const (
	// replyPatience is for how long a client is answered.
	replyPatience = 5 * time.Second
	// turnPatience is for how long a client waits for its turn, which is longer than a verdict may take on a busy machine, and
	// askPatience for its run in all: it is made, and judged.
	turnPatience = 6 * time.Minute
	askPatience  = 15 * time.Minute
	maxAnswer    = 64 << 10
)

// socketIn is the path of the socket in a directory that is held open: a path of a socket is short.
func socketIn(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName) }

// listen opens the socket in the directory to which a path leads.
func listen(path string) (*net.UnixListener, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketIn(dir), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", socketName, err)
	}
	l.SetUnlinkOnClose(false) // it goes with the ring
	return l, nil
}

// answer answers one client after the other.
func (f *Recorder) answer(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Second) // no descriptors: there will be
			continue
		}
		f.one(c)
	}
}

// one makes a run for a client that may ask for one.
func (f *Recorder) one(c *net.UnixConn) {
	defer c.Close()
	var answer made
	if err := trusted(c); err != nil {
		answer.Err = err.Error()
	} else {
		reply := make(chan made, 1)
		select {
		case f.asks <- reply:
			answer = <-reply
		case <-time.After(turnPatience):
			answer.Err = "the watch is ending, or makes another run"
		}
	}
	_ = c.SetWriteDeadline(time.Now().Add(replyPatience)) // who went away sees nothing
	_ = json.NewEncoder(c).Encode(answer)
}

// trusted says why the process at the other end may not ask: it is neither root's nor of our user.
func trusted(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var who *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) { who, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, asked); err != nil {
		return err
	}
	if who.Uid != 0 && int(who.Uid) != os.Geteuid() {
		return fmt.Errorf("user %d may not ask for runs of this watch; root and user %d may", who.Uid, os.Geteuid())
	}
	return nil
}

// Ask asks the watch that keeps its last minutes in dir for a run of them, and returns its directory.
func Ask(dir string) (string, error) {
	held, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return "", fmt.Errorf("no watch keeps its last minutes in %s; start one with plimsoll watch --listen HOST:PORT --keep 10m: %w", filepath.Clean(dir), err)
	}
	defer held.Close()
	c, err := net.DialTimeout("unix", socketIn(held), replyPatience)
	if err != nil {
		return "", fmt.Errorf("no watch is running that keeps its last minutes in %s; start one with plimsoll watch --listen HOST:PORT --keep 10m: %w", filepath.Clean(dir), err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(askPatience)); err != nil {
		return "", err
	}
	var answer made
	if err := json.NewDecoder(io.LimitReader(c, maxAnswer)).Decode(&answer); err != nil {
		return "", fmt.Errorf("the watch of %s did not answer to the end: %w", filepath.Clean(dir), err)
	}
	if answer.Err != "" {
		return "", fmt.Errorf("the watch made no run: %s", answer.Err)
	}
	return answer.Dir, nil
}

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// besides is how many descriptors of a table are not for connections: what the process had before.
const besides = 100

// open is how many connections stand, most how many there were at once.
var open, most atomic.Int64

var reply = []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

// asked is a connection whose reply is due.
type asked struct {
	due time.Time
	fd  int
}

// sink is one thread of a server that answers each request after a while. It has a table of descriptors of its own, so
// that there can be more connections than a process may open files.
type sink struct {
	poll, listener int
	delay          time.Duration
	waiting        []asked // those that have asked, in the order in which their replies are due
}

// serve starts so many threads that all connections have room, and returns when they listen.
func serve(port, connections int, delay time.Duration) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	// The kernel deals connections out by a hash, so that some threads get more than others.
	threads := max(connections*11/10/(int(limit.Max)-besides)+1, runtime.NumCPU())
	runtime.GOMAXPROCS(threads + 2)
	ready := make(chan error)
	for range threads {
		go func() {
			runtime.LockOSThread()
			s := &sink{delay: delay}
			err := s.listen(port)
			ready <- err
			for err == nil {
				err = s.turn()
			}
			fmt.Fprintln(os.Stderr, "crowd: the server:", err)
		}()
	}
	for range threads {
		if err := <-ready; err != nil {
			return fmt.Errorf("a server of %d threads on port %d: %w", threads, port, err)
		}
	}
	return nil
}

// listen takes a table of descriptors, and listens.
func (s *sink) listen(port int) (err error) {
	if err = unix.Unshare(unix.CLONE_FILES); err != nil {
		return err
	}
	if s.poll, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	if s.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	if err = unix.SetsockoptInt(s.listener, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err = unix.Bind(s.listener, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err = unix.Listen(s.listener, 65535); err != nil {
		return err
	}
	return unix.EpollCtl(s.poll, unix.EPOLL_CTL_ADD, s.listener, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.listener)})
}

// turn waits for something to do and does it.
func (s *sink) turn() error {
	wait := -1
	if len(s.waiting) > 0 {
		wait = int(max(time.Until(s.waiting[0].due).Milliseconds()+1, 0))
	}
	var events [256]unix.EpollEvent
	n, err := unix.EpollWait(s.poll, events[:], wait)
	if err != nil && err != unix.EINTR {
		return err
	}
	for _, e := range events[:max(n, 0)] {
		if int(e.Fd) == s.listener {
			if err := s.accept(); err != nil {
				return err
			}
			continue
		}
		s.read(int(e.Fd))
	}
	for now := time.Now(); len(s.waiting) > 0 && !s.waiting[0].due.After(now); s.waiting = s.waiting[1:] {
		_, _ = unix.Write(s.waiting[0].fd, reply) // who has gone is closed by read
	}
	return nil
}

// accept takes some of the connections that wait.
func (s *sink) accept() error {
	for range 256 {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_NONBLOCK)
		switch err {
		case nil:
		case unix.EAGAIN:
			return nil
		default:
			return fmt.Errorf("accept: %w", err)
		}
		if err := unix.EpollCtl(s.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return err
		}
		for n := open.Add(1); ; { // the highest that any thread saw
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
	}
	return nil
}

// read takes a request, or the end of a connection.
func (s *sink) read(fd int) {
	var b [4096]byte
	if n, err := unix.Read(fd, b[:]); n > 0 {
		s.waiting = append(s.waiting, asked{time.Now().Add(s.delay), fd})
	} else if err != unix.EAGAIN {
		unix.Close(fd)
		open.Add(-1)
	}
}

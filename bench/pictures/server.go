package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// server has so many workers; each request takes one of them for a while.
type server struct {
	workers chan struct{}
	takes   time.Duration
	room    int64 // for requests that wait for a worker; beyond it they are refused. 0: all may
	waiting atomic.Int64
	stopped sync.RWMutex // written to while nothing moves
	url     string
}

// serve begins one on a free port of this machine's loopback.
func serve(workers int, takes time.Duration, room int64) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{workers: make(chan struct{}, workers), takes: takes, room: room, url: "http://" + l.Addr().String() + "/"}
	go func() { _ = http.Serve(l, s) }() // until the program ends
	return s, nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.stopped.RLock()
	defer s.stopped.RUnlock()
	if n := s.waiting.Add(1); s.room > 0 && n > s.room {
		s.waiting.Add(-1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.workers <- struct{}{}
	s.waiting.Add(-1)
	time.Sleep(s.takes)
	<-s.workers
	_, _ = io.WriteString(w, "ok")
}

// stop has nothing move for a while, after a while.
func (s *server) stop(after, d time.Duration) {
	time.Sleep(after)
	s.stopped.Lock()
	time.Sleep(d)
	s.stopped.Unlock()
}

// patient answers each connection once and leaves it to the client to close it, so that the client has the TIME_WAIT.
// It counts its replies.
func patient(l net.Listener, replies *atomic.Int64) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"); err != nil {
				return
			}
			replies.Add(1)
			_, _ = io.Copy(io.Discard, in)
		}()
	}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// configuration is of an nginx: the folder, its name, the mask of its CPU, its port, and what else it does.
const configuration = `worker_processes 1;
worker_cpu_affinity %[3]s;
daemon off;
pid %[1]s/%[2]s.pid;
error_log %[1]s/error.log;
events { worker_connections 8192; }
http {
	access_log off;
	keepalive_requests 100000000;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen 127.0.0.1:%[4]d backlog=8192;
		root %[1]s;
		location = /status { stub_status; }
		%[5]s
	}
}
`

// passes has requests below /passed/ go to the nginx on CPU 1, which listens at this port.
const passes = `location /passed/ { proxy_pass http://behind/; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
	upstream behind {
		server 127.0.0.1:%d;
		keepalive 256;`

// withUs ends a process when we end, however that is.
var withUs = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}

// site is a loaded nginx.
type site struct {
	dir    string
	url    string
	nginx  *exec.Cmd
	behind *exec.Cmd
	wrk    *exec.Cmd
	worker int
}

// script is a service in Python; its page of status is like nginx's.
const script = `import asyncio, sys
served = 0
def work(n):
    total = 0
    for i in range(n): total += i * i % 7
    return total
async def answer(reader, writer):
    global served
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            served += 1
            if b"/status" in head: body = b"accepts handled requests\n 0 0 %d" % served
            else: body = b"%d" % work(300)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError): writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]), backlog=512)
    async with server: await server.serve_forever()
asyncio.run(main())
`

// startSite starts it.
func startSite(o options) (_ *site, err error) {
	s := &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "tracecost"); err != nil {
		return nil, err
	}
	port := 20000 + rand.N(10000)
	s.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := os.Chmod(s.dir, 0o755); err != nil { // nginx's worker reads the file
		return nil, err
	}
	for name, text := range map[string]string{
		"nginx.conf":  fmt.Sprintf(configuration, s.dir, "nginx", "01", port, fmt.Sprintf(passes, port+1)),
		"behind.conf": fmt.Sprintf(configuration, s.dir, "behind", "10", port+1, ""),
		"file":        strings.Repeat("x", 599),
		"service.py":  script,
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if o.python {
		s.nginx, err = s.interpret(port)
	} else {
		s.nginx, err = s.serve("nginx.conf")
	}
	if err != nil {
		return nil, err
	}
	path := "/file"
	if o.passed {
		path = "/passed/file"
		if s.behind, err = s.serve("behind.conf"); err != nil {
			return nil, err
		}
	}
	if err := s.findWorker(o.python); err != nil {
		return nil, err
	}
	s.wrk = exec.Command("taskset", "-c", "1", "wrk", "-t1", "-c"+strconv.Itoa(o.connections), "-d24h", s.url+path)
	s.wrk.SysProcAttr = withUs
	if err := s.wrk.Start(); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second) // connections open, caches warm
	return s, nil
}

func (s *site) serve(configuration string) (*exec.Cmd, error) {
	nginx := exec.Command("nginx", "-p", s.dir, "-c", filepath.Join(s.dir, configuration))
	nginx.SysProcAttr = withUs
	return nginx, nginx.Start()
}

// interpret starts the script in nginx's place.
func (s *site) interpret(port int) (*exec.Cmd, error) {
	python := exec.Command("taskset", "-c", "0", "python3", filepath.Join(s.dir, "service.py"), strconv.Itoa(port))
	python.SysProcAttr = withUs
	return python, python.Start()
}

// findWorker waits for who answers: a child of nginx, or the script itself.
func (s *site) findWorker(itself bool) error {
	path := fmt.Sprintf("/proc/%d/task/%[1]d/children", s.nginx.Process.Pid)
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("nginx did not start; see its error.log: %w", err)
		}
		if s.worker, err = strconv.Atoi(strings.TrimSpace(string(text))); itself {
			s.worker = s.nginx.Process.Pid
		} else if err != nil {
			continue
		}
		if _, err := s.look(); err == nil {
			return nil
		}
	}
	return errors.New("nginx did not answer within 5 s")
}

func (s *site) stop() error {
	for _, c := range []*exec.Cmd{s.wrk, s.nginx, s.behind} {
		if c == nil || c.Process == nil {
			continue
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	}
	return os.RemoveAll(s.dir)
}

// moment is nginx's counter of requests and its worker's CPU time, at a time.
type moment struct {
	at       time.Time
	requests float64
	cpu      time.Duration
}

// measured is what passed between two moments.
type measured struct {
	requests  float64
	took, cpu time.Duration
}

func (m moment) since(from moment) measured {
	return measured{m.requests - from.requests, m.at.Sub(from.at), m.cpu - from.cpu}
}

func (m *measured) add(n measured) {
	m.requests, m.took, m.cpu = m.requests+n.requests, m.took+n.took, m.cpu+n.cpu
}

func (m measured) rate() float64 { return m.requests / m.took.Seconds() }

func (m measured) cpuPerReply() float64 { return m.cpu.Seconds() / m.requests }

func (s *site) look() (moment, error) {
	reply, err := http.Get(s.url + "/status")
	if err != nil {
		return moment{}, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	at := time.Now()
	if err != nil {
		return moment{}, err
	}
	ran, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.worker))
	if err != nil {
		return moment{}, err
	}
	// "server accepts handled requests\n a b N"
	_, rest, _ := strings.Cut(string(text), "requests\n")
	f := strings.Fields(rest)
	if len(f) < 3 {
		return moment{}, fmt.Errorf("nginx's status page: want three counters, got %q", text)
	}
	n, err := strconv.ParseFloat(f[2], 64)
	if err != nil {
		return moment{}, err
	}
	ns, err := strconv.ParseInt(strings.Fields(string(ran))[0], 10, 64)
	return moment{at, n, time.Duration(ns)}, err
}

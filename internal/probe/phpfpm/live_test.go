package phpfpm

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/service/phpfpm"
)

const liveConf = `[global]
error_log = DIR/fpm.log
include = DIR/pool.d/*.conf
`

const livePool = `[www]
user = root
group = root
listen = 127.0.0.1:9000
listen.backlog = 33
pm = dynamic
pm.max_children = 2
pm.start_servers = 1
pm.min_spare_servers = 1
pm.max_spare_servers = 1
pm.status_path = /status
slowlog = DIR/slow.log
request_slowlog_timeout = 60s
`

const liveSecond = `[second]
user = root
group = root
listen = 9001
pm = static
pm.max_children = 2
pm.status_path = /st
pm.status_listen = 127.0.0.1:9002
`

// begin sends a request for a script and does not wait for its answer. It closes
// the connection after the answer: until then FPM keeps the worker.
func begin(t *testing.T, s *livetest.Service, script string) {
	t.Helper()
	c, err := s.Dial("tcp", "127.0.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	var p []byte
	for _, kv := range [][2]string{{"REQUEST_METHOD", "GET"}, {"SCRIPT_NAME", "/x.php"}, {"SCRIPT_FILENAME", script}, {"REQUEST_URI", "/x.php"}} {
		p = appendParam(p, kv[0], kv[1])
	}
	b := appendRecord(nil, beginRequest, []byte{0, roleResponder, 0, 0, 0, 0, 0, 0})
	b = appendRecord(appendRecord(appendRecord(b, params, p), params, nil), stdin, nil)
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	go func() {
		io.Copy(io.Discard, c)
		c.Close()
	}()
}

func TestLivePHPFPM(t *testing.T) {
	phpFPM := livetest.PHPFPM(t)
	s := livetest.Start(t, map[string]string{
		"fpm.conf": liveConf, "pool.d/a.conf": livePool, "pool.d/b.conf": liveSecond, "x.php": `<?php while (!file_exists("DIR/end")) { usleep(20000); clearstatcache(); }`,
	}, phpFPM, "-R", "-F", "--fpm-config", "DIR/fpm.conf")
	s.Until("PHP-FPM listens", func() bool {
		c, err := s.Dial("tcp", "127.0.0.1:9000")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	s.Sample(All())
	s.Sees("phpfpm_up{www}", 1)
	s.Sees("phpfpm_up{second}", 1)
	s.Sees("phpfpm_active_processes{www}", 1) // it answers us
	s.Sees("phpfpm_active_processes{second}", 0)
	s.Sees("phpfpm_listen_queue_length{www}", 33)
	s.Sees("plimsoll_phpfpm_workers{www}", 1)
	s.Sees("plimsoll_phpfpm_workers{second}", 2)
	s.Sees("plimsoll_phpfpm_config_max_children{www}", 2)
	s.Sees("plimsoll_phpfpm_config_listen_backlog{www}", 33)
	s.Sees("plimsoll_phpfpm_config_listen_backlog{second}", float64(somaxconn(s.Host)))
	s.Sees("plimsoll_phpfpm_pool_info{www,127.0.0.1:9000,dynamic,"+filepath.Base(phpFPM)+"}", 1)
	s.Sees("plimsoll_phpfpm_pool_info{second,[::]:9001,static,"+filepath.Base(phpFPM)+"}", 1)
	for _, sig := range allSignals() {
		if st := s.Rec.States[sig.Name]; st.State != model.Read {
			t.Errorf("%s: %+v", sig.Name, st)
		}
	}
	fill(t, s)
	if len(s.Rec.Lines) == 0 || !strings.Contains(s.Rec.Lines[0], "[pool www] server reached pm.max_children") {
		t.Errorf("events: %q", s.Rec.Lines)
	}
}

// fill makes all workers of a pool busy: its status page cannot answer then, and
// afterwards it can.
func fill(t *testing.T, s *livetest.Service) {
	t.Helper()
	const requests = 4 // for two workers, so that two wait
	for range requests {
		begin(t, s, s.Dir+"/x.php")
	}
	s.Until("the status page failed", func() bool {
		s.Round()
		st := s.Rec.States[active.Name]
		return st.State == model.Failed && strings.Contains(st.Why, "all were busy")
	})
	since := time.Now()
	s.Sees("phpfpm_up{www}", 0)
	s.Sees("plimsoll_phpfpm_workers{www}", 2)
	s.Sees("plimsoll_phpfpm_log_messages_total{www,max_children_reached}", 1)
	s.Until("it was not to be read for longer than a blink and the time between two reads", func() bool {
		s.Round()
		return time.Since(since) > probe.Blink+2*time.Second
	})
	s.Write("end", "")
	s.Sees("phpfpm_up{www}", 1)
	s.Sees("phpfpm_max_children_reached{www}", 1)
	// The numbers are back. What they were meanwhile nobody knows, and that stays said.
	if st := s.Rec.States[active.Name]; st.State != model.Failed || !strings.Contains(st.Why, "could not be read for") {
		t.Errorf("%s after the pool was free again: %+v", active.Name, st)
	}
}

func TestNoPHPFPMIsAFact(t *testing.T) { livetest.CheckNone(t, All()) }

// The status page of a pool at a Unix socket is asked there, and nobody else is asked in its place.
func TestLiveStatusAtAUnixSocket(t *testing.T) {
	phpFPM := livetest.PHPFPM(t)
	s := livetest.Start(t, map[string]string{"fpm.conf": "[global]\nerror_log = DIR/fpm.log\n[www]\nuser = root\ngroup = root\nlisten = DIR/own.sock\npm = static\npm.max_children = 1\npm.status_path = /status\n"},
		phpFPM, "-R", "-F", "--fpm-config", "DIR/fpm.conf")
	pool := phpfpm.Pool{Name: "www", Listen: filepath.Join(s.Dir, "own.sock"), StatusPath: "/status"}
	s.Until("its pool answers", func() bool {
		_, err := askPool(s.Host, "/", s.PID, pool)
		return err == nil
	})
	l, err := net.Listen("unix", filepath.Join(s.Dir, "other.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pool.Listen = l.Addr().String()
	if _, err := askPool(s.Host, "/", s.PID, pool); err == nil || !strings.Contains(err.Error(), "no process of the service listens") {
		t.Errorf("%v, want that nobody is asked there", err)
	}
}

// Without an ini file OPcache is not loaded, and told as off.
func TestLiveOPcacheOff(t *testing.T) {
	s := livetest.Start(t, map[string]string{"fpm.conf": liveConf, "pool.d/a.conf": livePool}, livetest.PHPFPM(t), "-n", "-R", "-F", "--fpm-config", "DIR/fpm.conf")
	s.Sample(All())
	s.Sees("plimsoll_phpfpm_opcache_on{www}", 0)
}

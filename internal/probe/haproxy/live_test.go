package haproxy

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/probe/livetest"
)

const liveConf = `global
  stats socket DIR/own.sock
defaults
  mode http
  timeout client 1s
  timeout server 1s
  timeout connect 1s
frontend web
  bind 127.0.0.1:8080
`

// HAProxy's master hands its sockets to a worker. What another process listens at is not
// asked, whatever a configuration says.
func TestLiveHAProxyIsAskedAtItsOwnSocket(t *testing.T) {
	s := livetest.Start(t, map[string]string{"h.cfg": liveConf}, "haproxy", "-W", "-f", "DIR/h.cfg")
	r := &reader{host: s.Host}
	var its *service
	var answer []byte
	s.Until("HAProxy answers", func() bool {
		r.find()
		i := slices.IndexFunc(r.services, func(o *service) bool { return o.proc.PID == s.PID })
		if i < 0 {
			return false
		}
		its = r.services[i]
		text, err := ask(s.Host, its.proc, its.pids)
		answer = text
		return err == nil
	})
	if values, err := parse(answer); err != nil || len(values) == 0 {
		t.Errorf("%v: %q", err, answer)
	}
	l, err := net.Listen("unix", filepath.Join(s.Dir, "taken.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := askAt(s.Host, "/", l.Addr().String(), its.pids); err == nil || !strings.Contains(err.Error(), "no process of the service listens") {
		t.Errorf("%v, want that nobody is asked there", err)
	}
}

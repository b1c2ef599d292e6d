package load

import (
	"bytes"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

// serveSocket answers on a Unix socket with so many bytes, and counts.
func serveSocket(t *testing.T, path string, size int) *atomic.Int64 {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	body := bytes.Repeat([]byte("x"), size)
	srv := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "app.test" || r.URL.Path != "/a" {
			w.WriteHeader(http.StatusBadRequest)
		}
		n.Add(1)
		_, _ = w.Write(body)
	})}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	return &n
}

func TestUnixSocket(t *testing.T) {
	base := model.LoadPlan{URL: "http://app.test/a", Connections: 4, Threads: 2, KeepAlive: true, TimeoutMS: 60_000, Requests: 100}
	for why, change := range map[string]func(*model.LoadPlan){
		"closed loop":      func(*model.LoadPlan) {},
		"a new one each":   func(p *model.LoadPlan) { p.KeepAlive = false },
		"open loop":        func(p *model.LoadPlan) { p.Rate = 1000 },
		"dense":            func(p *model.LoadPlan) { p.Rate, p.Requests = 40_000, 2000 },
		"HTTP/2":           func(p *model.LoadPlan) { p.HTTP2, p.Streams = true, 4 },
		"an abstract name": func(p *model.LoadPlan) { p.UnixSocket = "@plimsoll" + strings.ReplaceAll(t.TempDir(), "/", "-") },
		"HEAD has no body": func(p *model.LoadPlan) { p.Method = "HEAD" },
		"several threads":  func(p *model.LoadPlan) { p.Threads = 4 },
		"Poisson, in steps": func(p *model.LoadPlan) {
			p.Rate, p.Arrivals, p.Stages = 500, model.Poisson, []model.Stage{{AtMS: 50, Rate: 2000}}
		},
	} {
		for _, size := range []int{5, 300_000} { // what is longer than the buffer goes another way
			t.Run(why, func(t *testing.T) {
				plan := base
				plan.UnixSocket = filepath.Join(t.TempDir(), "s")
				change(&plan)
				n := serveSocket(t, plan.UnixSocket, size)
				all := runPlan(t, t.Context(), plan)
				if got := all[len(all)-1].Totals.Outcomes; got["2xx"] != plan.Requests || len(got) != 1 || n.Load() != plan.Requests {
					t.Errorf("%d bytes: %v, and the server had %d; want %d good replies", size, got, n.Load(), plan.Requests)
				}
				if want := "unix:" + plan.UnixSocket; all[0].Target != want {
					t.Errorf("target %q, want %q", all[0].Target, want)
				}
			})
		}
	}
}

// A Unix socket's connect does not wait for room in the listener's queue.
func TestAFullQueueOfAUnixSocketIsToldAsOne(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	path := filepath.Join(t.TempDir(), "s")
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	plan := model.LoadPlan{URL: "http://app.test/", UnixSocket: path, Connections: 3, Threads: 1, KeepAlive: true, TimeoutMS: 50, DurationMS: 1000}
	all := runPlan(t, t.Context(), plan)
	if got := all[len(all)-1].Totals.Outcomes; got["connect:EAGAIN"] == 0 {
		t.Errorf("room for one, three connections: %v, want connect:EAGAIN among them", got)
	}
}

func TestSocketsThatAreNone(t *testing.T) {
	for _, path := range []string{"@", "/" + strings.Repeat("x", longestSocket)} {
		if err := Check(model.LoadPlan{URL: "http://a/", Connections: 1, Requests: 1, UnixSocket: path}); err == nil {
			t.Errorf("%q was taken", path)
		}
	}
}

package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/netutil"

	"plimsoll/internal/serve"
)

// Bounds of what a client may ask for and take. A page is made once a round, whoever
// asks, so that one more scrape costs what sending it costs.
const (
	maxConnections = 64
	maxStreams     = 4        // of HTTP/2, of a connection
	maxHeader      = 16 << 10 // bytes
	headerPatience = 5 * time.Second
	replyPatience  = 10 * time.Second
	idlePatience   = 2 * time.Minute // between two scrapes
	endPatience    = 2 * time.Second
)

// server is where scrapes come in.
type server struct {
	tcp  *net.TCPListener
	in   net.Listener
	http http.Server
	conf *webConfig // nil for none
	tls  bool
}

// listen opens the address. Without TLS that is this machine's loopback alone, unless
// insecure says otherwise.
func listen(address, config string, insecure bool) (*server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: want HOST:PORT, like 127.0.0.1:9109: %w", address, err)
	}
	s := new(server)
	if config != "" {
		if s.conf, err = openConfig(config); err != nil {
			return nil, err
		}
		s.tls = s.conf.now.tls
	}
	if !s.tls && !insecure && !serve.Loopback(host) {
		return nil, fmt.Errorf("listen on %s: others than this machine could read along; give --web-config with TLS (tls_server_config), or --insecure", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	s.tcp = l.(*net.TCPListener)
	s.in = netutil.LimitListener(l, maxConnections)
	s.http = http.Server{MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerPatience, ReadTimeout: headerPatience, WriteTimeout: replyPatience,
		IdleTimeout: idlePatience, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what clients do wrong is theirs to know
	}
	return s, nil
}

// url is where series are found.
func (s *server) url() string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	return scheme + "://" + s.tcp.Addr().String() + "/metrics"
}

// serve answers until ctx ends.
func (s *server) serve(ctx context.Context, handler http.Handler) error {
	s.http.Handler = handler
	config := ""
	if s.conf != nil {
		defer s.conf.close()
		config, s.http.ConnState = s.conf.name(), s.conf.watch
	}
	stop := context.AfterFunc(ctx, func() {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer done()
		if s.http.Shutdown(last) != nil {
			_ = s.http.Close() // who still reads is not waited for
		}
	})
	defer stop()
	err := web.Serve(s.in, &s.http, &web.FlagConfig{WebConfigFile: &config}, slog.New(slog.DiscardHandler))
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.tcp.Addr(), err)
	}
	return nil
}

// local says whether a request that reached a loopback address names one: a page of another
// site must not read what is here by having its name stand for this machine.
func (s *server) local(r *http.Request) bool {
	if !s.tcp.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	return serve.Loopback(strings.Trim(name, "[]"))
}

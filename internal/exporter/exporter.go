package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/internal/collect"
	"plimsoll/internal/serve"
	"plimsoll/internal/trace"
)

const (
	// renewEvery is how often everything is read, due or not, and what could not run is asked again.
	renewEvery = 5 * time.Minute
	// window is what collectors are told that they are in: none of a run's.
	window = "watch"
)

// Options are those of an exporter.
type Options struct {
	// Listen is HOST:PORT; port 0 is one that is free.
	Listen string
	// WebConfig is a file with TLS and users in the form of Prometheus' exporters, "" for none.
	WebConfig string
	// Insecure lets others than this machine reach it without TLS.
	Insecure bool
	// Collect says what is observed, and how often.
	Collect collect.Config
	Tracers []trace.Tracer
	Version string
	// Now is the clock that it goes by, nil for the machine's, and Renew, if set, says when everything is read anew, in place of
	// every five minutes: for benchmarks in which a month is short.
	Now   func() time.Time
	Renew <-chan time.Time
	// For is how long it answers; 0 is until ctx ends.
	For time.Duration
	// Ready is told where series are found, once there are some.
	Ready func(url string)
	// Note is told sentences about the observation itself.
	Note func(sentence string)
	// Beside, if set, takes what is read as well.
	Beside Beside
}

// Beside is what keeps what is read, beside what is shown of it.
type Beside interface {
	collect.Log
	// Open is called before anything is read.
	Open(hosts []collect.Host) error
	// Run is called once everything is read, and waited for. burst has all tracers watch for a while.
	Run(ctx context.Context, burst func(context.Context, time.Duration) error) error
	// Numbers are what it says of itself.
	Numbers() []prometheus.Collector
}

// AddressError says that the address, or the web config, cannot be used.
type AddressError struct{ Err error }

func (e AddressError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e AddressError) Unwrap() error { return e.Err }

// Run observes and answers scrapes until ctx ends.
func Run(ctx context.Context, opt Options) (err error) {
	s, err := listen(opt.Listen, opt.WebConfig, opt.Insecure)
	if err != nil {
		return AddressError{err}
	}
	defer s.tcp.Close()
	opt.Collect.Ours = append(opt.Collect.Ours, serve.Socket(s.tcp))
	now := clockOf(opt)
	l, err := collect.Open(opt.Collect, opt.Tracers, now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	debug.SetGCPercent(garbage)
	bound()
	defer debug.SetMemoryLimit(usersLimit)
	st := newStore(opt.Collect.Interval, l.Hosts(), opt.Note)
	var log collect.Log = st
	own := newOwn(opt.Version, st)
	if opt.Beside != nil {
		if err := opt.Beside.Open(l.Hosts()); err != nil {
			return err
		}
		log = both{st, opt.Beside}
		own.registry.MustRegister(opt.Beside.Numbers()...)
	}
	if err := l.Start(ctx, log); err != nil {
		return endedBy(ctx, err)
	}
	if _, err := l.Edge(context.WithoutCancel(ctx), collect.Edge{Time: now(), Window: window}); err != nil {
		return err
	}
	giveBack()       // what the tracers' start took, which is several times of what stays
	if opt.For > 0 { // what starting takes is not of it
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, opt.For)
		defer done()
	}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, handler(s, st, own)) }()
	beside := make(chan error, 1)
	if opt.Beside == nil {
		beside <- nil
	} else {
		go func() { beside <- opt.Beside.Run(ctx, burstOf(l)) }()
	}
	opt.Ready(s.url())
	err = observe(ctx, l, st, now, opt, served)
	stop()
	return errors.Join(err, <-served, <-beside)
}

// clockOf is the clock that an exporter goes by; it never runs back.
func clockOf(opt Options) func() time.Time {
	if opt.Now != nil {
		return opt.Now
	}
	started := time.Now()
	return func() time.Time { return started.Add(time.Since(started)).Truncate(time.Millisecond) }
}

// burstOf has all tracers of a collector watch for a while.
func burstOf(l *collect.Local) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		defer holdsMore()()
		return l.Burst(ctx, d, window)
	}
}

// endedBy is nil for what failed since we were to end.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// observe lets rounds be taken until ctx ends, or one of both cannot go on.
func observe(ctx context.Context, l *collect.Local, st *store, now func() time.Time, opt Options, served chan error) error {
	check := time.NewTicker(opt.Collect.Interval)
	defer check.Stop()
	renew := opt.Renew
	if renew == nil {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		renew = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			served <- nil
			return err
		case <-check.C:
			bound() // more may live since
			if err := l.Err(); err != nil {
				return err
			}
		case <-renew:
			if err := renewed(ctx, l, st, now); err != nil {
				return err
			}
		}
	}
}

// renewed reads everything, due or not, by those who were begun anew where what went away takes the room of what is there.
func renewed(ctx context.Context, l *collect.Local, st *store, now func() time.Time) error {
	l.Recorder().Book.Anew()
	if st.crowded(l.Full()) {
		beginAnew(ctx, l, st)
	}
	_, err := l.Edge(context.WithoutCancel(ctx), collect.Edge{Time: now(), Window: window})
	giveBack() // once in five minutes: what was needed for a while is not kept for good
	return err
}

// beginAnew begins everything anew. What does not goes on as it was, which ends no watch: there is a next renewal.
func beginAnew(ctx context.Context, l *collect.Local, st *store) {
	defer holdsMore()()
	begun, err := l.Anew(ctx)
	if begun {
		st.begun(err == nil)
	}
	if err != nil && ctx.Err() == nil {
		l.Recorder().Note(fmt.Sprintf("there is no room for new names, and what reads could not be begun anew, so it goes on: %v", err))
	}
}

// handler answers scrapes.
func handler(s *server, st *store, o *own) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		in := plainText
		if strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text") {
			in = openMetrics
		}
		p := st.page(in, o.write)
		if p == nil {
			http.Error(w, "nothing was read yet; ask again in some seconds", http.StatusServiceUnavailable)
			return
		}
		o.scrapes.Inc()
		send(w, r, p, in)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("plimsoll watch --listen; its series are at /metrics\n"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !s.local(r) {
			http.Error(w, "this is no name of this machine's loopback", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// send sends a page, packed for who takes that.
func send(w http.ResponseWriter, r *http.Request, p *page, in format) {
	text := p.plain
	w.Header().Set("Content-Type", string(in))
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		if packed := p.gzip(); packed != nil {
			text = packed
			w.Header().Set("Content-Encoding", "gzip")
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = bytes.NewReader(text).WriteTo(w) // who went away sees nothing
}

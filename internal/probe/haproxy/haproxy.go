// Package haproxy asks HAProxy at its stats socket what waits in its queues, and what its limits are.
// The socket is found in the configuration that a process's command line names, and has to be its own. It is asked nothing but "show stat".
package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/host/ownsocket"
	"plimsoll/internal/host/rooted"
	"plimsoll/internal/probe"
)

const (
	findEvery = 5 * time.Second
	askEvery  = time.Second
	patience  = time.Second
	atOnce    = 3 * time.Millisecond
	// maxServices and maxFiles bound what is looked at, maxConf and maxAnswer what is read.
	maxServices = 8
	maxWorkers  = 64
	maxFiles    = 32
	maxConf     = 4 << 20
	maxAnswer   = 2 << 20
)

// All lists the package's probes.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "haproxy",
		Scope:   probe.PerHost,
		Signals: signals(),
		Cost:    "one question a second: 0.03 ms of HAProxy's CPU and 0.2 ms of ours (HAProxy 2.6, a frontend, a backend, two servers)",
		Blind: []string{
			"an HAProxy without a stats socket (stats socket PATH in its section global) is not asked",
			"only files that the command line names are read, no folders and no environment; a socket that is named otherwise than by a path is not found",
			"of several processes that share one socket (nbproc) one answers",
			"queues are looked at once a second",
		},
		Open: open,
	}}
}

// reader reads all HAProxy of one host.
type reader struct {
	host     *host.Host
	looked   time.Time
	services []*service
	err      error
}

func open(h *host.Host) (probe.Reader, error) { return &reader{host: h}, nil }

// Read reports the answers that came since the last Read, and asks anew.
func (r *reader) Read(out *probe.Out) error {
	if now := out.Now(); r.looked.IsZero() || now.Sub(r.looked) >= findEvery {
		r.looked = now
		r.find()
	}
	if r.err != nil || len(r.services) == 0 {
		return r.err
	}
	for _, s := range r.services {
		s.begin(r.host, out.Now())
	}
	var failed error
	until := time.Now().Add(atOnce)
	for _, s := range r.services {
		s.collect(until)
		if s.err != nil {
			failed = s.err
			continue
		}
		if s.fresh {
			for _, v := range s.values {
				out.Put(v.signal, v.number, v.labels...)
			}
		}
	}
	if failed == nil {
		out.Put(up, 1)
		return nil
	}
	return failed
}

// Close has nothing to close: a question still on its way ends by itself.
func (r *reader) Close() error { return nil }

// find looks for processes that serve: of a master and its workers those that nobody of the name started, or whose
// parent did not start with the same words.
func (r *reader) find() {
	procs, err := r.host.Services()
	if r.err = err; err != nil {
		return
	}
	known := r.services
	r.services = nil
	is := map[int]bool{}
	for _, p := range procs {
		is[p.PID] = p.Comm == "haproxy"
	}
	for _, p := range procs {
		if !is[p.PID] || is[p.PPID] || len(p.Args) == 0 || len(r.services) == maxServices {
			continue
		}
		i := slices.IndexFunc(known, func(s *service) bool { return s.proc.PID == p.PID && s.proc.Start == p.Start })
		s := &service{proc: p, err: fmt.Errorf("HAProxy (process %d) has not answered yet", p.PID)}
		if i >= 0 {
			s = known[i]
		}
		s.pids = []int{p.PID}
		for _, w := range procs {
			if w.PPID == p.PID && is[w.PID] && len(s.pids) < maxWorkers {
				s.pids = append(s.pids, w.PID)
			}
		}
		r.services = append(r.services, s)
	}
}

// service is one HAProxy, asked in the background, one question at a time.
type service struct {
	proc   host.Proc
	pids   []int // it and its workers
	asked  time.Time
	reply  chan reply
	values []value
	err    error
	fresh  bool
}

type reply struct {
	values []value
	err    error
}

func (s *service) begin(h *host.Host, now time.Time) {
	if s.reply != nil || now.Sub(s.asked) < askEvery-askEvery/20 {
		return
	}
	s.asked = now
	to, proc, pids := make(chan reply, 1), s.proc, s.pids
	s.reply = to
	go func() {
		text, err := ask(h, proc, pids)
		if err != nil {
			to <- reply{err: err}
			return
		}
		values, err := parse(text)
		to <- reply{values, err}
	}()
}

// collect takes an answer that is there, or comes by until.
func (s *service) collect(until time.Time) {
	s.fresh = false
	if s.reply == nil {
		return
	}
	select {
	case r := <-s.reply:
		s.reply, s.values, s.err = nil, r.values, r.err
		s.fresh = r.err == nil
	case <-time.After(time.Until(until)):
	}
}

// ask asks the first stats socket of a process that answers.
func ask(h *host.Host, p host.Proc, pids []int) ([]byte, error) {
	root := filepath.Clean(h.ServicePath(p.PID, "/"))
	paths, err := statsSockets(h, p, root)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, host.Absent("HAProxy's configuration names no stats socket; add \"stats socket /run/haproxy/admin.sock mode 660\" to its section global and reload it")
	}
	var failed error
	for _, path := range paths {
		text, err := askAt(h, root, path, pids)
		if err == nil {
			return text, nil
		}
		failed = errors.Join(failed, fmt.Errorf("ask HAProxy at %s: %w", path, err))
	}
	return nil, failed
}

// statsSockets are the sockets that a process's configuration names.
func statsSockets(h *host.Host, p host.Proc, root string) (paths []string, err error) {
	names := files(p.Args)
	dir := "/"
	if cwd, err := os.Readlink(h.Path("proc", strconv.Itoa(p.PID), "cwd")); err == nil {
		dir = cwd
	}
	for _, name := range names[:min(len(names), maxFiles)] {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		text, _, err := rooted.ReadFile(root, name, maxConf)
		if err != nil {
			return nil, fmt.Errorf("read HAProxy's configuration: %w", err)
		}
		paths = append(paths, sockets(text)...)
	}
	return paths, nil
}

func askAt(h *host.Host, root, path string, pids []int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := ownsocket.Dial(ctx, h, root, path, pids...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, "show stat\n"); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(c, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = fmt.Errorf("it answered with more than %d bytes", maxAnswer)
	}
	return text, err
}

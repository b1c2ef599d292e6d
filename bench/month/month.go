package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/exporter"
	"plimsoll/internal/flight"
	"plimsoll/internal/model"
	"plimsoll/internal/trace/all"
)

const (
	// renewEvery is how often an exporter reads everything anew.
	renewEvery = 5 * time.Minute
	mostRuns   = 5
	asks       = 30
	// The bounds: of memory, at its peak (100 MiB less the 13 by which the program's own file is larger than the bench's), of what is shown at once, of descriptors that may come to those of the second day (and one for each process that is there), and of the ring's
	// directory, whose parts are an eighth each, one more than eight.
	mostMemory = 87 << 20
	mostSeries = exporter.MaxSeries
	moreFiles  = 20
	mostRing   = 256 << 20 * 9 / 8
)

// month is one, and what there is of it.
type month struct {
	days     int
	interval time.Duration
	all      step
	dir      string

	clock   atomic.Int64 // Unix milliseconds
	rounds  chan time.Time
	renew   chan time.Time
	done    chan struct{} // a round was committed
	url     string
	runs    int
	longest time.Duration // that a round took since the last day
	first   day           // the second day, when everything has been met once
}

// day is what an exporter has at the end of one.
type day struct {
	series, known, files     int
	rss, peak, program, heap int64 // peak is the highest of the day; program is the part of rss that is files', mostly this binary
	ring, runs               int64
	cut, lost, anew          float64
}

func (m *month) run(out io.Writer) (err error) {
	if m.dir == "" {
		if m.dir, err = os.MkdirTemp("", "month-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	}
	c := exec.Command("/proc/self/exe", "-churn")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	said, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), c.Wait()) }()
	lines := bufio.NewScanner(said)
	if !lines.Scan() {
		return errors.New("what was to come and go did not start")
	}
	ctx, stop := context.WithCancel(context.Background())
	ended, err := m.watch(ctx, c.Process.Pid)
	if err == nil {
		err = m.pass(out, in, lines, ended)
	}
	stop()
	return errors.Join(err, <-ended)
}

// watch starts the exporter.
func (m *month) watch(ctx context.Context, pid int) (chan error, error) {
	m.clock.Store(time.Now().UnixMilli())
	m.rounds, m.renew, m.done = make(chan time.Time), make(chan time.Time), make(chan struct{}, 10)
	ready, ended := make(chan string, 1), make(chan error, 1)
	recorder := flight.New(flight.Options{Dir: filepath.Join(m.dir, "last"), Keep: 6 * time.Hour, Most: mostRuns, Every: time.Hour,
		Run:    model.Run{Plan: model.Plan{Mode: "watch", Interval: m.interval.Milliseconds()}},
		NewRun: func() string { m.runs++; return filepath.Join(m.dir, fmt.Sprint("run-", m.runs)) },
		Made:   func() ([]string, error) { return filepath.Glob(filepath.Join(m.dir, "run-*")) },
		Finish: func(_ context.Context, dir string) error { return exec.Command("/proc/self/exe", "-close", dir).Run() },
		Judge:  func(context.Context, string, time.Duration) (flight.Judgement, error) { return flight.Judgement{}, nil },
		Note:   func(s string) { fmt.Fprintln(os.Stderr, "month: recorder:", s) },
	})
	go func() {
		ended <- exporter.Run(ctx, exporter.Options{
			Listen: "127.0.0.1:0", Version: "month", Tracers: all.All(), Beside: besides{recorder, m.done},
			Collect: collect.Config{Hosts: []collect.HostSpec{{Name: "month", Spec: fmt.Sprint("pid:", pid)}}, Interval: m.interval, Trace: collect.TraceLight, Rounds: m.rounds},
			Now:     func() time.Time { return time.UnixMilli(m.clock.Load()) }, Renew: m.renew,
			Ready: func(url string) { ready <- url }, Note: func(s string) { fmt.Fprintln(os.Stderr, "month: note:", s) },
		})
	}()
	select {
	case m.url = <-ready:
		<-m.done // the first round
		return ended, nil
	case err := <-ended:
		ended <- nil
		return ended, err
	}
}

// besides is a recorder that says when a round is committed.
type besides struct {
	*flight.Recorder
	done chan struct{}
}

func (b besides) Commit(r collect.Round) error {
	err := b.Recorder.Commit(r)
	b.done <- struct{}{}
	return err
}

// pass lets the month pass.
func (m *month) pass(out io.Writer, churn io.Writer, said *bufio.Scanner, ended chan error) error {
	rounds := int(time.Duration(m.days) * 24 * time.Hour / m.interval)
	each := rounds / m.days
	fmt.Fprintln(out, "day    series     known    memory  program      peak      heap  descriptors    ring    runs       cut      lost  anew   CPU time  longest round")
	var broken error
	for n := 1; n <= rounds; n++ {
		s := m.all.part(n, rounds)
		fmt.Fprintln(churn, s.processes, s.containers, s.destinations)
		if !said.Scan() {
			return errors.New("what was to come and go has ended")
		}
		if err := m.round(n, ended); err != nil {
			return err
		}
		if n%max(rounds/asks, 1) == 0 {
			go func() { _, _ = flight.Ask(filepath.Join(m.dir, "last")) }() // most are refused
		}
		if n%each == 0 {
			d, err := m.look()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%3d  %8d  %8d  %4d MiB  %3d MiB  %4d MiB  %4d MiB  %11d  %3d MiB  %3d MiB  %8.0f  %8.0f  %4.0f  %9s  %s\n", n/each, d.series, d.known, d.rss>>20, d.program>>20, d.peak>>20, d.heap>>20, d.files, d.ring>>20, d.runs>>20, d.cut, d.lost, d.anew, cpuTime(), m.longest.Round(10*time.Millisecond))
			m.longest = 0
			if n == 2*each {
				m.first = d
			}
			broken = errors.Join(broken, d.broken(m.first, (lasts+1)*(m.all.processes/rounds+1)))
		}
	}
	return broken
}

// part is what comes with the nth of so many rounds.
func (s step) part(n, of int) step {
	share := func(all int) int { return all*n/of - all*(n-1)/of }
	return step{share(s.processes), share(s.containers), share(s.destinations)}
}

// round has one taken, and everything read anew where that is due.
func (m *month) round(n int, ended chan error) error {
	at := time.UnixMilli(m.clock.Add(m.interval.Milliseconds()))
	ticks := []chan time.Time{m.rounds}
	if time.Duration(n)*m.interval%renewEvery < m.interval {
		ticks = append(ticks, m.renew)
	}
	for _, c := range ticks {
		for len(m.done) > 0 { // rounds of a burst
			<-m.done
		}
		if err := m.take(c, at, ended); err != nil {
			return err
		}
	}
	return nil
}

// take has what is read at such ticks be read, and waits for it.
func (m *month) take(ticks chan time.Time, at time.Time, ended chan error) error {
	var began time.Time
	var done chan struct{} // nothing is until it has begun
	for {
		select {
		case ticks <- at:
			began, ticks, done = time.Now(), nil, m.done
		case <-done:
			m.longest = max(m.longest, time.Since(began))
			return nil
		case err := <-ended:
			ended <- nil
			return errors.Join(errors.New("the exporter has ended"), err)
		}
	}
}

// look scrapes, and looks at the process.
func (m *month) look() (d day, err error) {
	res, err := http.Get(m.url)
	if err != nil {
		return d, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(name, "#") {
			continue
		}
		d.series++
		v, _ := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
		switch {
		case strings.HasPrefix(name, "plimsoll_exporter_series_cut_total"):
			d.cut += v
		case strings.Contains(name, "_lost_total{"):
			d.lost += v
		case name == "plimsoll_exporter_begun_anew_total":
			d.anew = v
		case name == "plimsoll_exporter_series":
			d.known = int(v)
		case name == "process_resident_memory_bytes":
			d.rss = int64(v)
		}
	}
	if err := lines.Err(); err != nil {
		return d, err
	}
	d.heap = heap()
	if d.peak, d.program, err = memory(); err != nil {
		return d, err
	}
	fds, err := os.ReadDir("/proc/self/fd")
	d.files = len(fds)
	d.ring = size(filepath.Join(m.dir, "last"))
	d.runs = size(m.dir) - d.ring
	return d, err
}

// size is what a directory takes on disk.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it fell away meanwhile
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return bytes
}

// broken says which bounds were not kept.
func (d day) broken(first day, processes int) error {
	var errs []error
	bound := func(what string, is, most int64) {
		if is > most {
			errs = append(errs, fmt.Errorf("%s: %d, want at most %d", what, is, most))
		}
	}
	bound("series that are shown", int64(d.series), mostSeries)
	bound("series that are known", int64(d.known), mostSeries)
	bound("memory", d.peak, mostMemory)
	bound("bytes of the ring", d.ring, mostRing)
	if first.files > 0 {
		bound("descriptors", int64(d.files), int64(first.files+processes+moreFiles))
	}
	return errors.Join(errs...)
}

package exporter

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// rhythm is beside an exporter, and says when it has taken a round.
type rhythm struct{ done chan struct{} }

func (rhythm) Sample(string, int64, *model.Signal, float64, ...string)               {}
func (rhythm) Status(string, string, model.Status)                                   {}
func (rhythm) Note(string)                                                           {}
func (rhythm) Event(model.Event)                                                     {}
func (rhythm) Interval(int64, int64, string, string)                                 {}
func (rhythm) Profile(string, []byte) error                                          { return nil }
func (rhythm) Packets(string, []byte) error                                          { return nil }
func (rhythm) Traced(model.Tracing)                                                  {}
func (rhythm) Open([]collect.Host) error                                             { return nil }
func (rhythm) Run(context.Context, func(context.Context, time.Duration) error) error { return nil }
func (rhythm) Numbers() []prometheus.Collector                                       { return nil }
func (r rhythm) Commit(collect.Round) error                                          { r.done <- struct{}{}; return nil }

// job starts a process that is called so until its end, in the network namespace of another one; 0 is in one of its own.
func job(t *testing.T, name string, beside int) (pid int, end func()) {
	t.Helper()
	c := exec.Command("/bin/sh", "-c", "printf "+name+" >/proc/$$/comm; echo; read -r end")
	if beside == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	} else {
		c.Args = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", beside)}, c.Args...)
		found, err := exec.LookPath("nsenter")
		check(t, err)
		c.Path = found
	}
	in, err := c.StdinPipe()
	check(t, err)
	out, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	_, err = out.Read(make([]byte, 1)) // it has its name
	check(t, err)
	return c.Process.Pid, func() {
		_ = in.Close()
		_ = c.Wait() // it reads the end of its input, and says so
	}
}

func number(t *testing.T, page, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no %s in a scrape", name)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	check(t, err)
	return int(v)
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(list)
}

// compressed is an exporter whose rounds are three minutes apart by a clock that waits for nothing.
type compressed struct {
	clock         atomic.Int64
	rounds, renew chan time.Time
	beside        rhythm
	url           string
}

func startCompressed(t *testing.T, host string) *compressed {
	t.Helper()
	c := &compressed{rounds: make(chan time.Time), renew: make(chan time.Time), beside: rhythm{make(chan struct{}, 2)}}
	c.clock.Store(time.Now().UnixMilli())
	c.url = start(t, Options{Beside: c.beside, Renew: c.renew, Collect: collect.Config{Rounds: c.rounds, Hosts: []collect.HostSpec{{Name: "web", Spec: host}}}, Now: func() time.Time { return time.UnixMilli(c.clock.Load()) }})
	<-c.beside.done
	return c
}

// round has one taken, or everything read anew.
func (c *compressed) round(ticks chan time.Time) {
	ticks <- time.UnixMilli(c.clock.Add((3 * time.Minute).Milliseconds()))
	<-c.beside.done
}

func (c *compressed) scrape(t *testing.T) string {
	t.Helper()
	_, text := get(t, http.DefaultClient, c.url)
	return text
}

// More names come and go than a probe knows at once: those of today are told, those that went away take neither room nor descriptors.
// bench/month is the same, of a month.
func TestWhatComesAndGoesLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace of its own needs root")
	}
	pid, end := job(t, "first-", 0)
	running := []func(){}
	t.Cleanup(func() {
		for _, end := range append(running, end) {
			end()
		}
	})
	c := startCompressed(t, fmt.Sprint("pid:", pid))
	const jobs, atOnce = 400, 100
	before := descriptors(t)
	for n := range jobs {
		_, end := job(t, fmt.Sprint("job-", n, "-"), pid)
		if running = append(running, end); len(running) > atOnce {
			running[0]()
			running = running[1:]
		}
		if n%3 == 0 {
			c.round(c.rounds)
		}
		if n%15 == 0 {
			c.round(c.renew)
		}
	}
	for _, end := range running[:len(running)-1] {
		end()
	}
	running = running[len(running)-1:]
	for range 3 {
		c.round(c.rounds)
	}
	newest := fmt.Sprintf("namedprocess_namegroup_num_procs{host=\"web\",groupname=\"job-%d-\"} 1\n", jobs-1)
	text := c.scrape(t)
	for n := 0; !strings.Contains(text, newest) && n < 2*fullFor; n++ { // it may have come when there was no room
		c.round(c.renew)
		c.round(c.rounds)
		text = c.scrape(t)
	}
	if !strings.Contains(text, newest) {
		t.Errorf("a process that is there is not told: no %s", newest)
	}
	if strings.Contains(text, `"job-1-"`) {
		t.Error("a process that ended long ago is told")
	}
	if known, shown := number(t, text, "plimsoll_exporter_series"), strings.Count(text, "\n"); known > shown+500 {
		t.Errorf("%d series are known, and a scrape has %d lines: those that went away take room", known, shown)
	}
	if after := descriptors(t); after > before+jobs/4 {
		t.Errorf("%d descriptors, %d in the beginning", after, before)
	}
}

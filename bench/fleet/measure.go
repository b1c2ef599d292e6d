package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"plimsoll/internal/model"
)

// fleet is what is measured.
type fleet struct {
	hosts            int
	window, scrape   time.Duration
	dir              string
	plimsoll         string
	runs, server     []string
	at               time.Time  // the end of the window
	ended            chan error // the server's
	series, readings int
}

func (f *fleet) measure() (err error) {
	if f.dir == "" {
		if f.dir, err = os.MkdirTemp("", "fleet-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(f.dir)) }()
	}
	f.at = time.Now().Truncate(time.Second)
	began := time.Now()
	c := exec.Command("/proc/self/exe", append([]string{"-write", strconv.FormatInt(f.at.Unix(), 10), "-hosts", strconv.Itoa(f.hosts), "-window", f.window.String(),
		"-scrape", f.scrape.String(), "-o", f.dir, f.plimsoll}, f.runs...)...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("write what the server has: %w", err)
	}
	fmt.Printf("written in %v\n", time.Since(began).Round(time.Second))
	server, address, err := f.start()
	if err != nil {
		return err
	}
	doc, judged := f.diagnose(address)
	judged = errors.Join(judged, server.Process.Signal(syscall.SIGTERM))
	<-f.ended // by our signal
	fmt.Printf("  prometheus: %s\n", cost(server))
	return errors.Join(judged, f.compare(doc))
}

// write writes what the server has.
func (f *fleet) write() error {
	var templates []*template
	for _, dir := range f.runs {
		t, err := load(dir)
		if err != nil {
			return err
		}
		templates = append(templates, t)
	}
	if err := f.block(templates); err != nil {
		return err
	}
	fmt.Printf("%d hosts of %d runs: %d series, %d readings\n", f.hosts, len(templates), f.series, f.readings)
	return nil
}

// start starts the server, and waits until it answers.
func (f *fleet) start() (*exec.Cmd, string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	address := free.Addr().String()
	_ = free.Close()
	config := filepath.Join(f.dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {}\n"), 0o600); err != nil {
		return nil, "", err
	}
	c := exec.Command("prometheus", append([]string{"--config.file=" + config, "--storage.tsdb.path=" + f.dir, "--web.listen-address=" + address, "--log.level=error"}, f.server...)...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, "", err
	}
	f.ended = make(chan error, 1)
	go func() { f.ended <- c.Wait() }()
	for range 600 {
		if res, err := http.Get("http://" + address + "/-/ready"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return c, "http://" + address, nil
			}
		}
		select {
		case err := <-f.ended:
			return nil, "", fmt.Errorf("the server ended before it answered; its messages say why: %w", cmp.Or(err, errors.New("exit status 0")))
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil, "", errors.Join(errors.New("the server does not answer"), c.Process.Kill(), <-f.ended)
}

// diagnose has all hosts judged.
func (f *fleet) diagnose(address string) (doc model.Fleet, err error) {
	at := strconv.FormatInt(f.at.Unix(), 10)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	c := exec.CommandContext(ctx, f.plimsoll, "diagnose", "--prometheus", address, "--all", "--at", at, "--window", f.window.String(), "--json")
	c.Stderr = os.Stderr
	began := time.Now()
	out, err := c.Output()
	fmt.Printf("judged in %v\n  plimsoll:   %s\n", time.Since(began).Round(100*time.Millisecond), cost(c))
	if bad := json.Unmarshal(out, &doc); bad != nil {
		return doc, errors.Join(err, bad)
	}
	fmt.Printf("  %d queries, %d readings taken; answers: %v\n", doc.Queries, doc.Readings, doc.Counts)
	return doc, err
}

// cost is what a process that has ended took.
func cost(c *exec.Cmd) string {
	if c.ProcessState == nil {
		return "did not start"
	}
	peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	return fmt.Sprintf("%v of CPU time, %d MiB at the peak", (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Round(100*time.Millisecond), peak)
}

// compare says which hosts have not the answer that others of the same run have.
func (f *fleet) compare(doc model.Fleet) error {
	if len(doc.Hosts) != f.hosts {
		return fmt.Errorf("%d hosts are in the table, want %d", len(doc.Hosts), f.hosts)
	}
	said := map[int]string{}
	for _, h := range doc.Hosts {
		if h.Fault != "" {
			return fmt.Errorf("%s was not judged: %s", h.Host, h.Fault)
		}
		n, err := strconv.Atoi(h.Host[1:])
		if err != nil {
			return err
		}
		answer := fmt.Sprint(h.Answer, h.Rules)
		if other, ok := said[n%len(f.runs)]; ok && other != answer {
			return fmt.Errorf("%s is judged %s, and another that replays the same run %s", h.Host, answer, other)
		}
		said[n%len(f.runs)] = answer
	}
	for i, dir := range f.runs {
		fmt.Printf("  %s: %s\n", dir, said[i])
	}
	return nil
}

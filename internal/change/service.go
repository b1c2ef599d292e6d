package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/nginx"
	"plimsoll/internal/probe/phpfpm"
)

// service is an nginx or a PHP-FPM whose files are edited.
type service struct {
	Sort Kind `json:"sort"`
	process
	Conf string `json:"conf"` // the main file, as the service calls it
	Net  netns  `json:"net"`
	// Test are the arguments with which its binary tests the configuration.
	Test []string `json:"test"`
	// NoReload: what is edited is not taken over by a reload.
	NoReload bool `json:"no_reload,omitempty"`
	// Ondemand: it may have no workers at all.
	Ondemand bool `json:"ondemand,omitempty"`
}

const (
	reloadPatience = 20 * time.Second
	testPatience   = 20 * time.Second
	reloadPoll     = 20 * time.Millisecond
)

func (s *service) String() string {
	name := map[Kind]string{Nginx: "nginx", PHPFPM: "PHP-FPM"}[s.Sort]
	return fmt.Sprintf("%s (process %d)", name, s.PID)
}

// again finds the service when it was restarted since: a master process with
// the same main file. nil when it does not run.
func (s *service) again() *service {
	if s.alive() {
		return s
	}
	h, err := s.Net.open()
	if err != nil {
		return nil
	}
	defer h.Close()
	now := *s
	if s.Sort == Nginx {
		all, _, _ := nginx.Find(h)
		for _, r := range all {
			now.process = process{r.Master.PID, r.Master.Start}
			if r.Conf == s.Conf && now.trustWith(nginxConfiguration(r)) == nil {
				return &now
			}
		}
		return nil
	}
	all, _, _ := phpfpm.Find(h)
	for _, r := range all {
		now.process = process{r.Master.PID, r.Master.Start}
		if r.Conf == s.Conf && now.trustWith(phpfpmConfiguration(r)) == nil {
			return &now
		}
	}
	return nil
}

// reload has the service read its files and waits until it has.
func (s *service) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	before := s.look()
	logs := s.logs()
	image := s.image()
	signal := unix.SIGHUP
	if s.Sort == PHPFPM {
		signal = unix.SIGUSR2
	}
	if err := s.signal(signal); err != nil {
		return fmt.Errorf("reload %s: %w", s, err)
	}
	tick := time.NewTicker(reloadPoll)
	defer tick.Stop()
	for {
		if !s.alive() {
			return fmt.Errorf("%s ended when it was reloaded; start it again: %w", s, ErrRefused)
		}
		if line := logs.refusal(s.PID); line != "" {
			return fmt.Errorf("%s did not reload: %s: %w", s, line, ErrRefused)
		}
		if s.reloaded(before, image) {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("reload %s: %w", s, ctx.Err())
			}
			return fmt.Errorf("%s was told to reload and has no new workers after %v; look at its error log: %w", s, reloadPatience, ErrRefused)
		case <-tick.C:
		}
	}
}

// signal sends a signal to the process that was meant, and to no other one that
// has its number now.
func (s *service) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(s.PID, 0)
	if err != nil {
		return gone(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(s.check(), s.trust()); err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// look lists the workers that take requests.
func (s *service) look() (workers []process) {
	for _, pid := range processes() {
		st, err := readStat(proc(pid, "stat"))
		if err != nil || st.ppid != s.PID || st.state == 'Z' {
			continue
		}
		t := title(pid)
		if s.Sort == Nginx && nginx.IsWorker(t) || s.Sort == PHPFPM && strings.HasPrefix(t, "php-fpm: pool ") {
			workers = append(workers, process{pid, st.start})
		}
	}
	return workers
}

func title(pid int) string {
	b, _ := os.ReadFile(proc(pid, "cmdline"))
	return strings.TrimRight(string(b), "\x00 ")
}

// image tells one program that a process executes from the next: addresses
// are drawn anew at every exec(2).
func (s *service) image() []byte {
	b, _ := os.ReadFile(proc(s.PID, "auxv"))
	return b
}

// reloaded says whether all workers are new. PHP-FPM executes itself anew.
func (s *service) reloaded(before []process, image []byte) bool {
	now := s.look()
	for _, w := range now {
		if slices.Contains(before, w) {
			return false
		}
	}
	if s.Sort == Nginx {
		return len(now) > 0
	}
	return !bytes.Equal(image, s.image()) && phpfpm.IsMaster(title(s.PID)) && (len(now) > 0 || s.Ondemand)
}

// logTails are the logs that a service has open, and how long they were.
type logTails map[string]int64

func (s *service) logs() logTails {
	tails := logTails{}
	names, _ := filepath.Glob(proc(s.PID, "fd/*"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			tails[name] = info.Size()
		}
	}
	return tails
}

// emergency is a line of nginx's error log: it goes on with its old configuration,
// or its workers of the new one end at once while it takes the old ones away.
var emergency = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(?:emerg\] (\d+)#|alert\] (\d+)#\d+: worker process \d+ exited with fatal code).*$`)

// refusal is what nginx's master has written since on why the new configuration
// does not work; "" for nothing.
func (t logTails) refusal(pid int) string {
	for name, size := range t {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		const most = 64 << 10
		b := make([]byte, most)
		n, _ := f.ReadAt(b, size)
		f.Close()
		for _, m := range emergency.FindAllSubmatch(b[:n], -1) {
			if string(m[1])+string(m[2]) == strconv.Itoa(pid) {
				return string(m[0])
			}
		}
	}
	return ""
}

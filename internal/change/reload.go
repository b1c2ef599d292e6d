package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/lazy"
	"plimsoll/internal/service/phpfpm"
)

// reloadPatience is how long a service may take to have new workers.
const reloadPatience = 20 * time.Second

// reload has the service read its files and waits until it has. It may be another
// process afterwards.
func (s *service) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	w := waiting{service: s, began: s.process, workers: s.look(), logs: s.logs(), image: s.image()}
	signal := unix.SIGHUP
	if s.Kind == PHPFPM {
		signal = unix.SIGUSR2
	}
	if err := s.signal(signal); err != nil {
		return fmt.Errorf("reload %s: %w", s, err)
	}
	poll := time.NewTicker(reloadPoll)
	defer poll.Stop()
	for {
		if done, err := w.done(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("reload %s: %w", s, ctx.Err())
			}
			return fmt.Errorf("%s was told to reload and has no new workers after %v; look at its error log: %w", s, reloadPatience, ErrRefused)
		case <-poll.C:
		}
	}
}

// waiting is for a service that was told to reload, and what it was like before.
type waiting struct {
	*service
	began   process
	workers []process
	logs    logTails
	image   []byte
	ended   time.Time // when it was first seen to have ended
}

// done says whether the service has reloaded, or why it will not.
func (w *waiting) done() (bool, error) {
	if !w.alive() {
		found, err := w.moved()
		if err != nil {
			return false, err
		}
		if !found {
			return false, w.over()
		}
	}
	if line := w.logs.refusal(w.PID); line != "" {
		return false, fmt.Errorf("%s did not reload: %s: %w", w.service, line, ErrRefused)
	}
	return w.reloaded(w.workers, w.image, w.process != w.began), nil
}

// over is an error once a service that ended is not started again.
func (w *waiting) over() error {
	if w.ended.IsZero() {
		w.ended = time.Now()
	}
	if time.Since(w.ended) < startPatience {
		return nil
	}
	return fmt.Errorf("%s ended when it was reloaded; start it again: %w", w.service, ErrRefused)
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

// image tells one program that a process executes from the next: addresses
// are drawn anew at every exec(2).
func (s *service) image() []byte {
	b, _ := os.ReadFile(proc(s.PID, "auxv"))
	return b
}

// reloaded says whether all workers are new. PHP-FPM executes itself anew, or goes
// on as another process.
func (s *service) reloaded(before []process, image []byte, moved bool) bool {
	now := s.look()
	for _, w := range now {
		if slices.Contains(before, w) {
			return false
		}
	}
	if s.Kind == Nginx {
		return len(now) > 0
	}
	return (moved || !bytes.Equal(image, s.image())) && phpfpm.IsMaster(title(s.PID)) && (len(now) > 0 || s.Ondemand)
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
var emergency = lazy.Regexp(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(?:emerg\] (\d+)#|alert\] (\d+)#\d+: worker process \d+ exited with fatal code).*$`)

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
		for _, m := range emergency().FindAllSubmatch(b[:n], -1) {
			if string(m[1])+string(m[2]) == strconv.Itoa(pid) {
				return string(m[0])
			}
		}
	}
	return ""
}

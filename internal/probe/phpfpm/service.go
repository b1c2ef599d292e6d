package phpfpm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/ownsocket"
	"plimsoll/internal/service/phpfpm"
)

// service is one running PHP-FPM: a master process with its pools.
type service struct {
	host    *host.Host
	master  host.Proc
	root    string // the master's root directory, as we see it
	version int    // of PHP, in thousandths of its parts; 0 is unknown
	conf    *phpfpm.Config
	confErr error
	entries []phpfpm.Entry    // the settings that conf was made of
	askers  map[string]*asker // by pool
	count   map[string]int    // workers by pool
	// suffix tells its pools apart from those of the same name in another service.
	suffix string
	table  *place // OPcache's; nil where it was not found
	// sought is when it was looked for last, seekErr why it was not found; nil where OPcache is off.
	sought  time.Time
	seekErr error
}

func newService(h *host.Host, master host.Proc) *service {
	return &service{host: h, master: master, root: filepath.Clean(h.ServicePath(master.PID, "/")), version: phpfpm.Version(h, master), askers: map[string]*asker{}}
}

func (s *service) procPath(name string) string {
	return s.host.Path("proc", strconv.Itoa(s.master.PID), name)
}

// readConf reads the configuration files.
func (s *service) readConf() {
	s.conf, s.confErr = nil, nil
	r, err := phpfpm.Load(s.host, s.master)
	if err == nil {
		s.entries = r.Entries
		s.conf, err = r.Config()
	}
	if err != nil {
		s.confErr = err
	}
}

// label is a pool's label, unique on the host.
func (s *service) label(pool string) string { return pool + s.suffix }

// nameApart gives pools of the same name in several services different labels:
// "www@php-fpm8.1", or with the master's process number where that does not do.
func nameApart(services []*service) {
	for _, s := range services {
		s.suffix = ""
		for _, o := range services {
			if o == s || !sharesPool(s, o) {
				continue
			}
			suffix := "@" + s.master.Comm
			if s.master.Comm == o.master.Comm {
				suffix = "@" + strconv.Itoa(s.master.PID)
			}
			if len(s.suffix) == 0 || s.master.Comm == o.master.Comm {
				s.suffix = suffix
			}
		}
	}
}

func sharesPool(a, b *service) bool {
	if a.conf == nil || b.conf == nil {
		return false
	}
	return slices.ContainsFunc(a.conf.Pools, func(p phpfpm.Pool) bool {
		return slices.ContainsFunc(b.conf.Pools, func(q phpfpm.Pool) bool { return p.Name == q.Name })
	})
}

const (
	askEvery    = time.Second // least time between two questions to a pool
	askBusy     = 5 * time.Second
	askPatience = time.Second
	// askAtOnce is how long a round waits for answers that most likely come at once.
	askAtOnce = 2 * time.Millisecond
)

// asker asks one pool's status page in the background, one question at a time.
type asker struct {
	asked time.Time
	reply chan answer // nil when no question is on its way
	last  answer
	fresh bool // last came since the last Read
}

type answer struct {
	status status
	err    error
}

func newAsker(pool string) *asker {
	return &asker{last: answer{err: fmt.Errorf("pool %s has not answered its status page yet", pool)}}
}

// due says whether it is time for another question. A pool that did not answer
// is asked less often: our questions stand in its queue.
func (a *asker) due(now time.Time) bool {
	every := askEvery
	if a.last.err != nil && !a.asked.IsZero() {
		every = askBusy
	}
	return a.reply == nil && now.Sub(a.asked) >= every-askEvery/20
}

// ask sends a question to the pool; see collect.
func (a *asker) ask(s *service, p phpfpm.Pool, now time.Time) {
	a.asked = now
	reply := make(chan answer, 1)
	a.reply = reply
	host, root, master := s.host, s.root, s.master.PID
	go func() {
		st, err := askPool(host, root, master, p)
		if err != nil {
			err = explain(p, err)
		}
		reply <- answer{st, err}
	}()
}

// askPool asks a pool's status page where it is served: at pm.status_listen if
// there is one, because that answers even when all workers are busy.
func askPool(h *host.Host, root string, master int, p phpfpm.Pool) (status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	c, err := dial(ctx, h, root, master, p)
	if err != nil {
		return status{}, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return status{}, err
	}
	return ask(c, p.StatusPath)
}

func dial(ctx context.Context, h *host.Host, root string, master int, p phpfpm.Pool) (net.Conn, error) {
	listen := p.Listen
	if p.StatusListen != "" {
		listen = p.StatusListen
	}
	listen = phpfpm.ListenAddress(listen, false)
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		return ownsocket.Dial(ctx, h, root, path, master)
	}
	ap, err := netip.ParseAddrPort(listen)
	if err != nil {
		return nil, fmt.Errorf("pool %s listens on %s: want an address and port: %w", p.Name, listen, err)
	}
	if ap.Addr().IsUnspecified() {
		ap = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ap.Port())
	}
	return h.Dial(ctx, "tcp", ap.String())
}

// explain says what it means that a pool did not answer.
func explain(p phpfpm.Pool, err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() && p.StatusListen == "":
		return fmt.Errorf("pool %s: no worker answered the status page within %v: all were busy; pm.status_listen makes it answer even then: %w", p.Name, askPatience, err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("pool %s: its status page could not be asked, the queue of its socket is full: %w", p.Name, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("pool %s: nobody listens where its status page should be; was the configuration edited and not reloaded? %v", p.Name, err)
	}
	return fmt.Errorf("pool %s: ask for its status page: %w", p.Name, err)
}

// collect takes an answer that is there, or comes by until.
func (a *asker) collect(until time.Time) {
	a.fresh = false
	if a.reply == nil {
		return
	}
	select {
	case a.last = <-a.reply:
		a.reply, a.fresh = nil, true
	case <-time.After(time.Until(until)):
	}
}

// somaxconn reads net.core.somaxconn; 0 when it cannot be read.
func somaxconn(h *host.Host) int {
	b, err := os.ReadFile(h.Path("proc/sys/net/core/somaxconn"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

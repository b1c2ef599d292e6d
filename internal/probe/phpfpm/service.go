package phpfpm

import (
	"bytes"
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
	"plimsoll/internal/host/rooted"
)

const (
	masterTitle = "php-fpm: master process ("
	poolTitle   = "php-fpm: pool "
	// maxBinary bounds what is read of FPM's binary in search of its version.
	maxBinary   = 128 << 20
	versionMark = "X-Powered-By: PHP/"
)

// service is one running PHP-FPM: a master process with its pools.
type service struct {
	host    *host.Host
	master  host.Proc
	root    string // the master's root directory, as we see it
	file    string // its configuration
	version int    // of PHP, in thousandths of its parts; 0 is unknown
	conf    *config
	confErr error
	askers  map[string]*asker // by pool
	count   map[string]int    // workers by pool
	// suffix tells its pools apart from those of the same name in another service.
	suffix string
}

func newService(h *host.Host, master host.Proc) *service {
	s := &service{host: h, master: master, root: filepath.Clean(h.ServicePath(master.PID, "/")), askers: map[string]*asker{}}
	s.file, _, _ = strings.Cut(strings.TrimPrefix(master.Args[0], masterTitle), ")")
	if b, err := rooted.TextAfter(s.procPath("exe"), versionMark, 64, maxBinary); err == nil {
		s.version = parseVersion(b)
	}
	return s
}

func (s *service) procPath(name string) string {
	return s.host.Path("proc", strconv.Itoa(s.master.PID), name)
}

// parseVersion finds PHP's version in its binary: "X-Powered-By: PHP/8.2.35" is 8002035.
func parseVersion(b []byte) int {
	mark := []byte(versionMark)
	i := bytes.Index(b, mark)
	if i < 0 {
		return 0
	}
	rest := b[i+len(mark):]
	end := bytes.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 || end > 20 {
		return 0
	}
	parts := strings.Split(string(rest[:end]), ".")
	if len(parts) != 3 {
		return 0
	}
	n := 0
	for _, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v > 999 {
			return 0
		}
		n = n*1000 + v
	}
	return n
}

// readConf reads the configuration files.
func (s *service) readConf() {
	l := &loader{root: s.root, main: s.file}
	entries, err := l.load(s.file, "", 0)
	var c *config
	if err == nil {
		c, err = newConfig(entries)
	}
	s.conf, s.confErr = c, nil
	if err != nil {
		s.confErr = fmt.Errorf("read PHP-FPM's configuration %s: %w", s.file, err)
	}
}

// label is a pool's label, unique on the host.
func (s *service) label(pool string) string { return pool + s.suffix }

// split finds the masters among a host's processes and counts workers by master
// and pool. A worker just forked still has its master's title: it is no master.
func split(procs []host.Proc) (masters []host.Proc, count map[int]map[string]int) {
	isMaster := map[int]bool{}
	for _, p := range procs {
		if len(p.Args) > 0 && strings.HasPrefix(p.Args[0], masterTitle) {
			isMaster[p.PID] = true
		}
	}
	count = map[int]map[string]int{}
	for _, p := range procs {
		if len(p.Args) == 0 {
			continue
		}
		title := strings.TrimRight(p.Args[0], " ")
		if isMaster[p.PID] && !isMaster[p.PPID] {
			masters = append(masters, p)
		}
		if pool, ok := strings.CutPrefix(title, poolTitle); ok {
			if count[p.PPID] == nil {
				count[p.PPID] = map[string]int{}
			}
			count[p.PPID][pool]++
		}
	}
	return masters, count
}

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
	return slices.ContainsFunc(a.conf.pools, func(p pool) bool {
		return slices.ContainsFunc(b.conf.pools, func(q pool) bool { return p.name == q.name })
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
func (a *asker) ask(s *service, p pool, now time.Time) {
	a.asked = now
	reply := make(chan answer, 1)
	a.reply = reply
	host, root := s.host, s.root
	go func() {
		st, err := askPool(host, root, p)
		if err != nil {
			err = explain(p, err)
		}
		reply <- answer{st, err}
	}()
}

// askPool asks a pool's status page where it is served.
func askPool(h *host.Host, root string, p pool) (status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	network, address, done, err := dialAddress(p, root)
	if err != nil {
		return status{}, err
	}
	defer done()
	c, err := h.Dial(ctx, network, address)
	if err != nil {
		return status{}, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return status{}, err
	}
	return ask(c, p.statusPath)
}

// dialAddress is where a pool's status page is asked: at pm.status_listen if
// there is one, because that answers even when all workers are busy. done is
// called when the address is not needed any more.
func dialAddress(p pool, root string) (network, address string, done func() error, err error) {
	listen := p.listen
	if p.statusListen != "" {
		listen = p.statusListen
	}
	listen = listenAddress(listen, false)
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		socket, err := rooted.Open(root, path)
		if err != nil {
			return "", "", nil, err
		}
		return "unix", socket.Address(), socket.Close, nil
	}
	ap, err := netip.ParseAddrPort(listen)
	if err != nil {
		return "", "", nil, fmt.Errorf("pool %s listens on %s: want an address and port: %w", p.name, listen, err)
	}
	if ap.Addr().IsUnspecified() {
		ap = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ap.Port())
	}
	return "tcp", ap.String(), func() error { return nil }, nil
}

// explain says what it means that a pool did not answer.
func explain(p pool, err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() && p.statusListen == "":
		return fmt.Errorf("pool %s: no worker answered the status page within %v: all were busy; pm.status_listen makes it answer even then: %w", p.name, askPatience, err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("pool %s: its status page could not be asked, the queue of its socket is full: %w", p.name, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("pool %s: nobody listens where its status page should be; was the configuration edited and not reloaded? %v", p.name, err)
	}
	return fmt.Errorf("pool %s: ask for its status page: %w", p.name, err)
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

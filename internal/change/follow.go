package change

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/unixdiag"
	"plimsoll/internal/service/nginx"
	"plimsoll/internal/service/phpfpm"
)

// A service may go on as another process: a PHP-FPM in the background forks anew
// at each reload, and a supervisor starts what has ended again. It is the same one
// when it listens at the same sockets; or else when it has the same configuration
// and executable, was begun after we had looked, and is the only such one.

// identity is how a service is known again once its process has ended.
type identity struct {
	Exe     string   `json:"exe"`
	Sockets []string `json:"sockets,omitempty"` // the inodes of those it listens at
	Root    string   `json:"root,omitempty"`    // device and inode of its root directory
	Seen    uint64   `json:"seen,omitempty"`    // when we looked, in clock ticks after boot
}

// startPatience is how long a service that has ended may take to be started again.
const startPatience = 3 * time.Second

// tick is one of those in which the start of processes is told: USER_HZ.
const tick = 10 * time.Millisecond

// ticks is now, in clock ticks after boot.
func ticks() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return uint64(time.Duration(t.Nano()) / tick)
}

// identify notes how a service is known again.
func (s *service) identify() error {
	exe, err := executable(s.PID)
	if err != nil {
		return fmt.Errorf("look at the executable of %s: %w", s, err)
	}
	s.identity = identity{Exe: exe, Root: rootOf(s.PID), Seen: ticks()}
	s.Sockets, err = s.Net.listenersOf(s.PID)
	return err
}

// masters are those of some processes that may go on as another process.
func masters(h *host.Host, list []process) (found []service, err error) {
	net, err := namespaceOf(h)
	if err != nil {
		return nil, err
	}
	add := func(s service) error {
		if !slices.Contains(list, s.process) {
			return nil
		}
		s.First = s.process
		if err := s.identify(); err != nil {
			return err
		}
		found = append(found, s)
		return nil
	}
	webs, _, err := nginx.Find(h)
	for _, r := range webs {
		err = errors.Join(err, add(nginxService(r, net)))
	}
	fpms, _, err2 := phpfpm.Find(h)
	for _, r := range fpms {
		of := phpfpmService(r, net)
		of.Ondemand = allOndemand(r.Entries)
		err = errors.Join(err, add(of))
	}
	return found, errors.Join(err, err2)
}

// executable is a process's; that of a replaced one counts as the same.
func executable(pid int) (string, error) {
	exe, err := os.Readlink(proc(pid, "exe"))
	return strings.TrimSuffix(exe, " (deleted)"), gone(err)
}

func rootOf(pid int) string {
	var st unix.Stat_t
	if unix.Stat(proc(pid, "root/."), &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Dev, ":", st.Ino)
}

// listenersOf are the sockets of the namespace at which a process listens.
func (n netns) listenersOf(pid int) (inodes []string, err error) {
	var all []string
	err = n.do(func() error {
		byAddress, err := listeners()
		for _, list := range byAddress {
			all = append(all, list...)
		}
		local, err2 := unixdiag.Listeners()
		for _, l := range local {
			all = append(all, fmt.Sprint(l.Inode))
		}
		return errors.Join(err, err2)
	})
	names, _ := filepath.Glob(proc(pid, "fd/*"))
	for _, name := range names {
		link, _ := os.Readlink(name)
		ino, ok := strings.CutPrefix(strings.TrimSuffix(link, "]"), "socket:[")
		if ok && slices.Contains(all, ino) && !slices.Contains(inodes, ino) {
			inodes = append(inodes, ino)
		}
	}
	slices.Sort(inodes)
	return inodes, err
}

// again finds the service as it runs now; nil when it does not.
func (s *service) again() (*service, error) {
	if s.alive() {
		return s, nil
	}
	h, err := s.Net.open()
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer h.Close()
	masters, err := s.candidates(h)
	if err != nil || len(masters) == 0 {
		return nil, err
	}
	master, err := s.choose(masters)
	if err != nil {
		return nil, err
	}
	now := *s
	now.process = process{master.PID, master.Start}
	return &now, now.identifyAnew(s)
}

// identifyAnew keeps when the service was first looked at: what was begun before
// was another one.
func (s *service) identifyAnew(before *service) error {
	if before.Exe == "" {
		return nil
	}
	err := s.identify()
	s.Seen = before.Seen
	return err
}

// candidates are the masters with the service's configuration and executable that
// are to be trusted.
func (s *service) candidates(h *host.Host) (list []host.Proc, err error) {
	add := func(conf string, p host.Proc, c configuration) {
		now := *s
		now.process = process{p.PID, p.Start}
		exe, err := executable(p.PID)
		same := conf == s.Conf && p.Start >= s.Seen && (s.Exe == "" || err == nil && exe == s.Exe)
		if same && now.trustWith(c) == nil {
			list = append(list, p)
		}
	}
	if s.Kind == Nginx {
		all, _, err := nginx.Find(h)
		for _, r := range all {
			add(r.Conf, r.Master, nginxConfiguration(r))
		}
		return list, err
	}
	all, _, err := phpfpm.Find(h)
	for _, r := range all {
		add(r.Conf, r.Master, phpfpmConfiguration(r))
	}
	return list, err
}

// choose takes the one that listens at the service's sockets; else the only one
// in its root directory; else the only one.
func (s *service) choose(masters []host.Proc) (host.Proc, error) {
	only := func(is func(p host.Proc) bool) (found []host.Proc) {
		for _, p := range masters {
			if is(p) {
				found = append(found, p)
			}
		}
		return found
	}
	for _, found := range [][]host.Proc{
		only(func(p host.Proc) bool { return s.inheritedBy(p.PID) }),
		only(func(p host.Proc) bool { return s.Root != "" && rootOf(p.PID) == s.Root }),
		masters,
	} {
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			break
		}
	}
	var pids []string
	for _, p := range masters {
		pids = append(pids, fmt.Sprint(p.PID))
	}
	return host.Proc{}, fmt.Errorf("%s has ended, and processes %s all run with its configuration %s: end those that do not belong there, then try again", s, strings.Join(pids, " and "), s.Conf)
}

// inheritedBy says whether a process listens at one of the service's sockets.
func (s *service) inheritedBy(pid int) bool {
	if len(s.Sockets) == 0 {
		return false
	}
	held, err := s.Net.listenersOf(pid)
	return err == nil && slices.ContainsFunc(held, func(ino string) bool { return slices.Contains(s.Sockets, ino) })
}

// ready says whether the service can be told to reload: one that executes itself
// anew just now could miss the signal, or end with it.
func (s *service) ready() bool {
	t := title(s.PID)
	if s.Kind == Nginx {
		return strings.HasPrefix(t, "nginx: master process")
	}
	return phpfpm.IsMaster(t) && (s.Ondemand || len(s.look()) > 0)
}

// starting says whether a process runs that may become the service.
func (s *service) starting() bool {
	for _, pid := range host.PIDs() {
		exe, err := executable(pid)
		if err != nil || exe != s.Exe || s.Exe == "" {
			continue
		}
		st, err := host.StatOf(pid)
		ino, err2 := host.Inode(proc(pid, "ns/net"))
		t := title(pid)
		known := strings.HasPrefix(t, "nginx: ") || strings.HasPrefix(t, "php-fpm: ")
		if err == nil && err2 == nil && st.State != 'Z' && st.Start >= s.Seen && ino == s.Net.Inode && !known {
			return true
		}
	}
	return false
}

// settled waits until the service can be told to reload; nil when it does not run.
func (s *service) settled(ctx context.Context) (*service, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	poll := time.NewTicker(reloadPoll)
	defer poll.Stop()
	for {
		now, err := s.again()
		if err != nil || now != nil && now.ready() || now == nil && !s.starting() {
			return now, err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return now, nil
		case <-poll.C:
		}
	}
}

// moved lets a service that goes on as another process be that one; false when
// there is none.
func (s *service) moved() (bool, error) {
	now, err := s.again()
	if err != nil || now == nil {
		return false, err
	}
	*s = *now
	return true, nil
}

// follow finds the services of an entry as they run now, and reaches its files
// through them. What it changes is to be written into the journal.
func (e *Entry) follow() (changed bool, err error) {
	if e.Boot != bootID() {
		return false, nil
	}
	var errs []error
	services := make([]*service, 0, len(e.Masters)+1)
	if e.Service != nil {
		own := *e.Service // a closed entry's copy may be looked at still
		e.Service = &own
		services = append(services, e.Service)
	}
	e.Masters = slices.Clone(e.Masters)
	for i := range e.Masters {
		services = append(services, &e.Masters[i])
	}
	for _, s := range services {
		before := s.process
		found, err := s.moved()
		errs = append(errs, err)
		if found && s.process != before {
			changed = true
			e.Change.goOn(before, s.process)
		}
	}
	return e.reach() || changed, errors.Join(errs...)
}

// goOn names the process that a service goes on as.
func (c *Change) goOn(before, now process) {
	if c.PID == before.PID {
		c.PID = now.PID
	}
}

// reach reaches files in the mounts of a service that has ended through the
// process that it goes on as, if these are the same files.
func (e *Entry) reach() (changed bool) {
	if e.Service == nil {
		return false
	}
	e.Parts = slices.Clone(e.Parts)
	for i := range e.Parts {
		p := &e.Parts[i]
		if p.Target.Kind != inFile || p.Target.Process == nil || p.Target.Process.alive() || !e.Service.alive() {
			continue
		}
		there := p.Target
		there.Process = &process{e.Service.PID, e.Service.Start}
		if now, err := there.get(); err == nil && p.ours(now) {
			p.Target, changed = there, true
		}
	}
	return changed
}

// follow follows all open entries, and notes what was restarted meanwhile under
// a somaxconn that may be ours: once that is taken back, nobody could tell.
func (j *Journal) follow() error {
	for _, e := range j.Entries() {
		if !e.Open() || e.Boot != bootID() {
			continue
		}
		// Whose service cannot be told from others says so when it is taken back.
		moved, _ := e.follow()
		e.Parts = slices.Clone(e.Parts)
		if capped := e.foresee(false); moved || capped {
			if err := j.write(e); err != nil {
				return err
			}
		}
	}
	return nil
}

package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
	"plimsoll/internal/service/nginx"
	"plimsoll/internal/service/phpfpm"
)

// A service may go on as another process: a PHP-FPM in the background forks anew
// at each reload, and a supervisor starts what has ended again. It is the same one
// when it listens at the same sockets; or else when it has the same configuration,
// was begun after we had looked, and is the only such one. The configuration is the same
// file in the same directory, however it is called: of a name alone there are several
// where namespaces of mounts lay other directories over it.

// startPatience is how long a service that has ended may take to be started again.
const startPatience = 3 * time.Second

// reloadPoll is how often a service is looked at that reloads or starts.
const reloadPoll = 20 * time.Millisecond

// identify notes how a service is known again.
func (s *service) identify() error {
	exe, err := executable(s.PID)
	if err != nil {
		return fmt.Errorf("look at the executable of %s: %w", s, err)
	}
	s.identity = identity{Exe: exe, Root: rootOf(s.PID), Seen: ticks()}
	_, s.Dir = placeOf(s.PID, s.Conf)
	_, here := placeOf(os.Getpid(), s.Conf)
	s.Elsewhere = s.Dir != here
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

// again finds the service as it runs now; nil when it does not.
func (s *service) again() (*service, error) {
	if s.alive() {
		return s, nil
	}
	h, err := s.Net.open()
	if err != nil && !errors.Is(err, errGone) {
		return nil, err
	}
	if h != nil {
		defer h.Close()
		if now, err := s.among(h); now != nil || err != nil {
			return now, err
		}
	}
	now, err := s.elsewhere()
	if now == nil && err == nil && h != nil {
		err = s.doubtful(h)
	}
	return now, err
}

// elsewhere finds the service in another network namespace than it was in, which was
// made anew with it: it has the same root directory, and so the same files.
func (s *service) elsewhere() (found *service, err error) {
	tried := map[uint64]bool{}
	for _, pid := range host.PIDs() {
		exe, err := executable(pid)
		in, err2 := host.Inode(proc(pid, "ns/net"))
		if err != nil || err2 != nil || exe != s.Exe || s.Root == "" || rootOf(pid) != s.Root || tried[in] {
			continue
		}
		tried[in] = true
		h, err := netns{Inode: in, Spec: "local"}.open()
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		now, err := s.among(h)
		h.Close()
		if err != nil {
			return nil, err
		}
		if now != nil && found != nil {
			return nil, s.several(found.PID, now.PID)
		}
		if now != nil {
			found = now
		}
	}
	return found, nil
}

// among finds the service among the processes of a host; nil when it is not there.
func (s *service) among(h *host.Host) (*service, error) {
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
	if now.Net, err = namespaceOf(h); err != nil {
		return nil, err
	}
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

// candidates are the masters with the service's configuration that are to be trusted.
func (s *service) candidates(h *host.Host) (list []host.Proc, err error) {
	running, _, err := s.running(h, nil)
	for _, r := range running {
		if s.is(r) && r.trustWith(r.configuration) == nil {
			list = append(list, r.master)
		}
	}
	return list, err
}

// instance is a service of the same kind that runs now, and what is known of its files.
type instance struct {
	service
	configuration
	master host.Proc
	unread error // why its configuration could not be read; nil if it was
}

// running are the services of the kind on a host; instead is what some files would hold.
func (s *service) running(h *host.Host, instead func(fs.FileInfo) ([]byte, bool)) (list []*instance, net netns, err error) {
	if net, err = namespaceOf(h); err != nil {
		return nil, net, err
	}
	procs, err := h.Services()
	if err != nil {
		return nil, net, err
	}
	if s.Kind == Nginx {
		masters, _ := nginx.Split(h, procs)
		for _, m := range masters {
			r, err := nginx.LoadWith(h, m, instead)
			list = append(list, &instance{nginxService(r, net), nginxConfiguration(r), m, err})
		}
		return list, net, nil
	}
	masters, _ := phpfpm.Split(procs)
	for _, m := range masters {
		r, err := phpfpm.LoadWith(h, m, instead)
		list = append(list, &instance{phpfpmService(r, net), phpfpmConfiguration(r), m, err})
	}
	return list, net, nil
}

// is says whether the service may go on as that one.
func (s *service) is(r *instance) bool {
	if r.unread != nil || r.Start < s.Seen || !s.beneath(rootOf(r.PID)) {
		return false
	}
	exe, err := executable(r.PID)
	same := s.Exe == "" || err == nil && exe == s.Exe
	file, dir := placeOf(r.PID, r.Conf)
	meant, _ := placeOf(r.PID, s.Conf)
	_, here := placeOf(os.Getpid(), s.Conf)
	if r.Conf != s.Conf && (file == "" || file != meant) {
		return false
	}
	switch {
	case s.Root == "" || s.Dir == "": // of an older boot, or written before there was a Dir
		return same && !(s.Elsewhere && dir == here)
	case rootOf(r.PID) != s.Root: // a container that was started again has other numbers
		return same
	}
	// A directory that was made anew under its name is another one, too.
	return dir == s.Dir || same && !s.Elsewhere && dir == here
}

// placeOf is the device and inode of a file as a process calls it, and of the directory that it is in.
func placeOf(pid int, name string) (file, dir string) {
	tree, err := rooted.OpenTree(proc(pid, "root"))
	if err != nil {
		return "", ""
	}
	defer tree.Close()
	f, err := tree.Find(name, nil)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	in, err := idOf(int(f.Dir.Fd()))
	if err != nil {
		return "", ""
	}
	return fmt.Sprint(f.Stat.Dev, ":", f.Stat.Ino), fmt.Sprint(in.Dev, ":", in.Ino)
}

// doubtful says that one runs which may be the service, and cannot be told to be: who takes
// it for ended would leave it with another configuration than its files have.
func (s *service) doubtful(h *host.Host) error {
	running, _, err := s.running(h, nil)
	for _, r := range running {
		exe, e := executable(r.PID)
		root := rootOf(r.PID)
		if e != nil || exe != s.Exe || r.Start < s.Seen || !s.beneath(root) || s.Root != "" && root != s.Root {
			continue
		}
		file, _ := placeOf(r.PID, r.Conf)
		meant, _ := placeOf(r.PID, s.Conf)
		if file != "" && file != meant { // it is another's
			continue
		}
		why := r.unread
		if why == nil && s.is(r) {
			why = r.trustWith(r.configuration)
		}
		if why != nil && r.trust() == nil {
			return fmt.Errorf("%s has ended, and %s may be it, started again, but is not acted for: %w; put that right, or end it, then try again", s, &r.service, why)
		}
	}
	return err
}

// beneath says whether the service may have this root directory now. A container that
// was started again has another one than before, but never the machine's, where the same
// names are of other files.
func (s *service) beneath(root string) bool {
	ours := rootOf(os.Getpid())
	return s.Root == "" || (s.Root == ours) == (root == ours)
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
	var pids []int
	for _, p := range masters {
		pids = append(pids, p.PID)
	}
	return host.Proc{}, s.several(pids...)
}

func (s *service) several(pids ...int) error {
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	return fmt.Errorf("%s has ended, and processes %s all run with its configuration %s: end those that do not belong there, then try again", s, strings.Join(list, " and "), s.Conf)
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

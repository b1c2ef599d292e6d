// Package filelocks reads who waits for locks on files (flock, fcntl), for which file, and what whoever holds it does meanwhile.
package filelocks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/doing"
)

const (
	// often is the time between two looks while somebody waits or did of late, else it is seldom.
	often, seldom, late = 100 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second
	// maxKeys bounds the sums, maxWaiters those that are looked at in one look.
	maxKeys, maxWaiters = 256, 4096
	// fresh is for how long a list of processes is good while the same ones wait: names change.
	fresh = time.Second
)

var waited = &model.Signal{Name: "plimsoll_filelock_waiting_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
	Help: "Time that processes of a group stood waiting for a lock on a file, added up over these, by the file, by who held the lock and by what that one did meanwhile: " +
		"running, or the reason for which it was blocked, as of the wait tracer; - where that is not seen. Its rate is how many waited at once. What looks like an identifier in the file's name is left out.",
	Labels: []string{"groupname", "file", "holder", "doing"}, Source: "/proc/locks, /proc/PID/syscall, /proc/PID/fd, /proc/PID/fdinfo, /proc/PID/mountinfo", ByHand: "lslocks; cat /proc/HOLDER/syscall"}

// All returns the probe of file locks.
func All() []probe.Probe {
	return []probe.Probe{{
		Name: "filelocks", Scope: probe.PerHost, Signals: []*model.Signal{waited},
		Cost: "0.1 ms of CPU time a look, ten a second while somebody waits, two else; 20 µs more for each file that is waited for (Linux 6.18). It waits for the kernel in a thread of its own, some 10 ms each time",
		Blind: []string{
			"it looks ten times a second: a wait that is shorter is seen by chance, and counted as a tenth of a second",
			"of an open file description lock (F_OFD_SETLK) the kernel does not tell who holds it; nor of a holder in another PID namespace",
			"of a holder that waits in poll or epoll it is not known for what",
			"of a holder with several threads it is the first one that is looked at",
			"before Linux 5.14 the name of a file that whoever is told to hold its lock does not have open any more",
			"locks on files of a network file system that wait on its server",
		},
		CanRun: func(h *host.Host) error {
			_, err := host.ReadFile(h.Path("proc/locks"))
			if err != nil {
				return fmt.Errorf("read who holds locks on files; the kernel needs CONFIG_FILE_LOCKING: %w", err)
			}
			return nil
		},
		Open: func(h *host.Host) (probe.Reader, error) {
			r := &reader{host: h, sums: map[key]time.Duration{}, stop: make(chan struct{}), done: make(chan struct{})}
			if h.Recorded() {
				close(r.done)
			} else {
				go r.watch()
			}
			return r, nil
		},
	}}
}

// key is what waiting is added up by.
type key struct{ group, file, holder, doing string }

// reader looks in the background, since the kernel makes who reads /proc/locks wait.
type reader struct {
	host *host.Host
	stop chan struct{}
	done chan struct{} // closed when nobody looks any more

	// comm are the names of this host's processes when they were listed, and waiters who waited then, of whatever host: listing is
	// most of what a look takes.
	comm    map[int]string
	waiters map[int]bool
	files   map[string]string // the names of those that are waited for, found since
	listed  time.Time

	mu   sync.Mutex
	sums map[key]time.Duration
	err  error
}

func (r *reader) Read(out *probe.Out) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	for k, d := range r.sums {
		out.Put(waited, d.Seconds(), k.group, k.file, k.holder, k.doing)
	}
	if len(r.sums) >= maxKeys {
		out.Full()
	}
	return nil
}

// Close waits for a look that is under way, but not for one that the kernel keeps.
func (r *reader) Close() error {
	close(r.stop)
	select {
	case <-r.done:
	case <-time.After(time.Second):
	}
	return nil
}

func (r *reader) watch() {
	defer close(r.done)
	var seen time.Time
	before := time.Now()
	for {
		now := time.Now()
		if r.look(now.Sub(before)) {
			seen = now
		}
		before = now
		wait := seldom
		if now.Sub(seen) < late {
			wait = often
		}
		select {
		case <-r.stop:
			return
		case <-time.After(wait):
		}
	}
}

// look adds the time since the look before to those who wait now, and says whether there are any.
func (r *reader) look(since time.Duration) bool {
	b, err := host.ReadFile(r.host.Path("proc/locks"))
	var waits []wait
	if err == nil {
		waits, err = parse(b)
	}
	var now map[key]int
	if err == nil && len(waits) > 0 {
		now, err = r.name(waits)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.add(now, min(since, seldom))
	return len(waits) > 0
}

// add adds the time of those who wait. A process names itself: at the bound a new name is no new sum either.
func (r *reader) add(now map[key]int, since time.Duration) {
	for k, n := range now {
		if _, known := r.sums[k]; !known && len(r.sums) >= maxKeys {
			k = key{"other", "other", "-", "-"}
		}
		r.sums[k] += time.Duration(n) * since
	}
}

// names are those of this host's processes: as they were listed a moment ago, where somebody else waits than then anew.
func (r *reader) names(waits []wait) (map[int]string, error) {
	isNew := func(w wait) bool { return !r.waiters[w.waiter] }
	if time.Since(r.listed) < fresh && !slices.ContainsFunc(waits, isNew) {
		return r.comm, nil
	}
	procs, err := r.host.Procs()
	if err != nil {
		return nil, err
	}
	r.comm, r.waiters, r.files, r.listed = make(map[int]string, len(procs)), map[int]bool{}, map[string]string{}, time.Now()
	for i := range procs {
		r.comm[procs[i].PID] = procs[i].Comm
	}
	for _, w := range waits {
		r.waiters[w.waiter] = true
	}
	return r.comm, nil
}

// name counts the waits of this host's processes.
func (r *reader) name(waits []wait) (map[key]int, error) {
	comm, err := r.names(waits)
	if err != nil {
		return nil, err
	}
	type held struct {
		holder int
		file   string
	}
	told := map[held]key{}
	now := map[key]int{}
	for _, w := range waits {
		group, ours := comm[w.waiter]
		if !ours {
			continue
		}
		h := held{w.holder, w.file}
		k, known := told[h]
		if !known {
			k = r.holder(w, comm)
			told[h] = k
		}
		k.group = group
		now[k]++
	}
	return now, nil
}

// file is the name of the file that w waits for, looked for once for each list of processes.
func (r *reader) file(w wait) string {
	if name := r.files[w.file]; name != "" {
		return name
	}
	for _, pid := range []int{w.holder, w.waiter} { // either has it open
		if name := fileOf(r.host.Path("proc", strconv.Itoa(pid)), w.file); pid > 0 && name != "" {
			r.files[w.file] = layout.WithoutIdentifiers(name)
			return r.files[w.file]
		}
	}
	return "inode " + w.file[strings.LastIndexByte(w.file, ':')+1:]
}

// holder says who holds the lock that w waits for, on which file, and what he does.
func (r *reader) holder(w wait, comm map[int]string) key {
	k := key{file: r.file(w), holder: "-", doing: "-"}
	if w.holder > 0 {
		if name, ok := comm[w.holder]; ok {
			k.holder = name
		}
		k.doing = doing.Of(r.host.Path("proc", strconv.Itoa(w.holder)))
	}
	return k
}

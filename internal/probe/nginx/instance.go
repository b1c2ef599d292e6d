package nginx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

const (
	workerTitle = "nginx: worker process"
	// editedAfter is how much younger than the workers a file has to be before
	// it is taken for one that they have not read: process times are coarse.
	editedAfter = 2 * time.Second
)

// instance is one running nginx: a master process and its workers.
type instance struct {
	host   *host.Host
	master host.Proc
	root   string // the master's root directory, as we see it
	build  buildInfo
	paths  paths

	workers    []*workerProc
	generation []int // PIDs of the workers for which the configuration was read
	conf       *effective
	confErr    error
	// edited: a file of the configuration is younger than the workers.
	edited bool
}

// workerProc is one worker process.
type workerProc struct {
	pid     int
	start   uint64
	looked  int // how often its descriptors were looked through
	others  int // of its descriptors that are no sockets
	peak    int // most sockets since the last round; -1 when not seen
	peakErr error
}

// procPath is a file under /proc/PID.
func procPath(h *host.Host, pid int, name string) string {
	return h.Path("proc", strconv.Itoa(pid), name)
}

// readTitle reads a process's command line anew; "" when it is gone.
func readTitle(h *host.Host, pid int) string {
	b, err := host.ReadHead(procPath(h, pid, "cmdline"), host.MaxCommandLine)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\x00 ")
}

// title is a process's command line; that of a service that rewrites its title
// is one argument.
func title(p *host.Proc) string {
	if len(p.Args) == 0 {
		return ""
	}
	return p.Args[0]
}

// split finds the masters among a host's processes, and their workers by
// master. A worker just forked still has its master's title, so children of a
// master are asked again; workers that are shutting down are left out.
func split(h *host.Host, procs []host.Proc) (masters []host.Proc, workers map[int][]host.Proc) {
	isMaster := map[int]bool{}
	for i := range procs {
		isMaster[procs[i].PID] = strings.HasPrefix(title(&procs[i]), masterTitle)
	}
	workers = map[int][]host.Proc{}
	for i := range procs {
		p := procs[i]
		t := title(&p)
		if !strings.HasPrefix(t, "nginx: ") {
			continue
		}
		if isMaster[p.PPID] || strings.HasPrefix(t, workerTitle) {
			t = readTitle(h, p.PID)
		}
		switch {
		case strings.HasPrefix(t, masterTitle):
			p.Args = []string{t}
			masters = append(masters, p)
		case t == workerTitle:
			workers[p.PPID] = append(workers[p.PPID], p)
		}
	}
	return masters, workers
}

// update brings the instance up to date with its processes and reads its
// configuration anew when the workers are others than before: only then has
// nginx read it.
func (in *instance) update(workers []host.Proc) {
	var pids []int
	known := in.workers
	in.workers = nil
	var youngest uint64
	for _, w := range workers {
		pids = append(pids, w.PID)
		youngest = max(youngest, w.Start)
		i := slices.IndexFunc(known, func(k *workerProc) bool { return k.pid == w.PID && k.start == w.Start })
		if i < 0 {
			in.workers = append(in.workers, &workerProc{pid: w.PID, start: w.Start, peak: -1})
		} else {
			in.workers = append(in.workers, known[i])
		}
	}
	for _, w := range in.workers {
		w.look(in.host)
	}
	slices.Sort(pids)
	if in.conf == nil && in.confErr == nil || !slices.Equal(pids, in.generation) {
		in.generation = pids
		in.readConf(youngest)
	}
}

// readConf reads the configuration files; youngest is when the last worker
// began, in clock ticks after boot.
func (in *instance) readConf(youngest uint64) {
	in.conf, in.confErr, in.edited = nil, nil, false
	global, l, err := in.parse()
	if err != nil {
		in.confErr = err
		return
	}
	in.conf = newEffective(global, in.paths.prefix, in.build)
	if len(in.conf.errorLogs) == 0 {
		in.conf.errorLogs = []errorLog{{path: in.paths.errorLog, level: levelError}}
	}
	if begun, ok := wallTime(in.host, youngest); ok {
		in.edited = l.newest.After(begun.Add(editedAfter))
	}
}

// parse finds and parses the configuration files; the loader knows which.
func (in *instance) parse() ([]*directive, *confLoader, error) {
	o := parseTitle(title(&in.master))
	build, err := readBuildInfo(procPath(in.host, in.master.PID, "exe"))
	if err != nil {
		return nil, nil, fmt.Errorf("read nginx's binary for where its configuration is: %w", err)
	}
	cwd, err := os.Readlink(procPath(in.host, in.master.PID, "cwd"))
	if err != nil {
		cwd = "/"
	}
	in.build, in.paths = build, o.resolve(build, cwd)
	in.build.accessLog = in.paths.accessLog
	l := &confLoader{root: in.root, dir: in.paths.confDir}
	global, err := parseConf([]byte(o.directives), optionG)
	var list []*directive
	if err == nil {
		global, err = l.expand(global, 0)
	}
	if err == nil {
		list, err = l.load(in.paths.conf, 0)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read nginx's configuration %s: %w", in.paths.conf, err)
	}
	return append(global, list...), l, nil
}

// wallTime turns clock ticks after boot into a time of day.
func wallTime(h *host.Host, ticks uint64) (time.Time, bool) {
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	b, err := os.ReadFile(h.Path("proc/uptime"))
	if err != nil {
		return time.Time{}, false
	}
	first, _, _ := strings.Cut(string(b), " ")
	up, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return time.Time{}, false
	}
	ago := up - float64(ticks)/ticksPerSecond
	return time.Now().Add(-time.Duration(ago * float64(time.Second))), true
}

// look counts, the first times that a worker is seen, how many of its
// descriptors are no sockets. They are opened at its start, so they have low numbers.
func (w *workerProc) look(h *host.Host) {
	const looks, lowest = 2, 64
	if w.looked == looks {
		return
	}
	w.looked++
	others := 0
	for fd := range lowest {
		link, err := os.Readlink(procPath(h, w.pid, "fd/"+strconv.Itoa(fd)))
		if err == nil && !strings.HasPrefix(link, "socket:") {
			others++
		}
		if errors.Is(err, fs.ErrPermission) {
			w.peakErr = fmt.Errorf("look at the descriptors of nginx's worker %d; that needs root, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", w.pid, err)
			return
		}
	}
	w.others, w.peakErr = others, nil
}

// poll notes how many sockets the worker has open now. Since Linux 6.2 the size
// of /proc/PID/fd is the number of descriptors; before, it is 0 and they must be counted.
func (w *workerProc) poll(h *host.Host, count bool) {
	if w.peakErr != nil {
		return
	}
	dir := procPath(h, w.pid, "fd")
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return // it ended
	}
	n := int(st.Size)
	if n == 0 {
		if !count {
			return
		}
		names, err := filepath.Glob(dir + "/*")
		if err != nil || len(names) == 0 {
			return
		}
		n = len(names)
	}
	w.peak = max(w.peak, n-w.others)
}

// nofile reads how many descriptors a worker may have open.
func (in *instance) nofile() (float64, error) {
	if len(in.workers) == 0 {
		return 0, host.Absent(fmt.Sprintf("nginx's master %d has no worker", in.master.PID))
	}
	b, err := os.ReadFile(procPath(in.host, in.workers[0].pid, "limits"))
	if err != nil {
		return 0, fmt.Errorf("read the limits of an nginx worker: %w", err)
	}
	return parseNofile(b)
}

// parseNofile finds the soft limit of open files in /proc/PID/limits.
func parseNofile(b []byte) (float64, error) {
	const name = "Max open files"
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			f := strings.Fields(rest)
			if len(f) > 0 {
				if n, err := strconv.ParseUint(f[0], 10, 64); err == nil {
					return float64(n), nil
				}
			}
			return 0, fmt.Errorf("parse /proc/PID/limits: %s: want a number, got %q", name, strings.TrimSpace(rest))
		}
	}
	return 0, fmt.Errorf("parse /proc/PID/limits: want a line %q", name)
}

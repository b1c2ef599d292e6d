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

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/service/nginx"
)

// instance is one running nginx: a master process and its workers.
type instance struct {
	host   *host.Host
	master host.Proc
	root   string // the master's root directory, as we see it
	file   string // of its configuration

	workers    []*workerProc
	generation []int // PIDs of the workers for which the configuration was read
	conf       *nginx.Settings
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
	r, err := nginx.Load(in.host, in.master)
	in.file = r.Conf
	if err != nil {
		in.confErr = err
		return
	}
	in.conf, in.edited = r.Settings(), !r.WasReadBy(in.host, youngest)
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

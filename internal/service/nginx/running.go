// Package nginx reads what an nginx's configuration says: its directives with all
// they include, each with the bytes where it stands, and what they mean. It finds
// the configuration by looking at the processes of a host. It only reads.
package nginx

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
)

const (
	workerTitle = "nginx: worker process"
	// editedAfter is how much younger than the workers a file has to be before
	// it is taken for one that they have not read: process times are coarse.
	editedAfter = 2 * time.Second
	// optionG is the "file" of the directives that stand on the command line.
	optionG = "the option -g"
)

// Running is an nginx that runs, and its configuration as the files say now.
type Running struct {
	Master host.Proc
	// Conf and Prefix are absolute, as nginx sees them; Options is what of its
	// command line decides which configuration is in effect.
	Conf, Prefix string
	Options      []string
	// AccessLog is where nginx writes when no access_log is given.
	AccessLog string
	// Newest is when the last of its files was changed.
	Newest time.Time
	// Files are those that make up the configuration, as nginx calls them, and
	// Dirs the directories in which a further file would belong to it.
	Files, Dirs []string
	Tree        []*Directive

	build    buildInfo
	errorLog string // where it writes when no error_log is given
}

// Find lists the nginx of a host; each has its configuration read, or the error
// that came of it in errs, by the master's PID.
func Find(h *host.Host) (list []*Running, errs map[int]error, err error) {
	procs, err := h.Services()
	if err != nil {
		return nil, nil, err
	}
	errs = map[int]error{}
	masters, _ := Split(h, procs)
	for _, m := range masters {
		r, err := Load(h, m)
		list = append(list, r)
		if err != nil {
			errs[m.PID] = err
		}
	}
	return list, errs, nil
}

// Split finds the masters among a host's processes, and their workers by
// master. A worker just forked still has its master's title, so children of a
// master are asked again; workers that are shutting down are left out.
func Split(h *host.Host, procs []host.Proc) (masters []host.Proc, workers map[int][]host.Proc) {
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
		case IsWorker(t):
			workers[p.PPID] = append(workers[p.PPID], p)
		}
	}
	return masters, workers
}

// IsWorker says whether a process's title is that of a worker that takes requests.
func IsWorker(title string) bool { return title == workerTitle }

// title is a process's command line; that of a service that rewrites its title
// is one argument.
func title(p *host.Proc) string {
	if len(p.Args) == 0 {
		return ""
	}
	return p.Args[0]
}

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

// Load reads the configuration of an nginx by its master process, see Split. After an
// error what was known before it is there.
func Load(h *host.Host, master host.Proc) (*Running, error) { return LoadWith(h, master, nil) }

// LoadWith is Load with other bytes in the place of those files for which instead has some,
// however they are called.
func LoadWith(h *host.Host, master host.Proc, instead func(fs.FileInfo) ([]byte, bool)) (*Running, error) {
	r := &Running{Master: master}
	o := parseTitle(title(&master))
	var err error
	if r.build, err = readBuildInfo(procPath(h, master.PID, "exe")); err != nil {
		return r, fmt.Errorf("read nginx's binary for where its configuration is: %w", err)
	}
	cwd, err := os.Readlink(procPath(h, master.PID, "cwd"))
	if err != nil {
		cwd = "/"
	}
	paths := o.resolve(r.build, cwd)
	r.Conf, r.Prefix, r.AccessLog, r.errorLog = paths.conf, paths.prefix, paths.accessLog, paths.errorLog
	for _, kv := range [][2]string{{"-p", o.prefix}, {"-c", o.conf}, {"-e", o.errorLog}, {"-g", o.directives}} {
		if kv[1] != "" {
			r.Options = append(r.Options, kv[0], kv[1])
		}
	}
	l := &loader{root: filepath.Clean(h.ServicePath(master.PID, "/")), dir: paths.confDir, instead: instead}
	r.Tree, err = l.loadAll(o.directives, paths.conf)
	if err != nil {
		return r, fmt.Errorf("read nginx's configuration %s: %w", paths.conf, err)
	}
	r.Newest, r.Files, r.Dirs = l.newest, l.files, l.dirs
	return r, nil
}

// Settings is what the configuration means. Directives that make no sense are passed
// over: nginx has judged them already.
func (r *Running) Settings() *Settings {
	s := newSettings(r.Tree, r.Prefix, r.AccessLog, r.build.version)
	if len(s.ErrorLogs) == 0 {
		s.ErrorLogs = []ErrorLog{{Path: r.errorLog, Level: LevelError}}
	}
	return s
}

// WasReadBy says whether processes that began at start (clock ticks after boot) have
// read the files as they are now.
func (r *Running) WasReadBy(h *host.Host, start uint64) bool {
	begun, ok := wallTime(h, start)
	return !ok || !r.Newest.After(begun.Add(editedAfter))
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

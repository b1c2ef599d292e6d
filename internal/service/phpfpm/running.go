// Package phpfpm reads what a PHP-FPM's configuration says: its settings with all
// they include, each with the bytes where it stands, and what they mean for its
// pools. It finds the configuration by looking at the processes of a host. It only reads.
package phpfpm

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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

// Running is a PHP-FPM that runs, and its configuration as the files say now.
type Running struct {
	Master  host.Proc
	Conf    string // the main file
	Entries []Entry
	// Files are those that make up the configuration, as PHP-FPM calls them, and
	// Dirs the directories in which a further file would belong to it.
	Files, Dirs []string
	// Doubt says why there may be more to the configuration than these files say; nil if nothing does.
	Doubt error
}

// Find lists the PHP-FPM of a host; each has its configuration read, or the
// error that came of it in errs, by the master's PID.
func Find(h *host.Host) (list []*Running, errs map[int]error, err error) {
	procs, err := h.Services()
	if err != nil {
		return nil, nil, err
	}
	errs = map[int]error{}
	masters, _ := Split(procs)
	for _, m := range masters {
		r, err := Load(h, m)
		list = append(list, r)
		if err != nil {
			errs[m.PID] = err
		}
	}
	return list, errs, nil
}

// Load reads the configuration of a PHP-FPM by its master process, see Split. After an
// error what was known before it is there.
func Load(h *host.Host, master host.Proc) (*Running, error) { return LoadWith(h, master, nil) }

// LoadWith is Load with other bytes in the place of those files for which instead has some,
// however they are called.
func LoadWith(h *host.Host, master host.Proc, instead func(fs.FileInfo) ([]byte, bool)) (*Running, error) {
	r := &Running{Master: master}
	r.Conf, _, _ = strings.Cut(strings.TrimPrefix(master.Args[0], masterTitle), ")")
	l := &loader{root: filepath.Clean(h.ServicePath(master.PID, "/")), main: r.Conf, instead: instead}
	entries, err := l.load(r.Conf, "", 0)
	if err != nil {
		return r, fmt.Errorf("read PHP-FPM's configuration %s: %w", r.Conf, err)
	}
	r.Entries, r.Files, r.Dirs, r.Doubt = entries, l.files, l.dirs, l.doubt
	return r, nil
}

// Config is what the configuration means.
func (r *Running) Config() (*Config, error) {
	c, err := NewConfig(r.Entries)
	if err != nil {
		return nil, fmt.Errorf("read PHP-FPM's configuration %s: %w", r.Conf, err)
	}
	return c, nil
}

// Pools are the names of the pools, in their order.
func Pools(entries []Entry) (names []string) {
	for _, e := range entries {
		if e.Section != "" && e.Section != "global" && !slices.Contains(names, e.Section) {
			names = append(names, e.Section)
		}
	}
	return names
}

// Setting is where a pool's setting stands, nil if nowhere: the last one counts.
func Setting(entries []Entry, pool, key string) (last *Entry) {
	for i, e := range entries {
		if e.Section == pool && e.Key == key {
			last = &entries[i]
		}
	}
	return last
}

// Value is a pool's setting, "" where it stands nowhere.
func Value(entries []Entry, pool, key string) string {
	if e := Setting(entries, pool, key); e != nil {
		return e.Value
	}
	return ""
}

// Split finds the masters among a host's processes and counts workers by master
// and pool. A worker just forked still has its master's title: it is no master.
func Split(procs []host.Proc) (masters []host.Proc, count map[int]map[string]int) {
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

// IsMaster says whether a process's title is that of a master that has read
// its configuration.
func IsMaster(title string) bool {
	return len(title) > len(masterTitle) && title[:len(masterTitle)] == masterTitle
}

// IsWorker says whether a process's title is that of a pool's worker.
func IsWorker(title string) bool { return strings.HasPrefix(title, poolTitle) }

// ListenAddresses are what a listen setting may be, as the socket signals
// write it: a port alone depends on whether the kernel has IPv6.
func ListenAddresses(value string) []string {
	return []string{ListenAddress(value, true), ListenAddress(value, false)}
}

// Version is PHP's version in thousandths of its parts (8002035 is 8.2.35), from the
// master's binary; 0 is unknown.
func Version(h *host.Host, master host.Proc) int {
	b, err := rooted.TextAfter(h.Path("proc", strconv.Itoa(master.PID), "exe"), versionMark, 64, maxBinary)
	if err != nil {
		return 0
	}
	return parseVersion(b)
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

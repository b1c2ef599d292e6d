package phpfpm

import (
	"fmt"

	"plimsoll/internal/host"
)

// Entry is one "key = value" of a configuration, or a section's heading (Key is
// ""), and where it stands, for who wants to edit it.
type Entry struct {
	Section, Key, Value string
	File                string // as PHP-FPM names it
	Line                int    // from 1
}

// Running is a PHP-FPM that runs, and its configuration as the files say now.
type Running struct {
	Master  host.Proc
	Conf    string // the main file
	Entries []Entry
	// Files are those that make up the configuration, as PHP-FPM calls them, and
	// Dirs the directories in which a further file would belong to it.
	Files, Dirs []string
	// Doubt says why there may be more files than these; nil if nothing does.
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
	masters, _ := split(procs)
	for _, m := range masters {
		s := newService(h, m)
		r := &Running{Master: m, Conf: s.file}
		list = append(list, r)
		l := &loader{root: s.root, main: s.file}
		entries, err := l.load(s.file, "", 0)
		if err != nil {
			errs[m.PID] = fmt.Errorf("read PHP-FPM's configuration %s: %w", s.file, err)
			continue
		}
		r.Files, r.Dirs, r.Doubt = l.files, l.dirs, l.doubt
		for _, e := range entries {
			r.Entries = append(r.Entries, Entry{e.section, e.key, e.value, e.file, e.line})
		}
	}
	return list, errs, nil
}

// ListenAddresses are what a listen setting may be, as the socket signals
// write it: a port alone depends on whether the kernel has IPv6.
func ListenAddresses(value string) []string {
	return []string{listenAddress(value, true), listenAddress(value, false)}
}

// IsMaster says whether a process's title is that of a master that has read
// its configuration.
func IsMaster(title string) bool {
	return len(title) > len(masterTitle) && title[:len(masterTitle)] == masterTitle
}

// Parse parses the text of one file; includes stay what they are.
func Parse(src []byte, file string) ([]Entry, error) {
	list, err := parseIni(src, file)
	var all []Entry
	for _, e := range list {
		all = append(all, Entry{e.section, e.key, e.value, e.file, e.line})
	}
	return all, err
}

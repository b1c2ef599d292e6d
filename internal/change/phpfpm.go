package change

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
	"plimsoll/internal/probe/phpfpm"
)

// poolSettings are the settings of a pool that can be changed, and what their
// values look like.
var poolSettings = map[string]*regexp.Regexp{
	"pm":                        regexp.MustCompile(`^(static|dynamic|ondemand)$`),
	"pm.max_children":           whole,
	"pm.start_servers":          whole,
	"pm.min_spare_servers":      whole,
	"pm.max_spare_servers":      whole,
	"pm.max_requests":           whole,
	"pm.process_idle_timeout":   regexp.MustCompile(`^[0-9]{1,6}[smhd]?$`),
	"request_terminate_timeout": regexp.MustCompile(`^[0-9]{1,6}[smhd]?$`),
	"rlimit_files":              whole,
	"listen.backlog":            regexp.MustCompile(`^(-1|[0-9]{1,9})$`),
}

// preparePHPFPM plans a change of a pool's settings.
func preparePHPFPM(h *host.Host, c Change, s *Step) error {
	shape, ok := poolSettings[c.Name]
	if !ok {
		return fmt.Errorf("phpfpm %s: no setting of a pool that can be changed here (%s): %w", c.Name, strings.Join(sorted(poolSettings), " "), ErrNotPossible)
	}
	if !shape.MatchString(c.To) {
		return fmt.Errorf("phpfpm %s: want something like %s, got %q", c.Name, shape, c.To)
	}
	r, pool, err := thePool(h, c, s.netns)
	if err != nil {
		return err
	}
	of := phpfpmService(r, s.netns)
	s.service = &of
	s.service.Ondemand = allOndemand(r.Entries)
	if err := s.service.trustWith(phpfpmConfiguration(r)); err != nil {
		return fmt.Errorf("%s: %w", s.service, err)
	}
	at, root, err := reach(r.Master)
	if err != nil {
		return err
	}
	if err := s.service.identify(); err != nil {
		return err
	}
	s.Scope = Service
	file, e, old, err := poolEdit(r.Entries, pool, root, c.Name, c.To)
	if err != nil {
		return err
	}
	s.Old = old
	edits := map[string][]edit{}
	if old != c.To {
		edits[file] = []edit{e}
	}
	s.service.NoReload = c.Name == "listen.backlog" // a reload takes the open sockets over as they are
	if err := s.addFiles(edits, at); err != nil {
		return err
	}
	if s.service.NoReload {
		return s.addPoolBacklog(h, r.Entries, pool, atoi(c.To))
	}
	if len(edits) > 0 {
		s.Notes = append(s.Notes, "a reload of PHP-FPM ends requests that take longer than process_control_timeout (0 s where it is not set)")
	}
	return nil
}

// thePool finds the pool that a change is about.
func thePool(h *host.Host, c Change, net netns) (*phpfpm.Running, string, error) {
	all, errs, err := phpfpm.Find(h)
	if err != nil {
		return nil, "", err
	}
	type found struct {
		r    *phpfpm.Running
		pool string
	}
	plain, of, _ := strings.Cut(c.Pool, "@") // "www@php-fpm8.1" or "www@4711"
	var list []candidate[found]
	var others []string
	for _, r := range all {
		if c.PID != 0 && r.Master.PID != c.PID {
			continue
		}
		if err := errs[r.Master.PID]; err != nil {
			return nil, "", err
		}
		for _, name := range pools(r.Entries) {
			says := name + " of process " + strconv.Itoa(r.Master.PID)
			others = append(others, says)
			if plain == "" || plain == name {
				conf := phpfpmConfiguration(r)
				conf.listens = poolListens(r, name)
				list = append(list, candidate[found]{found{r, name}, phpfpmService(r, net), conf, says})
			}
		}
	}
	// Where two services have a pool of a name, the label says whose it is; a number
	// may be another's by now.
	isOf := func(f candidate[found]) bool { return of == f.is.r.Master.Comm || of == strconv.Itoa(f.PID) }
	if slices.ContainsFunc(list, isOf) {
		list = slices.DeleteFunc(list, func(f candidate[found]) bool { return !isOf(f) })
	}
	list = meant(list, c.ListensAt)
	switch len(list) {
	case 0:
		return nil, "", fmt.Errorf("no pool %q of PHP-FPM on %s (%s): %w", c.Pool, h.Name, strings.Join(others, ", "), fs.ErrNotExist)
	case 1:
		return list[0].is.r, list[0].is.pool, nil
	}
	return nil, "", fmt.Errorf("several pools of PHP-FPM on %s, say which: %s", h.Name, strings.Join(names(list), ", "))
}

func phpfpmService(r *phpfpm.Running, net netns) service {
	return service{Sort: PHPFPM, process: process{r.Master.PID, r.Master.Start}, Conf: r.Conf, Net: net, Test: []string{"-t", "-R", "--fpm-config", r.Conf}}
}

func pools(entries []phpfpm.Entry) (names []string) {
	for _, e := range entries {
		if e.Section != "" && e.Section != "global" && !slices.Contains(names, e.Section) {
			names = append(names, e.Section)
		}
	}
	return names
}

func allOndemand(entries []phpfpm.Entry) bool {
	return !slices.ContainsFunc(pools(entries), func(p string) bool { return value(entries, p, "pm") != "ondemand" })
}

// value is a pool's setting; the last one counts.
func value(entries []phpfpm.Entry, pool, key string) string {
	if e := lastEntry(entries, pool, key); e != nil {
		return e.Value
	}
	return ""
}

func lastEntry(entries []phpfpm.Entry, pool, key string) (last *phpfpm.Entry) {
	for i, e := range entries {
		if e.Section == pool && e.Key == key {
			last = &entries[i]
		}
	}
	return last
}

// poolEdit plans the edit of one setting: its value where it stands, else a
// line of its own behind one that every pool has.
func poolEdit(entries []phpfpm.Entry, pool, root, key, to string) (file string, e edit, old string, err error) {
	at := lastEntry(entries, pool, key)
	there := at != nil
	for _, k := range []string{"pm", "listen"} {
		if at == nil {
			at = lastEntry(entries, pool, k)
		}
	}
	if at == nil {
		return "", e, "", fmt.Errorf("pool %s has neither pm nor listen: %w", pool, ErrNotPossible)
	}
	src, _, err := rooted.ReadFile(root, at.File, maxFile)
	if err != nil {
		return "", e, "", err
	}
	begin, end, err := lineSpan(src, at.Line)
	if err != nil {
		return "", e, "", fmt.Errorf("%s: %w", at.File, err)
	}
	if !there {
		text := indent(src, begin+len(src[begin:end])-len(bytes.TrimLeft(src[begin:end], " \t"))) + key + " = " + to + lineEnd(src)
		if end == 0 || src[end-1] != '\n' {
			text = lineEnd(src) + strings.TrimRight(text, "\r\n")
		}
		return at.File, edit{end, end, text}, "", nil
	}
	from, upto, err := valueSpan(src[begin:end])
	return at.File, edit{begin + from, begin + upto, to}, at.Value, err
}

// lineSpan is where a line (from 1) begins and ends, its end of line included.
func lineSpan(src []byte, line int) (begin, end int, err error) {
	n := 0
	for l := range bytes.Lines(src) {
		if n++; n == line {
			return end, end + len(l), nil
		}
		end += len(l)
	}
	return 0, 0, fmt.Errorf("no line %d: it is being edited by somebody", line)
}

// valueSpan is where the value stands in a line "key = value ; comment", its
// quotes included.
func valueSpan(line []byte) (from, upto int, err error) {
	eq := bytes.IndexByte(line, '=')
	if eq < 0 {
		return 0, 0, fmt.Errorf("want key = value, got %q: it is being edited by somebody", line)
	}
	rest := line[eq+1:]
	from = eq + 1 + len(rest) - len(bytes.TrimLeft(rest, " \t"))
	rest = bytes.TrimRight(line[from:], " \t\r\n")
	if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
		if i := bytes.IndexByte(rest[1:], rest[0]); i >= 0 {
			after := bytes.TrimLeft(rest[i+2:], " \t")
			if len(after) > 0 && after[0] != ';' { // PHP joins what follows to it
				return 0, 0, fmt.Errorf("the value in %q has several parts; write it as one: %w", line, ErrNotPossible)
			}
			return from, from + i + 2, nil
		}
	}
	if i := bytes.IndexByte(rest, ';'); i >= 0 {
		rest = bytes.TrimRight(rest[:i], " \t")
	}
	return from, from + len(rest), nil
}

func (s *Step) addPoolBacklog(h *host.Host, entries []phpfpm.Entry, pool string, backlog int) error {
	listen := strings.ReplaceAll(value(entries, pool, "listen"), "$pool", pool)
	var err error
	for _, addr := range phpfpm.ListenAddresses(listen) {
		if err = s.addBacklog(h, addr, backlog); err == nil {
			return nil
		}
	}
	return err
}

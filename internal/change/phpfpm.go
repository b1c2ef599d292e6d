package change

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
	"plimsoll/internal/lazy"
	"plimsoll/internal/service/phpfpm"
)

// poolSettings are the settings of a pool that can be changed, and what their
// values look like.
var poolSettings = map[string]func() *regexp.Regexp{
	"pm":                        lazy.Regexp(`^(static|dynamic|ondemand)$`),
	"pm.max_children":           whole,
	"pm.start_servers":          whole,
	"pm.min_spare_servers":      whole,
	"pm.max_spare_servers":      whole,
	"pm.max_requests":           whole,
	"pm.process_idle_timeout":   lazy.Regexp(`^[0-9]{1,6}[smhd]?$`),
	"request_terminate_timeout": lazy.Regexp(`^[0-9]{1,6}[smhd]?$`),
	"rlimit_files":              whole,
	"listen.backlog":            lazy.Regexp(`^(-1|[0-9]{1,9})$`),
}

// preparePHPFPM plans a change of a pool's settings.
func preparePHPFPM(h *host.Host, c Change, s *Step) error {
	shape, ok := poolSettings[c.Name]
	if !ok {
		return fmt.Errorf("phpfpm %s: no setting of a pool that can be changed here (%s): %w", c.Name, strings.Join(slices.Sorted(maps.Keys(poolSettings)), " "), ErrNotPossible)
	}
	if !shape().MatchString(c.To) {
		return fmt.Errorf("phpfpm %s: want something like %s, got %q", c.Name, shape(), c.To)
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
		for _, name := range phpfpm.Pools(r.Entries) {
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

// poolEdit plans the edit of one setting: its value where it stands, else a
// line of its own behind one that every pool has.
func poolEdit(entries []phpfpm.Entry, pool, root, key, to string) (file string, e edit, old string, err error) {
	at := phpfpm.Setting(entries, pool, key)
	there := at != nil
	for _, k := range []string{"pm", "listen"} {
		if at == nil {
			at = phpfpm.Setting(entries, pool, k)
		}
	}
	if at == nil {
		return "", e, "", fmt.Errorf("pool %s has neither pm nor listen: %w", pool, ErrNotPossible)
	}
	src, _, err := rooted.ReadFile(root, at.File, maxFile)
	if err != nil {
		return "", e, "", err
	}
	if !at.StandsIn(src) {
		return "", e, "", fmt.Errorf("%s, line %d: it is being edited by somebody", at.File, at.Line)
	}
	if there {
		if at.Joined { // PHP joins what follows to it
			return "", e, "", fmt.Errorf("%s, line %d: the value of %s has several parts; write it as one: %w", at.File, at.Line, key, ErrNotPossible)
		}
		return at.File, edit{at.Text.Begin, at.Text.End, to}, at.Value, nil
	}
	line := src[at.Whole.Begin:at.Whole.End]
	end := at.Whole.End
	text := indent(src, end-len(bytes.TrimLeft(line, " \t"))) + key + " = " + to + lineEnd(src)
	if src[end-1] != '\n' {
		text = lineEnd(src) + strings.TrimRight(text, "\r\n")
	}
	return at.File, edit{end, end, text}, "", nil
}

func (s *Step) addPoolBacklog(h *host.Host, entries []phpfpm.Entry, pool string, backlog int) error {
	listen := strings.ReplaceAll(phpfpm.Value(entries, pool, "listen"), "$pool", pool)
	var err error
	for _, addr := range phpfpm.ListenAddresses(listen) {
		if err = s.addBacklog(h, addr, backlog); err == nil {
			return nil
		}
	}
	return err
}

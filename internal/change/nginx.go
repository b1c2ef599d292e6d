package change

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/lazy"
	"plimsoll/internal/service/nginx"
)

// directive is what is to be known of a directive of nginx that can be changed.
type directive struct {
	context string // the block in which it is put when it is nowhere
	value   func() *regexp.Regexp
	want    string // what value means, in words
}

var (
	orAuto = lazy.Regexp(`^(auto|[0-9]{1,4})$`)
	onOff  = lazy.Regexp(`^(on|off)$`)
	period = lazy.Regexp(`^([0-9]{1,9}(ms|s|m|h|d)?)( [0-9]{1,9}(ms|s|m|h|d)?)?$`)
	size   = lazy.Regexp(`^(off|[0-9]{1,9}[kKmMgG]?)$`)
	cache  = lazy.Regexp(`^(off|max=[0-9]{1,9}( inactive=[0-9]{1,9}(ms|s|m|h|d)?)?)$`)
	asio   = lazy.Regexp(`^(on|off|threads)$`)
	logs   = lazy.Regexp(`^(off|buffer=[0-9]{1,9}[kKmM]?( flush=[0-9]{1,9}(ms|s|m)?)?)$`)
)

// directives are those that can be changed, by the name that Change.Name has.
var directives = map[string]directive{
	"worker_processes":     {"main", orAuto, "a whole number or auto"},
	"worker_rlimit_nofile": {"main", whole, "a whole number"},
	"worker_connections":   {"events", whole, "a whole number"},
	"multi_accept":         {"events", onOff, "on or off"},
	"accept_mutex":         {"events", onOff, "on or off"},
	"keepalive_timeout":    {"http", period, "a time such as 75s"},
	"keepalive_requests":   {"http", whole, "a whole number"},
	"sendfile":             {"http", onOff, "on or off"},
	"tcp_nopush":           {"http", onOff, "on or off"},
	"tcp_nodelay":          {"http", onOff, "on or off"},
	"aio":                  {"http", asio, "on, off or threads"},
	"directio":             {"http", size, "a size such as 8m, or off"},
	"open_file_cache":      {"http", cache, "off, or max=N inactive=TIME"},
	"access_log":           {"http", logs, "off, or buffer=SIZE flush=TIME"},
	"keepalive":            {"upstream", whole, "a whole number"},
	"backlog":              {"listen", whole, "a whole number"},
}

// prepareNginx plans a change of an nginx's files.
func prepareNginx(h *host.Host, c Change, s *Step) error {
	d, ok := directives[c.Name]
	if !ok {
		return fmt.Errorf("nginx %s: no directive that can be changed here (%s): %w", c.Name, strings.Join(slices.Sorted(maps.Keys(directives)), " "), ErrNotPossible)
	}
	if !d.value().MatchString(c.To) {
		return fmt.Errorf("nginx %s: want %s, got %q", c.Name, d.want, c.To)
	}
	r, err := theNginx(h, c, s.netns)
	if err != nil {
		return err
	}
	of := nginxService(r, s.netns)
	s.service = &of
	if err := s.service.trustWith(nginxConfiguration(r)); err != nil {
		return fmt.Errorf("%s: %w", s.service, err)
	}
	at, root, err := reach(r.Master)
	if err != nil {
		return err
	}
	e := &editor{c: c, root: root, tree: r.Tree, log: r.AccessLog, edits: map[string][]edit{}, src: map[string][]byte{}}
	listen, err := e.plan(d)
	if err != nil {
		return fmt.Errorf("nginx (process %d): %s: %w", r.Master.PID, c.Name, err)
	}
	if err := s.service.identify(); err != nil {
		return err
	}
	s.Scope, s.Notes = Service, e.notes
	s.Old = strings.Join(slices.Compact(e.old), " | ")
	if err := s.addFiles(e.edits, at); err != nil {
		return err
	}
	if len(s.Files) > 0 && !s.service.hasRead(h, r) {
		return fmt.Errorf("nginx (process %d): its files were edited after it read them, so a reload would bring that into effect too; reload nginx first: %w", r.Master.PID, ErrNotPossible)
	}
	if listen != "" {
		return s.addBacklog(h, listen, atoi(c.To))
	}
	return nil
}

// seconds is a time in seconds that says so.
var seconds = lazy.Regexp(`^([0-9]+)s$`)

// sameTime says whether nginx reads the same of two times: without a unit they are seconds.
func sameTime(a, b string) bool {
	return seconds().ReplaceAllString(a, "$1") == seconds().ReplaceAllString(b, "$1")
}

// hasRead says whether the workers there are now have read the files as they are.
func (s *service) hasRead(h *host.Host, r *nginx.Running) bool {
	var youngest uint64
	for _, w := range s.look() {
		youngest = max(youngest, w.Start)
	}
	return youngest == 0 || r.WasReadBy(h, youngest)
}

// theNginx finds the nginx that a change is about.
func theNginx(h *host.Host, c Change, net netns) (*nginx.Running, error) {
	all, errs, err := nginx.Find(h)
	if err != nil {
		return nil, err
	}
	var list []candidate[*nginx.Running]
	for _, r := range all {
		if c.PID == 0 || r.Master.PID == c.PID {
			list = append(list, candidate[*nginx.Running]{r, nginxService(r, net), nginxConfiguration(r), strconv.Itoa(r.Master.PID)})
		}
	}
	list = meant(list, c.ListensAt)
	switch len(list) {
	case 0:
		return nil, fmt.Errorf("no master process of nginx on %s: %w", h.Name, fs.ErrNotExist)
	case 1:
		return list[0].is, errs[list[0].PID]
	}
	return nil, fmt.Errorf("several nginx on %s, say which: processes %s", h.Name, strings.Join(names(list), ", "))
}

// plan finds the directives and says what is to become of them; listen is the
// listener whose socket is to be set, too.
func (e *editor) plan(d directive) (listen string, err error) {
	switch d.context {
	case "listen":
		return e.backlog()
	case "upstream":
		return "", e.keepalive()
	}
	if e.c.Name == "access_log" {
		return "", e.accessLog()
	}
	all := find(e.tree, e.c.Name)
	for _, x := range all {
		if e.c.Name == "keepalive_timeout" && slices.EqualFunc(x.Args, strings.Fields(e.c.To), sameTime) {
			continue // a reload without a change closes connections, too, and would be taken for a mend
		}
		if err := e.replace(x, strings.Fields(e.c.To)); err != nil {
			return "", err
		}
	}
	if len(all) == 0 && e.c.Name == "keepalive_timeout" && sameTime(e.c.To, "75") {
		return "", nil // that is what nginx takes by itself
	}
	line := e.c.Name + " " + e.c.To + ";"
	switch d.context {
	case "main":
		if len(all) == 0 {
			return "", e.before("events", line)
		}
	case "events":
		if len(all) == 0 {
			return "", e.into("events", line)
		}
	case "http":
		if !slices.ContainsFunc(inBlock(e.tree, "http"), func(x *nginx.Directive) bool { return x.Name == e.c.Name }) {
			return "", e.into("http", line)
		}
	}
	return "", nil
}

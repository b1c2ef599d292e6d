package change

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/service/nginx"
)

// accessLog switches the access logs off, or gives those that are files a buffer.
func (e *editor) accessLog() error {
	args := strings.Fields(e.c.To)
	all := find(e.tree, "access_log")
	for _, d := range all {
		want := args
		if args[0] != "off" {
			want = buffered(d.Args, args)
		}
		if err := e.replace(d, want); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(inBlock(e.tree, "http"), func(d *nginx.Directive) bool { return d.Name == "access_log" }) {
		return nil
	}
	if args[0] == "off" {
		return e.into("http", "access_log off;")
	}
	return e.into("http", "access_log "+e.log+" combined "+e.c.To+";")
}

// buffered is an access_log's arguments with a buffer; those of a log that can
// have none, or that has one already, as they are.
func buffered(args, buffer []string) []string {
	kept := func(a string) bool {
		return strings.HasPrefix(a, "buffer=") || a == "gzip" || strings.HasPrefix(a, "gzip=")
	}
	if len(args) == 0 || args[0] == "off" || strings.HasPrefix(args[0], "syslog:") || strings.Contains(args[0], "$") || slices.ContainsFunc(args, kept) {
		return args
	}
	list := slices.Clone(args[:min(2, len(args))])
	if len(args) == 1 || strings.HasPrefix(args[1], "if=") {
		list = []string{args[0], "combined"} // a buffer may only stand behind a format
	}
	list = append(list, buffer...)
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "if=") {
			list = append(list, a)
		}
	}
	return list
}

// backlog gives a listen directive another backlog.
func (e *editor) backlog() (listen string, err error) {
	byAddress := map[string][]*nginx.Directive{}
	for _, server := range inBlock(e.tree, "http") {
		if server.Name != "server" {
			continue
		}
		for _, d := range server.Block {
			if d.Name != "listen" || len(d.Args) == 0 || slices.Contains(d.Args, "udp") || slices.Contains(d.Args, "quic") {
				continue
			}
			for _, a := range nginx.ListenAddresses(d.Args[0]) {
				byAddress[a] = append(byAddress[a], d)
			}
		}
	}
	listen = e.c.Listen
	addresses := slices.Sorted(maps.Keys(byAddress))
	if listen == "" && len(addresses) == 1 {
		listen = addresses[0]
	}
	if listen == "" && len(addresses) > 1 {
		return "", fmt.Errorf("it has several listeners, say which: %s", strings.Join(addresses, ", "))
	}
	if len(byAddress[listen]) == 0 {
		return "", fmt.Errorf("no listen directive for %q among %s: %w", listen, strings.Join(addresses, ", "), fs.ErrNotExist)
	}
	return listen, e.setBacklog(optionsOf(byAddress[listen]))
}

// optionsOf is the one listen directive of an address that may have options:
// nginx refuses them on two.
func optionsOf(list []*nginx.Directive) *nginx.Directive {
	for _, d := range list {
		for _, a := range d.Args[1:] {
			name, _, _ := strings.Cut(a, "=")
			switch name {
			case "backlog", "setfib", "fastopen", "rcvbuf", "sndbuf", "accept_filter", "deferred", "ipv6only", "so_keepalive", "reuseport", "bind":
				return d
			}
		}
	}
	return list[0]
}

func (e *editor) setBacklog(d *nginx.Directive) error {
	want := "backlog=" + e.c.To
	for i, a := range d.Args {
		if old, ok := strings.CutPrefix(a, "backlog="); ok {
			e.old = append(e.old, old)
			if a == want {
				return nil
			}
			return e.put(d, edit{d.Words[i+1].Begin, d.Words[i+1].End, want})
		}
	}
	end := d.Words[len(d.Words)-1].End
	return e.put(d, edit{end, end, " " + want})
}

// keepalive gives a group of servers idle connections that are kept, and has
// those who pass requests to it keep them.
func (e *editor) keepalive() error {
	var groups []*nginx.Directive
	var names []string
	for _, d := range inBlock(e.tree, "http") {
		if d.Name != "upstream" || len(d.Args) == 0 {
			continue
		}
		names = append(names, d.Args[0])
		if e.c.Upstream == "" || e.c.Upstream == d.Args[0] {
			groups = append(groups, d)
		}
	}
	if len(groups) > 1 {
		return fmt.Errorf("several groups, say which: %s", strings.Join(names, ", "))
	}
	if len(groups) == 0 {
		return fmt.Errorf("no upstream group %q (%s); only a group keeps connections: %w", e.c.Upstream, strings.Join(names, ", "), ErrNotPossible)
	}
	if err := e.keepIn(groups[0]); err != nil || e.c.To == "0" {
		return err
	}
	for _, http := range e.tree {
		if http.Name == "http" {
			if err := e.passes(http, groups[0].Args[0], nil); err != nil {
				return err
			}
		}
	}
	e.notes = append(e.notes, "each worker of nginx may now keep "+e.c.To+" idle connections to the group; a server with few workers of its own (PHP-FPM) needs one for each")
	return nil
}

func (e *editor) keepIn(group *nginx.Directive) error {
	for _, d := range group.Block {
		if d.Name == "keepalive" {
			return e.replace(d, []string{e.c.To})
		}
	}
	if e.c.To == "0" {
		return nil
	}
	src, err := e.text(group)
	if err != nil {
		return err
	}
	return e.put(group, last(src, group.Open, group.End, "keepalive "+e.c.To+";"))
}

// passes walks the blocks; outer are the blocks around, the outermost first.
func (e *editor) passes(b *nginx.Directive, group string, outer []*nginx.Directive) error {
	levels := append(slices.Clone(outer), b)
	for _, d := range b.Block {
		var err error
		switch {
		case d.IsBlock && slices.Contains([]string{"server", "location", "if", "limit_except"}, d.Name):
			err = e.passes(d, group, levels)
		case d.Name == "fastcgi_pass" && len(d.Args) == 1 && d.Args[0] == group:
			err = e.ensure(b, levels, "fastcgi_keep_conn", "on")
		case d.Name == "proxy_pass" && len(d.Args) == 1 && passesTo(d.Args[0], group):
			if err = e.ensure(b, levels, "proxy_http_version", "1.1"); err == nil {
				err = e.noConnectionHeader(b, levels)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func passesTo(target, group string) bool {
	_, rest, ok := strings.Cut(target, "://")
	rest, _, _ = strings.Cut(rest, "/")
	return ok && rest == group
}

// ensure has a directive in effect in a block: it may be there, or inherited.
func (e *editor) ensure(b *nginx.Directive, levels []*nginx.Directive, name, value string) error {
	for i, level := range slices.Backward(levels) {
		at := slices.IndexFunc(level.Block, func(d *nginx.Directive) bool { return d.Name == name && len(d.Args) > 0 })
		if at < 0 {
			continue
		}
		d := level.Block[at]
		if d.Args[0] == value {
			return nil
		}
		if i == len(levels)-1 {
			return e.put(d, edit{d.Words[1].Begin, d.Words[len(d.Words)-1].End, value})
		}
		break
	}
	return e.insert(b, name+" "+value+";")
}

// noConnectionHeader sends no "Connection: close" to the group. Headers are
// inherited only by a block that sets none, so what it inherited is written
// into it too.
func (e *editor) noConnectionHeader(b *nginx.Directive, levels []*nginx.Directive) error {
	lines := []string{`proxy_set_header Connection "";`}
	for i, level := range slices.Backward(levels) {
		set := slices.DeleteFunc(slices.Clone(level.Block), func(d *nginx.Directive) bool { return d.Name != "proxy_set_header" })
		if len(set) == 0 {
			continue
		}
		for _, d := range set {
			if strings.EqualFold(d.Args[0], "connection") {
				return nil // somebody has thought about it (websockets)
			}
			src, err := e.text(d)
			if err != nil {
				return err
			}
			if i < len(levels)-1 {
				lines = append(lines, string(src[d.Words[0].Begin:d.End]))
			}
		}
		break
	}
	return e.insert(b, lines...)
}

func (e *editor) insert(b *nginx.Directive, lines ...string) error {
	src, err := e.text(b)
	if err != nil {
		return err
	}
	return e.put(b, last(src, b.Open, b.End, lines...))
}

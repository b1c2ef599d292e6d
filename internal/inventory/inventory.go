// Package inventory reads the hosts of a group from an Ansible inventory: INI or YAML, as it stands. Nothing is run, and of
// the variables only those are kept that say how ssh gets to a host.
package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of an inventory.
const (
	// MaxBytes is the most bytes of one file.
	MaxBytes   = 4 << 20
	maxHosts   = 10_000
	maxEntries = 100_000 // of hosts and groups in groups
	maxDepth   = 100     // of groups in groups
)

// Host is a host as an inventory names it.
type Host struct {
	Name string
	// Address, User and Port are what ssh is told: the address is the name where nothing else is said, the others are "" then.
	Address, User, Port string
	// Connection is how Ansible gets there: "" and "ssh" is by ssh, "local" is this machine.
	Connection string
	// Line is where the host is first named in the file.
	Line int
}

// The variables that are kept, and the names that they had before Ansible 2.0.
const (
	address    = "ansible_host"
	user       = "ansible_user"
	port       = "ansible_port"
	connection = "ansible_connection"
)

var older = map[string]string{"ansible_ssh_host": address, "ansible_ssh_user": user, "ansible_ssh_port": port}

// keeps says under which name a variable is kept, "" for not at all: passwords are among the others.
func keeps(name string) string {
	if now, ok := older[name]; ok {
		return now
	}
	if slices.Contains([]string{address, user, port, connection}, name) {
		return name
	}
	return ""
}

// value is what a variable was set to, and where.
type value struct {
	text string
	line int
}

type vars map[string]value

// group is a group, or a host: that is what is set for it, and what is in it.
type group struct {
	vars     vars
	line     int
	hosts    map[string]bool
	children []string
}

func newGroup(line int) *group { return &group{vars: vars{}, line: line, hosts: map[string]bool{}} }

// book is an inventory as it was read.
type book struct {
	groups map[string]*group
	hosts  map[string]*group // of these, vars and line alone
	order  []string          // of the hosts
	size   int               // of all groups
}

const (
	all       = "all"
	ungrouped = "ungrouped"
)

func newBook() *book {
	return &book{groups: map[string]*group{all: newGroup(1), ungrouped: newGroup(1)}, hosts: map[string]*group{}}
}

// group is the group of a name, a new one where there is none yet.
func (b *book) group(name string, line int) *group {
	if b.groups[name] == nil {
		b.groups[name] = newGroup(line)
	}
	return b.groups[name]
}

// add adds what a pattern stands for to a group, and returns its hosts.
func (b *book) add(to, pattern string, line int) ([]string, error) {
	names, err := expand(pattern)
	if err != nil {
		return nil, fault(line, "%v", err)
	}
	g := b.group(to, line)
	for _, name := range names {
		if b.hosts[name] == nil {
			if len(b.hosts) == maxHosts {
				return nil, fault(line, "more than %d hosts", maxHosts)
			}
			b.hosts[name] = newGroup(line)
			b.order = append(b.order, name)
		}
		g.hosts[name] = true
	}
	return names, b.grow(len(names), line)
}

// nest puts a group into another.
func (b *book) nest(outer, inner string, line int) error {
	if inner == all {
		return fault(line, "the group all has every other one, and is in none")
	}
	b.group(inner, line)
	g := b.group(outer, line)
	g.children = append(g.children, inner)
	return b.grow(1, line)
}

func (b *book) grow(by, line int) error {
	if b.size += by; b.size > maxEntries {
		return fault(line, "more than %d hosts and groups in groups", maxEntries)
	}
	return nil
}

// set keeps a variable that is one of those that are kept.
func (g *group) set(name, text string, line int) {
	if name = keeps(name); name != "" {
		g.vars[name] = value{text, line}
	}
}

func fault(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

// Hosts are the hosts of a group, and of the groups in it, in the inventory's order. A host's name is a group of one.
func Hosts(text []byte, name string) ([]Host, error) {
	b, err := read(text)
	if err != nil {
		return nil, err
	}
	wanted, err := b.wanted(name)
	if err != nil {
		return nil, err
	}
	ranks, err := b.ranks()
	if err != nil {
		return nil, err
	}
	ofGroup, ofHost := b.parents()
	var list []Host
	for _, host := range b.order {
		if !wanted[host] {
			continue
		}
		h, err := b.host(host, around(host, ofGroup, ofHost), ranks)
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// read reads a text in the form that it has.
func read(text []byte) (*book, error) {
	if isYAML(text) {
		return readYAML(text)
	}
	return readINI(text)
}

// isYAML says whether an inventory is YAML: its first line that says something is a key, or begins a document.
func isYAML(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, after, is := strings.Cut(line, ":")
		return line == "---" || strings.HasPrefix(line, "{") || is && !strings.ContainsAny(key, " \t[=") && (after == "" || strings.HasPrefix(strings.TrimSpace(after), "#") || after[0] == ' ')
	}
	return false
}

// wanted are the hosts of a group.
func (b *book) wanted(name string) (map[string]bool, error) {
	wanted, seen := map[string]bool{}, map[string]bool{}
	if name == all {
		for _, host := range b.order {
			wanted[host] = true
		}
	}
	var walk func(string)
	walk = func(name string) {
		g := b.groups[name]
		if g == nil || seen[name] {
			return
		}
		seen[name] = true
		maps.Copy(wanted, g.hosts)
		for _, child := range g.children {
			walk(child)
		}
	}
	walk(name)
	switch {
	case b.hosts[name] != nil:
		wanted[name] = true
	case b.groups[name] == nil:
		return nil, fmt.Errorf("no group %s; there are %s", name, some(slices.Sorted(maps.Keys(b.groups))))
	case len(wanted) == 0:
		return nil, fmt.Errorf("no host is in the group %s", name)
	}
	return wanted, nil
}

// some are the first of a list of names.
func some(names []string) string {
	const most = 12
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ") + more
}

// ranks is by how many groups each group is below "all": what is deeper says more. A group in itself is refused.
func (b *book) ranks() (map[string]int, error) {
	ranks, open := map[string]int{}, map[string]bool{}
	var walk func(name string, rank int) error
	walk = func(name string, rank int) error {
		g := b.groups[name]
		if g == nil {
			return nil
		}
		if open[name] || rank > maxDepth {
			return fault(g.line, "the group %s is in itself, or in more than %d others", name, maxDepth)
		}
		if was, ok := ranks[name]; ok && was >= rank {
			return nil
		}
		open[name], ranks[name] = true, rank
		defer delete(open, name)
		for _, child := range g.children {
			if err := walk(child, rank+1); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.groups)) {
		if name == all {
			continue
		}
		if err := walk(name, 1); err != nil {
			return nil, err
		}
	}
	ranks[all] = 0
	return ranks, nil
}

// host is a host with what is said of it: by its groups from above, and by itself last.
func (b *book) host(name string, of []string, ranks map[string]int) (Host, error) {
	slices.SortStableFunc(of, func(a, c string) int { return ranks[a] - ranks[c] })
	said := vars{}
	for _, g := range of {
		maps.Copy(said, b.groups[g].vars)
	}
	maps.Copy(said, b.hosts[name].vars)
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if v := said[key]; strings.Contains(v.text, "{{") {
			return Host{}, fault(v.line, "%s of %s is a template, which Ansible alone can fill in: ansible-inventory --list --yaml --output FILE does, and FILE can be named here", key, name)
		}
	}
	h := Host{Name: name, Address: said[address].text, User: said[user].text, Port: said[port].text, Connection: said[connection].text, Line: b.hosts[name].line}
	if h.Address == "" {
		h.Address = name
	}
	return h, nil
}

// parents are the groups that each group, and each host, is in.
func (b *book) parents() (ofGroup, ofHost map[string][]string) {
	ofGroup, ofHost = map[string][]string{}, map[string][]string{}
	for name, g := range b.groups {
		for _, child := range g.children {
			ofGroup[child] = append(ofGroup[child], name)
		}
		for host := range g.hosts {
			ofHost[host] = append(ofHost[host], name)
		}
	}
	return ofGroup, ofHost
}

// around are the groups of a host, those around them and "all" included.
func around(host string, ofGroup, ofHost map[string][]string) []string {
	in, next := map[string]bool{all: true}, ofHost[host]
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if !in[name] {
			in[name] = true
			next = append(next, ofGroup[name]...)
		}
	}
	return slices.Sorted(maps.Keys(in))
}

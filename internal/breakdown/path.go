package breakdown

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// process is a group of processes that serves requests on some sockets.
type process struct {
	host, group string
	listens     []string // as in plimsoll_tcp_listen_queue{listen}: "0.0.0.0:80", "unix:/run/x.sock"
}

const (
	listenSignal      = "plimsoll_tcp_listen_queue_mean"
	destinationSignal = "plimsoll_tcp_destination_sockets"
	ownerSignal       = "plimsoll_tcp_destination_owner_info"
	poolSignal        = "plimsoll_phpfpm_pool_info"
)

// ports lists the TCP ports of a process, each once.
func (p process) ports() []string {
	var list []string
	for _, l := range p.listens {
		if _, port, err := net.SplitHostPort(l); err == nil && !strings.HasPrefix(l, "unix:") && !slices.Contains(list, port) {
			list = append(list, port)
		}
	}
	return list
}

// listeners returns every process that listens on an observed host. It is asked
// for each destination, so the answer is kept.
func (r *reader) listeners() []process {
	if r.listening != nil {
		return r.listening
	}
	list := []process{}
	for _, l := range r.series(listenSignal) {
		host, owner, listen := l.Labels.Get("host"), l.Labels.Get("owner"), l.Labels.Get("listen")
		i := slices.IndexFunc(list, func(p process) bool { return p.host == host && p.group == owner })
		if i < 0 {
			i = len(list)
			list = append(list, process{host: host, group: owner})
		}
		if !slices.Contains(list[i].listens, listen) {
			list[i].listens = append(list[i].listens, listen)
		}
	}
	r.listening = list
	return list
}

// front finds the process that the load's URL leads to; false when no observed
// host has one.
func (r *reader) front() (process, bool) {
	if path := r.meta.Plan.Load.UnixSocket; path != "" {
		return r.listensAt("unix:"+path, r.meta.Plan.Generator)
	}
	u, err := url.Parse(r.meta.Plan.Load.URL)
	if err != nil {
		return process{}, false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return r.listensAt(net.JoinHostPort(u.Hostname(), port), r.meta.Plan.Generator)
}

// listensAt finds who listens on an address as it is seen from a host: exactly
// on it, or on all addresses; of another host rather than of the same.
func (r *reader) listensAt(address, from string) (process, bool) {
	if strings.HasPrefix(address, "unix:") {
		return r.onSocketFile(address, from)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return process{}, false
	}
	ip, notIP := netip.ParseAddr(host)
	best, rank := process{}, 0
	for _, p := range r.listeners() {
		for _, l := range p.listens {
			at, lport, err := net.SplitHostPort(l)
			if err != nil || lport != port || strings.HasPrefix(l, "unix:") {
				continue
			}
			if n := closeness(at, ip, notIP == nil, p.host == from); n > rank {
				best, rank = p, n
				best.listens = only(p.listens, port)
			}
		}
	}
	return best, rank > 0
}

// onSocketFile finds who listens on a Unix socket of a host.
func (r *reader) onSocketFile(address, host string) (process, bool) {
	for _, p := range r.listeners() {
		if p.host == host && slices.Contains(p.listens, address) {
			p.listens = []string{address}
			return p, true
		}
	}
	return process{}, false
}

// closeness says how well a listener's address fits a destination: 0 not at all.
func closeness(at string, ip netip.Addr, isIP, same bool) int {
	a, err := netip.ParseAddr(at)
	if err != nil {
		return 0
	}
	loopback := isIP && ip.IsLoopback()
	switch {
	case loopback && !same, a.IsLoopback() && !same:
		return 0
	case isIP && a == ip:
		return 3
	case a.IsUnspecified() && (loopback || !same):
		return 2
	case a.IsUnspecified(), !isIP:
		return 1
	}
	return 0
}

// only keeps the listening addresses of one port.
func only(listens []string, port string) []string {
	var list []string
	for _, l := range listens {
		if strings.HasSuffix(l, ":"+port) {
			list = append(list, l)
		}
	}
	return list
}

// destinations are the addresses that a process goes to. Where its waits for
// them were traced they are its own; else they are all destinations of its
// host for which no other process's waits were, and whose sockets are not known
// to be another's.
func (r *reader) destinations(p process) []string {
	var own, others, all []string
	for _, l := range r.series(blockedSignal, "host", p.host) {
		to := l.Labels.Get("towards")
		if to == "" || to == "other" || strings.HasPrefix(to, "clients@") || l.Increase(r.from, r.to) <= 0 {
			continue
		}
		if l.Labels.Get("groupname") == p.group {
			own = append(own, to)
		} else {
			others = append(others, to)
		}
	}
	owners := r.owners(p.host)
	for _, l := range r.series(destinationSignal, "host", p.host) {
		dst := l.Labels.Get("dst")
		owned := len(owners[dst]) == 0 || slices.Contains(owners[dst], p.group)
		if owned && l.Mean(r.from, r.to) > 0 && !slices.Contains(others, dst) {
			all = append(all, dst)
		}
	}
	if len(own) > 0 {
		all = own
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// owners are the processes whose sockets go from a host to a destination, where
// they were looked for.
func (r *reader) owners(host string) map[string][]string {
	list := map[string][]string{}
	for _, l := range r.series(ownerSignal, "host", host) {
		dst := l.Labels.Get("dst")
		list[dst] = append(list[dst], l.Labels.Get("owner"))
	}
	return list
}

// target is a destination of a process, and who listens there.
type target struct {
	dst string
	process
}

// targets are the destinations of a process that lie on an observed host.
func (r *reader) targets(p process) []target {
	var list []target
	for _, dst := range r.destinations(p) {
		if u, ok := r.listensAt(dst, p.host); ok {
			list = append(list, target{dst, u})
		}
	}
	return list
}

// upstreams are the observed processes that p passes requests on to. Each is one
// process's upstream, the nearest one's to the load: what it did cannot be told
// apart by who asked for it, and would else count more than once.
func (s *serving) upstreams(p process, targets []target) []process {
	var list []process
	add := func(u process) {
		known := slices.ContainsFunc(s.placed, func(k process) bool { return k.host == u.host && k.group == u.group })
		if !known && u.group != unknownOwner {
			list, s.placed = append(list, u), append(s.placed, u)
		}
	}
	for _, t := range targets {
		add(t.process)
	}
	// Nobody counts the sockets towards a Unix socket; a pool that is set up on one is there to be used.
	for _, l := range s.series(poolSignal, "host", p.host) {
		if listen := l.Labels.Get("listen"); strings.HasPrefix(listen, "unix:") {
			add(process{host: p.host, group: l.Labels.Get("owner"), listens: []string{listen}})
		}
	}
	return list
}

// unknownOwner is what a listener is labelled with whose process was not found.
const unknownOwner = "unknown"

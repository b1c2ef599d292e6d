// Package memcached asks memcached servers for their own counts (stats). They are found by their
// processes, and asked where these listen themselves. Nothing but stats is sent, and no password.
package memcached

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/asker"
)

// maxAnswer and maxLines bound an answer; memcached 1.6 writes 4 KiB in 180 lines, and 1.2 KiB in 40 for each
// slab class that it has, of which there are 63 at most.
const (
	maxAnswer = 256 << 10
	maxLines  = 8000
	maxSlabs  = 63
)

// sections are what is asked for, in this order; each answer ends with END.
var sections = []string{"stats", "stats slabs", "stats items", "stats settings"}

// All lists the package's probes.
func All() []probe.Probe {
	kind := &asker.Kind[*answer]{
		Name:      "memcached",
		Processes: []string{"memcached"},
		Question:  strings.Join(sections, "\r\n") + "\r\n",
		Most:      maxAnswer,
		Read:      read,
		New:       func() func(*probe.Out, string, *answer) { return put },
		Signals:   signals(),
		Up:        up,
		Full:      full,
	}
	return []probe.Probe{{
		Name:    "memcached",
		Scope:   probe.PerHost,
		Signals: kind.Signals,
		Cost:    "one question a second: 0.02 ms of memcached's CPU and less than 0.1 ms of ours (memcached 1.6)",
		Blind: []string{
			"it takes one of the server's connections for as long as it watches",
			"a server that wants a password (SASL, -Y), speaks TLS or the binary protocol alone is not asked",
		},
		Open: kind.Open,
	}}
}

// answer is what it says: values of stats by name, what it holds of each slab class, and whether memory may move between these.
type answer struct {
	values  map[string]float64
	slabs   map[string]*slab
	moves   float64 // slab_automove, 0 where slab_reassign is off
	settled bool    // moves is known
}

// slab is a slab class: the memory for items of one size.
type slab struct{ chunk, chunks, hits, evicted float64 }

// read reads the sections' answers. Only the first one has to be there: a server may not know the others.
func read(r *bufio.Reader) (*answer, error) {
	a := &answer{values: map[string]float64{}, slabs: map[string]*slab{}}
	left := maxLines
	for i, section := range sections {
		said := 0
		for {
			line, err := r.ReadString('\n')
			line = strings.TrimRight(line, "\r\n")
			if err != nil && line == "" {
				return nil, fmt.Errorf("read the answer to %s: %w", section, err)
			}
			if line == "END" && (i > 0 || said > 0) || i > 0 && line == "ERROR" {
				break
			}
			if left--; left == 0 {
				return nil, fmt.Errorf("it answered with more than %d lines", maxLines)
			}
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != "STAT" {
				return nil, refusal(line)
			}
			if err := a.take(section, f[1], f[len(f)-1]); err != nil {
				return nil, err
			}
			said++
		}
	}
	return a, nil
}

// take keeps a line's value, if it is one that is wanted.
func (a *answer) take(section, name, value string) error {
	var to *float64
	switch section {
	case "stats":
		if !wanted[name] {
			return nil
		}
		to = new(float64)
	case "stats settings":
		a.set(name, value)
		return nil
	default:
		if to = a.ofSlab(strings.TrimPrefix(name, "items:")); to == nil {
			return nil
		}
	}
	v, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("it answered %.60q for %.60q, want a number", value, name)
	}
	if *to = float64(v); section == "stats" {
		a.values[name] = *to
	}
	return nil
}

// set keeps what the settings say of moving memory: it needs both that it may be moved and that somebody does.
func (a *answer) set(name, value string) {
	switch {
	case name == "slab_reassign" && value == "no":
		a.moves, a.settled = 0, true
	case name == "slab_automove" && !a.settled:
		v, err := strconv.ParseUint(value, 10, 8)
		a.moves, a.settled = float64(v), err == nil
	}
}

// ofSlab is where a value CLASS:NAME of stats slabs or stats items is kept, nil if it is none that is wanted.
func (a *answer) ofSlab(name string) *float64 {
	class, field, ok := strings.Cut(name, ":")
	if n, err := strconv.ParseUint(class, 10, 8); !ok || err != nil || n > maxSlabs || strconv.FormatUint(n, 10) != class {
		return nil
	}
	s := a.slabs[class]
	if s == nil {
		s = &slab{}
		a.slabs[class] = s
	}
	switch field {
	case "chunk_size":
		return &s.chunk
	case "total_chunks":
		return &s.chunks
	case "get_hits":
		return &s.hits
	case "evicted":
		return &s.evicted
	}
	return nil
}

// refusal makes an error of a line that is none of stats.
func refusal(line string) error {
	said := layout.Line(line[:min(len(line), 200)])
	switch {
	case strings.Contains(line, "Too many open connections"):
		return fmt.Errorf("%w (it says: %s)", asker.ErrFull, said)
	case strings.Contains(line, "unauthenticated"):
		return fmt.Errorf("it wants a password even to be asked for stats, and Plimsoll has none (it says: %s): %w", said, fs.ErrPermission)
	}
	return errors.New("it answered " + strconv.Quote(said) + ", want lines of STAT")
}

func put(out *probe.Out, listen string, a *answer) {
	if _, ok := a.values["store_too_large"]; !ok {
		out.Mark(tooLarge, host.Absent("a memcached before 1.6 does not count what was too large for it"))
	}
	for field, expired := range map[string]*model.Signal{"get_expired": getsExpired, "expired_unfetched": expiredUnfetched} {
		if _, ok := a.values[field]; !ok {
			out.Mark(expired, host.Absent("this memcached does not count "+field))
		}
	}
	for _, n := range numbers {
		if v, ok := a.values[n.field]; ok {
			out.Put(n.signal, v, append([]string{listen}, n.labels...)...)
		}
	}
	for class, s := range a.slabs {
		out.Put(slabBytes, s.chunk*s.chunks, listen, class)
		out.Put(slabEvicted, s.evicted, listen, class)
		out.Put(slabCommands, s.hits, listen, class, "get", "hit")
	}
	if !a.settled {
		out.Mark(slabMoves, host.Absent("this memcached does not say whether it moves memory between slab classes"))
		return
	}
	out.Put(slabMoves, a.moves, listen)
}

func signal(kind model.Kind, name, unit, help string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: append([]string{"listen"}, labels...),
		Source: "memcached, asked for stats where it listens itself", ByHand: "echo stats | nc -q 1 127.0.0.1 11211"}
}

// bySlab says that a signal is read from another section than stats itself.
func bySlab(s *model.Signal, section string) *model.Signal {
	s.ByHand = "echo stats " + section + " | nc -q 1 127.0.0.1 11211"
	return s
}

// Named as memcached_exporter (prometheus) names them, where it has them. The label listen is the server's first
// address of TCP, else its Unix socket.
var (
	up   = signal(model.Gauge, "memcached_up", "ratio", "1 when the server answered, 0 when it did not.")
	full = signal(model.Gauge, "plimsoll_memcached_full", "ratio", "1 when the server sent even us away, since it had as many connections as it takes; 0 when it let us in.")

	tooLarge = signal(model.Counter, "plimsoll_memcached_items_too_large_total", "items", "Items that it did not take, since they are larger than it takes (-I; since 1.6).")

	// An item that has expired is found so by who asks for it, or by memcached itself when it wants the memory.
	getsExpired      = signal(model.Counter, "plimsoll_memcached_gets_expired_total", "commands", "Lookups that found an item whose time to live was over; it is gone then. They are misses, too.")
	expiredUnfetched = signal(model.Counter, "plimsoll_memcached_items_expired_unfetched_total", "items", "Items whose time to live was over when memcached cleared them away, and which nobody had found before.")

	// Memory belongs to slab classes, one for each size of items, a page of a megabyte at a time.
	slabBytes    = bySlab(signal(model.Gauge, "plimsoll_memcached_slab_bytes", "bytes", "Memory that a slab class has, whether items are in it or not; a class is for items up to one size.", "slab"), "slabs")
	slabEvicted  = bySlab(signal(model.Counter, "memcached_slab_items_evicted_total", "items", "Items of a slab class that were thrown out before their time, for want of memory of that class.", "slab"), "items")
	slabCommands = bySlab(signal(model.Counter, "memcached_slab_commands_total", "commands", "Commands by slab class, name and what became of them; lookups that found something alone.", "slab", "command", "status"), "slabs")
	slabMoves    = bySlab(signal(model.Gauge, "plimsoll_memcached_slab_automove", "mode", "1 or 2 when it moves memory from one slab class to another by itself, as it sees fit or whenever it throws something out; 0 when it does not (slab_automove=0, or no_slab_reassign)."), "settings")

	commands = signal(model.Counter, "memcached_commands_total", "commands", "Commands by name and by what became of them.", "command", "status")
)

// numbers are the values that are read.
var numbers = []struct {
	field  string
	signal *model.Signal
	labels []string
}{
	{"get_hits", commands, []string{"get", "hit"}},
	{"get_misses", commands, []string{"get", "miss"}},
	{"cmd_set", commands, []string{"set", "hit"}},
	{"delete_hits", commands, []string{"delete", "hit"}},
	{"cmd_flush", commands, []string{"flush", "hit"}},
	{"curr_connections", signal(model.Gauge, "memcached_current_connections", "connections", "Connections that are open, ours among them."), nil},
	{"max_connections", signal(model.Gauge, "memcached_max_connections", "connections", "The most connections that it takes (-c)."), nil},
	{"total_connections", signal(model.Counter, "memcached_connections_total", "connections", "Connections that it took."), nil},
	{"rejected_connections", signal(model.Counter, "memcached_connections_rejected_total", "connections", "Connections that it closed at once, since it had as many as it takes."), nil},
	{"listen_disabled_num", signal(model.Counter, "memcached_connections_listener_disabled_total", "times", "How often it took no more connections for a while, since it had as many as it takes."), nil},
	{"conn_yields", signal(model.Counter, "memcached_connections_yielded_total", "times", "How often a connection with many commands had to let others pass (-R)."), nil},
	{"bytes", signal(model.Gauge, "memcached_current_bytes", "bytes", "Bytes of the items that it has."), nil},
	{"limit_maxbytes", signal(model.Gauge, "memcached_limit_bytes", "bytes", "The most that it may store (-m)."), nil},
	{"curr_items", signal(model.Gauge, "memcached_current_items", "items", "Items that it has."), nil},
	{"evictions", signal(model.Counter, "memcached_items_evicted_total", "items", "Items that were thrown out before their time, for want of memory."), nil},
	{"store_too_large", tooLarge, nil},
	{"get_expired", getsExpired, nil},
	{"expired_unfetched", expiredUnfetched, nil},
	{"evicted_active", signal(model.Counter, "plimsoll_memcached_items_evicted_active_total", "items", "Of these, those that had been asked for more than once of late."), nil},
}

var wanted = func() map[string]bool {
	is := map[string]bool{}
	for _, n := range numbers {
		is[n.field] = true
	}
	return is
}()

func signals() []*model.Signal {
	all := []*model.Signal{up, full, commands, slabBytes, slabEvicted, slabCommands, slabMoves}
	for _, n := range numbers {
		if n.signal != commands {
			all = append(all, n.signal)
		}
	}
	return all
}

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

// maxAnswer and maxLines bound an answer; memcached 1.6 writes 2 KiB in 90 lines.
const (
	maxAnswer = 64 << 10
	maxLines  = 1000
)

// All lists the package's probes.
func All() []probe.Probe {
	kind := &asker.Kind[answer]{
		Name:      "memcached",
		Processes: []string{"memcached"},
		Question:  "stats\r\n",
		Most:      maxAnswer,
		Read:      read,
		New:       func() func(*probe.Out, string, answer) { return put },
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
			"which sizes of items are thrown out (stats slabs, stats items) is not asked",
		},
		Open: kind.Open,
	}}
}

// answer is what stats says, by name.
type answer map[string]float64

// read reads lines of STAT NAME VALUE, up to END.
func read(r *bufio.Reader) (answer, error) {
	a := answer{}
	for range maxLines {
		line, err := r.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if err != nil && line == "" {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		if line == "END" && len(a) > 0 {
			return a, nil
		}
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "STAT" {
			return nil, refusal(line)
		}
		if !wanted[f[1]] {
			continue
		}
		v, err := strconv.ParseUint(f[len(f)-1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("it answered %.60q, want a number", line)
		}
		a[f[1]] = float64(v)
	}
	return nil, fmt.Errorf("it answered with more than %d lines", maxLines)
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

func put(out *probe.Out, listen string, a answer) {
	if _, ok := a["store_too_large"]; !ok {
		out.Mark(tooLarge, host.Absent("a memcached before 1.6 does not count what was too large for it"))
	}
	for _, n := range numbers {
		if v, ok := a[n.field]; ok {
			out.Put(n.signal, v, append([]string{listen}, n.labels...)...)
		}
	}
}

func signal(kind model.Kind, name, unit, help string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: append([]string{"listen"}, labels...),
		Source: "memcached, asked for stats where it listens itself", ByHand: "echo stats | nc -q 1 127.0.0.1 11211"}
}

// Named as memcached_exporter (prometheus) names them, where it has them. The label listen is the server's first
// address of TCP, else its Unix socket.
var (
	up   = signal(model.Gauge, "memcached_up", "ratio", "1 when the server answered, 0 when it did not.")
	full = signal(model.Gauge, "plimsoll_memcached_full", "ratio", "1 when the server sent even us away, since it had as many connections as it takes; 0 when it let us in.")

	tooLarge = signal(model.Counter, "plimsoll_memcached_items_too_large_total", "items", "Items that it did not take, since they are larger than it takes (-I; since 1.6).")

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
	all := []*model.Signal{up, full, commands}
	for _, n := range numbers {
		if n.signal != commands {
			all = append(all, n.signal)
		}
	}
	return all
}

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// netstatFile is one of the two files with lines of names and lines of numbers.
type netstatFile struct {
	path   string
	groups map[string]bool // those that are taken; a file's others are left out
}

var netstatFiles = []netstatFile{
	{"proc/net/snmp", map[string]bool{"Ip": true, "Icmp": true, "Tcp": true, "Udp": true}},
	{"proc/net/netstat", map[string]bool{"TcpExt": true, "IpExt": true}},
}

// Netstat reads the counters of IP, ICMP, TCP and UDP of a network namespace.
func Netstat() probe.Probe {
	p := probe.Probe{Name: "netstat", Cost: costNetstat,
		Blind: []string{
			"IPv6 packets are not in Ip and IpExt; TCP counts both",
			"resets made by a firewall are not in Tcp OutRsts",
			"a closed loop hides SYNs that were never answered unless the client's own counters are read"}}
	return fromFiles(p, func() []source {
		var sources []source
		for _, f := range netstatFiles {
			t := &netstatTable{file: f, declared: declaredNetstat(f)}
			sources = append(sources, source{path: f.path, hint: "this kernel has no network", signals: t.declared, put: t.put})
		}
		return sources
	})
}

// netstatSignals are the declared fields by name; they are made once, so that
// every host has the same ones.
var netstatSignals = sync.OnceValue(func() map[string]*model.Signal {
	m := map[string]*model.Signal{}
	for _, f := range netstatFields {
		m[f.name] = f.signal()
	}
	return m
})

func declaredNetstat(file netstatFile) []*model.Signal {
	var list []*model.Signal
	for _, f := range netstatFields {
		if group, _, _ := strings.Cut(f.name, "_"); file.groups[group] {
			list = append(list, netstatSignals()[f.name])
		}
	}
	return list
}

func (f netstatField) signal() *model.Signal {
	group, _, _ := strings.Cut(f.name, "_")
	source := "/proc/net/snmp"
	if strings.HasSuffix(group, "Ext") {
		source = "/proc/net/netstat"
	}
	kind := model.Counter
	if f.gauge {
		kind = model.Gauge
	}
	return &model.Signal{Name: "node_netstat_" + f.name, Kind: kind, Unit: f.unit, Help: f.help,
		Source: source, ByHand: "nstat -asz " + strings.Replace(f.name, "_", "", 1)}
}

// netstatTable records one of the files. Its header hardly ever changes, so
// the way from column to signal is worked out once.
type netstatTable struct {
	file     netstatFile
	declared []*model.Signal
	unknown  map[string]*model.Signal // fields newer than netstatFields

	header  []byte // the name lines that columns was made for
	columns [][]*model.Signal
	missing []*model.Signal
}

func (t *netstatTable) put(b []byte, out *probe.Out) error {
	rows, err := parseNetstat(b)
	if err != nil {
		return err
	}
	t.plan(rows)
	for i, r := range rows {
		for j, sig := range t.columns[i] {
			if sig == nil {
				continue
			}
			var f []byte
			f, r.values = nextField(r.values)
			v, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				// MaxConn may be -1, and IpExt's octets reach beyond 2^63.
				u, uerr := parseUint(f)
				if uerr != nil {
					return fmt.Errorf("%s, value %d of %d: %w", r.group, j+1, len(t.columns[i]), err)
				}
				out.Put(sig, float64(u))
				continue
			}
			out.Put(sig, float64(v))
		}
	}
	for _, sig := range t.missing {
		out.Mark(sig, errNoCounter("/"+t.file.path))
	}
	for _, sig := range t.unknown {
		out.Mark(sig, nil)
	}
	return nil
}

// plan maps columns to signals, unless it did so for the same header before.
func (t *netstatTable) plan(rows []netstatRow) {
	var header []byte
	for _, r := range rows {
		header = append(append(append(header, r.group...), r.names...), '\n')
	}
	if bytes.Equal(header, t.header) {
		return
	}
	t.header, t.columns, t.missing = header, nil, nil
	if t.unknown == nil {
		t.unknown = map[string]*model.Signal{}
	}
	found := map[*model.Signal]bool{}
	for _, r := range rows {
		var columns []*model.Signal
		if t.file.groups[r.group] {
			for _, name := range strings.Fields(string(r.names)) {
				sig := t.signal(r.group + "_" + name)
				found[sig] = true
				columns = append(columns, sig)
			}
		}
		t.columns = append(t.columns, columns)
	}
	for _, sig := range t.declared {
		if !found[sig] {
			t.missing = append(t.missing, sig)
		}
	}
}

// signal is the declared signal of that name, or one made for a field that is
// newer than the table.
func (t *netstatTable) signal(name string) *model.Signal {
	if sig := netstatSignals()[name]; sig != nil {
		return sig
	}
	if sig := t.unknown[name]; sig != nil {
		return sig
	}
	f := netstatField{name: name, unit: "events", help: "A counter of this kernel that Plimsoll has no words for yet."}
	t.unknown[name] = f.signal()
	return t.unknown[name]
}

// netstatRow is a line of names and the line of as many values after it.
type netstatRow struct {
	group         string
	names, values []byte
}

// parseNetstat parses pairs of lines, "Tcp: RtoMin …" and "Tcp: 200 …". Every
// row has as many values as names.
func parseNetstat(b []byte) ([]netstatRow, error) {
	var rows []netstatRow
	for len(b) > 0 {
		var names, values []byte
		names, b, _ = bytes.Cut(b, []byte("\n"))
		values, b, _ = bytes.Cut(b, []byte("\n"))
		group, names, ok := bytes.Cut(names, []byte(":"))
		group2, values, ok2 := bytes.Cut(values, []byte(":"))
		if !ok || !ok2 || !bytes.Equal(group, group2) {
			return nil, fmt.Errorf("lines %d and %d: want the names and the values of one group, got %q and %q",
				2*len(rows)+1, 2*len(rows)+2, group, group2)
		}
		if n, v := countFields(names), countFields(values); n != v {
			return nil, fmt.Errorf("%s: %d names but %d values", group, n, v)
		}
		rows = append(rows, netstatRow{string(group), names, values})
	}
	if len(rows) == 0 {
		return nil, errors.New("want pairs of lines, got nothing")
	}
	return rows, nil
}

func countFields(b []byte) int {
	n := 0
	for {
		var f []byte
		if f, b = nextField(b); len(f) == 0 {
			return n
		}
		n++
	}
}

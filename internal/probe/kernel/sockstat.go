package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	perNamespace  = ""
	machineSocket = " The machine's, not the namespace's."
)

// sockstatSignals are the fields of both files by "GROUP_field".
var sockstatSignals, sockstat6Signals = sockstatTable([][4]string{
	{"sockets_used", "sockets", "Sockets of all kinds in use.", perNamespace},
	{"TCP_inuse", "sockets", "TCP sockets over IPv4 in any state but TIME_WAIT and half-open.", perNamespace},
	{"TCP_orphan", "sockets", "TCP sockets that no program holds any more.", machineSocket},
	{"TCP_tw", "sockets", "TCP sockets in TIME_WAIT.", perNamespace},
	{"TCP_alloc", "sockets", "TCP sockets that exist in any state.", machineSocket},
	{"TCP_mem", "pages", "Memory of TCP's buffers, in pages (net.ipv4.tcp_mem limits it).", machineSocket},
	{"UDP_inuse", "sockets", "UDP sockets over IPv4.", perNamespace},
	{"UDP_mem", "pages", "Memory of UDP's buffers, in pages.", machineSocket},
	{"UDPLITE_inuse", "sockets", "UDP-Lite sockets over IPv4.", perNamespace},
	{"RAW_inuse", "sockets", "Raw sockets over IPv4.", perNamespace},
	{"FRAG_inuse", "packets", "IPv4 packets of which fragments are still awaited.", perNamespace},
	{"FRAG_memory", "bytes", "Memory of those fragments.", perNamespace},
}), sockstatTable([][4]string{
	{"TCP6_inuse", "sockets", "TCP sockets over IPv6 in any state but TIME_WAIT and half-open.", perNamespace},
	{"UDP6_inuse", "sockets", "UDP sockets over IPv6.", perNamespace},
	{"UDPLITE6_inuse", "sockets", "UDP-Lite sockets over IPv6.", perNamespace},
	{"RAW6_inuse", "sockets", "Raw sockets over IPv6.", perNamespace},
	{"FRAG6_inuse", "packets", "IPv6 packets of which fragments are still awaited.", perNamespace},
	{"FRAG6_memory", "bytes", "Memory of those fragments.", perNamespace},
})

// The same memory in bytes, as node_exporter has it.
var (
	tcpMemBytes = sockstatSignal("TCP_mem_bytes", "bytes", "Memory of TCP's buffers. The machine's, not the namespace's.")
	udpMemBytes = sockstatSignal("UDP_mem_bytes", "bytes", "Memory of UDP's buffers. The machine's, not the namespace's.")
)

func sockstatTable(rows [][4]string) map[string]*model.Signal {
	m := map[string]*model.Signal{}
	for _, r := range rows {
		m[r[0]] = sockstatSignal(r[0], r[1], r[2]+r[3])
	}
	return m
}

func sockstatSignal(name, unit, help string) *model.Signal {
	return &model.Signal{Name: "node_sockstat_" + name, Kind: model.Gauge, Unit: unit, Help: help,
		Source: "/proc/net/sockstat, /proc/net/sockstat6", ByHand: "ss -s"}
}

// Sockstat reads /proc/net/sockstat and sockstat6.
func Sockstat() probe.Probe {
	p := probe.Probe{Name: "sockstat", Cost: costSockstat,
		Blind: []string{"orphans, allocated sockets and memory are counted for the whole machine even in a namespace"}}
	return fromFiles(p, func() []source {
		return []source{
			{path: "proc/net/sockstat", hint: "this kernel has no network",
				signals: append(values(sockstatSignals), tcpMemBytes, udpMemBytes), put: putSockstat},
			{path: "proc/net/sockstat6", hint: "this kernel has no IPv6",
				signals: values(sockstat6Signals), put: putSockstat6},
		}
	})
}

func putSockstat(b []byte, out *probe.Out) error {
	fields, err := putSockstatFields(b, sockstatSignals, "/proc/net/sockstat", out)
	if err != nil {
		return err
	}
	for name, sig := range map[string]*model.Signal{"TCP_mem": tcpMemBytes, "UDP_mem": udpMemBytes} {
		if pages, ok := fields[name]; ok {
			out.Put(sig, float64(pages)*float64(os.Getpagesize()))
		} else {
			out.Mark(sig, errNoField("/proc/net/sockstat", name))
		}
	}
	return nil
}

func putSockstat6(b []byte, out *probe.Out) error {
	_, err := putSockstatFields(b, sockstat6Signals, "/proc/net/sockstat6", out)
	return err
}

func putSockstatFields(b []byte, signals map[string]*model.Signal, file string, out *probe.Out) (map[string]uint64, error) {
	fields, err := parseSockstat(b)
	if err != nil {
		return nil, err
	}
	putTable(signals, fields, file, out)
	return fields, nil
}

// parseSockstat parses lines like "TCP: inuse 1 orphan 0" to "TCP_inuse" → 1.
func parseSockstat(b []byte) (map[string]uint64, error) {
	fields := map[string]uint64{}
	for line := range bytes.Lines(b) {
		group, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return nil, fmt.Errorf("want GROUP: name value …, got %q", line)
		}
		pairs := bytes.Fields(rest)
		if len(pairs)%2 != 0 {
			return nil, fmt.Errorf("%s: want pairs of name and value, got %q", group, rest)
		}
		for i := 0; i < len(pairs); i += 2 {
			v, err := parseUint(pairs[i+1])
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", group, pairs[i], err)
			}
			fields[string(group)+"_"+string(pairs[i])] = v
		}
	}
	if len(fields) == 0 {
		return nil, errors.New("want lines like TCP: inuse 1, got nothing")
	}
	return fields, nil
}

package kernel

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// maxUDPPorts bounds the ports that are told, those with most in their buffers first.
const maxUDPPorts = 32

// udpShare is the share of one CPU that reading may take: each socket is a line, and anybody may have hundreds of thousands.
const udpShare = 0.01

var udpUnread = &model.Signal{
	Name: "plimsoll_udp_unread_bytes", Kind: model.Gauge, Unit: "bytes",
	Help: "What datagrams that wait in the UDP sockets of a port to be read take of their receive buffers. Ports at which none waits are left out. " +
		"Where it is the same to the byte at each reading, nobody reads there.",
	Labels: []string{"port"}, Source: "/proc/net/udp, /proc/net/udp6", ByHand: "ss -ulnpm  # Recv-Q",
}

// UDP reads /proc/net/udp and udp6.
func UDP() probe.Probe {
	p := probe.Probe{Name: "udp", Every: 2 * time.Second, Cost: costUDP,
		Blind: []string{"several sockets of one port (multicast, SO_REUSEPORT) are told as one", fmt.Sprintf("of more than %d ports at which datagrams wait, those with fewer bytes are not told", maxUDPPorts),
			"where reading takes longer than 20 ms, as with tens of thousands of sockets, the time between two readings is a hundred times as long"}}
	p = fromFiles(p, func() []source {
		queued := map[uint16]uint64{} // of both files
		add := func(b []byte, _ *probe.Out) error { return addUDP(b, queued) }
		return []source{
			{path: "proc/net/udp6", hint: "this kernel has no network", put: add}, // without signals: where IPv6 is not there, the other file tells all,
			{path: "proc/net/udp", hint: "this kernel has no network", signals: []*model.Signal{udpUnread}, put: func(b []byte, out *probe.Out) error {
				defer clear(queued)
				if err := addUDP(b, queued); err != nil {
					return err
				}
				for _, port := range fullestPorts(queued) {
					out.Put(udpUnread, float64(queued[port]), strconv.Itoa(int(port)))
				}
				return nil
			}},
		}
	})
	open := p.Open
	p.Open = func(h *host.Host) (probe.Reader, error) {
		r, err := open(h)
		return &udp{Reader: r}, err
	}
	return p
}

// udp reads less often where reading takes long.
type udp struct {
	probe.Reader
	next time.Time
}

func (r *udp) Read(out *probe.Out) error {
	if out.Now().Before(r.next) && !out.Forced() {
		out.Keep(udpUnread)
		return nil
	}
	began := time.Now()
	err := r.Reader.Read(out)
	r.next = out.Now().Add(time.Duration(float64(time.Since(began)) / udpShare))
	return err
}

// fullestPorts are the ports that are told.
func fullestPorts(queued map[uint16]uint64) []uint16 {
	ports := slices.SortedFunc(maps.Keys(queued), func(a, b uint16) int { return cmp.Or(cmp.Compare(queued[b], queued[a]), cmp.Compare(a, b)) })
	return ports[:min(len(ports), maxUDPPorts)]
}

// addUDP adds what waits in the sockets that the file lists, by local port:
//
//	sl  local_address rem_address   st tx_queue:rx_queue …
//	23: 00000000:076C 00000000:0000 07 00000000:00034800 …
func addUDP(b []byte, queued map[uint16]uint64) error {
	title, rows, _ := bytes.Cut(b, []byte("\n"))
	if !bytes.Contains(title, []byte("local_address")) {
		return errors.New("want a line of titles with local_address")
	}
	for line := range bytes.Lines(rows) {
		fields := bytes.Fields(line)
		if len(fields) < 5 {
			return fmt.Errorf("want five fields or more, got %q", line)
		}
		port, err := hexBehindColon(fields[1], 16)
		if err != nil {
			return fmt.Errorf("local address: %w", err)
		}
		n, err := hexBehindColon(fields[4], 32)
		if err != nil {
			return fmt.Errorf("rx_queue: %w", err)
		}
		if n > 0 {
			queued[uint16(port)] += n
		}
	}
	return nil
}

func hexBehindColon(b []byte, bits int) (uint64, error) {
	_, number, ok := bytes.Cut(b, []byte(":"))
	if !ok {
		return 0, fmt.Errorf("want two hexadecimal numbers with a colon between, got %q", b)
	}
	return strconv.ParseUint(string(number), 16, bits)
}

package sockets

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/host/unixdiag"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/pace"
)

const (
	// datagramShare is the part of one core that listing Unix datagram sockets may use.
	datagramShare = 0.001
	// maxDatagrams bounds those that are told.
	maxDatagrams = 64
	// tcpClose is the state of a datagram socket that has connected to nobody.
	tcpClose = 7
)

// datagrams knows who reads from the Unix datagram sockets that have a name.
type datagrams struct {
	host    *host.Host
	request []byte
	owners  *owners
	pace    pace.Pace
	named   map[uint32]string // by inode, as the label towards
}

func newDatagrams(h *host.Host, without map[int]uint64) datagrams {
	return datagrams{host: h, request: unixdiag.Request(1<<tcpClose, unixdiag.ShowName), owners: newOwners(h, searchShare, without), pace: pace.Pace{Share: datagramShare}, named: map[uint32]string{}}
}

// report tells how many datagrams each has room for, at the pace that their number allows.
func (d *datagrams) report(out *probe.Out, conn *netlink.Conn) error {
	if !d.pace.Due(out.Now(), out.Forced()) {
		out.Keep(datagramPlaces)
		return nil
	}
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	start := pace.CPUTime()
	err := d.list(conn, out.Now())
	d.pace.Took(pace.CPUTime()-start, out.Rhythm())
	if err != nil {
		return err
	}
	places, err := readNumber(d.host.Path("proc/sys/net/unix/max_dgram_qlen"))
	if err != nil {
		return err
	}
	for inode, towards := range d.named {
		if comm := d.owners.comm(inode); comm != "" {
			out.Put(datagramPlaces, float64(places), towards, strings.ToValidUTF8(comm, "\uFFFD"))
		}
	}
	return nil
}

// list finds the sockets and who has them.
func (d *datagrams) list(conn *netlink.Conn, now time.Time) error {
	clear(d.named)
	var s unixdiag.Sock
	err := conn.Dump(sockDiagByFamily, d.request, readTimeout, func(b []byte) error {
		if err := s.Parse(b); err != nil {
			return err
		}
		if s.Kind == unix.SOCK_DGRAM && len(s.Name) > 0 && len(d.named) < maxDatagrams {
			d.named[s.Inode] = unixdiag.Label(s.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.owners.find(slices.Collect(maps.Keys(d.named)), now)
}

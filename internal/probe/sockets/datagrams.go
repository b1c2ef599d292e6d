package sockets

import (
	"fmt"
	"runtime"
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
	named   named
}

// named are sockets with a name. Those that are files come first: of the others many are of clients, named by the kernel.
type named struct {
	files, others []place
	more          bool // there are more than are told
}

type place struct {
	inode   uint32
	towards string // the label
}

func (n *named) add(inode uint32, name []byte) {
	list := &n.files
	if name[0] == 0 {
		list = &n.others
	}
	if len(*list) < maxDatagrams {
		*list = append(*list, place{inode, unixdiag.Label(name)})
	} else {
		n.more = true
	}
}

// told are as many as are told.
func (n *named) told() []place {
	all := append(n.files, n.others...)
	n.more = n.more || len(all) > maxDatagrams
	return all[:min(len(all), maxDatagrams)]
}

func newDatagrams(h *host.Host, without map[int]uint64) datagrams {
	return datagrams{host: h, request: unixdiag.Request(1<<tcpClose, unixdiag.ShowName), owners: newOwners(h, searchShare, without), pace: pace.Pace{Share: datagramShare}}
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
	told, err := d.list(conn, out.Now())
	d.pace.Took(pace.CPUTime()-start, out.Rhythm())
	if err != nil {
		return err
	}
	places, err := readNumber(d.host.Path("proc/sys/net/unix/max_dgram_qlen"))
	if err != nil {
		return err
	}
	hidden := false
	for _, p := range told {
		if comm := d.owners.comm(p.inode); comm != "" {
			out.Put(datagramPlaces, float64(places), p.towards, strings.ToValidUTF8(comm, "\uFFFD"))
		} else {
			hidden = hidden || d.owners.refused && d.owners.settled(p.inode)
		}
	}
	d.note(out, hidden)
	return nil
}

// note says what is missing.
func (d *datagrams) note(out *probe.Out, hidden bool) {
	if hidden {
		out.Note(fmt.Sprintf("host %s: not all Unix datagram sockets are told, since some processes may not be looked into for who reads from them; run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", d.host.Name))
	}
	if d.named.more {
		out.Note(fmt.Sprintf("host %s: of more than %d Unix datagram sockets with a name so many are told, those that are files first", d.host.Name, maxDatagrams))
	}
}

// list finds the sockets and who has them.
func (d *datagrams) list(conn *netlink.Conn, now time.Time) ([]place, error) {
	d.named = named{}
	var s unixdiag.Sock
	err := conn.Dump(sockDiagByFamily, d.request, readTimeout, func(b []byte) error {
		if err := s.Parse(b); err != nil {
			return err
		}
		if s.Kind == unix.SOCK_DGRAM && len(s.Name) > 0 {
			d.named.add(s.Inode, s.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	told := d.named.told()
	var inodes []uint32
	for _, p := range told {
		inodes = append(inodes, p.inode)
	}
	return told, d.owners.find(inodes, now)
}

// Package unixdiag asks the kernel for Unix sockets (sock_diag(7)).
package unixdiag

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/netlink"
)

// What a unix_diag request asks for and the attributes that answer it,
// linux/unix_diag.h.
const (
	ShowName     = 1 << 0
	ShowQueueLen = 1 << 4

	diagName     = 0
	diagQueueLen = 4
)

// ByFamily is the type of a request (SOCK_DIAG_BY_FAMILY, linux/sock_diag.h).
const ByFamily = 20

// The states that a request can ask for: 1<<Listening and so on, see net/tcp_states.h.
const (
	Established = 1
	Listening   = 10
)

// patience bounds a dump of listeners.
const patience = 2 * time.Second

// Lengths of struct unix_diag_req and struct unix_diag_msg.
const (
	requestLen = 24
	messageLen = 16
)

// Sock is one Unix socket of a dump.
type Sock struct {
	Kind, State uint8 // unix.SOCK_STREAM …; Established …
	Inode       uint32
	// Name is the address as the kernel keeps it, without a path's closing NUL;
	// an abstract one starts with NUL. It is valid until the next message.
	Name []byte
	// Queue and Limit are the accept queue's length and bound: of a listener only.
	Queue, Limit uint32
}

// Request asks for all Unix sockets in the states of the mask, and for what of them
// (ShowName …).
func Request(states, show uint32) []byte {
	b := make([]byte, requestLen)
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], states)
	binary.NativeEndian.PutUint32(b[12:], show)
	return b
}

// Parse reads one struct unix_diag_msg and what follows it.
func (s *Sock) Parse(b []byte) error {
	if len(b) < messageLen {
		return fmt.Errorf("unix_diag message: %d bytes, want %d or more", len(b), messageLen)
	}
	if b[0] != unix.AF_UNIX {
		return fmt.Errorf("unix_diag message: address family %d, want %d", b[0], unix.AF_UNIX)
	}
	*s = Sock{Kind: b[1], State: b[2], Inode: binary.NativeEndian.Uint32(b[4:])}
	for rest := b[messageLen:]; ; {
		typ, value, next, ok := netlink.NextAttr(rest)
		if !ok {
			return nil
		}
		switch {
		case typ == diagName:
			s.Name = bytes.TrimRight(value, "\x00")
		case typ == diagQueueLen && len(value) >= 8:
			s.Queue = binary.NativeEndian.Uint32(value)
			s.Limit = binary.NativeEndian.Uint32(value[4:])
		}
		rest = next
	}
}

// Label is the value of the label listen for a Unix socket's address; as
// ss(8) does, it writes @ for the NUL of an abstract one.
func Label(name []byte) string {
	return "unix:" + strings.ReplaceAll(strings.ToValidUTF8(string(name), "?"), "\x00", "@")
}

// Listener is a Unix socket that listens for streams.
type Listener struct {
	// Listen is its address as the label listen writes it: "unix:/run/x".
	Listen string
	Inode  uint32
	// Limit is how many connections may wait to be accepted (its backlog).
	Limit uint32
}

// Listeners lists those of the calling thread's network namespace that have
// an address. A kernel without unix_diag gives fs.ErrNotExist.
func Listeners() ([]Listener, error) {
	conn, err := netlink.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var list []Listener
	var s Sock
	err = conn.Dump(ByFamily, Request(1<<Listening, ShowName|ShowQueueLen), patience, func(b []byte) error {
		if err := s.Parse(b); err != nil {
			return err
		}
		if s.Kind == unix.SOCK_STREAM && len(s.Name) > 0 {
			list = append(list, Listener{Label(s.Name), s.Inode, s.Limit})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list Unix listeners; the kernel needs CONFIG_UNIX_DIAG (modprobe unix_diag): %w", err)
	}
	return list, nil
}

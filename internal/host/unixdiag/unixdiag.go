// Package unixdiag asks the kernel for Unix sockets (sock_diag(7)).
package unixdiag

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/netlink"
)

// What a unix_diag request asks for and the attributes that answer it,
// linux/unix_diag.h.
const (
	ShowName     = 1 << 0
	ShowFile     = 1 << 1
	ShowQueueLen = 1 << 4

	diagName     = 0
	diagFile     = 1
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
	// File is the file that the address is, 0 of an abstract one.
	File FileID
	// Queue and Limit are the accept queue's length and bound: of a listener only.
	Queue, Limit uint32
}

// FileID tells a socket's file from others, as far as the kernel says: it cuts inode
// numbers off at 32 bits.
type FileID struct{ Inode, Device uint32 }

// FileAt is the file with an inode on the device of such numbers.
func FileAt(inode uint64, major, minor uint32) FileID {
	const minorBits = 20 // of the kernel's own dev_t, linux/kdev_t.h
	return FileID{uint32(inode), major<<minorBits | minor}
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
		case typ == diagFile && len(value) >= 8:
			s.File = FileID{binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:])}
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
	return "unix:" + strings.ReplaceAll(strings.ToValidUTF8(string(name), "\uFFFD"), "\x00", "@")
}

// Listener is a Unix socket that listens for streams.
type Listener struct {
	// Listen is its address as the label listen writes it: "unix:/run/x".
	Listen string
	Inode  uint32
	// Limit is how many connections may wait to be accepted (its backlog).
	Limit uint32
}

// ListenersAt lists the inodes of the sockets of the calling thread's network namespace that
// listen at a file, under any of these names for it. A kernel without unix_diag gives fs.ErrNotExist.
func ListenersAt(file ...FileID) (inodes []uint32, err error) {
	err = dump(ShowFile, func(s *Sock) {
		if slices.Contains(file, s.File) {
			inodes = append(inodes, s.Inode)
		}
	})
	return inodes, err
}

// Listeners lists those of the calling thread's network namespace that have
// an address. A kernel without unix_diag gives fs.ErrNotExist.
func Listeners() (list []Listener, err error) {
	err = dump(ShowName|ShowQueueLen, func(s *Sock) {
		if s.Kind == unix.SOCK_STREAM && len(s.Name) > 0 {
			list = append(list, Listener{Label(s.Name), s.Inode, s.Limit})
		}
	})
	return list, err
}

// dump tells of each Unix socket that listens.
func dump(show uint32, each func(*Sock)) error {
	conn, err := netlink.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer conn.Close()
	var s Sock
	err = conn.Dump(ByFamily, Request(1<<Listening, show), patience, func(b []byte) error {
		if err := s.Parse(b); err != nil {
			return err
		}
		each(&s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list Unix listeners; the kernel needs CONFIG_UNIX_DIAG (modprobe unix_diag): %w", err)
	}
	return nil
}

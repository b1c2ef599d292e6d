package sockets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/netlink"
)

// What a unix_diag request asks for and the attributes that answer it,
// linux/unix_diag.h.
const (
	unixShowName     = 1 << 0
	unixShowQueueLen = 1 << 4

	unixDiagName     = 0
	unixDiagQueueLen = 4
)

// Lengths of struct unix_diag_req and struct unix_diag_msg.
const (
	unixReqLen = 24
	unixMsgLen = 16
)

// unixSock is one Unix socket of a sock_diag dump.
type unixSock struct {
	kind, state uint8
	inode       uint32
	// name is the address as the kernel keeps it, without a path's closing NUL;
	// an abstract one starts with NUL. It is valid until the next message.
	name []byte
	// queue and limit are the accept queue's length and bound: of a listener only.
	queue, limit uint32
}

// unixRequest asks for all Unix sockets in the states of the mask.
func unixRequest(states uint32, show uint32) []byte {
	b := make([]byte, unixReqLen)
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], states)
	binary.NativeEndian.PutUint32(b[12:], show)
	return b
}

// parseUnix reads one struct unix_diag_msg and what follows it into s.
func parseUnix(b []byte, s *unixSock) error {
	if len(b) < unixMsgLen {
		return fmt.Errorf("unix_diag message: %d bytes, want %d or more", len(b), unixMsgLen)
	}
	if b[0] != unix.AF_UNIX {
		return fmt.Errorf("unix_diag message: address family %d, want %d", b[0], unix.AF_UNIX)
	}
	*s = unixSock{kind: b[1], state: b[2], inode: binary.NativeEndian.Uint32(b[4:])}
	for rest := b[unixMsgLen:]; ; {
		typ, value, next, ok := netlink.NextAttr(rest)
		if !ok {
			return nil
		}
		switch {
		case typ == unixDiagName:
			s.name = bytes.TrimRight(value, "\x00")
		case typ == unixDiagQueueLen && len(value) >= 8:
			s.queue = binary.NativeEndian.Uint32(value)
			s.limit = binary.NativeEndian.Uint32(value[4:])
		}
		rest = next
	}
}

// unixListen is the value of the label listen for a Unix socket's address; as
// ss(8) does, it writes @ for the NUL of an abstract one.
func unixListen(name []byte) string {
	return "unix:" + strings.ReplaceAll(strings.ToValidUTF8(string(name), "?"), "\x00", "@")
}

// UnixListener is a Unix socket that listens for streams.
type UnixListener struct {
	// Listen is its address as the label listen writes it: "unix:/run/x".
	Listen string
	Inode  uint32
	// Limit is how many connections may wait to be accepted (its backlog).
	Limit uint32
}

// UnixListeners lists those of the calling thread's network namespace that have
// an address. A kernel without unix_diag gives fs.ErrNotExist.
func UnixListeners() ([]UnixListener, error) {
	conn, err := netlink.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var list []UnixListener
	var s unixSock
	err = conn.Dump(sockDiagByFamily, unixRequest(listening, unixShowName|unixShowQueueLen), readTimeout, func(b []byte) error {
		if err := parseUnix(b, &s); err != nil {
			return err
		}
		if s.kind == unix.SOCK_STREAM && len(s.name) > 0 {
			list = append(list, UnixListener{unixListen(s.name), s.inode, s.limit})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list Unix listeners; the kernel needs CONFIG_UNIX_DIAG (modprobe unix_diag): %w", err)
	}
	return list, nil
}

package sockets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/netlink"
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

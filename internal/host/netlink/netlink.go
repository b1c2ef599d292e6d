// Package netlink speaks the little raw netlink that probes need: send one dump
// request and read its multipart answer before a deadline. It allocates nothing
// per message, because a dump of sockets has tens of thousands of them.
package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

const (
	headerLen = unix.SizeofNlMsghdr
	// readBuffer holds one datagram of an answer; the kernel fills at most 32 KiB
	// of it (netlink_dump in net/netlink/af_netlink.c).
	readBuffer = 64 << 10
	// receiveQueue is how much the kernel may hold for us.
	receiveQueue = 1 << 20
)

// ErrTimeout is returned by Dump when the answer was not complete in time.
var ErrTimeout = errors.New("the kernel did not finish its answer in time")

// Conn is one netlink socket. It belongs to the network namespace of the thread
// that called Open and must be used from one goroutine on a thread in that
// namespace. Close releases it.
type Conn struct {
	family int
	fd     int // -1 while a failed dump has yet to be replaced by a new socket
	seq    uint32
	buf    []byte
	req    []byte
}

// Open makes a socket for a netlink family such as unix.NETLINK_SOCK_DIAG, in
// the network namespace of the calling thread. A kernel without that family
// gives fs.ErrNotExist.
func Open(family int) (*Conn, error) {
	fd, err := openSocket(family)
	if err != nil {
		return nil, err
	}
	return &Conn{family: family, fd: fd, buf: make([]byte, readBuffer)}, nil
}

func openSocket(family int) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return -1, fmt.Errorf("open netlink family %d: this kernel does not have it (%v): %w", family, err, fs.ErrNotExist)
	}
	if err != nil {
		return -1, fmt.Errorf("open netlink family %d: %w", family, err)
	}
	// Only a wish: the kernel cuts it to net.core.rmem_max, and a dump waits for room.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveQueue)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("bind netlink family %d: %w", family, err)
	}
	return fd, nil
}

// Close releases the socket.
func (c *Conn) Close() error {
	if c.fd < 0 {
		return nil
	}
	fd := c.fd
	c.fd = -1
	return unix.Close(fd)
}

// Dump asks for everything of one message type and hands each answer's payload
// (the bytes after the netlink header) to each. The payload is only valid during
// the call. An error of each ends the dump and is returned as it is; an error
// of the kernel keeps its errno; ErrTimeout means that timeout passed first.
func (c *Conn) Dump(msgType uint16, body []byte, timeout time.Duration, each func(payload []byte) error) error {
	if c.fd < 0 {
		fd, err := openSocket(c.family)
		if err != nil {
			return err
		}
		c.fd = fd
	}
	err := c.dump(msgType, body, time.Now().Add(timeout), each)
	if err != nil {
		// The rest of this answer may still arrive, and a dump under way makes the
		// next one EBUSY: start afresh.
		_ = c.Close()
	}
	return err
}

func (c *Conn) dump(msgType uint16, body []byte, deadline time.Time, each func([]byte) error) error {
	c.seq++
	c.req = appendRequest(c.req[:0], msgType, c.seq, body)
	if err := unix.Sendto(c.fd, c.req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send netlink request %d: %w", msgType, err)
	}
	for {
		n, err := c.receive(deadline)
		if err != nil {
			return fmt.Errorf("read netlink answer to request %d: %w", msgType, err)
		}
		done, err := parse(c.buf[:n], c.seq, each)
		if err != nil || done {
			return err
		}
	}
}

// receive reads one datagram into c.buf, waiting no longer than deadline.
func (c *Conn) receive(deadline time.Time) (int, error) {
	for {
		// A dump's next part is made while the last one is being read, so it is
		// nearly always there: ask first, wait only when it is not.
		n, _, err := unix.Recvfrom(c.fd, c.buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case err == nil && n > len(c.buf):
			return 0, fmt.Errorf("datagram of %d bytes, want at most %d", n, len(c.buf))
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EAGAIN):
			return 0, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return 0, ErrTimeout
		}
		poll := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, int(left/time.Millisecond)+1); err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
	}
}

func appendRequest(b []byte, msgType uint16, seq uint32, body []byte) []byte {
	b = binary.NativeEndian.AppendUint32(b, uint32(headerLen+len(body)))
	b = binary.NativeEndian.AppendUint16(b, msgType)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0) // the kernel fills in our port
	return append(b, body...)
}

// parse walks the messages of one datagram. It says whether the answer to seq is
// complete; messages of another seq are left-overs and are skipped.
func parse(b []byte, seq uint32, each func([]byte) error) (done bool, err error) {
	for len(b) > 0 {
		if len(b) < headerLen {
			return false, fmt.Errorf("netlink message: %d bytes left, want a header of %d", len(b), headerLen)
		}
		length := int(binary.NativeEndian.Uint32(b))
		if length < headerLen || length > len(b) {
			return false, fmt.Errorf("netlink message: length %d, want %d to %d", length, headerLen, len(b))
		}
		msgType := binary.NativeEndian.Uint16(b[4:])
		msgSeq := binary.NativeEndian.Uint32(b[8:])
		payload := b[headerLen:length]
		b = b[min(align(length), len(b)):]
		if msgSeq != seq {
			continue
		}
		switch msgType {
		case unix.NLMSG_NOOP:
		case unix.NLMSG_DONE, unix.NLMSG_ERROR:
			return true, errno(payload)
		default:
			if err := each(payload); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// errno reads the error number that starts NLMSG_ERROR and (since Linux 2.6.27)
// NLMSG_DONE; 0 or none is success.
func errno(payload []byte) error {
	if len(payload) < 4 {
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(payload)); code < 0 {
		return fmt.Errorf("the kernel refused the netlink request: %w", unix.Errno(-code))
	}
	return nil
}

// NextAttr splits the first attribute off b. The type comes without the nested
// and byte-order flags. ok is false at the end and on attributes that do not fit.
func NextAttr(b []byte) (attrType uint16, value, rest []byte, ok bool) {
	if len(b) < unix.SizeofNlAttr {
		return 0, nil, nil, false
	}
	length := int(binary.NativeEndian.Uint16(b))
	if length < unix.SizeofNlAttr || length > len(b) {
		return 0, nil, nil, false
	}
	attrType = binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
	return attrType, b[unix.SizeofNlAttr:length], b[min(align(length), len(b)):], true
}

// align rounds up to the four bytes on which messages and attributes start.
func align(n int) int { return (n + 3) &^ 3 }

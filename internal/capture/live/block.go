package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/capture/pcap"
)

// header is that of the block that is read.
func (r *Ring) header() *unix.TpacketHdrV1 {
	const beforeIt = 8 // version, offset of private data
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&r.memory[r.block*blockSize+beforeIt]))
}

// ready opens the next block, if the kernel has handed it over.
func (r *Ring) ready() bool {
	if r.memory == nil {
		return false
	}
	h := r.header()
	if atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER == 0 {
		return false
	}
	r.open, r.left, r.at = true, int(h.Num_pkts), r.block*blockSize+int(h.Offset_to_first_pkt)
	return true
}

// giveBack hands the block back to the kernel, and goes on to the next.
func (r *Ring) giveBack() {
	atomic.StoreUint32(&r.header().Block_status, unix.TP_STATUS_KERNEL)
	r.open, r.block = false, (r.block+1)%blocks
}

// wait waits for the next block, for the end, or for a tick.
func (r *Ring) wait() error {
	fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}, {Fd: int32(r.wake), Events: unix.POLLIN}}
	if r.stopped.Load() {
		fds = fds[:1] // the other is readable for good
	}
	if _, err := unix.Poll(fds, pollFor); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for packets: %w", err)
	}
	if fds[0].Revents&unix.POLLERR == 0 {
		return nil
	}
	if code, err := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
		r.down = unix.Errno(code)
		r.stopped.Store(true)
	}
	return nil
}

// packet takes the next packet of the block.
func (r *Ring) packet(k *pcap.Packet) {
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&r.memory[r.at]))
	from := r.at + int(h.Mac)
	k.Time = int64(h.Sec)*1e9 + int64(h.Nsec)
	k.Link, k.Wire = r.link, int(h.Len)
	k.Data = r.memory[from : from+int(h.Snaplen) : from+int(h.Snaplen)]
	if r.link == pcap.LinkSLL2 {
		r.cooked(k, h, from)
	} else if h.Status&unix.TP_STATUS_VLAN_VALID != 0 && len(k.Data) >= 12 {
		r.tagged(k, h, from)
	}
	r.taken++
	r.last = k.Time
	if r.left--; r.left > 0 {
		r.at += int(h.Next_offset)
	}
}

// tagged puts the VLAN tag back that the kernel, or the card, took out. The ring has
// room before each packet.
func (r *Ring) tagged(k *pcap.Packet, h *unix.Tpacket3Hdr, from int) {
	b := r.memory[from-4 : from+len(k.Data)]
	copy(b, b[4:16])
	binary.BigEndian.PutUint16(b[12:], tagOf(h))
	binary.BigEndian.PutUint16(b[14:], uint16(h.Hv1.Vlan_tci))
	k.Data, k.Wire = b, k.Wire+4
}

func tagOf(h *unix.Tpacket3Hdr) uint16 {
	if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		return h.Hv1.Vlan_tpid
	}
	return unix.ETH_P_8021Q
}

// cookedLen is the length of the header of Linux's "any" device, v2.
const cookedLen = 20

// cooked puts that header before a packet, made of what the kernel tells of it.
func (r *Ring) cooked(k *pcap.Packet, h *unix.Tpacket3Hdr, from int) {
	a := *(*unix.RawSockaddrLinklayer)(unsafe.Pointer(&r.memory[r.at+tpacketHeader]))
	n := cookedLen
	tag := h.Status&unix.TP_STATUS_VLAN_VALID != 0
	if tag {
		n += 4
	}
	b := r.memory[from-n : from+len(k.Data)]
	kind := bigEndian(a.Protocol)
	if tag {
		binary.BigEndian.PutUint16(b[cookedLen:], uint16(h.Hv1.Vlan_tci))
		binary.BigEndian.PutUint16(b[cookedLen+2:], kind)
		kind = tagOf(h)
	}
	binary.BigEndian.PutUint16(b, kind)
	binary.BigEndian.PutUint16(b[2:], 0)
	binary.BigEndian.PutUint32(b[4:], uint32(a.Ifindex))
	binary.BigEndian.PutUint16(b[8:], a.Hatype)
	b[10], b[11] = a.Pkttype, a.Halen
	copy(b[12:20], a.Addr[:])
	k.Data, k.Wire = b, k.Wire+n
}

// tpacketHeader is where the link-layer address stands behind a packet's header
// in the ring: TPACKET_ALIGN(sizeof(struct tpacket3_hdr)).
const tpacketHeader = 48

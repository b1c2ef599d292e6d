package load

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// ringBuffers are those into which the kernel receives when something has come: as many as replies may lie there at once, not one
// for each connection.
type ringBuffers struct {
	memory  []byte
	entries []ringBuffer // what the kernel may take
	tail    *uint16      // of the entries
	// message asks for the kernel's time stamps, which then stand in the buffer before what came.
	message unix.Msghdr
}

// ringBuffer is struct io_uring_buf.
type ringBuffer struct {
	addr   uint64
	length uint32
	number uint16
	_      uint16 // of the first: the tail of all
}

const (
	mostBuffers  = 256
	leastBuffers = 16
	bufferRoom   = 2 * longPiece
	// longPiece is what is received better by the thread (see ringSocket.watched).
	longPiece = 8 << 10
	// bufferStride keeps the beginnings of buffers, which is what short replies touch, from sharing lines of the caches.
	bufferStride = bufferRoom + 832
	// stampRoom is for the control message of a time stamp (three times), stampHead is struct io_uring_recvmsg_out.
	stampRoom = 64
	stampHead = 16
)

// lend gives the ring of one of so many threads buffers for so many connections, which it has until it is closed.
func (b *ringBuffers) lend(r *ring, connections, threads int) (err error) {
	n, head := buffersFor(connections, threads)
	if b.memory, err = unix.Mmap(-1, 0, head+n*bufferStride, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return fmt.Errorf("io_uring: memory for %d buffers: %w", n, err)
	}
	r.lent = b.memory
	first := unsafe.Pointer(&b.memory[0])
	b.entries, b.tail = unsafe.Slice((*ringBuffer)(first), n), (*uint16)(unsafe.Add(first, 14))
	for i := range n {
		b.entries[i].addr, b.entries[i].length, b.entries[i].number = uint64(uintptr(unsafe.Pointer(&b.memory[head+i*bufferStride]))), bufferRoom, uint16(i)
	}
	*b.tail = uint16(n)
	b.message.SetControllen(stampRoom)
	ask := struct {
		addr  uint64
		n     uint32
		group uint32
		_     [3]uint64
	}{addr: uint64(uintptr(first)), n: uint32(n)}
	if _, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerBuffers, uintptr(unsafe.Pointer(&ask)), 1, 0, 0); errno != 0 {
		return fmt.Errorf("io_uring: give it %d buffers: %w", n, errno)
	}
	return nil
}

// buffersFor is how many buffers there are for so many connections of a thread, a power of two, and the bytes before them. Threads beyond
// the number of CPUs, which a million connections need, share what replies come at once.
func buffersFor(connections, threads int) (n, head int) {
	most := mostBuffers * min(runtime.NumCPU(), threads) / threads
	n = 1 << bits.Len(uint(max(min(connections, most), leastBuffers)-1))
	return n, (n*int(unsafe.Sizeof(ringBuffer{})) + 4095) &^ 4095
}

// RingMemory is what a plan's threads take by io_uring beside their connections, in bytes; 0 by epoll.
func RingMemory(p model.LoadPlan) int64 {
	if p.Engine != model.IOURing {
		return 0
	}
	threads := max(p.Threads, 1)
	each := int(unsafe.Sizeof(call{}) + 2*unsafe.Sizeof(end{}) + 4) // of the queues
	if p.KeepAlive {
		n, head := buffersFor((p.MostConnections()+threads-1)/threads, threads)
		each = ringEntries*each + head + n*bufferStride
	} else {
		each *= chainEntries
	}
	return int64(threads) * int64(each)
}

// data is what a receive put into a buffer, nil if it had none. It may be read until giveBack.
func (b *ringBuffers) data(e *end) []byte {
	if e.flags&endBuffer == 0 || e.result < 0 {
		return nil
	}
	at := len(b.memory) - (len(b.entries)-int(e.flags>>16))*bufferStride
	return b.memory[at : at+int(e.result)]
}

// giveBack lets the kernel have the buffer of a receive again, if it had one.
func (b *ringBuffers) giveBack(e *end) {
	if e.flags&endBuffer == 0 {
		return
	}
	at := len(b.memory) - (len(b.entries)-int(e.flags>>16))*bufferStride
	next := &b.entries[int(*b.tail)&(len(b.entries)-1)]
	next.addr, next.length, next.number = uint64(uintptr(unsafe.Pointer(&b.memory[at]))), bufferRoom, uint16(e.flags>>16)
	*b.tail++ // the kernel looks at it in calls of this thread alone
}

// unwrapped is what came, and when the kernel received it (see receivedAt), of a buffer with a time stamp.
func unwrapped(b []byte) ([]byte, int64) {
	control := min(int(binary.NativeEndian.Uint32(b[4:])), stampRoom)
	return b[stampHead+stampRoom:], receivedAt(b[stampHead : stampHead+control])
}

// TryIOURing says why there can be no io_uring here, nil where there can.
func TryIOURing() error {
	r, err := newRing(ringEntries, 1)
	if err != nil {
		return err
	}
	defer r.close()
	return new(ringBuffers).lend(r, 1, 1)
}

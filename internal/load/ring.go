package load

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is used of io_uring's interface (linux/io_uring.h).
const (
	// chainEntries are the calls that can be queued where each request has a chain of them, ringEntries else; there are twice as many ends.
	chainEntries = 4096
	ringEntries  = 1024

	setupSingleIssuer = 1 << 12
	setupDeferTaskRun = 1 << 13
	setupDisabled     = 1 << 6

	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	registerEnable  = 12
	registerFiles   = 13 // IORING_REGISTER_FILES2
	registerSparse  = 1 << 0
	registerBuffers = 22 // IORING_REGISTER_PBUF_RING

	offsetCQ      = 0x8000000
	offsetEntries = 0x10000000

	opPoll    = 6
	opRecvMsg = 10
	opCancel  = 14
	opConnect = 16
	opClose   = 19
	opFiles   = 20 // IORING_OP_FILES_UPDATE
	opSend    = 26
	opRecv    = 27
	opSocket  = 45

	callFixed  = 1 << 0 // the descriptor is a slot
	callLink   = 1 << 2 // the next one begins when this one is done, and not at all if it failed
	callBuffer = 1 << 5 // the kernel takes one of the ring's buffers when it has something to put there
	callQuiet  = 1 << 6 // its end is told only if it failed

	pollMulti      = 1 << 0
	recvPollFirst  = 1 << 0
	recvMulti      = 1 << 1
	cancelAll      = 1 << 0
	cancelSlot     = 1<<1 | 1<<3 // what is done at a descriptor, which is a slot
	leastRingLinux = "6.1"
)

// mostChains is how many connections of a thread have room in a ring with the ends of all their calls.
const mostChains = chainEntries / 2

// call is something that the kernel is to do (struct io_uring_sqe).
type call struct {
	op, flags uint8
	how       uint16 // of a receive
	fd        int32
	off, addr uint64
	length    uint32
	more      uint32 // flags of the call itself
	name      uint64
	_         uint32
	slot      uint32 // of a descriptor that is opened or closed, counted from 1
	_         [2]uint64
}

// end is what became of a call (struct io_uring_cqe).
type end struct {
	name   uint64
	result int32
	flags  uint32
}

const (
	endBuffer  = 1 << 0 // it has a buffer, whose number is above the lower 16 bits
	endFollows = 1 << 1 // more ends of the same call are to come
)

// step is what a call is to whoever made it.
func (e *end) step() uint32 { return uint32(e.name>>32) & 0xff }

// told is what came of the call: a number, or an error.
func (e *end) told() (n int, errno syscall.Errno) {
	if e.result < 0 {
		return 0, syscall.Errno(-e.result)
	}
	return int(e.result), 0
}

// ring is an io_uring: calls that are queued together leave in one system call, with the wait for their ends. It belongs to a
// thread. Its sockets are slots of its own: of those that are for one request alone the process has no descriptors.
type ring struct {
	fd                 int32
	memory, callMemory []byte
	sqHead, sqTail     *uint32
	cqHead, cqTail     *uint32
	calls              []call
	ends               []end
	tail               uint32 // of the calls
	submitted          uint32
	seen               uint32 // ends that an event was made of
	timeout            unix.Timespec
	lent               []byte // memory that the kernel receives into
}

type ringOffsets struct {
	head, tail, mask, entries, flags, dropped, array, _ uint32
	_                                                   uint64
}

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, cpu, idle, features, wq uint32
	_                                                    [3]uint32
	sq                                                   ringOffsets
	cqHead, cqTail, cqMask, cqEntriesAt, cqOver, cqEnds  uint32
	_                                                    [2]uint32
	_                                                    uint64
}

// newRing makes a ring for so many calls with so many slots, 0 for none, which no thread may use before begin.
func newRing(entries uintptr, slots int) (*ring, error) {
	p := ringParams{flags: setupSingleIssuer | setupDeferTaskRun | setupDisabled}
	fd, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, entries, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring: %w: it takes Linux %s, and kernel.io_uring_disabled=0; containers mostly forbid it", errno, leastRingLinux)
	}
	r := &ring{fd: int32(fd)}
	if err := r.mapIn(&p); err != nil {
		r.close()
		return nil, fmt.Errorf("io_uring: map its queues: %w", err)
	}
	if slots == 0 {
		return r, nil
	}
	sparse := struct {
		n, flags uint32
		_        [3]uint64
	}{n: uint32(slots), flags: registerSparse}
	if _, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, fd, registerFiles, uintptr(unsafe.Pointer(&sparse)), unsafe.Sizeof(sparse), 0, 0); errno != 0 {
		r.close()
		return nil, fmt.Errorf("io_uring: take %d slots for sockets: %w", slots, errno)
	}
	return r, nil
}

// mapIn maps the queues that the kernel has made.
func (r *ring) mapIn(p *ringParams) (err error) {
	const both = unix.PROT_READ | unix.PROT_WRITE
	size := int(max(p.cqEnds+p.cqEntries*uint32(unsafe.Sizeof(end{})), p.sq.array+4*p.sqEntries))
	if r.memory, err = unix.Mmap(int(r.fd), 0, size, both, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	if r.callMemory, err = unix.Mmap(int(r.fd), offsetEntries, int(p.sqEntries)*int(unsafe.Sizeof(call{})), both, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.memory[offset])) }
	r.sqHead, r.sqTail, r.cqHead, r.cqTail = at(p.sq.head), at(p.sq.tail), at(p.cqHead), at(p.cqTail)
	r.calls = unsafe.Slice((*call)(unsafe.Pointer(&r.callMemory[0])), p.sqEntries)
	r.ends = unsafe.Slice((*end)(unsafe.Pointer(&r.memory[p.cqEnds])), p.cqEntries)
	order := unsafe.Slice(at(p.sq.array), p.sqEntries)
	for i := range order {
		order[i] = uint32(i) // calls are taken in the order in which they lie
	}
	return nil
}

// begin has the calling thread use the ring, and be woken by an eventfd.
func (r *ring) begin(wake int32) {
	unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerEnable, 0, 0, 0, 0)
	r.watch(wake)
}

// watch has the ring tell when the eventfd is written to.
func (r *ring) watch(wake int32) {
	*r.add() = call{op: opPoll, fd: wake, length: pollMulti, more: unix.POLLIN, name: wokenName | uint64(uint32(wake))}
}

// wokenName stands before the eventfd's descriptor in the name of its calls.
const wokenName = 1 << 63

// room makes room for so many calls that belong together.
func (r *ring) room(n int) {
	if int(r.tail-atomic.LoadUint32(r.sqHead))+n > len(r.calls) {
		r.enter(0, nil)
	}
}

// add queues a call.
func (r *ring) add() *call {
	r.room(1)
	c := &r.calls[r.tail%uint32(len(r.calls))]
	r.tail++
	return c
}

// enter hands over what is queued, and waits for so many ends.
func (r *ring) enter(ends uintptr, timeout *unix.Timespec) {
	atomic.StoreUint32(r.sqTail, r.tail)
	arg := struct {
		mask          uint64
		size, minWait uint32
		timeout       uint64
	}{size: 8, timeout: uint64(uintptr(unsafe.Pointer(timeout)))}
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.tail-r.submitted), ends, enterGetEvents|enterExtArg, uintptr(unsafe.Pointer(&arg)), unsafe.Sizeof(arg))
	r.entered(n, errno)
}

// submit hands over what is queued, and looks for no ends.
func (r *ring) submit() {
	atomic.StoreUint32(r.sqTail, r.tail)
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.tail-r.submitted), 0, 0, 0, 0)
	r.entered(n, errno)
}

// entered takes note of how much of what was queued the kernel took.
func (r *ring) entered(n uintptr, errno syscall.Errno) {
	if errno == 0 {
		r.submitted += uint32(n)
	} else {
		r.submitted = atomic.LoadUint32(r.sqHead) // a signal, or the time was up: what was taken was
	}
}

// wait hands over what is queued, and writes into events which ends came within ns nanoseconds; each can be had by end until
// the next wait.
func (r *ring) wait(ns int64, events []unix.EpollEvent) int {
	atomic.StoreUint32(r.cqHead, r.seen)
	switch there := r.seen != atomic.LoadUint32(r.cqTail); {
	case !there && ns > 0:
		r.timeout = unix.NsecToTimespec(ns)
		r.enter(1, &r.timeout)
	case !there || r.tail != r.submitted:
		r.enter(0, nil)
	}
	n, tail := 0, atomic.LoadUint32(r.cqTail)
	for ; r.seen != tail && n < len(events); r.seen++ {
		e := r.end(r.seen)
		if e.name&wokenName == 0 {
			events[n] = unix.EpollEvent{Fd: int32(uint32(e.name)), Events: r.seen}
			n++
		} else if e.flags&endFollows == 0 {
			r.watch(int32(uint32(e.name)))
		}
	}
	return n
}

// sleep hands over what is queued, and lets ends gather for ns nanoseconds.
func (r *ring) sleep(ns int64) {
	atomic.StoreUint32(r.cqHead, r.seen)
	r.timeout = unix.NsecToTimespec(ns)
	r.enter(uintptr(len(r.ends)), &r.timeout)
}

// end is what an event of wait stands for.
func (r *ring) end(events uint32) *end { return &r.ends[events%uint32(len(r.ends))] }

// close is for the thread that used it; what it still had queued is done first. Another may have a descriptor of it, too, and closes that.
func (r *ring) close() {
	if r.memory != nil {
		r.enter(0, nil) // what was shut just now ends here, while its buffers are still there
	}
	for _, memory := range []*[]byte{&r.memory, &r.callMemory, &r.lent} {
		if *memory != nil {
			_ = unix.Munmap(*memory)
			*memory = nil
		}
	}
	sysClose(r.fd)
}

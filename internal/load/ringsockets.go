package load

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringSockets are a thread's sockets that stay, by io_uring: the kernel receives from each by itself, as long as it stands.
type ringSockets struct {
	*ring
	buffers ringBuffers
	list    []ringSocket // by the names of the thread's connections
	slots   bool         // the ring has a slot for each
	queued  int          // requests that leave with the next call
	// long says that what the kernel received by itself last was long: new sockets are watched then.
	long bool
}

// ringSocket is what a connection's socket needs.
type ringSocket struct {
	age   uint16 // which of the connection's sockets it is: the ends of calls of another one are passed over
	armed bool   // the kernel watches it, or receives from it
	// watched says that the kernel tells when something came, and the thread receives it, as by epoll: into one buffer, which caches
	// hold, or nowhere, and no call is made for each piece. It begins with a long reply, and ends when shortInARow have been short:
	// to change with each costs more than short ones save.
	watched bool
	short   uint8 // replies in a row that were, while it is watched
	sending bool  // the end of a send is to come that may take a part
	inSlot  bool  // the ring has it in the slot of the connection's name
	fd      int32 // which the kernel reads to put it there
}

// shortInARow is some ten times as many short replies as pay for the calls of a change there and back.
const shortInARow = 32

// steps, as calls are named
const (
	ringNothing = iota // a close, or a cancel: nobody waits for its end
	ringPoll
	ringSend
	ringQuietSend
	ringReceive
	ringWatch
)

const (
	// quietSend is how long a request is at most that the kernel surely takes as a whole, since the one before it is answered.
	quietSend = 4 << 10
)

// newRingSockets makes one of so many threads' ring with buffers, and places for so many sockets.
func newRingSockets(n, threads int) (*ringSockets, error) {
	r, err := newRing(ringEntries, n)
	slots := err == nil
	if err != nil { // there may be no more slots than files that a process may open: the others' connects will say so
		r, err = newRing(ringEntries, 0)
	}
	if err != nil {
		return nil, err
	}
	s := &ringSockets{ring: r, list: make([]ringSocket, n), slots: slots}
	if err := s.buffers.lend(r, n, threads); err != nil {
		r.close()
		return nil, err
	}
	return s, nil
}

// name is that of a call for the socket that the connection of that name has.
func (r *ringSockets) name(of int32, step uint64) uint64 {
	return uint64(r.list[of].age)<<40 | step<<32 | uint64(of)
}

// isOf says whether an end is of the socket that the connection has now.
func (r *ringSockets) isOf(of int32, e *end) bool { return uint16(e.name>>40) == r.list[of].age }

// call queues a call.
func (r *ringSockets) call(fd, of int32, op, flags uint8, step uint64) *call {
	if r.list[of].inSlot {
		fd, flags = of, flags|callFixed
	}
	q := r.add()
	*q = call{op: op, flags: flags, fd: fd, name: r.name(of, step)}
	return q
}

// keep has a socket that stands, and those of its calls that follow, go by the ring's slot, so that the kernel need not look its
// descriptor up, and count its users, at each request.
func (r *ringSockets) keep(fd, of int32) {
	if !r.slots {
		return
	}
	s := &r.list[of]
	s.fd = fd
	q := r.call(-1, of, opFiles, callQuiet, ringNothing)
	q.off, q.addr, q.length = uint64(of), uint64(uintptr(unsafe.Pointer(&s.fd))), 1
	s.inSlot = true
}

// poll watches a connect.
func (r *ringSockets) poll(fd, of int32) {
	r.list[of].armed = true
	r.call(fd, of, opPoll, 0, ringPoll).more = unix.POLLIN | unix.POLLOUT
}

// send queues a request, and says whether it surely goes as a whole: then only its failure is told.
func (r *ringSockets) send(fd, of int32, request []byte) (surely bool) {
	r.queued++
	surely = len(request) <= quietSend
	r.list[of].sending = !surely
	q := r.call(fd, of, opSend, 0, ringSend)
	if surely {
		q.flags, q.name = q.flags|callQuiet, r.name(of, ringQuietSend)
	}
	q.addr, q.length, q.more = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(request)))), uint32(len(request)), unix.MSG_NOSIGNAL|unix.MSG_WAITALL
	return surely
}

// receive has what comes put into buffers of the ring, if so asked with the kernel's time stamps.
func (r *ringSockets) receive(fd, of int32, stamped bool) {
	r.list[of].armed = true
	q := r.call(fd, of, opRecv, callBuffer, ringReceive)
	q.how = recvPollFirst | recvMulti
	if stamped {
		q.op, q.addr = opRecvMsg, uint64(uintptr(unsafe.Pointer(&r.buffers.message)))
	}
}

// watch has it told, edge by edge, when something comes.
func (r *ringSockets) watch(fd, of int32) {
	r.list[of].armed = true
	q := r.call(fd, of, opPoll, 0, ringWatch)
	q.length, q.more = pollMulti, unix.POLLIN|unix.POLLRDHUP
}

// stop ends what is done at a socket under a name, which is then told.
func (r *ringSockets) stop(of int32, step uint64) {
	q := r.add()
	*q = call{op: opCancel, flags: callQuiet, fd: -1, name: r.name(of, ringNothing), addr: r.name(of, step)}
}

// close closes a socket, and says whether the end of a send is still to come. Its calls end by the shutdown, without a search for
// them, but for a watch, which outlasts that; its descriptor is free when what is queued for it has been handed over.
func (r *ringSockets) close(fd, of int32) (sending bool) {
	s := &r.list[of]
	sending = s.sending
	if s.armed || sending {
		sysShutdown(fd)
	}
	if s.armed && s.watched {
		r.stop(of, ringWatch)
	}
	if s.inSlot {
		s.inSlot = false
		r.call(0, of, opClose, callQuiet, ringNothing).slot = uint32(of) + 1
	}
	r.call(fd, of, opClose, callQuiet, ringNothing)
	*s = ringSocket{age: s.age + 1, fd: s.fd} // the kernel may be yet to read it
	return sending
}

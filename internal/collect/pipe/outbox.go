package pipe

import (
	"errors"
	"io"
	"sync"
)

// roomForRecords is the most bytes that wait for a pipe and may be dropped. With 5,000
// series a round has some 50 kB, so that a stall of minutes costs nothing.
const roomForRecords = 16 << 20

// errFull says that a pipe has taken nothing for so long that there is no room even for
// what cannot be dropped.
var errFull = errors.New("the pipe takes nothing any more")

// outbox holds the frames that a pipe has not taken yet, so that whoever reads a host
// never waits for it. It is safe for concurrent use.
type outbox struct {
	w    io.Writer
	room int // bytes for what may be dropped; half as much again for the rest

	mu     sync.Mutex
	change *sync.Cond // something came, went, or ended
	frames [][]byte
	bytes  int // of frames, and of the one that is being written
	err    error
	failed chan struct{} // closed when err is set
}

func newOutbox(w io.Writer, room int) *outbox {
	o := &outbox{w: w, room: room, failed: make(chan struct{})}
	o.change = sync.NewCond(&o.mu)
	go o.write()
	return o
}

// offer takes a frame if there is room for one that may be dropped.
func (o *outbox) offer(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.bytes+len(frame) > o.room {
		return false
	}
	o.push(frame)
	return true
}

// must takes a frame that cannot be dropped; where there is no room even for those,
// it is as if the pipe were cut.
func (o *outbox) must(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
	case o.bytes+len(frame) > o.room+o.room/2:
		o.end(errFull)
	default:
		o.push(frame)
	}
}

// wait takes a frame as soon as there is room for it.
func (o *outbox) wait(frame []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.bytes > 0 && o.bytes+len(frame) > o.room {
		o.change.Wait()
	}
	if o.err == nil {
		o.push(frame)
	}
	return o.err
}

func (o *outbox) push(frame []byte) {
	o.frames = append(o.frames, frame)
	o.bytes += len(frame)
	o.change.Broadcast()
}

// crowded says whether more than half of the room for records is taken.
func (o *outbox) crowded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes > o.room/2
}

// write hands the pipe one frame after the other, until it has failed.
func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.frames) == 0 && o.err == nil {
			o.change.Wait()
		}
		if o.err != nil {
			return
		}
		frame := o.frames[0]
		o.frames = o.frames[1:]
		o.mu.Unlock()
		_, err := o.w.Write(frame)
		o.mu.Lock()
		o.bytes -= len(frame)
		if err != nil {
			o.end(err)
		}
		o.change.Broadcast()
	}
}

// fail gives up what was not written.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end(err)
}

func (o *outbox) end(err error) {
	if o.err == nil {
		o.err, o.frames = err, nil
		close(o.failed)
	}
	o.change.Broadcast()
}

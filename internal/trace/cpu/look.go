package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"plimsoll/internal/trace/symbol"
)

// mostLooks is how many new processes are looked at in a second, at some 50 µs
// each. What is beyond is looked at with its samples, if it is still there then.
const mostLooks = 200

// looks takes snapshots of processes as soon as they are found on a CPU: many that
// burn CPU time do not live until their samples are fetched.
type looks struct {
	ring *ringbuf.Reader
	done chan struct{}
	mu   sync.Mutex
	new  []symbol.Snapshot
}

func look(announced *ebpf.Map) (*looks, error) {
	ring, err := ringbuf.NewReader(announced)
	if err != nil {
		return nil, fmt.Errorf("open the ring buffer of new processes: %w", err)
	}
	l := &looks{ring: ring, done: make(chan struct{})}
	go l.run()
	return l, nil
}

func (l *looks) run() {
	defer close(l.done)
	var second time.Time
	left := 0
	for {
		record, err := l.ring.Read()
		if errors.Is(err, ringbuf.ErrClosed) {
			return
		}
		if now := time.Now(); now.Sub(second) >= time.Second {
			second, left = now, mostLooks
		}
		if err != nil || left == 0 || len(record.RawSample) < 4 {
			continue
		}
		left--
		s, err := symbol.Take(int(binary.NativeEndian.Uint32(record.RawSample)))
		if err != nil {
			continue // it is gone
		}
		l.mu.Lock()
		if len(l.new) < 10*mostLooks {
			l.new = append(l.new, s)
		}
		l.mu.Unlock()
	}
}

// taken returns the snapshots that were taken since the last call.
func (l *looks) taken() []symbol.Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.new
	l.new = nil
	return list
}

// Close ends it.
func (l *looks) Close() error {
	err := l.ring.Close()
	<-l.done
	return err
}

package pcap

import "io"

// input is what packets are read from: bufio.Reader's part of it that is needed.
type input interface {
	Peek(n int) ([]byte, error)
	Discard(n int) (int, error)
}

// What is read ahead: so many chunks of so many bytes. Before each is room for what the
// one before it ends with, so that little is copied.
const (
	chunks    = 3
	chunkLen  = 128 << 10
	chunkRoom = 64 << 10
)

// ahead reads a file in a goroutine of its own: where packets were captured whole, the
// kernel's copying is half of the work.
type ahead struct {
	full, free chan *chunk
	stop       chan struct{}
	now        *chunk
	rest       []byte // what is at hand
	err        error  // what came after that
}

type chunk struct {
	b   [chunkRoom + chunkLen]byte
	n   int
	err error
}

func newAhead(in io.Reader) *ahead {
	a := &ahead{full: make(chan *chunk, chunks), free: make(chan *chunk, chunks), stop: make(chan struct{})}
	for range chunks {
		a.free <- &chunk{}
	}
	go a.read(in)
	return a
}

// read reads until the file ends, or nobody wants more.
func (a *ahead) read(in io.Reader) {
	defer close(a.full)
	for {
		select {
		case <-a.stop:
			return
		case c := <-a.free:
			c.n, c.err = 0, nil
			for c.n < chunkLen && c.err == nil {
				var n int
				n, c.err = in.Read(c.b[chunkRoom+c.n:])
				c.n += n
			}
			a.full <- c
			if c.err != nil {
				return
			}
		}
	}
}

// next puts the next chunk behind what is left at hand.
func (a *ahead) next() {
	c := <-a.full
	from := chunkRoom - len(a.rest)
	if from >= 0 {
		copy(c.b[from:], a.rest)
		a.rest = c.b[from : chunkRoom+c.n]
	} else { // a packet larger than most
		a.rest = append(append(make([]byte, 0, len(a.rest)+c.n), a.rest...), c.b[chunkRoom:chunkRoom+c.n]...)
	}
	if a.now != nil {
		a.free <- a.now
	}
	a.now, a.err = c, c.err
}

// Peek is bufio.Reader's, for any n.
func (a *ahead) Peek(n int) ([]byte, error) {
	for len(a.rest) < n && a.err == nil {
		a.next()
	}
	if len(a.rest) < n {
		return a.rest, a.err
	}
	return a.rest[:n], nil
}

// Discard is bufio.Reader's.
func (a *ahead) Discard(n int) (int, error) {
	b, err := a.Peek(n)
	a.rest = a.rest[len(b):]
	return len(b), err
}

// close ends the reading, and waits for that.
func (a *ahead) close() {
	close(a.stop)
	for range a.full {
	}
}

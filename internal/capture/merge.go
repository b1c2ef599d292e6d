package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"plimsoll/internal/capture/pcap"
)

// MaxSources is how many captures can be merged: each is open all the time.
const MaxSources = 512

// merger gives the packets of several captures in the order of time. Of packets
// with the same time those of the source come first whose name does, so that the order
// in which sources are named changes nothing.
type merger struct {
	names []string
	heads []*head // all sources, as they were named
	order []*head // those that have packets left, the earliest first
	given bool    // the packet of the first was given
}

// head is a source and its next packet.
type head struct {
	index   int // as it was named
	rank    int // by its name
	reader  Packets
	packets int64
	damage  *pcap.Damage
	done    bool

	next   pcap.Packet
	feed   chan *batch // where sources are read beside one another
	back   chan *batch
	batch  *batch
	at     int
	closed chan struct{}
}

func merge(sources []Source) (*merger, error) {
	if len(sources) > MaxSources {
		return nil, fmt.Errorf("%d captures at once, at most %d can be merged; merge some of them with mergecap first", len(sources), MaxSources)
	}
	m := &merger{}
	ranks := ranked(sources)
	for i, s := range sources {
		ahead := s.Ahead && s.Packets == nil && runtime.GOMAXPROCS(0) > 1 && len(sources) <= maxAhead
		r, err := s.open(ahead)
		if err != nil {
			m.close()
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		h := &head{index: i, rank: ranks[i], reader: r}
		m.names, m.heads = append(m.names, s.Name), append(m.heads, h)
		if !ahead && len(sources) > 1 && runtime.GOMAXPROCS(0) > 1 {
			h.start()
		}
	}
	if len(m.heads) == 1 {
		return m, nil
	}
	for _, h := range m.heads {
		if err := h.advance(); err != nil {
			m.close()
			return nil, fmt.Errorf("%s: %w", m.names[h.index], err)
		}
		if !h.done {
			m.order = append(m.order, h)
		}
	}
	slices.SortFunc(m.order, func(x, y *head) int {
		return cmp.Or(cmp.Compare(x.next.Time, y.next.Time), cmp.Compare(x.rank, y.rank))
	})
	return m, nil
}

// ranked returns the places of the sources in the order of their names.
func ranked(sources []Source) []int {
	order := make([]int, len(sources))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sources[a].Name, sources[b].Name) })
	ranks := make([]int, len(sources))
	for place, i := range order {
		ranks[i] = place
	}
	return ranks
}

// maxAhead is up to how many files are read ahead: each takes most of a MiB then.
const maxAhead = 32

func (s *Source) open(ahead bool) (Packets, error) {
	switch {
	case s.Packets != nil:
		return s.Packets, nil
	case ahead:
		return pcap.OpenAhead(s.In)
	}
	return pcap.Open(s.In)
}

func (m *merger) close() {
	for _, h := range m.heads {
		h.stop()
		h.reader.Close()
	}
}

// next gives the next packet; io.EOF when all sources have ended, pcap.Quiet while
// none can be given.
func (m *merger) next(k *pcap.Packet) error {
	if len(m.heads) == 1 {
		return m.heads[0].only(k)
	}
	if m.given {
		if err := m.order[0].advance(); err != nil {
			return err
		}
		m.sink()
	}
	if len(m.order) == 0 {
		return io.EOF
	}
	*k, m.given = m.order[0].next, true
	if k.Wire == noPacket {
		return pcap.Quiet
	}
	return nil
}

// noPacket is the length of what stands in place of a packet, and says by its time
// that a source has none before that.
const noPacket = -1

// sink moves the first source to where its next packet belongs.
func (m *merger) sink() {
	h := m.order[0]
	if h.done {
		m.order = m.order[1:]
		return
	}
	i := 1
	for ; i < len(m.order) && m.order[i].before(h); i++ {
		m.order[i-1] = m.order[i]
	}
	m.order[i-1] = h
}

func (h *head) before(other *head) bool {
	return cmp.Or(cmp.Compare(h.next.Time, other.next.Time), cmp.Compare(h.rank, other.rank)) < 0
}

// only reads the next packet of the only source.
func (h *head) only(k *pcap.Packet) error {
	if h.done {
		return io.EOF
	}
	if err := h.read(k); err != nil {
		return err
	}
	if h.done {
		return io.EOF
	}
	return nil
}

// read reads the source's next packet; a damage ends it, and is kept.
func (h *head) read(k *pcap.Packet) error {
	err := h.reader.Next(k)
	switch {
	case err == nil:
		h.packets++
		return nil
	case errors.Is(err, pcap.Quiet):
		return err
	case errors.Is(err, io.EOF):
		h.done = true
		return nil
	case errors.As(err, &h.damage):
		h.done = true
		return nil
	}
	return err
}

// advance makes the source's next packet the one to be given.
func (h *head) advance() error {
	if h.feed == nil {
		err := h.read(&h.next)
		if errors.Is(err, pcap.Quiet) {
			h.next, err = pcap.Packet{Time: h.next.Time, Wire: noPacket}, nil
		}
		return err
	}
	for h.batch == nil || h.at == len(h.batch.packets) {
		if h.batch != nil {
			h.back <- h.batch
			h.batch = nil
		}
		b, open := <-h.feed
		if !open {
			h.done = true
			return nil
		}
		h.batch, h.at = b, 0
		if b.err != nil {
			return b.err
		}
	}
	h.next = h.batch.packets[h.at]
	h.at++
	return nil
}

// batch is a number of packets with their bytes, on their way from the goroutine
// that reads a source.
type batch struct {
	packets []pcap.Packet
	bytes   []byte
	err     error
}

// A batch is passed on when it has so many packets, or so many bytes; of each
// source so many are under way.
const (
	batchPackets = 256
	batchBytes   = 128 << 10
	batches      = 3
)

// start reads the source in a goroutine of its own: decompressing is the most of
// the work with compressed files.
func (h *head) start() {
	h.feed, h.back, h.closed = make(chan *batch, batches), make(chan *batch, batches+1), make(chan struct{})
	for range batches {
		h.back <- &batch{}
	}
	go func() {
		defer close(h.feed)
		ended := false
		for !ended {
			select {
			case <-h.closed:
				return
			case b := <-h.back:
				ended = h.fill(b)
				h.feed <- b
			}
		}
	}()
}

// fill fills a batch; it says whether the source has ended.
func (h *head) fill(b *batch) bool {
	b.packets, b.bytes = b.packets[:0], b.bytes[:0]
	var k pcap.Packet
	for len(b.packets) < batchPackets && len(b.bytes) < batchBytes {
		err := h.reader.Next(&k)
		if errors.Is(err, pcap.Quiet) {
			b.packets = append(b.packets, pcap.Packet{Time: k.Time, Wire: noPacket})
			return false
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.As(err, &h.damage) {
				b.err = err
			}
			return true
		}
		h.packets++
		at := len(b.bytes)
		b.bytes = append(b.bytes, k.Data...)
		b.packets = append(b.packets, k)
		b.packets[len(b.packets)-1].Data = b.bytes[at:]
	}
	return false
}

// stop ends the goroutine, and waits for it.
func (h *head) stop() {
	if h.feed == nil {
		return
	}
	close(h.closed)
	for range h.feed {
	}
}

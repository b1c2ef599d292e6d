package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/filter"
	"plimsoll/internal/capture/live"
	"plimsoll/internal/capture/pcap"
	"plimsoll/internal/capture/tally"
	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// What is captured during a run, and how much of it is kept.
const (
	packetFilter = "tcp or icmp or icmp6"
	packetMemory = 64 << 20 // of connections, a host
	maxTold      = 1000     // events, a host
	room         = 1 << 20  // of MaxPackets, for what is written and not passed on yet
)

// MaxPackets is the most bytes of packets that are kept with a run, of a host.
const MaxPackets = 512 << 20

// packets captures what passes each host's interface, cut to headers, as a source: its
// signals are tally's, its events the connections that were reset; the packets are kept with the run.
type packets struct {
	iface string
	hosts []*host.Host
	rec   *Recorder
	end   context.CancelFunc
	each  []*hostPackets
	done  sync.WaitGroup
}

// hostPackets are those of one host.
type hostPackets struct {
	name  string
	ring  *live.Ring
	tally *tally.Tally
	file  *pcap.Writer
	kept  keeper

	told, untold int64 // events
	unkept       int64 // packets; of the reader alone, until it is done
	reading      *capture.Reading
	mu           sync.Mutex
	err          error // of the reader; nil while it reads
	over         bool
}

func newPackets(iface string, hosts []*host.Host, rec *Recorder) *packets {
	return &packets{iface: iface, hosts: hosts, rec: rec, end: func() {}}
}

// Start opens all captures before it reads any. One that cannot be opened is an error:
// packets were asked for.
func (p *packets) Start(ctx context.Context) error {
	ctx, p.end = context.WithCancel(context.WithoutCancel(ctx)) // what is there at the end is read
	for _, h := range p.hosts {
		one := &hostPackets{name: h.Name, tally: tally.New()}
		err := h.Do(func() (err error) {
			one.ring, err = live.Open(ctx, live.Options{Interface: p.iface, Filter: packetFilter, Snap: filter.Headers})
			return err
		})
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		one.kept = keeper{log: p.rec.Log, host: h.Name}
		one.file = pcap.NewWriter(&one.kept)
		p.each = append(p.each, one)
	}
	for _, one := range p.each {
		p.done.Go(func() { one.read() })
	}
	return nil
}

// read reads the host's packets until the capture ends.
func (h *hostPackets) read() {
	o := capture.Options{MaxMemory: packetMemory, Frame: func(f *capture.Frame) error {
		if h.kept.written > MaxPackets-room {
			h.unkept++
		} else if err := h.file.Packet(&f.Packet, f.Comment()); err != nil {
			return err
		}
		return h.tally.Frame(f)
	}}
	// Not the run's context: the ring ends with that, once all is read that was captured.
	r, err := capture.Read(context.Background(), []capture.Source{{Name: h.name, Packets: h.ring}}, o)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading, h.err, h.over = r, err, true
	if r != nil && r.Files[0].Damage != "" {
		h.err = errors.New(r.Files[0].Damage)
	}
}

// state is why the host's packets are not read any more, read while they are.
func (h *hostPackets) state() model.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return model.Status{State: model.Failed, Why: h.err.Error()}
	case h.over:
		return model.Status{State: model.Failed, Why: "the capture ended before the run"}
	}
	return model.Status{State: model.Read}
}

// Settle does nothing: packets are read all the time.
func (*packets) Settle() {}

// Phase does nothing: windows are told apart by the rounds.
func (*packets) Phase(string) {}

// Round records what there was so far. The kernel hands packets over within 100 ms, so
// the last of them may be counted in the next round.
func (p *packets) Round(_ context.Context, r Round) error {
	for _, h := range p.each {
		st := h.state()
		for _, s := range tally.Signals {
			p.rec.Book.Set([]string{h.name}, s, st, r.Time, 0)
		}
		if st.State == model.Read {
			p.record(h, r.Time)
		}
	}
	return nil
}

func (p *packets) record(h *hostPackets, at time.Time) {
	h.tally.Put(sink{p.rec, h.name, at.UnixMilli()}, h.ring.Dropped(), at.UnixNano())
	list, more := h.tally.Events()
	h.untold += more
	for i := range list {
		if h.told++; h.told > maxTold {
			h.untold++
			continue
		}
		p.rec.Event(model.Event{Time: list[i].Time / 1e6, Host: h.name, Kind: "capture.reset", Text: list[i].Text()})
	}
}

// Close ends the captures, and says what they lost.
func (p *packets) Close() error {
	p.end()
	p.done.Wait()
	var errs []error
	for _, h := range p.each {
		dropped := h.ring.Dropped()
		h.ring.Close()
		if dropped > 0 {
			errs = append(errs, h.file.Dropped(dropped))
			p.rec.Note(fmt.Sprintf("packets of %s: %d found no room and were not seen; what looks lost on the way may be these", h.name, dropped))
		}
		if h.unkept > 0 {
			p.rec.Note(fmt.Sprintf("packets of %s: %d were counted and not kept, beyond %d MiB", h.name, h.unkept, MaxPackets>>20))
		}
		if h.untold > 0 {
			p.rec.Note(fmt.Sprintf("packets of %s: %d more connections were reset than there are events", h.name, h.untold))
		}
		if h.reading != nil && h.reading.Forgotten > 0 {
			p.rec.Note(fmt.Sprintf("packets of %s: %d connections were forgotten for lack of room", h.name, h.reading.Forgotten))
		}
		errs = append(errs, h.file.Flush())
	}
	return errors.Join(errs...)
}

// keeper passes on what is kept of a host's packets.
type keeper struct {
	log     Log
	host    string
	written int64
}

// Write implements io.Writer.
func (k *keeper) Write(b []byte) (int, error) {
	k.written += int64(len(b))
	return len(b), k.log.Packets(k.host, b)
}

// sink records samples of one host and moment.
type sink struct {
	rec  *Recorder
	host string
	at   int64
}

// Put implements model.Sink.
func (s sink) Put(sig *model.Signal, value float64, values ...string) {
	s.rec.Sample(s.host, s.at, sig, value, values...)
}

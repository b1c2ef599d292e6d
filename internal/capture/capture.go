// Package capture reads packet captures: who talked to whom, what Wireshark
// would say of each segment, and what that does not say: why. Files of any size
// go through in one pass; what is kept is bounded.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/http"
	"plimsoll/internal/capture/pcap"
	"plimsoll/internal/capture/tcp"
)

// Rules names whose labels ours are equal to.
const Rules = "Wireshark 4.4.18"

// Source is a capture to be read: a file, or packets from elsewhere.
type Source struct {
	Name    string
	In      io.Reader // a file; nil where Packets is set
	Ahead   bool      // In may be read ahead: it does not wait for anybody who writes it
	Packets Packets   // closed by Read, unless that reads none
}

// Packets is where packets come from: a file (pcap.Reader), or an interface
// (live.Ring). It is used by one goroutine at a time.
type Packets interface {
	// Next reads the next packet, whose bytes are good until the next call. The
	// error is io.EOF at the end, a *pcap.Damage where there is no more to be had,
	// and pcap.Quiet where nothing has come yet.
	Next(k *pcap.Packet) error
	// Dropped is how many packets were lost by the capture itself.
	Dropped() int64
	Close()
}

// Options say how to read.
type Options struct {
	MaxMemory int64                // what connections may take, in bytes; 0 for no limit
	Outer     bool                 // take the outermost IP header for the connection, in place of the innermost
	Frame     func(*Frame) error   // is told of every packet, if set
	Reply     func(*http.Exchange) // is told of every request and its reply, if set
	Progress  func(packets int64)  // is told how far it is, every few thousand packets, and while none come
}

// Frame is a packet and what there is to say of it. It is good until the next one.
type Frame struct {
	Number  uint32 // from 1, over all sources together
	Packet  pcap.Packet
	Kind    decode.Kind
	Segment decode.Segment
	Result  tcp.Result // where Kind is TCP; of Quoted, whose segment is quoted
	cause.Judgement
	In *Reading // which it is of: connections and resets up to here, no summary yet
}

// maxFrames is how many packets can be numbered.
const maxFrames = 1<<32 - 1

// Reading is a capture that was read.
type Reading struct {
	Summary
	TCP   *tcp.Analyzer
	Judge *cause.Judge
}

// run is one reading under way.
type run struct {
	o       Options
	out     *Reading
	frame   Frame
	decoder decode.Decoder
	tracker http.Tracker
	meter   meter
}

// Read reads captures, merged by time. A source that is cut or broken gives what
// it has before that: the summary is Partial, and says what was wrong. The error
// is of the context, of Options.Frame, or of a source that is no capture at all.
func Read(ctx context.Context, sources []Source, o Options) (*Reading, error) {
	m, err := merge(sources)
	if err != nil {
		return nil, err
	}
	defer m.close()
	t := tcp.New()
	t.MaxBytes = o.MaxMemory
	r := &run{o: o, out: &Reading{TCP: t, Judge: cause.NewJudge(t)}, meter: newMeter()}
	r.frame.In = r.out
	r.decoder.Outer = o.Outer
	r.tracker.Done = r.reply
	t.Evict = r.over
	if err := r.packets(ctx, m); err != nil {
		return nil, err
	}
	t.Conns(r.over)
	r.out.Judge.End(r.meter.end)
	r.finish(m)
	return r.out, nil
}

func (r *run) packets(ctx context.Context, m *merger) error {
	f := &r.frame
	for {
		err := m.next(&f.Packet)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, pcap.Quiet):
			if err := r.pause(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if f.Number == maxFrames {
			r.out.note("after %d packets nothing more was read: frames have numbers of 32 bits", maxFrames)
			return nil
		}
		f.Number++
		r.packet(f)
		if r.o.Frame != nil {
			if err := r.o.Frame(f); err != nil {
				return err
			}
		}
		if f.Number&0x3fff == 0 {
			if err := r.pause(ctx); err != nil {
				return err
			}
		}
	}
}

// pause tells how far it is, and whether it is to go on.
func (r *run) pause(ctx context.Context) error {
	if r.o.Progress != nil {
		r.o.Progress(int64(r.frame.Number))
	}
	return ctx.Err()
}

// packet takes one packet through all stages.
func (r *run) packet(f *Frame) {
	now := f.Packet.Time
	f.Judgement = cause.Judgement{}
	f.Kind = r.decoder.Decode(&f.Packet, &f.Segment)
	r.meter.packet(&f.Packet)
	switch f.Kind {
	case decode.Quoted:
		r.out.TCP.Quoted(f.Number, now, &f.Segment, &f.Result)
	case decode.TCP:
		r.out.TCP.Segment(f.Number, now, &f.Segment, &f.Result)
		f.Judgement = r.out.Judge.Segment(&f.Result, &f.Segment, f.Number, now)
		r.meter.segment(f)
		if !f.Segment.HeaderBad {
			r.tracker.Segment(&f.Result, &f.Segment, http.Mark{Frame: f.Number, Time: now})
		}
		f.Result.Show(&f.Segment)
		r.meter.labelled(f.Result.Labels)
	}
}

func (r *run) reply(e *http.Exchange) {
	r.meter.reply(e)
	if r.o.Reply != nil {
		r.o.Reply(e)
	}
}

// over takes up a connection at its end: that of the capture, or because there is
// no more room for it.
func (r *run) over(c *tcp.Conn) {
	r.tracker.Close(c)
	r.out.Judge.Conn(c)
	r.meter.conn(r.out.TCP, c)
}

func (s *Summary) note(format string, args ...any) {
	s.Partial = true
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

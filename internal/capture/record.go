package capture

import (
	"net/netip"
	"strings"

	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/http"
	"plimsoll/internal/capture/tcp"
)

// Connection is one connection, as it is written out.
type Connection struct {
	Stream       uint32         `json:"stream"`
	Client       netip.AddrPort `json:"client"`
	Server       netip.AddrPort `json:"server"`
	Known        bool           `json:"handshake_captured"` // else the lower port is taken for the server's
	Opener       netip.AddrPort `json:"opener"`             // who sent the first segment
	FirstFrame   uint32         `json:"first_frame"`
	Start        int64          `json:"start_ns"`
	End          int64          `json:"end_ns"`
	IRTT         int64          `json:"irtt_ns,omitempty"`
	Completeness uint8          `json:"completeness"`
	State        string         `json:"state"`
	Packets      [2]uint32      `json:"packets"` // of the client, of the server
	Bytes        [2]uint64      `json:"payload"` // likewise
	Resent       [2]uint32      `json:"resent"`  // likewise: segments labelled as a retransmission
	RSTs         uint16         `json:"resets"`
	FirstFIN     string         `json:"closed_first_by,omitempty"` // client or server; it holds TIME_WAIT
	Cause        string         `json:"reset_cause,omitempty"`
	Idle         int64          `json:"idle_before_close_ns,omitempty"`
	Before       *uint32        `json:"ports_of_stream,omitempty"` // the stream that had the ports before
	Labels       []string       `json:"labels"`
}

// Connection writes out a connection.
func (r *Reading) Connection(c *tcp.Conn) Connection { return connection(r.TCP, c) }

func connection(t *tcp.Analyzer, c *tcp.Conn) Connection {
	server, known := c.Server()
	k, s := &c.Half[1-server], &c.Half[server]
	out := Connection{
		Stream: c.Stream, Client: t.Addr(c, 1-server), Server: t.Addr(c, server), Known: known, Opener: t.Addr(c, c.Opener),
		FirstFrame: c.Frame, Start: c.Start, End: max(c.Start, k.LastTime(), s.LastTime()),
		Completeness: c.Completeness, State: Completeness(c.Completeness), Packets: [2]uint32{k.Packets, s.Packets},
		Bytes: [2]uint64{k.Bytes, s.Bytes}, Resent: [2]uint32{k.Resent, s.Resent}, RSTs: c.RSTs, Labels: []string{},
	}
	if c.Timed {
		out.IRTT = c.IRTT()
	}
	if c.FirstFIN != 0 {
		out.FirstFIN, out.Idle = "client", c.Idle.NS()
		if c.FirstFIN == 1+server {
			out.FirstFIN = "server"
		}
	}
	if c.Cause != 0 {
		out.Cause = cause.Of(c).String()
	}
	if c.Reused {
		out.Before = &c.Before
	}
	if c.Labelled != 0 {
		out.Labels = strings.Split(c.Labelled.String(), ",")
	}
	return out
}

// Exchange is a request and its reply, as it is written out.
type Exchange struct {
	Stream    uint32 `json:"stream"`
	Protocol  string `json:"protocol"`
	Status    uint16 `json:"status,omitempty"`
	Number    uint32 `json:"number"` // of the request on its connection
	Request   Span   `json:"request"`
	Reply     *Span  `json:"reply,omitempty"` // absent: there was none
	FirstByte *int64 `json:"first_byte_ns,omitempty"`
	LastByte  *int64 `json:"last_byte_ns,omitempty"`
}

// Span is from the frame of a message's first byte to that of its last.
type Span struct {
	First uint32 `json:"first_frame"`
	Last  uint32 `json:"last_frame,omitempty"` // 0: the capture does not have it
}

// NewExchange writes out a request and its reply.
func NewExchange(e *http.Exchange) Exchange {
	out := Exchange{Stream: e.Stream, Protocol: e.Protocol.String(), Status: e.Status, Number: e.Number, Request: Span{e.ReqFirst.Frame, e.ReqLast.Frame}}
	if e.ReplyFirst.Frame != 0 {
		first := e.FirstByte()
		out.Reply, out.FirstByte = &Span{e.ReplyFirst.Frame, e.ReplyLast.Frame}, &first
		if e.ReplyLast.Frame != 0 {
			last := e.LastByte()
			out.LastByte = &last
		}
	}
	return out
}

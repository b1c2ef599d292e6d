// Package tcp follows TCP connections through a capture and labels their
// segments exactly as Wireshark 4.4 does in one pass. What it keeps of a
// connection is of a fixed size and without pointers, so that half a million of
// them cost the garbage collector nothing.
package tcp

import "math/bits"

// Label is a set of what Wireshark says of a segment.
type Label uint32

// The labels, in the order in which they are written.
const (
	Retransmission Label = 1 << iota // the generic one: a timer ran out
	FastRetransmission
	SpuriousRetransmission
	OutOfOrder
	DuplicateACK
	LostSegment    // "previous segment not captured"
	ACKLostSegment // "ACKed unseen segment"
	ZeroWindow
	ZeroWindowProbe
	ZeroWindowProbeACK
	WindowFull
	WindowUpdate
	KeepAlive
	KeepAliveACK
	ReusedPorts
	SYN
	SYNACK
	FIN
	RST
	FINActive  // of the side that was first with it
	FINPassive // of the other
)

// Labels is how many there are.
const Labels = 21

var names = [Labels]string{
	"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack", "lost_segment",
	"ack_lost_segment", "zero_window", "zero_window_probe", "zero_window_probe_ack", "window_full", "window_update",
	"keep_alive", "keep_alive_ack", "reused_ports", "syn", "synack", "fin", "rst", "fin_active", "fin_passive",
}

// OfFlags are the labels that a header's flags give. Wireshark has no others for a segment whose
// header was cut when it was captured: it stops there, before it shows what it had found.
const OfFlags = SYN | SYNACK | FIN | RST | FINActive | FINPassive

// Severity is how Wireshark ranks a label in its expert information.
type Severity uint8

// The ranks, the gravest last.
const (
	Chat Severity = iota
	Note
	Warning
)

func (s Severity) String() string { return [...]string{"chat", "note", "warning"}[s] }

const (
	chats    = WindowUpdate | SYN | SYNACK | FIN
	warnings = OutOfOrder | LostSegment | ACKLostSegment | WindowFull | ZeroWindow | RST
)

// Severity returns the rank of a single label.
func (l Label) Severity() Severity {
	switch {
	case l&warnings != 0:
		return Warning
	case l&chats != 0:
		return Chat
	}
	return Note
}

// First is the number of the first label of a set, 0 … Labels-1.
func (l Label) First() int { return bits.TrailingZeros32(uint32(l)) }

// Append appends the names of the set, with commas between them.
func (l Label) Append(b []byte) []byte {
	start := len(b)
	for ; l != 0; l &= l - 1 {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, names[l.First()]...)
	}
	return b
}

func (l Label) String() string { return string(l.Append(nil)) }

var words = [Labels]string{
	"retransmission", "fast retransmission", "spurious retransmission", "out of order", "duplicate ACK", "previous segment not captured",
	"ACKed unseen segment", "zero window", "zero-window probe", "ACK of a zero-window probe", "window full", "window update",
	"keep-alive", "ACK of a keep-alive", "port numbers reused", "SYN", "SYN-ACK", "FIN", "RST", "first side to close", "second side to close",
}

// Words is a single label as people read it.
func (l Label) Words() string { return words[l.First()] }

// Package pipe has a collector observe from a process of its own: Serve is that
// process' main function, Remote the session's end. README.md describes what they say
// to each other.
package pipe

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// protocol is the version of what README.md describes.
const protocol = 1

// maxFrame is the most bytes of one frame, its kind included.
const maxFrame = 1 << 20

// kind says what a frame is.
type kind byte

// The kinds. The session says commands alone.
const (
	isCommand kind = 'C'
	isAnswer  kind = 'A'
	isSignal  kind = 'G'
	isSeries  kind = 'S'
	isValues  kind = 'V'
	isEvent   kind = 'E'
	isStatus  kind = 'U'
	isNote    kind = 'N'
	isFile    kind = 'F'
	isPackets kind = 'P'
	isTraced  kind = 'T'
	isRound   kind = 'R'
)

// What a command asks for.
const (
	doHello   = "hello"
	doOpen    = "open"
	doStart   = "start"
	doSettle  = "settle"
	doEdge    = "edge"
	doIgnore  = "ignore"
	doCommand = "command"
	doClose   = "close"
)

// command is what a session asks; all times are of the collector's clock.
type command struct {
	ID       int64           `json:"id"`
	Do       string          `json:"do"`
	Protocol int             `json:"protocol,omitempty"` // hello
	Config   *collect.Config `json:"config,omitempty"`   // open
	Time     int64           `json:"t_ms,omitempty"`     // edge
	Window   string          `json:"window,omitempty"`   // edge
	PID      int             `json:"pid,omitempty"`      // ignore, command
}

// answer is what a collector says to a command.
type answer struct {
	ID      int64    `json:"id"`
	Failure *failure `json:"failure,omitempty"`
	// Heard and Said are when the command came and the answer was made, by the
	// collector's clock, in Unix nanoseconds.
	Heard int64 `json:"heard_ns"`
	Said  int64 `json:"said_ns"`

	Protocol int            `json:"protocol,omitempty"` // hello
	Version  string         `json:"version,omitempty"`  // hello: the program's
	Hosts    []collect.Host `json:"hosts,omitempty"`    // open
	Here     string         `json:"here,omitempty"`     // open
	Time     int64          `json:"t_ms,omitempty"`     // settle, edge
	Cost     *collect.Cost  `json:"cost,omitempty"`     // edge, close
	Dropped  *lost          `json:"dropped,omitempty"`  // close: what no round told
}

// failure is an error that crosses the pipe.
type failure struct {
	Text   string `json:"text"`
	Absent bool   `json:"absent,omitempty"`
	Denied bool   `json:"denied,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{short(err.Error()), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission)}
}

func (f *failure) Error() string { return f.Text }

// Is makes it what it was at the other end.
func (f *failure) Is(target error) bool {
	return f.Absent && target == fs.ErrNotExist || f.Denied && target == fs.ErrPermission
}

// err is the failure as an error, nil if there was none.
func (a answer) err() error {
	if a.Failure == nil {
		return nil
	}
	return a.Failure
}

// The other frames in JSON; an event is a model.Event, a note a string, what was traced a model.Tracing.
type (
	signalFrame struct {
		Name         string   `json:"name"`
		Labels       []string `json:"labels,omitempty"`
		StartsAtZero bool     `json:"starts_at_zero,omitempty"`
	}
	statusFrame struct {
		Host   string `json:"host"`
		Signal string `json:"signal"`
		model.Status
	}
	roundFrame struct {
		Number  int   `json:"number"`
		Time    int64 `json:"t_ms"`
		Edge    bool  `json:"edge,omitempty"`
		Dropped *lost `json:"dropped,omitempty"`
	}
)

// lost is what a collector had no room for since it last told.
type lost struct {
	Rounds  int64 `json:"rounds"` // none of which came whole
	Samples int64 `json:"samples"`
	Events  int64 `json:"events"`
	Notes   int64 `json:"notes"`
	From    int64 `json:"from_ms"` // time of the first of them
}

// maxText is the most bytes of a sentence.
const maxText = 4096

func short(s string) string { return s[:min(len(s), maxText)] }

// frame makes one of a payload.
func frame(k kind, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 5+len(payload)), uint32(1+len(payload)))
	return append(append(b, byte(k)), payload...)
}

// jsonFrame makes one of something that has a form in JSON.
func jsonFrame(k kind, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types above have one
	}
	return frame(k, raw)
}

// readFrame reads the next frame into buf, which it may replace. The payload is valid
// until the next call. The end of the stream between two frames is io.EOF.
func readFrame(r *bufio.Reader, buf *[]byte) (kind, []byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n == 0 || n > maxFrame {
		said, _ := r.Peek(min(r.Buffered(), 60))
		return 0, nil, fmt.Errorf("want a frame of 1 to %d bytes, got %q: something else than Plimsoll writes there", maxFrame, said)
	}
	if _, err := r.Discard(4); err != nil {
		return 0, nil, err
	}
	if cap(*buf) < int(n) {
		*buf = make([]byte, n)
	}
	b := (*buf)[:n]
	if _, err := io.ReadFull(r, b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return kind(b[0]), b[1:], nil
}

// parse reads a payload in JSON.
func parse[T any](payload []byte) (v T, err error) {
	err = json.Unmarshal(payload, &v)
	return v, err
}

// errShort says that a binary payload ends too early.
var errShort = errors.New("it ends before its time")

// takeNumber cuts an unsigned number off b.
func takeNumber(b []byte) (uint64, []byte, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, errShort
	}
	return n, b[size:], nil
}

// appendString is the form of a string: its length before it.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// takeString cuts a string off b.
func takeString(b []byte) (string, []byte, error) {
	n, b, err := takeNumber(b)
	if err != nil || n > uint64(len(b)) {
		return "", nil, errShort
	}
	return string(b[:n]), b[n:], nil
}

// appendValue is the form of one value of a series.
func appendValue(b []byte, series uint64, v float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, series), math.Float64bits(v))
}

// eachValue reads the values of a payload, whose time comes first.
func eachValue(b []byte, do func(t int64, series uint64, v float64) error) error {
	t, size := binary.Varint(b)
	if size <= 0 {
		return errShort
	}
	for b = b[size:]; len(b) > 0; {
		id, rest, err := takeNumber(b)
		if err != nil || len(rest) < 8 {
			return errShort
		}
		b = rest[8:]
		if err := do(t, id, math.Float64frombits(binary.LittleEndian.Uint64(rest))); err != nil {
			return err
		}
	}
	return nil
}

package load

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// outcome is how a request ended: kind<<8 | detail. A status class is kind
// replied with detail 1…5; a failure has the kind of the step that failed and
// an errno, or one of the details that have no errno.
type outcome uint16

// kinds of outcome
const (
	replied = iota
	connectFailed
	writeFailed
	readFailed
	queueFailed
	protocolFailed
	tlsFailed     // in the handshake
	tlsAlert      // the server ended the handshake with an alert: detail is its code
	readAlert     // it did so afterwards
	checkFailed   // a complete reply, and not the one that was expected
	expectedError // a reply from 400 on that was expected: detail is its class
	goneAway      // HTTP/2: the server ended the connection without answering: detail is the error code of its GOAWAY
	streamReset   // HTTP/2: it gave up the request: detail is the error code of its RST_STREAM

	outcomes = (streamReset + 1) << 8
)

// details that stand for no errno (Linux errnos end at 133)
const (
	cancelled = 252 + iota
	sawEOF
	timedOut
)

// details of checkFailed
const (
	wrongStatus = 1 + iota
	missingText
	wrongLength
)

// fault is what is wrong with a reply.
type fault uint8

const (
	noFault fault = iota
	badStatusLine
	badHeader
	badContentLength
	badChunk
	headTooLarge
	tooManyInterim
	excessData
	unaskedReply
	unaskedUpgrade
	// of HTTP/2
	notHTTP2
	badFrame
	badFrameSize
	badHeaderBlock
	badStatus
	badSettings
	badWindow
	frameFlood
)

func (f fault) String() string {
	return [...]string{
		noFault:          "",
		badStatusLine:    "bad_status_line",
		badHeader:        "bad_header",
		badContentLength: "bad_content_length",
		badChunk:         "bad_chunk",
		headTooLarge:     "head_too_large",
		tooManyInterim:   "too_many_interim",
		excessData:       "excess_data",
		unaskedReply:     "unasked_reply",
		unaskedUpgrade:   "unasked_upgrade",
		notHTTP2:         "not_http2",
		badFrame:         "bad_frame",
		badFrameSize:     "bad_frame_size",
		badHeaderBlock:   "bad_header_block",
		badStatus:        "bad_status",
		badSettings:      "bad_settings",
		badWindow:        "bad_window",
		frameFlood:       "frame_flood",
	}[f]
}

func failure(kind, detail int) outcome { return outcome(kind<<8 | detail&0xff) }

func (o outcome) kind() int   { return int(o >> 8) }
func (o outcome) detail() int { return int(o & 0xff) }

// isReply says that a reply came, and one that passes.
func (o outcome) isReply() bool { return o.kind() == replied || o.kind() == expectedError }

// String is the outcome's name in records: "2xx", "connect:ECONNREFUSED",
// "read:timeout", "read:eof", "queue:timeout", "protocol:bad_chunk", "tls:certificate_expired",
// "tls:alert_handshake_failure", "read:alert_internal_error", "goaway:NO_ERROR", "rst_stream:REFUSED_STREAM".
func (o outcome) String() string {
	kinds := [...]string{
		connectFailed: "connect", writeFailed: "write", readFailed: "read",
		queueFailed: "queue", protocolFailed: "protocol", tlsFailed: "tls", tlsAlert: "tls", readAlert: "read",
		goneAway: "goaway", streamReset: "rst_stream",
	}
	switch o.kind() {
	case replied:
		return fmt.Sprintf("%dxx", o.detail())
	case protocolFailed:
		return "protocol:" + fault(o.detail()).String()
	case checkFailed:
		return "check:" + map[int]string{wrongStatus: "status", missingText: "body", wrongLength: "length"}[o.detail()]
	case expectedError:
		return fmt.Sprintf("expected:%dxx", o.detail())
	case tlsAlert, readAlert:
		return kinds[o.kind()] + ":alert_" + alertName(o.detail())
	case goneAway, streamReset:
		return kinds[o.kind()] + ":" + codeName(o.detail())
	}
	return kinds[o.kind()] + ":" + detailName(o.detail())
}

func detailName(d int) string {
	switch d {
	case cancelled:
		return "cancelled"
	case sawEOF:
		return "eof"
	case timedOut:
		return "timeout"
	}
	if name := badTLSName(d); name != "" {
		return name
	}
	if name := unix.ErrnoName(syscall.Errno(d)); name != "" {
		return name
	}
	return fmt.Sprintf("errno_%d", d)
}

package load

import "bytes"

// Limits of what a server may send us.
const (
	maxHead      = 64 << 10 // bytes of one reply's status line, headers and trailers
	maxChunkLine = 1 << 10  // bytes of one chunk-size line, extensions included
	maxInterim   = 16       // 1xx replies before the final one
)

// firstError is the first status that tells of an error.
const firstError = 400

// step says how far a reply has come.
type step uint8

const (
	more   step = iota // the reply is not complete yet
	done               // the reply is complete
	broken             // what came is no HTTP/1.x reply; reply.fault says why
)

// states of a reply.
type replyState uint8

const (
	inStatusLine replyState = iota
	inHeader
	inBody // left bytes of it to come
	inBodyUntilEOF
	inChunkSize
	inChunkData
	inChunkEnd
	inTrailer
	atEnd
)

// reply follows one HTTP/1.x reply through any split into pieces. It keeps
// nothing of the input but the beginning of a line that a piece cut off.
type reply struct {
	state     replyState
	fault     fault
	toHEAD    bool
	upgrade   bool // the request asked for another protocol
	version10 bool
	close     bool
	keepAlive bool
	coded     bool // a Transfer-Encoding was given
	chunked   bool // and its last coding is chunked
	interim   uint8
	status    int16
	head      int32 // bytes of head and trailers so far
	length    int64 // Content-Length, -1 when there is none; from the end of the head on the body's length, as far as it is known
	left      int64 // bytes of body or chunk still to come
	carry     []byte
	text      *pattern // to be found in the body, nil for none
	have      int32    // bytes of it that were; see pattern.search
}

// reset prepares for the reply to a new request; toHEAD says that no body will follow.
func (r *reply) reset(toHEAD bool) {
	*r = reply{toHEAD: toHEAD, length: -1, carry: r.carry[:0]}
}

// look looks for the text in a piece of the body.
func (r *reply) look(b []byte) {
	if r.text != nil {
		r.have = r.text.search(r.have, b)
	}
}

// found says that the text was in the body.
func (r *reply) found() bool { return int(r.have) == len(r.text.text) }

// reusable says, of a complete reply, whether the server will take another request.
func (r *reply) reusable() bool {
	return !r.close && (!r.version10 || r.keepAlive)
}

// feed takes the next piece of input and returns how much of it belonged to the reply.
func (r *reply) feed(b []byte) (used int, s step) {
	for r.state != atEnd {
		rest := b[used:]
		switch r.state {
		case inBody, inChunkData:
			n := min(r.left, int64(len(rest)))
			r.look(rest[:n])
			used += int(n)
			r.skip(n)
		case inBodyUntilEOF:
			r.look(rest)
			r.length += int64(len(rest))
			return len(b), more
		default:
			line, n, s := r.line(rest)
			used += n
			if s != done {
				return used, s
			}
			if !r.takeLine(line) {
				return used, broken
			}
			continue
		}
		if used == len(b) && r.state != atEnd {
			return used, more
		}
	}
	return used, done
}

// skippable is how many bytes of body are still sure to come, and need not be looked at.
func (r *reply) skippable() int64 {
	if r.text != nil && !r.found() {
		return 0
	}
	if r.state == inBody || r.state == inChunkData {
		return r.left
	}
	return 0
}

// skip passes over n ≤ skippable bytes.
func (r *reply) skip(n int64) step {
	r.left -= n
	if r.state == inChunkData {
		r.length += n
	}
	if r.left > 0 {
		return more
	}
	if r.state == inChunkData {
		r.state = inChunkEnd
		return more
	}
	r.state = atEnd
	return done
}

// eof takes the end of the connection and says whether it completes the reply.
func (r *reply) eof() bool {
	if r.state == inBodyUntilEOF {
		r.state = atEnd
	}
	return r.state == atEnd
}

// line cuts the next line off b, without its end. It returns more when b holds no whole line.
func (r *reply) line(b []byte) (line []byte, used int, s step) {
	end := bytes.IndexByte(b, '\n')
	piece, used := b, len(b)
	if end >= 0 {
		piece, used = b[:end], end+1
	}
	line = piece
	if end < 0 || len(r.carry) > 0 {
		r.carry = append(r.carry, piece...)
		line = r.carry
	}
	if r.fault = r.checkLine(line); r.fault != noFault {
		return nil, used, broken
	}
	if end < 0 {
		return nil, used, more
	}
	r.carry = r.carry[:0]
	if r.state != inChunkSize && r.state != inChunkEnd {
		r.head += int32(len(line)) + 1
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, used, done
}

// checkLine judges a line that may not be complete, so that a flood without an
// end, or a server that does not speak HTTP, is known at once.
func (r *reply) checkLine(line []byte) fault {
	const prefix = "HTTP/1."
	switch r.state {
	case inStatusLine:
		n := min(len(line), len(prefix))
		if string(line[:n]) != prefix[:n] {
			return badStatusLine
		}
	case inChunkSize, inChunkEnd:
		if len(line) > maxChunkLine {
			return badChunk
		}
		return noFault
	}
	if int(r.head)+len(line) > maxHead {
		return headTooLarge
	}
	return noFault
}

// takeLine takes a whole line and says whether it was right where it stood.
func (r *reply) takeLine(line []byte) bool {
	switch r.state {
	case inStatusLine:
		r.fault = r.takeStatus(line)
	case inHeader:
		if len(line) == 0 {
			r.fault = r.endHead()
		} else {
			r.fault = r.takeHeader(line)
		}
	case inChunkSize:
		r.fault = r.takeChunkSize(line)
	case inChunkEnd:
		r.state = inChunkSize
		if len(line) != 0 {
			r.fault = badChunk
		}
	case inTrailer:
		if len(line) == 0 {
			r.state = atEnd
		}
	}
	return r.fault == noFault
}

// takeStatus parses "HTTP/1.1 200 OK"; the reason may be missing.
func (r *reply) takeStatus(line []byte) fault {
	const least = len("HTTP/1.1 200")
	if len(line) < least || !isDigit(line[7]) || line[8] != ' ' || len(line) > least && line[least] != ' ' {
		return badStatusLine
	}
	code, ok := parseDigits(line[9:least])
	if !ok || code < 100 || code > 599 {
		return badStatusLine
	}
	r.status = int16(code)
	r.version10 = line[7] == '0'
	r.state = inHeader
	return noFault
}

// takeHeader looks for the three headers that say where a reply ends.
func (r *reply) takeHeader(line []byte) fault {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || isBlank(line[0]) || isBlank(line[colon-1]) {
		return badHeader
	}
	name, value := line[:colon], line[colon+1:]
	switch {
	case equalFold(name, "content-length"):
		return r.takeLength(trim(value))
	case equalFold(name, "transfer-encoding"):
		r.coded = true
		r.chunked = equalFold(lastToken(value), "chunked")
	case equalFold(name, "connection"):
		for len(value) > 0 {
			var token []byte
			token, value = nextToken(value)
			r.close = r.close || equalFold(token, "close")
			r.keepAlive = r.keepAlive || equalFold(token, "keep-alive")
		}
	}
	return noFault
}

func (r *reply) takeLength(value []byte) fault {
	n, ok := parseDigits(value)
	if !ok || r.length >= 0 && r.length != n {
		return badContentLength
	}
	r.length = n
	return noFault
}

// endHead decides, at the empty line, how the body ends (RFC 9112, 6.3).
func (r *reply) endHead() fault {
	const switchingProtocols = 101
	if r.status < 200 && r.status != switchingProtocols {
		if r.interim == maxInterim {
			return tooManyInterim
		}
		// What its headers said was not about the final reply.
		*r = reply{toHEAD: r.toHEAD, upgrade: r.upgrade, text: r.text, interim: r.interim + 1, head: r.head, length: -1, carry: r.carry}
		return noFault
	}
	switch {
	case r.status == switchingProtocols && !r.upgrade:
		return unaskedUpgrade
	case r.status == switchingProtocols:
		r.close = true
		r.length, r.state = 0, atEnd
	case r.toHEAD || r.status == 204 || r.status == 304:
		r.length, r.state = 0, atEnd
	case r.chunked:
		// Both headers at once are how requests are smuggled: never reuse such a connection.
		r.close = r.close || r.length >= 0
		r.length, r.state = 0, inChunkSize
	case r.length > 0 && !r.coded:
		r.left = r.length
		r.state = inBody
	case r.length == 0 && !r.coded:
		r.state = atEnd
	default:
		r.close = true
		r.length, r.state = 0, inBodyUntilEOF
	}
	return noFault
}

// takeChunkSize parses "1a2b" or "1a2b;extension".
func (r *reply) takeChunkSize(line []byte) fault {
	const maxDigits = 15 // fits an int64
	digits := line
	if semicolon := bytes.IndexByte(line, ';'); semicolon >= 0 {
		digits = line[:semicolon]
	}
	digits = trim(digits)
	if len(digits) == 0 || len(digits) > maxDigits {
		return badChunk
	}
	var n int64
	for _, c := range digits {
		d := hexDigit(c)
		if d < 0 {
			return badChunk
		}
		n = n<<4 | int64(d)
	}
	r.left = n
	r.state = inChunkData
	if n == 0 {
		r.state = inTrailer
	}
	return noFault
}

// parseDigits parses a decimal number of 1 to 18 digits.
func parseDigits(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func hexDigit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// trim cuts blanks off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// nextToken cuts the first element off a comma-separated list.
func nextToken(list []byte) (token, rest []byte) {
	if comma := bytes.IndexByte(list, ','); comma >= 0 {
		return trim(list[:comma]), list[comma+1:]
	}
	return trim(list), nil
}

func lastToken(list []byte) []byte {
	return trim(list[bytes.LastIndexByte(list, ',')+1:])
}

// equalFold compares b with lower, which is in lower case. Unlike
// bytes.EqualFold it knows ASCII only, as HTTP wants.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

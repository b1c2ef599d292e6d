package phpfpm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
)

// Record types of FastCGI 1.0 (fastcgi.com's specification, section 8).
const (
	fcgiVersion   = 1
	beginRequest  = 1
	endRequest    = 3
	params        = 4
	stdin         = 5
	stdout        = 6
	stderr        = 7
	roleResponder = 1
	requestID     = 1
)

// maxReply bounds an answer; the status page is about 500 bytes.
const maxReply = 1 << 20

// appendRecord appends one record with content of less than 64 KB.
func appendRecord(b []byte, kind byte, content []byte) []byte {
	b = append(b, fcgiVersion, kind, 0, requestID)
	b = binary.BigEndian.AppendUint16(b, uint16(len(content)))
	b = append(b, 0, 0) // no padding, reserved
	return append(b, content...)
}

// appendParam appends a name and a value of less than 128 bytes each.
func appendParam(b []byte, name, value string) []byte {
	b = append(b, byte(len(name)), byte(len(value)))
	b = append(b, name...)
	return append(b, value...)
}

// statusRequest is the request for a status page in JSON.
func statusRequest(uri string) ([]byte, error) {
	if len(uri) > 120 {
		return nil, fmt.Errorf("ask for the status page %.20s…: want a pm.status_path of at most 120 bytes", uri)
	}
	var p []byte
	for _, kv := range [][2]string{
		{"REQUEST_METHOD", "GET"}, {"SCRIPT_NAME", uri}, {"SCRIPT_FILENAME", uri},
		{"REQUEST_URI", uri + "?json"}, {"QUERY_STRING", "json"}, {"SERVER_SOFTWARE", "plimsoll"},
	} {
		p = appendParam(p, kv[0], kv[1])
	}
	b := appendRecord(nil, beginRequest, []byte{0, roleResponder, 0, 0, 0, 0, 0, 0})
	b = appendRecord(b, params, p)
	b = appendRecord(b, params, nil)
	return appendRecord(b, stdin, nil), nil
}

// readReply reads the records of one answer and returns what came on its
// standard output (a CGI response) and on its standard error.
func readReply(r io.Reader) (out, errs []byte, err error) {
	br := bufio.NewReader(io.LimitReader(r, maxReply))
	var head [8]byte
	for {
		if _, err := io.ReadFull(br, head[:]); err != nil {
			return nil, nil, fmt.Errorf("read a FastCGI record: %w", noEOF(err))
		}
		if head[0] != fcgiVersion {
			return nil, nil, fmt.Errorf("read a FastCGI record: want version 1, got %d; is it FastCGI that listens there?", head[0])
		}
		size := int(binary.BigEndian.Uint16(head[4:]))
		content := make([]byte, size+int(head[6])) // with padding
		if _, err := io.ReadFull(br, content); err != nil {
			return nil, nil, fmt.Errorf("read a FastCGI record: %w", noEOF(err))
		}
		switch head[1] {
		case stdout:
			out = append(out, content[:size]...)
		case stderr:
			errs = append(errs, content[:size]...)
		case endRequest:
			if size < 5 {
				return nil, nil, fmt.Errorf("read a FastCGI record: want 8 bytes at the end of a request, got %d", size)
			}
			if s := content[4]; s != 0 {
				return nil, nil, fmt.Errorf("ask over FastCGI: the request was refused with protocol status %d", s)
			}
			return out, errs, nil
		}
	}
}

// noEOF says that an end inside an answer was none to be expected.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseCGI splits a CGI response into its status (200 if it has none) and body.
func parseCGI(b []byte) (status int, body []byte, err error) {
	br := bufio.NewReader(bytes.NewReader(b))
	h, err := textproto.NewReader(br).ReadMIMEHeader()
	if err != nil {
		return 0, nil, fmt.Errorf("parse a CGI response: %w", noEOF(err))
	}
	status = 200
	if s := h.Get("Status"); s != "" {
		if len(s) < 3 {
			return 0, nil, fmt.Errorf("parse a CGI response: want a status of three digits, got %q", s)
		}
		if status, err = strconv.Atoi(s[:3]); err != nil {
			return 0, nil, fmt.Errorf("parse a CGI response: status: %w", err)
		}
	}
	body, err = io.ReadAll(br)
	return status, body, err
}

// ask asks the pool that listens behind c for its status page. The deadline is
// the caller's to set on c.
func ask(c net.Conn, uri string) (status, error) {
	request, err := statusRequest(uri)
	if err != nil {
		return status{}, err
	}
	if _, err := c.Write(request); err != nil {
		return status{}, err
	}
	out, errs, err := readReply(c)
	if err != nil {
		return status{}, err
	}
	code, body, err := parseCGI(out)
	if err != nil {
		return status{}, err
	}
	if code != 200 {
		return status{}, fmt.Errorf("the status page %s: want status 200, got %d %.100s; was pm.status_path changed and FPM not reloaded?", uri, code, bytes.TrimSpace(errs))
	}
	return parseStatus(body)
}

package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/probe/asker"
)

// The client's half of the protocol, as far as it is needed to be let in without a password and to read
// tables of text: https://mariadb.com/kb/en/clientserver-protocol/. What is not known is an error.
const (
	patience   = time.Second // to be let in
	maxPacket  = 64 << 10
	maxAnswer  = 512 << 10 // bytes of all that is sent for one question
	maxColumns = 16
	maxRows    = 4000
	maxSwitch  = 4 // ways of proving who we are that a server may ask for, one after the other

	// what we can do (CLIENT_…): nothing that lets a server ask for a file (LOCAL_FILES), for several
	// statements in one or for compression
	longPassword, protocol41, secureConnection, pluginAuth = 1, 1 << 9, 1 << 15, 1 << 19
	utf8mb4                                                = 45
	comQuit, comQuery                                      = 1, 3

	isOK, isMore, isFile, isEOF, isError = 0x00, 0x01, 0xfb, 0xfe, 0xff
)

// rows are the answer to a question, each a list of columns; NULL is "".
type rows [][]string

// session is a connection to a server that let us in.
type session struct {
	net.Conn
	seq   byte
	left  int  // bytes that may still come for the question
	maria bool // it is a MariaDB, not a MySQL
}

// Close says that we leave: a server writes into its log who goes without.
func (s *session) Close() error {
	s.seq = 0
	_ = s.SetDeadline(time.Now().Add(patience)) // of a connection that is gone closing tells
	_ = s.write([]byte{comQuit})
	return s.Conn.Close()
}

// serverError is what the server says is wrong.
type serverError struct {
	code int
	text string
}

func (e *serverError) Error() string {
	return fmt.Sprintf("it says: %s (error %d)", e.text, e.code)
}

// Is tells whom the server does not let in, or lets in without the right to look, as denied, one that is full, and one that ended
// our session.
func (e *serverError) Is(target error) bool {
	switch e.code {
	case 1044, 1045, 1129, 1130, 1142, 1227, 1251, 1698, 1820, 1862, 3118, 4151:
		return target == fs.ErrPermission
	case 1040: // too many connections
		return target == asker.ErrFull
	case 1927, 4031: // the connection was killed; it was closed for want of activity
		return target == asker.ErrClosed
	}
	return false
}

var errPassword = fmt.Errorf("it wants a password even of this user on its own socket, and Plimsoll has none; an account that is IDENTIFIED VIA unix_socket (MySQL: WITH auth_socket) lets it ask: %w", fs.ErrPermission)

// login asks to be let in, as an account that needs no password: none is ever sent, nor anything made of one.
func login(conn net.Conn, account string) (*session, error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	s := &session{Conn: conn, left: maxAnswer}
	greeting, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("read its greeting: %w", err)
	}
	if s.maria, err = greeted(greeting); err != nil {
		return nil, err
	}
	if err := s.write(response(account)); err != nil {
		return nil, err
	}
	if err := s.proveNothing(); err != nil {
		return nil, err
	}
	for _, statement := range settings(s.maria) {
		if _, err := s.query(statement); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return s, nil
}

// settings hold a session to looking, and to half a second a question. It is asked once a second, so a server whose wait_timeout
// is that short would close it; one that nobody asks for ten minutes may be closed.
func settings(maria bool) []string {
	limit := "SET SESSION max_execution_time = 500"
	if maria {
		limit = "SET SESSION max_statement_time = 0.5"
	}
	return []string{"SET SESSION autocommit = 1, lock_wait_timeout = 1, wait_timeout = 600", "SET SESSION TRANSACTION READ ONLY", limit}
}

// greeted reads what a server says first: the protocol's version, 10, and its own, up to a zero.
func greeted(p []byte) (maria bool, err error) {
	if len(p) > 0 && p[0] == isError {
		return false, readError(p)
	}
	version, _, ok := bytes.Cut(p, []byte{0})
	if !ok || len(version) < 2 || version[0] != 10 {
		return false, errors.New("it does not greet as MariaDB and MySQL do")
	}
	return bytes.Contains(version, []byte("MariaDB")), nil
}

// response says who we are: what we can do, the longest packet, the character set, 23 zeros, the account, an empty answer, and how it was made.
func response(account string) []byte {
	p := binary.LittleEndian.AppendUint32(nil, longPassword|protocol41|secureConnection|pluginAuth)
	p = binary.LittleEndian.AppendUint32(p, maxPacket)
	p = append(p, utf8mb4)
	p = append(p, make([]byte, 23)...)
	p = append(p, account...)
	p = append(p, 0, 0)
	return append(p, "mysql_native_password\x00"...)
}

// proveNothing answers whatever a server asks for with nothing: the kernel tells it who we are, or the account has no password.
func (s *session) proveNothing() error {
	for range maxSwitch {
		p, err := s.read()
		if err != nil {
			return fmt.Errorf("read whether it lets us in: %w", err)
		}
		switch p[0] {
		case isOK:
			return nil
		case isError:
			return readError(p)
		case isMore:
			return errPassword
		case isEOF:
			plugin, _, _ := strings.Cut(string(p[1:]), "\x00")
			switch plugin {
			case "unix_socket", "auth_socket", "mysql_native_password", "caching_sha2_password":
			default:
				return errPassword
			}
			if err := s.write(nil); err != nil {
				return err
			}
		default:
			return fmt.Errorf("it answered with a packet %#02x, want to be let in or not", p[0])
		}
	}
	return errPassword
}

// query asks one question and reads the rows of the answer.
func (s *session) query(statement string) (rows, error) {
	s.seq, s.left = 0, maxAnswer
	if err := s.write(append([]byte{comQuery}, statement...)); err != nil {
		return nil, err
	}
	p, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	switch p[0] {
	case isOK:
		return nil, nil
	case isError:
		return nil, readError(p)
	case isFile:
		return nil, errors.New("it asks for a file of this machine (LOAD DATA LOCAL), which it does not get")
	}
	columns, rest, ok := number(p)
	if !ok || len(rest) > 0 || columns == 0 || columns > maxColumns {
		return nil, fmt.Errorf("it answered with %d columns, want 1 to %d", columns, maxColumns)
	}
	for range columns { // what they are called is known
		if p, err := s.read(); err != nil || p[0] == isError || p[0] == isEOF {
			return nil, fmt.Errorf("read what columns there are: %w", errors.Join(err, errCut(err)))
		}
	}
	if p, err := s.read(); err != nil || !ends(p) {
		return nil, fmt.Errorf("read the end of the columns: %w", errors.Join(err, errCut(err)))
	}
	return s.rows(int(columns))
}

// errCut is an error where there is none.
func errCut(err error) error {
	if err == nil {
		return errors.New("another packet came")
	}
	return nil
}

func ends(p []byte) bool { return p[0] == isEOF && len(p) < 9 }

func (s *session) rows(columns int) (list rows, err error) {
	for len(list) <= maxRows {
		p, err := s.read()
		switch {
		case err != nil:
			return nil, fmt.Errorf("read a row: %w", err)
		case ends(p):
			return list, nil
		case p[0] == isError:
			return nil, readError(p)
		}
		row := make([]string, columns)
		for i := range row {
			var ok bool
			if row[i], p, ok = text(p); !ok {
				return nil, fmt.Errorf("row %d has not %d columns, or is longer than it says", len(list), columns)
			}
		}
		if len(p) > 0 {
			return nil, fmt.Errorf("row %d has more than %d columns", len(list), columns)
		}
		list = append(list, row)
	}
	return nil, fmt.Errorf("it answered with more than %d rows", maxRows)
}

// number reads a number whose first byte tells how long it is.
func number(p []byte) (n uint64, rest []byte, ok bool) {
	if len(p) == 0 {
		return 0, nil, false
	}
	size := map[byte]int{0xfc: 2, 0xfd: 3, 0xfe: 8}[p[0]]
	switch {
	case p[0] < isFile:
		return uint64(p[0]), p[1:], true
	case size == 0 || len(p) <= size:
		return 0, nil, false
	}
	var b [8]byte
	copy(b[:], p[1:1+size])
	return binary.LittleEndian.Uint64(b[:]), p[1+size:], true
}

// text reads a column: its length, and as many bytes.
func text(p []byte) (value string, rest []byte, ok bool) {
	if len(p) > 0 && p[0] == isFile { // here it is NULL
		return "", p[1:], true
	}
	n, rest, ok := number(p)
	if !ok || n > uint64(len(rest)) {
		return "", nil, false
	}
	return string(rest[:n]), rest[n:], true
}

// readError reads a packet that says what is wrong: a code, and perhaps # and five letters, before the text.
func readError(p []byte) error {
	if len(p) < 3 {
		return errors.New("it says that something is wrong, and not what")
	}
	said := p[3:]
	if len(said) >= 6 && said[0] == '#' {
		said = said[6:]
	}
	return &serverError{int(binary.LittleEndian.Uint16(p[1:])), layout.Line(string(said[:min(len(said), 200)]))}
}

// read reads a packet, which has a byte at least.
func (s *session) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.Conn, head[:]); err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if s.left -= n + len(head); n == 0 || n > maxPacket || s.left < 0 {
		return nil, fmt.Errorf("it sends a packet of %d bytes, want 1 to %d, and no more than %d for a question", n, maxPacket, maxAnswer)
	}
	s.seq = head[3] + 1
	p := make([]byte, n)
	_, err := io.ReadFull(s.Conn, p)
	return p, err
}

// write sends a packet.
func (s *session) write(p []byte) error {
	b := []byte{byte(len(p)), byte(len(p) >> 8), byte(len(p) >> 16), s.seq}
	if _, err := s.Conn.Write(append(b, p...)); err != nil {
		return fmt.Errorf("send to it: %w", err)
	}
	return nil
}

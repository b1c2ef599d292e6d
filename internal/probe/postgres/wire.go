package postgres

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"plimsoll/internal/layout"
)

const (
	patience  = time.Second
	maxAnswer = 1 << 20 // bytes of all that is sent for one question
	maxBody   = 64 << 10
	maxRows   = 4000
	maxSets   = 16
)

// rows are the answer to one statement, each a list of columns; NULL is "".
type rows [][]string

// session is a connection that was let in.
type session struct {
	conn     net.Conn
	bound    *io.LimitedReader
	front    *pgproto3.Frontend
	version  int // server_version_num
	database string
}

// settings hold the session to what is the server's own: names without a schema are looked up
// in pg_catalog, whatever a database or a role is set to, so that nobody's function
// runs with our rights; nothing can be written, nothing lasts, and no parallel worker is started.
var settings = map[string]string{
	"application_name":                "plimsoll",
	"client_encoding":                 "UTF8",
	"default_transaction_read_only":   "on",
	"lock_timeout":                    "100",
	"max_parallel_workers_per_gather": "0",
	"search_path":                     "pg_catalog, pg_temp",
	"statement_timeout":               "500",
}

// login asks to be let in. No password is ever sent: a server that wants one has denied it.
// An error with a code of the server's is an *answerError.
func login(conn net.Conn, user, database string) (*session, error) {
	s := newSession(conn)
	s.database = database
	parameters := map[string]string{"user": user, "database": database}
	for k, v := range settings {
		parameters[k] = v
	}
	s.begin()
	s.front.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: parameters})
	if err := s.front.Flush(); err != nil {
		return nil, fmt.Errorf("ask to be let in: %w", err)
	}
	if _, err := s.receive(); err != nil {
		return nil, err
	}
	sets, err := s.ask("SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('search_path')")
	if err != nil {
		return nil, err
	}
	if len(sets) != 1 || len(sets[0]) != 1 || len(sets[0][0]) != 2 || sets[0][0][1] != settings["search_path"] {
		return nil, errors.New("the server did not take search_path = pg_catalog, without which nothing is asked")
	}
	if s.version, err = whole(sets[0][0][0]); err != nil {
		return nil, err
	}
	return s, nil
}

func newSession(conn net.Conn) *session {
	s := &session{conn: conn, bound: &io.LimitedReader{R: conn}}
	s.front = pgproto3.NewFrontend(s.bound, conn)
	s.front.SetMaxBodyLen(maxBody)
	return s
}

// begin bounds what the next question may take.
func (s *session) begin() {
	s.bound.N = maxAnswer
	_ = s.conn.SetDeadline(time.Now().Add(patience)) // of a connection that is gone the next read tells
}

// ask sends statements, divided by semicolons, and returns the rows of each.
func (s *session) ask(statements string) ([]rows, error) {
	s.begin()
	s.front.Send(&pgproto3.Query{String: statements})
	if err := s.front.Flush(); err != nil {
		return nil, fmt.Errorf("ask PostgreSQL: %w", err)
	}
	return s.receive()
}

// answerError is what the server says is wrong. Its code is an SQLSTATE.
type answerError struct{ code, text string }

func (e *answerError) Error() string { return fmt.Sprintf("PostgreSQL says: %s (%s)", e.text, e.code) }

// Is tells that somebody is not let in (class 28) as what is denied.
func (e *answerError) Is(target error) bool {
	return target == fs.ErrPermission && strings.HasPrefix(e.code, "28")
}

// receive reads until the server waits for the next question.
func (s *session) receive() (sets []rows, err error) {
	for n := 0; ; {
		m, e := s.front.Receive()
		if e != nil {
			return nil, errors.Join(err, fmt.Errorf("read PostgreSQL's answer (at most %d bytes): %w", maxAnswer, e))
		}
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			return sets, err
		case *pgproto3.ErrorResponse:
			err = &answerError{layout.Line(m.Code), layout.Line(m.Message)}
			if m.Severity == "FATAL" || m.SeverityUnlocalized == "FATAL" {
				return nil, err
			}
		case *pgproto3.AuthenticationCleartextPassword, *pgproto3.AuthenticationMD5Password, *pgproto3.AuthenticationSASL, *pgproto3.AuthenticationGSS:
			return nil, fmt.Errorf("PostgreSQL wants a password even of its own user on its own socket, and Plimsoll has none; a line \"local all postgres peer\" in pg_hba.conf lets it ask: %w", fs.ErrPermission)
		case *pgproto3.RowDescription:
			if sets = append(sets, nil); len(sets) > maxSets {
				return nil, fmt.Errorf("PostgreSQL answered with more than %d tables", maxSets)
			}
		case *pgproto3.DataRow:
			if n++; n > maxRows || len(sets) == 0 {
				return nil, fmt.Errorf("PostgreSQL answered with more than %d rows, or without saying what they are", maxRows)
			}
			last := len(sets) - 1
			sets[last] = append(sets[last], columns(m))
		}
	}
}

func columns(m *pgproto3.DataRow) []string {
	list := make([]string, len(m.Values))
	for i, v := range m.Values {
		list[i] = string(v)
	}
	return list
}

// Package mysql asks MariaDB and MySQL servers what their sessions do and wait for, and what they
// counted. They are found by their processes, and asked over the Unix socket at which these listen
// themselves, as an account that the server lets in without a password (unix_socket, auth_socket).
package mysql

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/host/asuser"
	"plimsoll/internal/host/ownsocket"
	"plimsoll/internal/layout"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/asker"
)

// deniedAfter is long, since a server writes into its log whom it did not let in.
const deniedAfter = 5 * time.Minute

// All lists the package's probes.
func All() []probe.Probe {
	kind := &asker.Kind[answer]{
		Name:      "MariaDB or MySQL",
		Processes: []string{"mariadbd", "mysqld"},
		Enter:     enter,
		Ask:       ask,
		Denied:    deniedAfter,
		New:       newPut,
		Signals:   signals(),
		Up:        up,
		Full:      full,
	}
	return []probe.Probe{{
		Name:    "mysql",
		Scope:   probe.PerHost,
		Signals: kind.Signals,
		Cost:    "five questions a second: together 2.5 ms of the server's CPU time (MariaDB 10.11, 90 sessions, on a busy machine), for which it makes three temporary tables",
		Blind: []string{
			"it takes one of the server's connections for as long as it watches, the one that is kept for administrators where no other is left",
			"a server without a Unix socket, or that lets neither root nor its own user in without a password, is not asked; where it lets neither in, it is tried again every five minutes, and the server may write that into its log",
			"what sessions wait for is looked at once a second, by the states that the server itself names; of short waits it tells the share, not the length",
			"who holds a lock is not asked: told is the oldest transaction that is open and does not wait itself, which mostly is the one",
			"a lock of a row is told by InnoDB alone; of other engines the waits for a whole table are told",
			"rows that our own questions read from the server's tables of sessions are counted with the others, one for each session",
			"statements are told by their shape, without any value; of one that was prepared a MySQL tells it only while it runs",
		},
		Open: kind.Open,
	}}
}

// enter connects to the first of a server's Unix sockets that speaks the protocol, as the first account that is let in.
func enter(h *host.Host, pid int) (conn net.Conn, listen string, err error) {
	list, err := ownsocket.Listeners(h, pid)
	if err != nil {
		return nil, "", fmt.Errorf("look where MariaDB or MySQL listens; that needs root, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", err)
	}
	socket := ""
	for _, at := range list {
		switch {
		case at.Path == "" && (listen == "" || listen == "unix:"+socket):
			listen = at.String()
		case at.Path != "" && socket == "" && path.Base(at.Path) != "mysqlx.sock": // another protocol's
			socket, listen = at.Path, at.String()
		}
	}
	if socket == "" {
		return nil, "", host.Absent(fmt.Sprintf("the server (process %d) listens at no Unix socket, and over TCP it would want a password", pid))
	}
	owner, err := asuser.OwnerOf(h, pid)
	if err != nil {
		return nil, listen, err
	}
	conn, err = enterAt(h, pid, socket, accounts(owner))
	return conn, listen, err
}

// accounts are whom we may be: the one that installers make for root, where that is us, then that of the server's own user.
func accounts(owner asuser.Owner) (list []asuser.Owner) {
	if os.Geteuid() == 0 {
		list = append(list, asuser.Owner{UID: 0, GID: os.Getegid(), Name: "root"})
	}
	if owner.Name != "" && (owner.UID != 0 || len(list) == 0) {
		list = append(list, owner)
	}
	return list
}

// enterAt tries accounts until one of them is let in. Others are only tried where one was denied.
func enterAt(h *host.Host, pid int, socket string, accounts []asuser.Owner) (net.Conn, error) {
	err := fmt.Errorf("the user of the server's process has no name: %w", fs.ErrPermission)
	for _, account := range accounts {
		var s *session
		s, err = enterAs(h, pid, socket, account)
		if err == nil {
			return s, nil
		}
		err = fmt.Errorf("ask the server at %s as %s: %w", layout.Line(socket), layout.Line(account.Name), err)
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
	}
	return nil, err
}

func enterAs(h *host.Host, pid int, socket string, account asuser.Owner) (s *session, err error) {
	var conn net.Conn
	err = ownsocket.With(h, filepath.Clean(h.ServicePath(pid, "/")), socket, func(address string) (err error) {
		conn, err = asuser.DialUnix(address, account.UID, account.GID)
		return err
	}, pid)
	if err != nil {
		return nil, err
	}
	if s, err = login(conn, account.Name); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// ask asks everything over a session.
func ask(conn net.Conn) (a answer, err error) {
	s, ok := conn.(*session)
	if !ok {
		return a, fmt.Errorf("asked over a %T, want a session", conn)
	}
	var sets []rows
	for _, q := range questions(s.maria) {
		set, err := s.query(q)
		if err != nil {
			return a, err
		}
		sets = append(sets, set)
	}
	if a, err = parse(sets); err != nil {
		return a, err
	}
	texts, err := s.query(statementsQuestion)
	if err == nil {
		err = a.readStatements(texts)
	}
	a.noTexts = err // what nobody can read of them takes nothing else with it
	return a, nil
}

package postgres

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/host/asuser"
	"plimsoll/internal/host/rooted"
)

const (
	socketPrefix   = ".s.PGSQL."
	maxUnix        = 4 << 20 // of /proc/PID/net/unix
	maxDescriptors = 4096
)

// masters are the first processes of the PostgreSQL servers among processes.
func masters(procs []host.Proc) (list []host.Proc) {
	is := map[int]bool{}
	for _, p := range procs {
		is[p.PID] = p.Comm == "postgres" || p.Comm == "postmaster"
	}
	for _, p := range procs {
		if is[p.PID] && !is[p.PPID] && len(p.Args) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// server is a server's socket, and who it is.
type server struct {
	master   host.Proc
	root     string // its root directory, as we see it
	socket   string // as it calls it
	port     string
	uid, gid int
	user     string // the name that its own /etc/passwd gives uid
}

// look finds where a server listens.
func look(h *host.Host, master host.Proc) (*server, error) {
	s := &server{master: master, root: filepath.Clean(h.ServicePath(master.PID, "/"))}
	dir := h.Path("proc", strconv.Itoa(master.PID))
	owner, err := asuser.OwnerOf(h, master.PID)
	if err != nil {
		return nil, err
	}
	s.uid, s.gid, s.user = owner.UID, owner.GID, cmp.Or(owner.Name, "postgres")
	table, err := host.ReadHead(filepath.Join(dir, "net/unix"), maxUnix)
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	if _, err := host.EachDescriptor(dir, maxDescriptors, func(_ int, link []byte, err error) {
		if inode, ok := bytes.CutPrefix(link, []byte("socket:[")); ok && err == nil {
			mine[string(bytes.TrimSuffix(inode, []byte("]")))] = true
		}
	}); err != nil {
		return nil, err
	}
	if s.socket = listening(table, mine); s.socket == "" {
		return nil, host.Absent("PostgreSQL has no Unix socket (unix_socket_directories is empty), and over TCP it would want a password")
	}
	s.port = strings.TrimPrefix(path.Base(s.socket), socketPrefix)
	return s, nil
}

// listening is the first of a server's sockets in a table such as /proc/net/unix that has
// PostgreSQL's name and accepts connections; inodes are those of the server's descriptors.
func listening(table []byte, inodes map[string]bool) string {
	const accepts = "00010000" // __SO_ACCEPTCON
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) != 8 || string(f[3]) != accepts || !inodes[string(f[6])] {
			continue
		}
		if name := string(f[7]); strings.HasPrefix(path.Base(name), socketPrefix) && path.IsAbs(name) {
			return name
		}
	}
	return ""
}

// connect asks the server to let us in, as itself.
func (s *server) connect(database string) (*session, error) {
	found, err := rooted.Open(s.root, s.socket)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL's socket %s: %w", s.socket, err)
	}
	defer found.Close()
	conn, err := asuser.DialUnix(found.Address(), s.uid, s.gid)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL's socket %s: %w", s.socket, err)
	}
	se, err := login(conn, s.user, database)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("ask PostgreSQL at %s as %s: %w", s.socket, s.user, err)
	}
	return se, nil
}

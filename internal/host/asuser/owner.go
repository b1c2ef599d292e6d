package asuser

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
)

const (
	maxStatus = 64 << 10
	maxPasswd = 1 << 20
)

// Owner is with whose rights a process runs. Name is what the process's own /etc/passwd calls the user; "" where it has no such line.
type Owner struct {
	UID, GID int
	Name     string
}

// OwnerOf looks whose a process is.
func OwnerOf(h *host.Host, pid int) (o Owner, err error) {
	status, err := host.ReadHead(filepath.Join(h.Path("proc", strconv.Itoa(pid)), "status"), maxStatus)
	if err != nil {
		return o, err
	}
	if o.UID, o.GID, err = effective(status); err != nil {
		return o, fmt.Errorf("find whose process %d is: %w", pid, err)
	}
	if passwd, _, err := rooted.ReadFile(filepath.Clean(h.ServicePath(pid, "/")), "/etc/passwd", maxPasswd); err == nil {
		o.Name = userName(passwd, o.UID)
	}
	return o, nil
}

// effective are the effective user and group in a process's /proc/PID/status.
func effective(status []byte) (uid, gid int, err error) {
	uid, gid = -1, -1
	for line := range bytes.Lines(status) {
		f := bytes.Fields(line)
		if len(f) != 5 {
			continue
		}
		switch n, e := strconv.Atoi(string(f[2])); {
		case e != nil:
		case string(f[0]) == "Uid:":
			uid = n
		case string(f[0]) == "Gid:":
			gid = n
		}
	}
	if uid < 0 || gid < 0 {
		return 0, 0, errors.New("its status has no Uid: and Gid: with four numbers each")
	}
	return uid, gid, nil
}

// userName is the name of a user in an /etc/passwd, "" for none.
func userName(passwd []byte, uid int) string {
	for line := range bytes.Lines(passwd) {
		f := bytes.Split(line, []byte(":"))
		if len(f) > 2 && string(f[2]) == strconv.Itoa(uid) {
			return string(f[0])
		}
	}
	return ""
}

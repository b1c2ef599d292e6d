package filesystem

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	// scarce is the share of a file system's blocks below which it is asked who holds deleted files, searchEvery how often.
	scarce      = 0.05
	searchEvery = 10 * time.Second
	// maxDescriptors bounds the descriptors that one search looks at, maxDeleted the files that are told of.
	maxDescriptors = 1 << 16
	maxDeleted     = 32
	// deletedMark is what the kernel appends to the name of a file that has none any more.
	deletedMark = " (deleted)"
	// blockSize is what st_blocks counts, whatever the file system's own blocks are.
	blockSize = 512
)

var deletedOpen = &model.Signal{Name: "plimsoll_filesystem_deleted_open_bytes", Kind: model.Gauge, Unit: "bytes",
	Help: "Bytes of a deleted file that a process still has open, so that they stay used: by the file system's mount point, the process's name and the file's last name, less what looks like an identifier. " +
		"Searched only while a file system has less than a twentieth of its blocks left; 0 once it was let go. Of several processes with one file the first.",
	Labels: []string{"mountpoint", "groupname", "file"}, Source: "/proc/PID/fd, statx(2)", ByHand: "find /proc/[0-9]*/fd -lname '*(deleted)' -printf '%p %l\\n'; lsof +L1"}

// deleted is a file without a name that somebody has open.
type deleted struct{ point, group, file string }

// inode is a file as the kernel tells it from others.
type inode struct {
	major, minor uint32
	ino          uint64
}

// scarceIn are the mount points of the file systems that have hardly any blocks left, by their devices (MAJOR:MINOR).
func (l fileSystems) scarceIn() map[string]string {
	points := map[string]string{}
	for i := range l {
		if f := &l[i]; f.Blocks > 0 && f.left() < scarce && !f.readOnly {
			points[f.device] = f.point
		}
	}
	return points
}

// putDeleted tells who holds deleted files on those of the file systems that are nearly full.
func (r *reader) putDeleted(out *probe.Out, list fileSystems) {
	points := list.scarceIn()
	if r.host.Recorded() {
		return
	}
	if len(points) == 0 {
		if !r.searched.IsZero() {
			r.told.Each(nil, func(d deleted, _ float64) { out.Put(deletedOpen, 0, d.point, d.group, d.file) })
			return
		}
		out.Mark(deletedOpen, host.Absent("no file system has less than a twentieth of its blocks left, so nobody searched for deleted files that are open"))
		return
	}
	if !r.searched.IsZero() && out.Now().Sub(r.searched) < searchEvery {
		return
	}
	r.searched = out.Now()
	s := search{root: r.host, points: points, held: map[deleted]float64{}, seen: map[inode]bool{}}
	s.all()
	r.told.Each(s.held, func(d deleted, n float64) { out.Put(deletedOpen, n, d.point, d.group, d.file) })
	if s.looked >= maxDescriptors {
		out.Note(fmt.Sprintf("host %s: of the open files %d were looked at for deleted ones; who holds others is not known", r.host.Name, maxDescriptors))
	}
	if s.denied != nil {
		out.Mark(deletedOpen, fmt.Errorf("look for deleted files that are open, which takes CAP_SYS_PTRACE: %w", s.denied))
	}
}

// search is one look through all descriptors of the machine: whose a full file system's files are does not depend on namespaces.
type search struct {
	root   *host.Host
	points map[string]string
	held   map[deleted]float64
	seen   map[inode]bool
	looked int
	denied error
}

func (s *search) all() {
	for _, pid := range host.PIDs() {
		if s.looked >= maxDescriptors {
			return
		}
		dir := s.root.Path("proc", strconv.Itoa(pid))
		n, err := host.EachDescriptor(dir, maxDescriptors-s.looked, func(fd int, link []byte, err error) {
			if err == nil && len(link) > 0 && link[0] == '/' && bytes.HasSuffix(link, []byte(deletedMark)) {
				s.look(dir, fd, string(link))
			}
		})
		s.looked += n
		if errors.Is(err, fs.ErrPermission) {
			s.denied = err
		}
	}
}

// look counts a file if it is on one of the file systems and has no name left. It is not synced: a server that does not answer
// would keep us.
func (s *search) look(dir string, fd int, link string) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir+"/fd/"+strconv.Itoa(fd), unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_NLINK|unix.STATX_INO|unix.STATX_BLOCKS, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 0 {
		return
	}
	point, is := s.points[fmt.Sprintf("%d:%d", st.Dev_major, st.Dev_minor)]
	at := inode{st.Dev_major, st.Dev_minor, st.Ino}
	if !is || s.seen[at] {
		return
	}
	s.seen[at] = true
	comm, err := host.ReadFile(dir + "/comm")
	if err != nil {
		return // it has ended, and the file with it
	}
	name := strings.TrimSuffix(link, deletedMark)
	d := deleted{point, strings.ToValidUTF8(string(bytes.TrimSpace(comm)), "\uFFFD"), layout.WithoutIdentifiers(strings.ToValidUTF8(name[strings.LastIndexByte(name, '/')+1:], "\uFFFD"))}
	s.held[d] += float64(st.Blocks) * blockSize
}

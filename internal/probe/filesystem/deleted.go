package filesystem

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
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
	// maxDescriptors bounds the descriptors that one search looks at, and maxOfProcess those of one process, which would leave none for others.
	// maxDeleted bounds the files that are told of, and maxMountinfos how often a search reads which mounts a process sees.
	maxDescriptors = 1 << 16
	maxOfProcess   = 1 << 12
	maxDeleted     = 32
	maxMountinfos  = 64
	// deletedMark is what the kernel appends to the name of a file that has none any more.
	deletedMark = " (deleted)"
	// blockSize is what st_blocks counts, whatever the file system's own blocks are.
	blockSize = 512
)

var deletedOpen = &model.Signal{Name: "plimsoll_filesystem_deleted_open_bytes", Kind: model.Gauge, Unit: "bytes",
	Help: "Bytes of a deleted file that a process still has open, so that they stay used: by the file system's mount point, the process's name, the file's last name, less what looks like an identifier, and how it is open (mode): append (O_APPEND, as logs are) or other. " +
		"Searched only while a file system has less than a twentieth of its blocks left; 0 once a search of all open files did not meet it any more. Of several processes with one file the first.",
	Labels: []string{"mountpoint", "groupname", "file", "mode"}, Source: "/proc/PID/fd and fdinfo, /proc/PID/mountinfo, statx(2)", ByHand: "find /proc/[0-9]*/fd -lname '*(deleted)' -printf '%p %l\\n'; lsof +L1"}

// deleted is a file without a name that somebody has open.
type deleted struct{ point, group, file, mode string }

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

// putDeleted tells who holds deleted files on those of the file systems that are nearly full. That one was let go it tells only
// where all files of the processes of that name were looked at: a search that was cut, or that nobody made, says nothing of it.
func (r *reader) putDeleted(out *probe.Out, list fileSystems) {
	points := list.scarceIn()
	switch {
	case r.host.Recorded():
		return
	case len(points) == 0 && r.searched.IsZero():
		out.Mark(deletedOpen, host.Absent("no file system has less than a twentieth of its blocks left, so nobody searched for deleted files that are open"))
		return
	case len(points) == 0 || !r.searched.IsZero() && out.Now().Sub(r.searched) < searchEvery:
		out.Keep(deletedOpen)
		return
	}
	r.searched = out.Now()
	s := search{root: r.host, points: points, mounts: map[uint64]string{}, held: map[deleted]float64{}, seen: map[inode]bool{}, missed: map[string]bool{}}
	s.all()
	r.told.Each(s.held, func(d deleted, n float64) {
		if n > 0 || s.whole(d) {
			out.Put(deletedOpen, n, d.point, d.group, d.file, d.mode)
		}
	})
	if s.cut != "" {
		out.Note(fmt.Sprintf("host %s: not all open files were looked at for deleted ones (%s); who holds others is not known", r.host.Name, s.cut))
	}
	if s.denied != nil {
		out.Mark(deletedOpen, fmt.Errorf("look for deleted files that are open, which takes CAP_SYS_PTRACE: %w", s.denied))
	}
}

// search is one look through all descriptors of the machine: whose a full file system's files are does not depend on namespaces.
type search struct {
	root   *host.Host
	points map[string]string
	mounts map[uint64]string // of each mount that was met its device, "" where it is none of the points'
	lists  int               // how many mountinfos were read for them
	held   map[deleted]float64
	seen   map[inode]bool
	looked int
	over   bool            // it ended before all processes were looked at
	missed map[string]bool // the names of the processes of which not all was looked at
	cut    string          // why not all was looked at, where nobody denied it
	denied error
}

// whole says whether the search would have met the file.
func (s *search) whole(d deleted) bool {
	return !s.over && !s.missed[d.group] && slices.Contains(slices.Collect(maps.Values(s.points)), d.point)
}

func (s *search) all() {
	pids := host.PIDs()
	s.over = len(pids) == 0 // we are one
	for _, pid := range pids {
		if s.looked >= maxDescriptors {
			s.over, s.cut = true, fmt.Sprintf("%d are", maxDescriptors)
			return
		}
		s.process(s.root.Path("proc", strconv.Itoa(pid)))
	}
}

// process looks at the open files of one.
func (s *search) process(dir string) {
	most := min(maxOfProcess, maxDescriptors-s.looked)
	missed := false
	failed := func(err error) {
		if err == nil || gone(err) {
			return
		}
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err // without the process, since each sentence is noted once
		}
		s.cut = err.Error()
		missed = true
	}
	n, err := host.EachDescriptor(dir, most, func(fd int, link []byte, err error) {
		if err == nil && len(link) > 0 && link[0] == '/' && bytes.HasSuffix(link, []byte(deletedMark)) {
			err = s.look(dir, fd, string(link))
		}
		failed(err)
	})
	if failed(err); errors.Is(err, fs.ErrPermission) {
		s.denied = err
	}
	if s.looked += n; n == most {
		missed, s.cut = true, fmt.Sprintf("of a process %d are", maxOfProcess)
	}
	if missed {
		name, err := groupOf(dir)
		s.missed[name] = true
		s.over = s.over || err != nil && !gone(err)
	}
}

// gone says that a process or a descriptor ended meanwhile: what is there no more needs no look.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// groupOf is the name of a process.
func groupOf(dir string) (string, error) {
	comm, err := host.ReadFile(dir + "/comm")
	return strings.ToValidUTF8(string(bytes.TrimSpace(comm)), "\uFFFD"), err
}

// look counts a file if it is on one of the file systems and has no name left. Whether it is on one of them its mount says, which asks no
// file system: one whose server does not answer (NFS, 9p) would keep us, also where statx is told not to ask.
func (s *search) look(dir string, fd int, link string) error {
	number := strconv.Itoa(fd)
	b, err := host.ReadHead(dir+"/fdinfo/"+number, 256)
	if err != nil {
		return err
	}
	id, mode, err := parseFdinfo(b)
	if err != nil {
		return fmt.Errorf("fdinfo: %w", err)
	}
	device, err := s.deviceOf(id, dir)
	if err != nil || device == "" {
		return err
	}
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, dir+"/fd/"+number, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_NLINK|unix.STATX_INO|unix.STATX_BLOCKS, &st)
	at := inode{st.Dev_major, st.Dev_minor, st.Ino}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 0 || s.seen[at] || fmt.Sprintf("%d:%d", st.Dev_major, st.Dev_minor) != device {
		return err
	}
	group, err := groupOf(dir)
	if err != nil {
		return err
	}
	s.seen[at] = true
	name := strings.TrimSuffix(link, deletedMark)
	d := deleted{s.points[device], group, layout.WithoutIdentifiers(strings.ToValidUTF8(name[strings.LastIndexByte(name, '/')+1:], "\uFFFD")), mode}
	s.held[d] += float64(st.Blocks) * blockSize
	return nil
}

// deviceOf is the device of a mount which the process sees, if it is one of the points'. A mount that no list has, as the kernel's own
// of memory files, is none.
func (s *search) deviceOf(id uint64, dir string) (string, error) {
	if device, known := s.mounts[id]; known {
		return device, nil
	}
	if s.lists >= maxMountinfos {
		return "", fmt.Errorf("the mounts of %d processes were read", maxMountinfos)
	}
	s.lists++
	b, err := host.ReadFile(dir + "/mountinfo")
	if err != nil {
		return "", err
	}
	for mount, device := range mountDevices(b) {
		if s.mounts[mount] = ""; s.points[device] != "" {
			s.mounts[mount] = device
		}
	}
	s.mounts[id] += "" // known from now on
	return s.mounts[id], nil
}

// mountDevices are the devices (MAJOR:MINOR) of a mountinfo's mounts, by the mounts' numbers.
func mountDevices(b []byte) map[uint64]string {
	devices := map[uint64]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		if id, err := strconv.ParseUint(f[0], 10, 64); err == nil {
			devices[id] = f[2]
		}
	}
	return devices
}

// parseFdinfo takes from an fdinfo the number of the mount on which the file is, and how it is open:
//
//	pos:	0
//	flags:	0102001
//	mnt_id:	27
func parseFdinfo(b []byte) (mount uint64, mode string, err error) {
	fields := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(value, "\n") {
			fields[name] = strings.TrimSpace(value)
		}
	}
	flags, err := strconv.ParseUint(fields["flags"], 8, 64)
	if err != nil {
		return 0, "", fmt.Errorf("want flags in octal: %w", err)
	}
	if mount, err = strconv.ParseUint(fields["mnt_id"], 10, 64); err != nil {
		return 0, "", fmt.Errorf("want the mount's number: %w", err)
	}
	if flags&unix.O_APPEND != 0 {
		return mount, "append", nil
	}
	return mount, "other", nil
}

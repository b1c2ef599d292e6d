// Package filesystem reads how full the file systems are that a host's
// processes see, each in its own mount namespace.
package filesystem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	// every is the time between two readings, lookEvery between two looks for mount namespaces.
	every     = 2 * time.Second
	lookEvery = 10 * time.Second
	// maxSpaces and maxMounts bound the mount namespaces, and the file systems of all.
	maxSpaces, maxMounts = 16, 64
)

// kinds are the file systems on which a service's files may lie. What may wait
// for another machine (NFS, FUSE) is left out: asking it could hang.
var kinds = strings.Fields("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs tmpfs ramfs overlay vfat exfat ntfs3 reiserfs jfs nilfs2 erofs")

func gauge(name, unit, help, hand string) *model.Signal {
	return &model.Signal{Name: "node_filesystem_" + name, Kind: model.Gauge, Unit: unit, Help: help,
		Labels: []string{"device", "fstype", "mountpoint"}, Source: "statfs(2), /proc/PID/mountinfo", ByHand: hand}
}

var (
	size      = gauge("size_bytes", "bytes", "Size of the file system.", "df")
	free      = gauge("free_bytes", "bytes", "Bytes that nobody uses, those kept for root included.", "df; stat -f MOUNTPOINT")
	avail     = gauge("avail_bytes", "bytes", "Bytes that are left for users other than root.", "df")
	files     = gauge("files", "inodes", "Inodes of the file system: as many files as there may be; none where they are made at need.", "df -i")
	filesFree = gauge("files_free", "inodes", "Inodes that are left.", "df -i")
	readOnly  = gauge("readonly", "ratio", "1 when the file system is mounted read-only, as the kernel does after an error.", "findmnt -o TARGET,OPTIONS")
	signals   = []*model.Signal{size, free, avail, files, filesFree, readOnly, deletedOpen}
)

// All returns the probe of file systems.
func All() []probe.Probe {
	return []probe.Probe{{
		Name: "filesystem", Scope: probe.PerHost, Signals: signals, Every: every,
		Cost: "30 µs a mount namespace and 3 µs a file system, every 2 s; 2 µs for each process first seen; while a file system is nearly full, 2 µs a descriptor of the machine every 10 s, 65,536 at most, and 4,096 of a process (Linux 6.18)",
		Blind: []string{
			"file systems of another machine (NFS) and FUSE: asking them could hang",
			"quotas of users and projects",
			"a file system that was full between two readings",
			"deleted files that only descriptors beyond these hold, that are only mapped, or held in the kernel (loop devices, swap), and those on btrfs and overlay, whose device is another in each file",
			"of several with the same source, kind and mount point (containers' overlays at /), only the fullest is told of",
		},
		Open: func(h *host.Host) (probe.Reader, error) {
			return &reader{host: h, list: h.Services, known: map[int]space{}, told: probe.Told[deleted]{Most: maxDeleted}}, nil
		},
	}}
}

// space is the mount namespace of a process; ino is 0 when we may not see it.
type space struct {
	start, ino uint64
}

type reader struct {
	host   *host.Host
	list   func() ([]host.Proc, error)
	known  map[int]space
	looked time.Time
	pids   []string // one process for each mount namespace, our own first

	searched time.Time // when somebody looked for deleted files
	told     probe.Told[deleted]
}

func (r *reader) Close() error { return nil }

func (r *reader) Read(out *probe.Out) error {
	if r.looked.IsZero() || out.Forced() || out.Now().Sub(r.looked) >= lookEvery {
		if err := r.look(); err != nil {
			return err
		}
		r.looked = out.Now()
	}
	var list fileSystems
	for _, pid := range r.pids {
		b, err := host.ReadFile(r.host.Path("proc", pid, "mountinfo"))
		if err != nil {
			if pid == "self" {
				return fmt.Errorf("list the mounted file systems: %w", err)
			}
			continue // it has ended
		}
		for _, m := range parseMounts(b) {
			list.add(m, r.path(pid, m.point))
		}
	}
	for _, f := range list {
		f.put(out)
	}
	r.putDeleted(out, list)
	return nil
}

// path is where our process finds what the process sees at the point.
func (r *reader) path(pid, point string) string {
	if pid == "self" {
		return r.host.Path(point)
	}
	return r.host.Path("proc", pid, "root", point)
}

// fileSystem is a mounted file system, and how full it is.
type fileSystem struct {
	mount
	unix.Statfs_t
}

// left is the share of its blocks that users may still have.
func (f *fileSystem) left() float64 { return float64(f.Bavail) / float64(max(f.Blocks, 1)) }

// fileSystems are at most one of a source, kind and mount point: those are a
// series' labels, and two containers' "overlay" at / have the same.
type fileSystems []fileSystem

// add adds the file system that is mounted at path, unless a fuller one has its labels.
func (l *fileSystems) add(m mount, path string) {
	i := slices.IndexFunc(*l, func(o fileSystem) bool {
		return o.source == m.source && o.kind == m.kind && o.point == m.point
	})
	if i >= 0 && (*l)[i].device == m.device || i < 0 && len(*l) >= maxMounts {
		return
	}
	f := fileSystem{mount: m}
	if unix.Statfs(path, &f.Statfs_t) != nil {
		return // another is mounted over it, or we may not look
	}
	switch {
	case i < 0:
		*l = append(*l, f)
	case f.left() < (*l)[i].left():
		(*l)[i] = f
	}
}

func (f *fileSystem) put(out *probe.Out) {
	labels := []string{f.source, f.kind, f.point}
	unit := float64(f.Bsize)
	if f.Blocks > 0 {
		out.Put(size, float64(f.Blocks)*unit, labels...)
		out.Put(free, float64(f.Bfree)*unit, labels...)
		out.Put(avail, float64(f.Bavail)*unit, labels...)
	}
	if f.Files > 0 {
		out.Put(files, float64(f.Files), labels...)
		out.Put(filesFree, float64(f.Ffree), labels...)
	}
	ro := 0.0
	if f.readOnly || f.Flags&unix.ST_RDONLY != 0 {
		ro = 1
	}
	out.Put(readOnly, ro, labels...)
}

// look finds one process for each mount namespace of the host's services.
func (r *reader) look() error {
	procs, err := r.list()
	if err != nil {
		return err
	}
	r.pids = []string{"self"}
	seen := map[uint64]bool{0: true, r.space("self"): true}
	live := make(map[int]space, len(procs))
	for i := range procs {
		p := &procs[i]
		if p.Kernel {
			continue
		}
		s, ok := r.known[p.PID]
		if !ok || s.start != p.Start {
			s = space{p.Start, r.space(strconv.Itoa(p.PID))}
		}
		live[p.PID] = s
		if !seen[s.ino] && len(r.pids) < maxSpaces {
			seen[s.ino] = true
			r.pids = append(r.pids, strconv.Itoa(p.PID))
		}
	}
	r.known = live
	return nil
}

func (r *reader) space(pid string) uint64 {
	var st unix.Stat_t
	if unix.Stat(r.host.Path("proc", pid, "ns/mnt"), &st) != nil {
		return 0
	}
	return st.Ino
}

// mount is one line of a mountinfo.
type mount struct {
	device, source, point, kind string
	readOnly                    bool
}

// parseMounts reads a mountinfo, see proc_pid_mountinfo(5), of the kinds that
// may hold a service's files; of several mounts of one file system the first.
//
//	36 35 254:0 / /srv rw,relatime shared:1 - ext4 /dev/vda rw
func parseMounts(b []byte) []mount {
	var list []mount
	for line := range strings.Lines(string(b)) {
		head, tail, ok := strings.Cut(line, " - ")
		at, fs := strings.Fields(head), strings.Fields(tail)
		if !ok || len(at) < 6 || len(fs) < 3 || !slices.Contains(kinds, fs[0]) {
			continue
		}
		m := mount{device: at[2], point: unescape(at[4]), kind: fs[0], source: unescape(fs[1])}
		m.readOnly = slices.Contains(strings.Split(at[5], ","), "ro") || slices.Contains(strings.Split(fs[2], ","), "ro")
		if !slices.ContainsFunc(list, func(o mount) bool { return o.device == m.device }) {
			list = append(list, m)
		}
	}
	return list
}

// unescape turns the kernel's \040 into a blank and so on, and makes it fit to be a label's value.
func unescape(s string) string {
	for _, e := range [...][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		s = strings.ReplaceAll(s, e[0], e[1])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

package sockets

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe/pace"
)

const (
	// unknownOwner stands for a listener whose process was not found: the
	// kernel's own, one of another user, or one outside of this host.
	unknownOwner = "unknown"
	// superviser holds the listeners that it opens for others (socket activation).
	superviser = "systemd"
	// fdsPerProcess and fdsPerScan bound a search. A listener is opened early, so
	// it has a low number even in a worker with thousands of connections.
	fdsPerProcess = 1024
	fdsPerScan    = 50_000
	// searchShare is the part of one core that searches for listeners' processes may use.
	searchShare = 0.01
)

// Searches for one inode: the first at once, further ones ever later.
const (
	firstWait = time.Second
	lastWait  = time.Minute
)

// owners finds the processes that hold listening sockets. It looks only while
// there is a socket whose process is not known, and not too often.
type owners struct {
	host  *host.Host
	known map[uint32]*owned // by socket inode
	// without are the marks (see host.Marker) of processes that held no socket
	// when they were looked through, by pid: those that have not run since hold none.
	// Whoever searches the same host knows them, too.
	without map[int]uint64
	pace    pace.Pace
	// refused: there was a process that we may not look into.
	refused bool
}

type owned struct {
	comm  string        // "" until found
	pid   int           // one process of those that hold it, the first that was found
	fd    int           // its number there
	again time.Time     // when to look again
	wait  time.Duration // until the time after that

	asked, told bool    // for how long it defers (see deferred)
	defers      float64 // seconds, where told
}

func newOwners(h *host.Host, share float64, without map[int]uint64) *owners {
	return &owners{host: h, known: map[uint32]*owned{}, without: without, pace: pace.Pace{Share: share}}
}

// comm is the name of the process that holds an inode; "" when not found (yet).
func (o *owners) comm(inode uint32) string {
	if k := o.known[inode]; k != nil {
		return k.comm
	}
	return ""
}

// settled says that a search for the inode found its process or was repeated in vain.
func (o *owners) settled(inode uint32) bool {
	k := o.known[inode]
	return k != nil && (k.comm != "" || k.wait > 2*firstWait)
}

// find looks for the processes of those inodes that are new, or were not found
// and are due again. Inodes that are not asked for are forgotten.
func (o *owners) find(inodes []uint32, now time.Time) error {
	next := make(map[uint32]*owned, len(inodes))
	wanted := map[uint32]*owned{}
	for _, inode := range inodes {
		k := o.known[inode]
		if k == nil {
			k = &owned{wait: firstWait}
		}
		next[inode] = k
		if k.comm == "" && !now.Before(k.again) {
			wanted[inode] = k
		}
	}
	o.known = next
	if len(wanted) == 0 || !o.pace.Due(now, false) {
		return nil
	}
	for _, k := range wanted {
		k.again, k.wait = now.Add(k.wait), min(2*k.wait, lastWait)
	}
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	start := pace.CPUTime()
	err := o.search(wanted)
	o.pace.Took(pace.CPUTime()-start, 0)
	return err
}

// search looks through the descriptors of the host's processes. A supervisor
// is named only when nobody else holds the socket.
func (o *owners) search(wanted map[uint32]*owned) error {
	procs, err := o.host.Procs()
	if err != nil {
		return err
	}
	marks := o.host.Marks() // as of before the look
	maps.DeleteFunc(o.without, func(pid int, mark uint64) bool { return marks[pid] != mark })
	left := fdsPerScan
	for i := range procs {
		p := &procs[i]
		mark := marks[p.PID]
		if p.Kernel || mark != 0 && mark == o.without[p.PID] || len(wanted) == 0 || left <= 0 {
			continue
		}
		looked, sockets := o.searchProcess(p.PID, wanted)
		left -= looked
		if mark != 0 && !sockets {
			o.without[p.PID] = mark
		}
	}
	return nil
}

// searchProcess names the process for each wanted socket that it holds. It returns
// how many descriptors it looked at, and whether there may be sockets among all of
// them. A process that is gone or that we may not look into holds none of the wanted.
func (o *owners) searchProcess(pid int, wanted map[uint32]*owned) (looked int, sockets bool) {
	dir := o.host.Path("proc", strconv.Itoa(pid))
	var comm string
	looked, err := host.EachDescriptor(dir, fdsPerProcess, func(fd int, link []byte, err error) {
		if err != nil {
			o.refused = o.refused || errors.Is(err, fs.ErrPermission)
			sockets = true // as far as we know
			return
		}
		inode := socketInode(link)
		sockets = sockets || inode != 0
		k := wanted[inode]
		if k == nil {
			return
		}
		if comm == "" {
			comm = readComm(dir)
		}
		k.comm, k.pid, k.fd = comm, pid, fd
		if comm != "" && comm != superviser {
			delete(wanted, inode)
		}
	})
	if err != nil {
		o.refused = o.refused || errors.Is(err, fs.ErrPermission)
		return looked + 1, true
	}
	return looked, sockets || looked == fdsPerProcess
}

// readComm is the name of a process now; that of the host's list may be older
// than an exec. "" when the process is gone.
func readComm(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return string(bytes.TrimRight(b, "\n"))
}

// socketInode reads a link like "socket:[4711]"; 0 for every other descriptor.
func socketInode(link []byte) uint32 {
	digits, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(string(bytes.TrimSuffix(digits, []byte("]"))), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

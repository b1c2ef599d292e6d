package sockets

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/doing"
	"plimsoll/internal/probe/pace"
)

const (
	// asideShare is the part of one core that looking at those aside may use.
	asideShare = 0.005
	// maxAside bounds the threads that are looked at in one look.
	maxAside = 512
)

// asideKey is what threads are added up by.
type asideKey struct{ comm, reason string }

// aside looks at the processes that share no more than a program's name with one that listens: a backup job beside a
// service, both python3. Who waits by that name is no user for their sake.
type aside struct {
	host *host.Host
	pace pace.Pace
	sums map[asideKey]float64 // of the last look; what was seen in the one before stays, with 0
}

// holders are the processes that hold listeners, by name.
func (o *owners) holders() map[string][]int {
	of := map[string][]int{}
	for _, k := range o.known {
		if k.comm != "" && k.comm != superviser {
			of[k.comm] = append(of[k.comm], k.pid)
		}
	}
	return of
}

func (a *aside) report(out *probe.Out, holders map[string][]int) error {
	if !a.pace.Due(out.Now(), out.Forced()) {
		out.Keep(asideThreads)
		return nil
	}
	procs, err := a.host.Procs()
	if err != nil {
		a.pace.Took(0, out.Rhythm())
		return err
	}
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	start := pace.CPUTime()
	a.look(strangers(procs, holders, a.session))
	a.pace.Took(pace.CPUTime()-start, out.Rhythm())
	for k, n := range a.sums {
		out.Put(asideThreads, n, strings.ToValidUTF8(k.comm, "\uFFFD"), k.reason)
	}
	return nil
}

// look counts the threads of those processes by what they are about. Where there are more than are looked at, those stand for all.
func (a *aside) look(of map[string][]int) {
	before := a.sums
	a.sums = map[asideKey]float64{}
	left := maxAside
	for _, comm := range slices.Sorted(maps.Keys(of)) {
		if left == 0 { // of who was not looked at nothing is known
			return
		}
		pids := of[comm]
		for k := range before {
			if k.comm == comm {
				a.sums[k] = 0
			}
		}
		now, looked, gone := map[asideKey]float64{}, 0, 0
		for _, pid := range pids {
			tasks, err := os.ReadDir(a.host.Path("proc", strconv.Itoa(pid), "task"))
			if err != nil {
				gone++
				continue
			}
			looked++
			for _, t := range tasks[:min(len(tasks), left)] {
				now[asideKey{comm, doing.Of(a.host.Path("proc", strconv.Itoa(pid), "task", t.Name()))}] += float64(len(tasks)) / float64(min(len(tasks), left))
			}
			if left -= min(len(tasks), left); left == 0 {
				break
			}
		}
		for k, n := range now {
			a.sums[k] = n * float64(len(pids)-gone) / float64(looked)
		}
	}
}

// session is a process's session, 0 where that is not known.
func (a *aside) session(pid int) int {
	b, err := os.ReadFile(filepath.Join(a.host.Path("proc", strconv.Itoa(pid)), "stat"))
	if err != nil {
		return 0
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // state, parent, group, session
	if len(f) < 4 {
		return 0
	}
	n, err := strconv.Atoi(string(f[3]))
	if err != nil {
		return 0
	}
	return n
}

// family is the processes of one name that hold listeners, and those above them of that name.
type family struct {
	byPID    map[int]*host.Proc
	roots    map[int]bool
	sessions map[int]bool
	session  func(pid int) int
}

// maxUp bounds the way up from a process: numbers are used again, so a circle is thinkable.
const maxUp = 64

// strangers are the processes that have the name of a holder, and are not of its family. Where a holder is gone, nobody knows who
// descended from it.
func strangers(procs []host.Proc, holders map[string][]int, session func(pid int) int) map[string][]int {
	byPID := make(map[int]*host.Proc, len(procs))
	for i := range procs {
		byPID[procs[i].PID] = &procs[i]
	}
	of := map[string][]int{}
	for comm, pids := range holders {
		f := family{byPID, map[int]bool{}, map[int]bool{}, session}
		if !f.found(comm, pids) {
			continue
		}
		of[comm] = nil // judged, also where there are none
		for i := range procs {
			if p := &procs[i]; p.Comm == comm && !p.Kernel && !f.has(p) {
				of[comm] = append(of[comm], p.PID)
			}
		}
	}
	return of
}

// found looks for the roots of the family; a server's first process may not listen itself.
func (f *family) found(comm string, pids []int) bool {
	for _, pid := range pids {
		p := f.byPID[pid]
		if p == nil || p.Comm != comm {
			return false
		}
		for range maxUp {
			up := f.byPID[p.PPID]
			if up == nil || up.Comm != comm {
				break
			}
			p = up
		}
		f.roots[p.PID] = true
		if s := f.session(pid); s != 0 {
			f.sessions[s] = true
		}
	}
	return true
}

// has says whether p descends from a root. An orphan does where it is in a holder's session.
func (f *family) has(p *host.Proc) bool {
	first := p
	for range maxUp {
		if f.roots[p.PID] {
			return true
		}
		up := f.byPID[p.PPID]
		if up == nil || up.PID == 1 {
			return p == first && f.sessions[f.session(p.PID)]
		}
		p = up
	}
	return true
}

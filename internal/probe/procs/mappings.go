package procs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
)

const (
	// mappingsEvery is the least time between two counts of one process's mappings, and counting takes a thousandth of the time.
	mappingsEvery = 10 * time.Second
	mappingsRest  = 1000
	// mostMappings bounds a count; what has more counts as so many.
	mostMappings = 1 << 20
	// nearLimit is the share of the limit below which nobody is counted: a mapping has a page at least, so a process whose
	// address space has no room for so many has fewer.
	nearLimit = 0.9
)

// mappings counts the mappings of processes that may be near vm.max_map_count, one process at a time, in the background:
// the kernel writes a line for each, and takes the process's map for as long as a few dozen of them.
type mappings struct {
	limit   uint64 // 0: not known
	pending chan mapped
	rest    time.Time // until then nobody is counted
	of      map[int]mapped
}

type mapped struct {
	pid    int
	start  uint64
	count  int
	code   uint64 // bytes of memory that is nobody's file, and may be written and executed
	at     time.Time
	took   time.Duration
	denied error
}

// look takes a count that is done, and begins the next that is due.
func (m *mappings) look(r *reader) {
	now := r.now()
	if m.pending != nil {
		select {
		case done := <-m.pending:
			m.pending, m.rest = nil, now.Add(mappingsRest*done.took)
			m.of[done.pid] = done
		default:
			return
		}
	}
	b, err := host.ReadFile(r.host.Path("proc/sys/vm/max_map_count"))
	if err != nil {
		return
	}
	m.limit, _ = host.Number(bytes.TrimSpace(b))
	for pid, c := range m.of {
		if p := r.procs[pid]; p == nil || p.start != c.start {
			delete(m.of, pid)
		}
	}
	if now.Before(m.rest) {
		return
	}
	p := m.due(r.procs, now)
	if p == nil {
		return
	}
	m.pending = make(chan mapped, 1)
	path, to, c := r.host.Path("proc", p.name, "maps"), m.pending, mapped{pid: p.pid, start: p.start, at: now}
	go func() {
		began := time.Now()
		c.count, c.code, c.denied = countMappings(path)
		c.took = time.Since(began)
		to <- c
	}()
}

// due is the process that was counted longest ago of those that may be near the limit.
func (m *mappings) due(procs map[int]*process, now time.Time) (due *process) {
	least := uint64(nearLimit * float64(m.limit) * float64(os.Getpagesize()))
	for _, p := range procs {
		if p.kernel || p.foreign || m.limit == 0 || p.virtual < least || now.Sub(m.of[p.pid].at) < mappingsEvery {
			continue
		}
		if due == nil || m.of[p.pid].at.Before(m.of[due.pid].at) {
			due = p
		}
	}
	return due
}

func (m *mappings) put(out *probe.Out, procs map[int]*process) {
	worst, left := map[string]float64{}, map[string]float64{}
	for pid, c := range m.of {
		p := procs[pid]
		if p == nil || p.foreign || p.start != c.start || c.denied != nil || m.limit == 0 {
			continue
		}
		worst[p.group.name] = max(worst[p.group.name], float64(c.count)/float64(m.limit))
		if p.told.codeCache == 0 || c.code == 0 || c.code > p.told.codeCache { // more than it may be is something else's, too: stacks
			continue
		}
		room := float64(p.told.codeCache - c.code)
		if least, ok := left[p.group.name]; !ok || room < least {
			left[p.group.name] = room
		}
	}
	for name, ratio := range worst {
		out.Put(worstMappings, ratio, name)
	}
	for name, room := range left {
		out.Put(codeCacheLeft, room, name)
	}
}

// countMappings counts the lines of a process's maps, and the bytes for code that it makes itself.
func countMappings(path string) (n int, code uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewReaderSize(f, 64<<10); n < mostMappings; {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return n, code, nil
		case err != nil: // longer than the buffer, which no path is
			return n, code, err
		}
		n++
		code += codeBytes(line)
	}
	return mostMappings, code, nil
}

// codeBytes is the size of a mapping that may be written and executed, and is of no file (inode 0); of all others 0.
//
// https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html
func codeBytes(line []byte) uint64 {
	fields := bytes.Fields(line)
	if len(fields) != 5 || !bytes.HasPrefix(fields[1], []byte("rwx")) || string(fields[4]) != "0" { // what has a name is a stack, or a heap
		return 0
	}
	from, to, _ := strings.Cut(string(fields[0]), "-")
	begin, errBegin := strconv.ParseUint(from, 16, 64)
	end, errEnd := strconv.ParseUint(to, 16, 64)
	if errBegin != nil || errEnd != nil || end < begin {
		return 0
	}
	return end - begin
}

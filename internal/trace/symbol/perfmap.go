package symbol

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxPerfMap bounds the map of one process.
const maxPerfMap = 8 << 20

// perfMap is what a JIT compiler leaves for profilers in /tmp/perf-PID.map.
type perfMap struct {
	list  []jitted
	bytes int
	size  int64 // of the file, when it was read
}

type jitted struct {
	start, size uint64
	name        string
}

// parsePerfMap reads lines "7f8a4c01e000 1c0 LazyCompile:~handle /srv/app.js:12":
// start and size in hexadecimal, name.
func parsePerfMap(list io.Reader) perfMap {
	var m perfMap
	lines := bufio.NewScanner(io.LimitReader(list, maxPerfMap))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		from, rest, _ := strings.Cut(lines.Text(), " ")
		length, name, _ := strings.Cut(rest, " ")
		start, errA := strconv.ParseUint(strings.TrimPrefix(from, "0x"), 16, 64)
		size, errB := strconv.ParseUint(strings.TrimPrefix(length, "0x"), 16, 64)
		if errA != nil || errB != nil || size == 0 || name == "" {
			continue
		}
		name = cut(strings.Clone(name))
		m.list = append(m.list, jitted{start, size, name})
		m.bytes += 40 + len(name)
	}
	// Memory is used again: what was written later is true.
	slices.Reverse(m.list)
	slices.SortStableFunc(m.list, func(a, b jitted) int { return cmp.Compare(a.start, b.start) })
	m.list = slices.CompactFunc(m.list, func(a, b jitted) bool { return a.start == b.start })
	return m
}

func (m *perfMap) find(addr uint64) string {
	i, exact := slices.BinarySearchFunc(m.list, addr, func(j jitted, addr uint64) int { return cmp.Compare(j.start, addr) })
	if !exact {
		i--
	}
	if i < 0 || addr-m.list[i].start >= m.list[i].size {
		return ""
	}
	return m.list[i].name
}

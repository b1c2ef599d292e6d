package symbol

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxMappings is the kernel's own usual bound (vm.max_map_count).
const maxMappings = 65530

// fileID tells files apart; a file that is held open keeps its own.
type fileID struct {
	device, inode, path string
}

// mapping is a part of a process's memory that holds code, or variables of a file.
type mapping struct {
	start, end, offset uint64
	code               bool
	path               string
	file               fileID
	unreadable         bool
}

func (m *mapping) isFile() bool { return m.file.inode != "" }

// parseMaps reads a list as /proc/PID/maps has it, and keeps what is code or a
// file's variables:
//
//	7f0c8a5d2000-7f0c8a727000 r-xp 00026000 fd:01 1835    /usr/lib/libc.so.6
func parseMaps(list io.Reader) ([]mapping, error) {
	var all []mapping
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, 64<<10) // a path may be escaped, four bytes for one
	for lines.Scan() && len(all) < maxMappings {
		m, rights, ok := parseMapping(lines.Text())
		if !ok {
			continue
		}
		switch {
		case m.code, m.isFile() && rights[1] == 'w':
			all = append(all, m)
		case rights == "rw-p" && m.path == "" && len(all) > 0 && all[len(all)-1].isFile() && !all[len(all)-1].code && all[len(all)-1].end == m.start:
			all[len(all)-1].end = m.end // the .bss behind a file's .data
		}
	}
	slices.SortFunc(all, func(a, b mapping) int { return cmp.Compare(a.start, b.start) })
	return all, lines.Err()
}

func parseMapping(line string) (m mapping, rights string, ok bool) {
	var fields [5]string
	rest := line
	for i := range fields {
		fields[i], rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
	}
	from, to, _ := strings.Cut(fields[0], "-")
	start, errA := strconv.ParseUint(from, 16, 64)
	end, errB := strconv.ParseUint(to, 16, 64)
	offset, errC := strconv.ParseUint(fields[2], 16, 64)
	if errA != nil || errB != nil || errC != nil || start >= end || len(fields[1]) != 4 {
		return mapping{}, "", false
	}
	m = mapping{start: start, end: end, offset: offset, code: fields[1][2] == 'x'}
	m.path = strings.ToValidUTF8(strings.Clone(strings.TrimSuffix(strings.TrimLeft(rest, " "), " (deleted)")), "\uFFFD")
	if inode := fields[4]; inode != "0" && inode != "" && strings.HasPrefix(m.path, "/") && !strings.HasPrefix(m.path, "/dev/") && !strings.HasPrefix(m.path, "/memfd:") {
		m.file = fileID{strings.Clone(fields[3]), strings.Clone(inode), m.path}
	}
	return m, fields[1], true
}

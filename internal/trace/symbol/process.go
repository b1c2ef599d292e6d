package symbol

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// process is what is known of one process.
type process struct {
	mappings []mapping // by address
	pid      int
	perfMap  perfMap
	looked   bool // the map of its JIT compiler, since the mappings were read
	used     uint64
}

func (p *process) known() bool { return len(p.mappings) > 0 }

// mapping returns what an address lies in, nil if that is no code (or, with code
// false, nothing that belongs to a file).
func (p *process) mapping(addr uint64, code bool) *mapping {
	i, found := slices.BinarySearchFunc(p.mappings, addr, func(m mapping, addr uint64) int { return cmp.Compare(m.start, addr) })
	if !found {
		i--
	}
	if i < 0 || addr >= p.mappings[i].end || code && !p.mappings[i].code {
		return nil
	}
	return &p.mappings[i]
}

func readProcess(pid int) (*process, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	mappings, err := parseMaps(file)
	if err != nil {
		return nil, err
	}
	if len(mappings) == 0 { // it has ended, and its parent has not waited for it yet; or it is the kernel's
		return nil, fmt.Errorf("process %d has no memory: %w", pid, fs.ErrNotExist)
	}
	return &process{pid: pid, mappings: mappings}, nil
}

// jit names a function that was compiled at run time; "" if it is not known.
// The map is read again, once a Look, if an address is not in it and it has grown.
func (p *process) jit(addr uint64) string {
	if name := p.perfMap.find(addr); name != "" || p.looked {
		return name
	}
	p.looked = true
	file, err := openIn(p.pid, fmt.Sprintf("/tmp/perf-%d.map", innerPID(p.pid)))
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() != p.perfMap.size {
		p.perfMap = parsePerfMap(file)
		p.perfMap.size = info.Size()
	}
	return p.perfMap.find(addr)
}

// innerPID is the number by which a process knows itself: in a container, another one.
func innerPID(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return pid
	}
	_, rest, _ := strings.Cut(string(status), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	numbers := strings.Fields(line)
	if len(numbers) == 0 {
		return pid
	}
	inner, err := strconv.Atoi(numbers[len(numbers)-1])
	if err != nil {
		return pid
	}
	return inner
}

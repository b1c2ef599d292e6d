package cpu

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/symbol"
)

// phpOffsets are where a version of PHP (without threads, 64 bits) keeps what the
// sampler reads.
type phpOffsets struct {
	current  uint64 // current_execute_data in struct _zend_executor_globals
	filename uint32 // in struct _zend_op_array
}

// phpVersions are the versions that are known here. Of others nothing is read:
// what would be read could be anything. 8.2 was tried; the others' numbers are those
// on which two other profilers agree (phpspy, OpenTelemetry's).
var phpVersions = map[string]phpOffsets{
	"7.4": {current: 488, filename: 136},
	"8.0": {current: 488, filename: 144},
	"8.1": {current: 488, filename: 144},
	"8.2": {current: 488, filename: 152},
	"8.3": {current: 488, filename: 144},
	"8.4": {current: 488, filename: 168},
	"8.5": {current: 512, filename: 168},
}

var (
	phpModule = lazy.Regexp(`^(lib|mod_)?php[-a-z0-9.]*$`)
	// phpHeader is the header that every PHP can send; its version stands in no symbol.
	phpHeader = lazy.Regexp(`X-Powered-By: PHP/([0-9]+\.[0-9]+)\.`)
)

// maxRodata bounds the constants of a binary that are searched for its version.
const maxRodata = 32 << 20

// php tells which processes are PHP's, and where they keep what they execute.
type php struct {
	names *symbol.Resolver
	// globals are the places in binaries' symbol tables, 0 of those that are not known.
	globals map[string]phpGlobals
}

type phpGlobals struct {
	current  uint64
	filename uint32
}

// find returns where a process keeps what it executes; false if it is no PHP whose
// version is known.
func (p *php) find(pid int) (bpfPhp, bool) {
	m := p.names.Module(pid, func(file string) bool { return phpModule().MatchString(path.Base(file)) })
	if m == nil {
		return bpfPhp{}, false
	}
	g, known := p.globals[m.ID]
	if !known {
		g = readPHP(m)
		p.globals[m.ID] = g
	}
	return bpfPhp{Current: m.Bias + g.current, Filename: g.filename}, g.current != 0
}

func readPHP(m *symbol.Module) phpGlobals {
	file, err := m.Open()
	if err != nil {
		return phpGlobals{}
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	if err != nil || f.Class != elf.ELFCLASS64 {
		return phpGlobals{}
	}
	offsets, ok := phpVersions[phpVersion(f)]
	if !ok {
		return phpGlobals{}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return phpGlobals{}
	}
	for _, s := range symbols {
		// With threads there is a copy for each, and no such symbol.
		if s.Name == "executor_globals" && elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Size > offsets.current {
			return phpGlobals{s.Value + offsets.current, offsets.filename}
		}
	}
	return phpGlobals{}
}

// phpVersion returns the version of a PHP as 8.2, "" if it is not found.
func phpVersion(f *elf.File) string {
	s := f.Section(".rodata")
	if s == nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(s.Open(), maxRodata))
	if err != nil {
		return ""
	}
	if found := phpHeader().FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// running returns the processes whose program looks like one that executes PHP.
func running() []int {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if name := path.Base(strings.TrimSuffix(program, " (deleted)")); err == nil && (phpModule().MatchString(name) || name == "apache2" || name == "httpd") {
			pids = append(pids, pid)
		}
	}
	return pids
}

const phpFrames = "[php]"

// interpretersLoop is the function of PHP that executes a script's instructions.
const interpretersLoop = "execute_ex"

// includes stands for what PHP does before a file that is included executes its first
// instruction: it looks for the file, reads it and compiles it, or asks opcache.
var includes = symbol.Frame{Function: "php:{include}", Module: phpFrames}

// script is a function of a PHP script.
type script struct{ class, function, file string }

func scriptOf(s *bpfScript) script {
	file := trace.Comm(s.File[:])
	if s.FileLength >= uint64(len(s.File)) {
		file = "…" + file
	}
	return script{trace.Comm(s.Class[:]), trace.Comm(s.Function[:]), file}
}

// name is the function's own, "{main}" of what stands outside all functions.
func (s script) name() string {
	name := s.function
	if name == "" {
		name = "{main}"
	}
	if s.class != "" {
		name = s.class + "::" + name
	}
	return name
}

// frame is a function of a script, at a line.
func (s script) frame(line int) symbol.Frame {
	f := symbol.Frame{Function: "php:" + s.name(), File: s.file, Line: line, Module: phpFrames}
	if s.file != "" {
		f.Function = fmt.Sprintf("php:%s %s:%d", s.name(), s.file, line)
	}
	return f
}

// leaf names what a PHP process is in: of a function of PHP's own, with who calls it.
func leaf(frames []symbol.Frame) string {
	if frames[0].File != "" || len(frames) == 1 {
		return frames[0].Function
	}
	return frames[0].Function + " in " + strings.TrimPrefix(frames[1].Function, "php:")
}

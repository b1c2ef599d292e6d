package deepcpu

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/ebpf-profiler/libpf"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

const (
	// maxFunctions is how many functions of a group are reported, shownGroups how
	// many groups are shown as text.
	maxFunctions = 8
	shownGroups  = 12
	// minFunctions are shown as text even if they are small.
	minFunctions = 3
)

// Summary is where the CPU time went, the busiest group first.
type Summary struct {
	Elapsed time.Duration `json:"-"`
	CPUs    int           `json:"cpus"`
	Samples int64         `json:"samples"`
	// CPU is the CPU time that was sampled, Used what the machine used meanwhile,
	// ourselves included.
	CPU    time.Duration `json:"cpu_ns"`
	Used   time.Duration `json:"used_ns"`
	Groups []Group       `json:"groups"`
	// Lost counts samples that are not whole, by what is missing.
	Lost map[string]uint64 `json:"lost"`
}

// Group is all processes of one name.
type Group struct {
	Name string        `json:"groupname"`
	CPU  time.Duration `json:"cpu_ns"`
	// Functions are those that most of the time was spent in, the busiest first.
	Functions []Function `json:"functions"`
}

// Function is the innermost one of a stack that belongs to the program itself: of a
// script its own, not those of its interpreter.
type Function struct {
	Name string `json:"name"`
	// File and Line are where the time was spent; "" and 0 if that is not known.
	File string        `json:"file,omitempty"`
	Line int64         `json:"line,omitempty"`
	CPU  time.Duration `json:"cpu_ns"`
}

// place is what times are added up by.
type place struct {
	name, file string
	line       int64
}

// summarise adds up a profile of the collector's.
func summarise(p *profile.Profile, lost map[string]uint64, elapsed, used time.Duration) *Summary {
	s := &Summary{Elapsed: elapsed, CPUs: runtime.NumCPU(), Used: used, Lost: lost}
	groups := map[string]map[place]time.Duration{}
	for _, one := range p.Sample {
		cpu := time.Duration(one.Value[1])
		s.Samples += one.Value[0]
		s.CPU += cpu
		name := strings.Join(one.Label["groupname"], "")
		if groups[name] == nil {
			groups[name] = map[place]time.Duration{}
		}
		groups[name][innermost(one)] += cpu
	}
	for name, places := range groups {
		s.Groups = append(s.Groups, busiest(name, places))
	}
	slices.SortFunc(s.Groups, func(a, b Group) int { return cmp.Or(cmp.Compare(b.CPU, a.CPU), strings.Compare(a.Name, b.Name)) })
	return s
}

func busiest(name string, places map[place]time.Duration) Group {
	g := Group{Name: name}
	for at, cpu := range places {
		g.CPU += cpu
		g.Functions = append(g.Functions, Function{at.name, at.file, at.line, cpu})
	}
	slices.SortFunc(g.Functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	g.Functions = g.Functions[:min(len(g.Functions), maxFunctions)]
	return g
}

// innermost is the function of a stack that its time is counted for: a script's
// if it has any, else the last that was called.
func innermost(s *profile.Sample) place {
	var first *place
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function == nil {
				continue
			}
			at := place{line.Function.Name, line.Function.Filename, line.Line}
			if isScript(l.Mapping) {
				return at
			}
			if first == nil {
				first = &at
			}
		}
	}
	if first == nil {
		return place{name: "[unknown]"}
	}
	return *first
}

// isScript tells interpreters ("[php]") from binaries and from the kernel.
func isScript(m *profile.Mapping) bool {
	return m != nil && slices.Contains(interpreters, m.File)
}

// Text lays it out in lines of at most so many columns, without colour.
func (s *Summary) Text(columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of CPU time sampled, of %s used\n", trace.Watched(s.Elapsed, s.CPUs), trace.Span(s.CPU), trace.Span(s.Used))
	for _, g := range s.Groups[:min(len(s.Groups), shownGroups)] {
		fmt.Fprintf(&b, "\n%s  %s\n", s.share(g.CPU), cutTo(layout.Line(g.Name), columns-9))
		for i, f := range g.Functions {
			if i >= minFunctions && f.CPU*100 < s.CPU {
				break // less than one in a hundred of everything
			}
			fmt.Fprintf(&b, "%s    %s\n", s.share(f.CPU), f.text(columns-11))
		}
	}
	if more := len(s.Groups) - shownGroups; more > 0 {
		fmt.Fprintf(&b, "\n         and %d groups of processes that used less\n", more)
	}
	return b.String() + s.lostText(columns)
}

func (s *Summary) lostText(columns int) string {
	lost := maps.Clone(s.Lost)
	n := lost[lostUnread]
	delete(lost, lostUnread)
	text := trace.LostText(lost, columns)
	if n > 0 {
		note := fmt.Sprintf("note: of %s samples the stack of the process could not be read, or not to its end", trace.Number(n))
		text += "\n" + layout.Indent(layout.Wrap(note, columns-6), "      ") + "\n"
	}
	return text
}

// share is a share of all CPU time that was seen, always as wide.
func (s *Summary) share(d time.Duration) string {
	return fmt.Sprintf("%5.1f %%", 100*float64(d)/float64(max(s.CPU, 1)))
}

// text is the function and where it is: the file's last part, where there is no
// room for more.
func (f Function) text(columns int) string {
	name := layout.Line(f.Name)
	if f.File == "" {
		return cutTo(name, columns)
	}
	at := func(file string) string {
		if f.Line > 0 {
			file += ":" + strconv.FormatInt(f.Line, 10)
		}
		return name + "  " + layout.Line(file)
	}
	if long := at(f.File); len([]rune(long)) <= columns {
		return long
	}
	return cutTo(at(path.Base(f.File)), columns)
}

func cutTo(text string, columns int) string {
	if r := []rune(text); len(r) > columns && columns > 1 {
		return string(r[:columns-1]) + "…"
	}
	return text
}

// interpreterTypes are those whose functions the library names, interpreters their files in a profile.
var (
	interpreterTypes = []libpf.InterpreterType{libpf.PHP, libpf.Python, libpf.V8, libpf.HotSpot, libpf.Ruby, libpf.Perl, libpf.Dotnet, libpf.BEAM, libpf.LuaJIT}
	interpreters     = named(interpreterTypes)
)

func named(types []libpf.InterpreterType) (names []string) {
	for _, t := range types {
		names = append(names, interpreter(t))
	}
	return names
}

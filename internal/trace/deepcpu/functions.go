package deepcpu

import (
	"slices"

	"go.opentelemetry.io/ebpf-profiler/libpf"

	"plimsoll/internal/layout"
)

const (
	maxGroups = 512
	// A function is a series of its own once it was found seldomest times in all,
	// if there is room among those of its group and of all. What was counted before is
	// missing in its share, and libraries spread their time over many functions.
	seldomest         = 4
	functionsOfGroup  = 24
	functionsOfAll    = 512
	candidatesOfGroup = 1024
)

// What stands for a function where none of a script is told.
const (
	others   = "other"    // of a script, and found seldom
	noScript = "[native]" // no script is on the stack
)

// owner is all processes of one name in a network namespace.
type owner struct {
	netns uint32
	group string
}

// counted is one series.
type counted struct {
	NetNS    uint32 `json:"netns"`
	Group    string `json:"group"`
	Function string `json:"function"`
	Samples  uint64 `json:"samples"`
}

// functions are samples by the function of a script that they are told for.
type functions struct {
	groups map[owner]*groupFunctions
	series int
	noRoom uint64
}

type groupFunctions struct {
	// native are samples without a script; other those of functions that were no
	// series when they were taken.
	native, other uint64
	named         map[string]*function
	series        int
}

type function struct {
	samples uint64
	// before is how many of them were taken before it became a series: these stay
	// among the others, since a counter never falls.
	before uint64
	shown  bool
}

func newFunctions() *functions { return &functions{groups: map[owner]*groupFunctions{}} }

func (fs *functions) add(o owner, name string, n uint64) {
	g := fs.groups[o]
	if g == nil && len(fs.groups) == maxGroups {
		fs.noRoom += n
		return
	}
	if g == nil {
		g = &groupFunctions{named: map[string]*function{}}
		fs.groups[o] = g
	}
	if name == noScript {
		g.native += n
		return
	}
	f := g.named[name]
	if f == nil && len(g.named) < candidatesOfGroup {
		f = &function{}
		g.named[name] = f
	}
	if f == nil || name == others {
		g.other += n
		return
	}
	f.samples += n
	if !f.shown && f.samples >= seldomest && g.series < functionsOfGroup && fs.series < functionsOfAll {
		f.shown, f.before = true, f.samples-n
		g.series++
		fs.series++
	}
	if !f.shown {
		g.other += n
	}
}

// list is every series.
func (fs *functions) list() []counted {
	var all []counted
	for o, g := range fs.groups {
		put := func(name string, n uint64) {
			if n > 0 {
				all = append(all, counted{o.netns, o.group, name, n})
			}
		}
		put(noScript, g.native)
		put(others, g.other)
		for name, f := range g.named {
			if f.shown {
				put(name, f.samples-f.before)
			}
		}
	}
	return all
}

// told are the interpreters of which the library knows where a function begins.
var told = []libpf.InterpreterType{libpf.PHP, libpf.Python, libpf.V8, libpf.HotSpot}

// beginning is the line at which a frame's function begins, 0 if that is not known.
func beginning(f libpf.Frame) int {
	line := int(f.SourceLine) - int(f.FunctionOffset)
	if !slices.Contains(told, f.Type.Interpreter()) || line < 1 {
		return 0
	}
	return line
}

// scriptOf names the function of a script that a stack's time is told for.
func scriptOf(frames libpf.Frames) string {
	var scripts []layout.Script
	for _, h := range frames {
		f := h.Value()
		if slices.Contains(interpreterTypes, f.Type.Interpreter()) && !f.Type.IsError() && valid(f.FunctionName) != "" {
			scripts = append(scripts, layout.Script{Name: functionName(f.FunctionName), File: fileName(f.SourceFile), Line: beginning(f)})
		}
	}
	if len(scripts) == 0 {
		return noScript
	}
	return layout.InScripts(scripts)
}

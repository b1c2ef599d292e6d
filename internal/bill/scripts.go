package bill

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// leastWhole is how many whole stacks of a mechanism have to be there before its functions are named by them.
const leastWhole = 10

// interpreters are the files under which whole stacks have the functions that an interpreter runs.
var interpreters = []string{"[php]", "[cpython]", "[v8js]", "[jvm]", "[ruby]", "[perl]", "[dotnet]", "[beam]", "[luajit]"}

// scripted is what whole stacks tell of a mechanism: its functions, and how many stacks had one of a script.
type scripted struct {
	all, inScripts int64
	functions      map[model.BillFunction]int64
	callers        map[string]*caller
	own            map[string]*caller // those of them that are no library's
}

// addScripts names what mechanisms are for by whole stacks, which know the functions of scripts. How much each is
// remains the other stacks' to say, which miss nobody that has just begun.
func (t *table) addScripts(hosts []model.Host, services map[owner]float64, whole []*profile.Profile, all *sums) error {
	read := t.reader()
	for _, p := range whole {
		for _, s := range p.Sample {
			if len(s.Value) == 0 || s.Value[0] <= 0 || s.Value[0] > mostSamples || !isService(hosts, services, label(s, "netns"), label(s, "groupname")) {
				continue
			}
			scripts, rest := apart(s)
			st, err := read.stack(rest)
			if err != nil {
				return err
			}
			m := t.place(&st)
			if of := all.by[m]; of != nil {
				of.scripted.add(m.where(&st), scripts, s.Value[0])
			}
		}
	}
	return nil
}

// Scripts are the functions of scripts on a whole stack, from the innermost out.
func Scripts(s *profile.Sample) []layout.Script {
	scripts, _ := apart(s)
	return scripts
}

// apart takes the functions of scripts out of a stack: they have names that anybody may give them.
func apart(s *profile.Sample) (scripts []layout.Script, rest *profile.Sample) {
	rest = &profile.Sample{Label: s.Label}
	for _, l := range s.Location {
		switch {
		case l.Mapping == nil || !slices.Contains(interpreters, l.Mapping.File):
			rest.Location = append(rest.Location, l)
		case len(l.Line) > 0 && l.Line[0].Function != nil:
			scripts = append(scripts, layout.Script{Name: l.Line[0].Function.Name, File: l.Line[0].Function.Filename, Line: int(min(max(l.Line[0].Function.StartLine, 0), math.MaxInt32))})
		}
	}
	return scripts, rest
}

// add counts a stack for its function of a script, else for the one in which it is.
func (of *scripted) add(in model.BillFunction, scripts []layout.Script, count int64) {
	if of.functions == nil {
		*of = scripted{functions: map[model.BillFunction]int64{}, callers: map[string]*caller{}, own: map[string]*caller{}}
	}
	of.all += count
	if len(scripts) == 0 {
		of.functions[in] += count
		return
	}
	of.inScripts += count
	of.functions[model.BillFunction{Function: layout.InScripts(scripts)}] += count
	seen := map[string]bool{}
	for i, f := range scripts {
		if f.Runs() { // neither it nor who started it asked for this
			break
		}
		name := f.String()
		if seen[name] {
			continue
		}
		seen[name] = true
		called(of.callers, name, i, count)
		if !f.Library() {
			called(of.own, name, i, count)
		}
	}
}

// tell names an entry's functions and who calls for it, where a good part of it was in scripts. What names PHP's functions
// by itself has their lines, and is left as it is.
func (of *scripted) tell(e *model.BillEntry) {
	if of.all < leastWhole || 10*of.inScripts < of.all || len(e.Functions) > 0 && strings.Contains(e.Functions[0].Function, "php:") {
		return
	}
	if e.Mechanism == "own" {
		e.Functions = functionsOf(of.functions, of.all)
		for i := range e.Functions {
			e.Functions[i].Share *= e.Share
		}
	}
	if e.Caller == "" {
		e.Caller = cmp.Or(innermost(of.own, of.all, leastOwn), innermost(of.callers, of.all, leastCalled))
	}
}

package bill

import (
	"math"
	"testing"

	"github.com/google/pprof/profile"
)

// Whole stacks name a script's functions, and who calls for them; how much it is, the others say.
func TestWholeStacksNameScripts(t *testing.T) {
	script := func(l *profile.Sample, frames ...[2]string) *profile.Sample {
		for _, f := range frames {
			l.Location = append(l.Location, &profile.Location{
				Mapping: &profile.Mapping{File: "[cpython]"}, Line: []profile.Line{{Function: &profile.Function{Name: f[0], Filename: f[1]}, Line: 7}},
			})
		}
		return l
	}
	const json = "/usr/lib/python3.11/json/encoder.py"
	list, run := [2]string{"list", "/srv/app/shop.py"}, [2]string{"run", "/usr/lib/python3.11/asyncio/runners.py"}
	light := &profile.Profile{Sample: []*profile.Sample{stackOf(80, "_PyEval_EvalFrameDefault@python3.11"), stackOf(20, "malloc@libc.so.6")}}
	deep := &profile.Profile{Sample: []*profile.Sample{
		script(stackOf(30, "_PyEval_EvalFrameDefault@python3.11"), [2]string{"iterencode", json}, [2]string{"encode", json}, list, run),
		script(stackOf(30, "_PyEval_EvalFrameDefault@python3.11"), [2]string{"encode", json}, list, run),
		script(stackOf(12, "_PyEval_EvalFrameDefault@python3.11"), list, run),
		script(stackOf(20, "malloc@libc.so.6"), [2]string{"malloc", "/srv/app/shop.py"}, run), // a name that is a mechanism's
		stackOf(8, "_PyEval_EvalFrameDefault@python3.11"),
	}}
	b, err := Of(runOf(t, []string{"nginx"}), known(t), []*profile.Profile{light}, []*profile.Profile{deep})
	if err != nil {
		t.Fatal(err)
	}
	whole(t, b)
	own := entry(t, b, "own")
	if f := own.Functions; len(f) != 3 || f[0].Function != "encode (json/encoder.py) in list (app/shop.py)" || math.Abs(f[0].Share-0.8*60/80) > 1e-9 ||
		f[1].Function != "list (app/shop.py)" || f[2].Function != "_PyEval_EvalFrameDefault" || math.Abs(own.Share-0.8) > 1e-9 {
		t.Errorf("%+v", own)
	}
	if own.Caller != "list (app/shop.py)" {
		t.Errorf("called for by %q", own.Caller)
	}
	if a := entry(t, b, "allocating"); a.Caller != "malloc (app/shop.py)" || a.Functions[0].Function != "malloc" {
		t.Errorf("%+v", a)
	}
}

package judge

import (
	"testing"

	"github.com/google/pprof/profile"
)

// sampleOf is so many samples of a group, its innermost frame first: files of code and functions. Those of scripts stand in /srv/app.py.
func sampleOf(group string, count int64, frames ...[2]string) *profile.Sample {
	s := &profile.Sample{Value: []int64{count, count}, Label: map[string][]string{"groupname": {group}}}
	for _, f := range frames {
		s.Location = append(s.Location, &profile.Location{Mapping: &profile.Mapping{File: f[0]}, Line: []profile.Line{{Function: &profile.Function{Name: f[1], Filename: "/srv/app.py", StartLine: 5}}}})
	}
	return s
}

func TestFunctionsOfAProgramAreItsScripts(t *testing.T) {
	loop, own, native := [2]string{"/usr/bin/python3.11", "_PyEval_EvalFrameDefault"}, [2]string{"[cpython]", "parse"}, [2]string{"/usr/lib/libz.so", "inflate"}
	for name, c := range map[string]struct {
		samples []*profile.Sample
		want    string
		share   float64
	}{
		"a script":                      {[]*profile.Sample{sampleOf("python3", 80, loop, own), sampleOf("python3", 20, native), sampleOf("nginx", 900, native)}, "parse (srv/app.py:5)", 0.8},
		"in scripts for exactly half":   {[]*profile.Sample{sampleOf("python3", 50, loop, own), sampleOf("python3", 50, native)}, "parse (srv/app.py:5)", 0.5},
		"in scripts for less than that": {[]*profile.Sample{sampleOf("python3", 49, loop, own), sampleOf("python3", 51, native)}, "", 0},
		"few samples":                   {[]*profile.Sample{sampleOf("python3", leastStacks-1, loop, own)}, "", 0},
		"none":                          {nil, "", 0},
	} {
		got := scriptsOf([]string{"python3"}, []*profile.Profile{{Sample: c.samples}})
		switch {
		case c.want == "" && got != nil, c.want != "" && (len(got) != 1 || got[0].Function != c.want || got[0].Share != c.share):
			t.Errorf("%s: %+v, want %q %v", name, got, c.want, c.share)
		}
	}
}

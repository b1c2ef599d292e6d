package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is one line of go test -json; go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// test is a test's name, with those of the tests that it is part of: TestScripts/run_basic.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// pattern returns what -run takes for this test and no other. go test divides it, and
// the name, at each slash.
func (t test) pattern() string {
	parts := strings.Split(t.name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// pack is what became of one package.
type pack struct {
	states map[string]string   // by test: "run" until it ended, then "pass", "fail" or "skip"
	said   map[string][]string // by test, "" for the package itself
	failed bool
	ended  bool // its tests came to their end, and the program said so itself
}

// outcome is what one call of go test said.
type outcome struct {
	packs map[string]*pack
}

// read follows the output of go test -json, and prints a line for each package, with
// what its failed tests said.
func read(in io.Reader, out io.Writer) (*outcome, error) {
	o := &outcome{packs: map[string]*pack{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				e = event{Action: "build-output", Output: string(line)}
			}
			o.take(e, out)
		}
		if err == io.EOF {
			return o, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (o *outcome) take(e event, out io.Writer) {
	if e.Action == "build-output" || e.Package == "" {
		fmt.Fprint(out, e.Output)
		return
	}
	p := o.packs[e.Package]
	if p == nil {
		p = &pack{states: map[string]string{}, said: map[string][]string{}}
		o.packs[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.said[e.Test] = append(p.said[e.Test], e.Output)
	case "run", "pass", "fail", "skip":
		if e.Test != "" {
			p.states[e.Test] = e.Action
			if e.Action == "pass" || e.Action == "skip" {
				delete(p.said, e.Test)
			}
			return
		}
		p.failed = e.Action == "fail"
		p.ended = slices.Contains(p.said[""], "FAIL\n")
		p.print(out)
	}
}

// print writes the package's line, and what the tests said that did not pass.
func (p *pack) print(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(p.said)) {
		if name == "" || !p.failed {
			continue
		}
		for _, line := range p.said[name] {
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(out, line)
			}
		}
	}
	for _, line := range p.said[""] {
		if line != "PASS\n" && line != "FAIL\n" && (p.failed || isResult(line)) {
			fmt.Fprint(out, line)
		}
	}
}

// isResult says whether a line is what go test prints of a package without -v.
func isResult(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") || strings.HasPrefix(line, "---\t")
}

func (o *outcome) state(t test) string {
	if p := o.packs[t.pkg]; p != nil {
		return p.states[t.name]
	}
	return ""
}

// crash is how lines begin that tell of more than a failed test, in the test itself or
// in what it started.
var crash = regexp.MustCompile(`^\s*(panic: |fatal error: |WARNING: DATA RACE|goroutine \d+ \[|\*\*\* Test )`)

// again returns the tests to be run once more, or why none may be.
func (o *outcome) again() (list []test, why string) {
	for _, pkg := range slices.Sorted(maps.Keys(o.packs)) {
		p := o.packs[pkg]
		if !p.failed {
			continue
		}
		failed, why := p.again()
		if why != "" {
			return nil, pkg + " " + why
		}
		for _, name := range failed {
			list = append(list, test{pkg, name})
		}
	}
	switch {
	case len(list) == 0:
		return nil, "no test says that it failed"
	case len(list) > mostAgain:
		return nil, fmt.Sprintf("%d tests failed, and more than %d are no chance", len(list), mostAgain)
	}
	return list, ""
}

// again returns the package's failed tests, without those of which a part failed.
func (p *pack) again() (list []string, why string) {
	for _, lines := range p.said {
		for _, line := range lines {
			if crash.MatchString(line) {
				return nil, "said: " + strings.TrimSpace(line)
			}
		}
	}
	if !p.ended {
		return nil, "did not come to its end"
	}
	names := slices.Sorted(maps.Keys(p.states))
	for _, name := range names {
		switch p.states[name] {
		case "run":
			return nil, "did not come to the end of " + name
		case "fail":
			if !slices.ContainsFunc(names, func(n string) bool { return p.states[n] == "fail" && strings.HasPrefix(n, name+"/") }) {
				list = append(list, name)
			}
		}
	}
	if len(list) == 0 {
		return nil, "failed, and none of its tests did"
	}
	return list, ""
}

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// said are lines of go test -json, recorded and shortened: what a package's end looks like.
const (
	failedTest = `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"    a_test.go:3: waited in vain\n"}
{"Action":"fail","Package":"x/a","Test":"TestA"}
`
	failedEnd = `{"Action":"output","Package":"x/a","Output":"FAIL\n"}
{"Action":"output","Package":"x/a","Output":"FAIL\tx/a\t0.1s\n"}
{"Action":"fail","Package":"x/a"}
`
	cutEnd = `{"Action":"output","Package":"x/a","Output":"FAIL\tx/a\t0.1s\n"}
{"Action":"fail","Package":"x/a"}
`
	passedTest = `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"pass","Package":"x/a","Test":"TestA"}
`
	passedEnd = `{"Action":"output","Package":"x/a","Output":"PASS\n"}
{"Action":"output","Package":"x/a","Output":"ok  \tx/a\t0.1s\n"}
{"Action":"pass","Package":"x/a"}
`
)

// told makes a go test that says these things, one after the other; each that does not end well is an error.
func told(t *testing.T, calls *[][]string, texts ...string) func([]string, io.Writer) (*outcome, error) {
	return func(args []string, out io.Writer) (*outcome, error) {
		*calls = append(*calls, args)
		if len(texts) == 0 {
			t.Fatalf("one more run than was expected: %q", args)
		}
		text := texts[0]
		texts = texts[1:]
		o, err := read(strings.NewReader(text), out)
		if err == nil && !strings.HasSuffix(text, passedEnd) {
			err = errors.New("exit status 1")
		}
		return o, err
	}
}

func TestWhatIsRunAgain(t *testing.T) {
	started := `{"Action":"run","Package":"x/a","Test":"TestB"}` + "\n"
	outputOf := func(line string) string {
		return `{"Action":"output","Package":"x/a","Test":"TestA","Output":"` + line + `\n"}` + "\n"
	}
	var four string
	for _, name := range []string{"TestA", "TestB", "TestC", "TestD"} {
		four += strings.ReplaceAll(failedTest, "TestA", name)
	}
	for name, c := range map[string]struct {
		texts []string
		runs  int
		err   string // "" where all is well in the end
	}{
		"all pass":             {[]string{passedTest + passedEnd}, 1, ""},
		"the second time":      {[]string{failedTest + failedEnd, passedTest + passedEnd}, 2, ""},
		"twice":                {[]string{failedTest + failedEnd, failedTest + failedEnd}, 2, "failed twice: x/a TestA"},
		"not run the 2nd time": {[]string{failedTest + failedEnd, strings.ReplaceAll(passedTest, "TestA", "TestB") + passedEnd}, 2, "was not run again"},
		"four":                 {[]string{four + failedEnd}, 1, "4 tests failed"},
		"killed":               {[]string{failedTest + started + outputOf("signal: killed") + cutEnd}, 1, "did not come to its end"},
		"a test that exits":    {[]string{failedTest + started + cutEnd}, 1, "did not come to its end"},
		"unfinished":           {[]string{failedTest + started + failedEnd}, 1, "the end of TestB"},
		"panic":                {[]string{outputOf("panic: boom [recovered]") + failedTest + cutEnd}, 1, "panic: boom"},
		"panic of a program":   {[]string{failedTest + outputOf("        panic: boom") + failedEnd}, 1, "panic: boom"},
		"race":                 {[]string{outputOf("WARNING: DATA RACE") + failedTest + failedEnd}, 1, "DATA RACE"},
		"out of time":          {[]string{failedTest + outputOf("panic: test timed out after 60m0s") + cutEnd}, 1, "timed out"},
		"build":                {[]string{`{"ImportPath":"x/a","Action":"build-output","Output":"a.go:1: no\n"}` + "\n" + cutEnd}, 1, "did not come to its end"},
		"beside a build":       {[]string{failedTest + failedEnd + strings.ReplaceAll(cutEnd, "x/a", "x/b")}, 1, "x/b did not come"},
		"no test":              {[]string{failedEnd}, 1, "none of its tests"},
		"no package":           {[]string{"go: no such module\n"}, 1, "no test says"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls [][]string
			var out bytes.Buffer
			run := told(t, &calls, c.texts...)
			err := testAll([]string{"-timeout=60m", "./..."}, &out, run)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
			if len(calls) != c.runs {
				t.Errorf("%d runs, want %d", len(calls), c.runs)
			}
			if want := []string{"-count=1", "-run", "^TestA$", "-timeout=60m", "x/a"}; len(calls) == 2 && !slices.Equal(calls[1], want) {
				t.Errorf("the second was %q, want %q", calls[1], want)
			}
			if again := strings.Contains(out.String(), "passed at the second try: x/a TestA"); again != (c.runs == 2 && c.err == "") {
				t.Errorf("it says:\n%s", &out)
			}
		})
	}
}

// Names are as odd as Go lets them be, and what is run again is what failed, alone.
func TestOddNamesAreRunAgain(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n",
		"a/a_test.go": `package a
import ("os"; "testing")
func TestFlaky(t *testing.T) {
	for _, name := range []string{"a b|c(", "q/r", "well"} {
		t.Run(name, func(t *testing.T) {
			f, err := os.OpenFile("ran", os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
			if err != nil { t.Fatal(err) }
			defer f.Close()
			f.WriteString(name+"\n")
			if _, err := os.Stat("second"); err != nil && name != "well" { t.Error("did not get what it waited for") }
			if name == "well" { os.WriteFile("second", nil, 0o600) }
		})
	}
}
`,
		"b/b_test.go": "package b\nimport \"testing\"\nfunc TestQuiet(t *testing.T) { t.Log(\"quiet\") }\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := testAll([]string{"./..."}, &out, goTest); err != nil {
		t.Fatalf("%v; it said:\n%s", err, &out)
	}
	ran, err := os.ReadFile("a/ran")
	if want := "a b|c(\nq/r\nwell\na b|c(\nq/r\n"; err != nil || string(ran) != want {
		t.Errorf("%v, there ran:\n%swant:\n%s", err, ran, want)
	}
	for _, want := range []string{"passed at the second try: x/a TestFlaky/a_b|c( ", "passed at the second try: x/a TestFlaky/q/r ", "did not get what it waited for", "ok  \tx/b"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "quiet") || strings.Contains(out.String(), "=== RUN") {
		t.Errorf("it says what nobody needs:\n%s", &out)
	}
}

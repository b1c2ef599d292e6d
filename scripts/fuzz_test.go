// Package scripts holds what the scripts beside it do.
package scripts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// targets are one that Go's fuzzer breaks off by its own deadline, as it says then, and two
// that fail for themselves, one of them with the same words.
const targets = `package x

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if strings.Contains(flag.Lookup("test.fuzz").Value.String(), "FuzzDeadline") {
		fmt.Println("fuzz: elapsed: 1s, execs: 7 (7/sec), new interesting: 0 (total: 1)")
		fmt.Println("--- FAIL: FuzzDeadline (1.03s)\n    context deadline exceeded\nFAIL")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func FuzzDeadline(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }

func FuzzSaysSo(f *testing.F) {
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, _ []byte) { t.Fatal("context deadline exceeded") })
}

func FuzzPanics(f *testing.F) {
	f.Add([]byte("x"))
	f.Fuzz(func(*testing.T, []byte) { panic("context deadline exceeded") })
}
`

// A night of fuzzing ends with an error where a target fails, and only then.
func TestFuzzTellsGosDeadlineFromAFailure(t *testing.T) {
	script, err := filepath.Abs("fuzz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(dir+"/go.mod", []byte("module m\n\ngo 1.24\n"), 0o600), os.Mkdir(dir+"/x", 0o700), os.WriteFile(dir+"/x/x_test.go", []byte(targets), 0o600)); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"FuzzDeadline": "ok (broken off by Go's own deadline)", "FuzzSaysSo": "FAILED", "FuzzPanics": "FAILED"} {
		cmd := exec.Command(script, "-c", t.TempDir(), "1s", target)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var line string
		for l := range strings.Lines(string(out)) {
			if f := strings.Fields(l); len(f) > 1 && f[1] == target {
				line = l
			}
		}
		if !strings.HasSuffix(strings.TrimSpace(line), want) || (err != nil) != (want == "FAILED") {
			t.Errorf("%s: want %s: %v\n%s", target, want, err, out)
		}
	}
}

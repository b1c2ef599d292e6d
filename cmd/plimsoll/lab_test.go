package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"plimsoll/internal/lab"
	"plimsoll/internal/model"
)

// exactCases are faults that an exact counter or message decides, so that a
// busy machine cannot change their verdict. The other cases judge how time was
// spent; they belong to "plimsoll lab run" on a quiet machine. Connections that nginx
// has no room for are named, and mended, in the script tune_command.
var exactCases = []string{"conntrack-full", "upstream-ports", "client-ports"}

// TestExactFaultsAreNamed causes real faults in network namespaces and wants
// the program to name each. That a noisy machine may have another cause
// beside it (its CPUs are taken) is allowed here.
func TestExactFaultsAreNamed(t *testing.T) {
	t.Parallel() // it counts, and measures nothing
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	dir := t.TempDir()
	out, said, err := runLab(t, dir)
	for busy := regexp.MustCompile(`another lab command is at work \(it holds (.+?)\)`); err != nil; out, said, err = runLab(t, dir) {
		held := busy.FindStringSubmatch(said)
		if held == nil {
			break
		}
		letGo(t, held[1])
	}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitNotPassed) {
		t.Fatalf("lab run: %v\n%s", err, said)
	}
	var doc struct{ Results []lab.Result }
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("lab run --json: %v\n%s", err, out)
	}
	fitsSchema(t, "CaseRuns", out)
	if len(doc.Results) != len(exactCases) {
		t.Fatalf("%d results for %d cases", len(doc.Results), len(exactCases))
	}
	for _, r := range doc.Results {
		named := slices.ContainsFunc(r.Truth.Root, func(rule string) bool { return slices.Contains(r.Named, rule) })
		if r.Answer != model.AnswerCause || !named {
			t.Errorf("%s: the answer is %q, named %v; the truth is %v", r.Case, r.Answer, r.Named, r.Truth.Root)
		}
		total := int64(0)
		for _, n := range r.Report.Load.Outcomes {
			total += n
		}
		l := r.Report.Load
		if total != l.Requests+l.FailedAttempts { // closed loops
			t.Errorf("%s: %d outcomes for %d requests and %d failed attempts to connect", r.Case, total, l.Requests, l.FailedAttempts)
		}
	}
}

// runLab runs the exact cases, and returns what it printed and what it said.
func runLab(t *testing.T, dir string) (out []byte, said string, err error) {
	cmd := exec.CommandContext(t.Context(), "plimsoll", append([]string{"lab", "run", "--json"}, exactCases...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PLIMSOLL_RUNS="+filepath.Join(dir, "runs"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err = cmd.Output()
	return out, stderr.String(), err
}

// letGo waits until whoever works in the lab, a person perhaps, has let go of it.
func letGo(t *testing.T, held string) {
	dir, err := os.Open(held)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("wait for %s: %v", held, err)
	}
}

package requests

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"plimsoll/internal/trace/tracetest"
)

// startProcess starts one that says a line when it is ready, and ends with its
// standard input.
func startProcess(t *testing.T, path, env string, args ...string) string {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(line, err)
	}
	return strings.TrimSpace(line)
}

// startDaemon starts a service that stays in the foreground, until the test is over;
// ready says whether it listens.
func startDaemon(t *testing.T, ready func() bool, args ...string) {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(path, args[1:]...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // both nginx and redis end at once
		_ = cmd.Wait()                       // how it ends is its own affair
		if t.Failed() {
			t.Log(said.String())
		}
	})
	tracetest.Eventually(t, args[0]+" listens", ready)
}

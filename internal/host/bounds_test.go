package host

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFileWithoutEnd(t *testing.T) {
	if _, err := ReadFile("/dev/zero"); !errors.Is(err, unix.EFBIG) {
		t.Errorf("%v, want EFBIG", err)
	}
	if b, err := ReadHead("/dev/zero", 5000); len(b) != 5000 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A process says how long its command line is; a thousand of such would be held.
func TestALongCommandLineIsCutOff(t *testing.T) {
	args := []string{"-c", "echo; read x"}
	for range 10 {
		args = append(args, strings.Repeat("x", 100_000))
	}
	c := exec.Command("sh", args...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); c.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil { // now it is sh
		t.Fatal(err)
	}
	p, err := readProc("/proc", c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(p.Args, " "); len(all) > MaxCommandLine || !strings.HasPrefix(all, "sh -c") {
		t.Errorf("%d bytes: %.20s", len(all), all)
	}
}
